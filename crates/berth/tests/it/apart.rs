//! Two people's sessions that really run, side by side on one machine, each with a shell in its sandbox: whatever one has
//! of the other's, a word, a key, a code, a socket's path, an address, a process's number, opens nothing.
//!
//! Everything that is refused is also done by whom it belongs to, so that a test which asks for nothing cannot pass.

mod attacks;
mod people;
mod system_calls;

use std::path::{Path, PathBuf};

use reqwest::header::{AUTHORIZATION, COOKIE};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::desk::Desk;
use berth_testkit::wait;
use people::{Person, SOON, site};

async fn status(request: RequestBuilder) -> u16 {
    request.send().await.expect("an answer").status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_session_has_of_anothers_opens_nothing() {
    let desk = site().await;
    let bo = Person::at_work(&desk, "bo").await;
    let cy = Person::at_work(&desk, "cy").await;
    for (one, other) in [(&bo, &cy), (&cy, &bo)] {
        keys_and_codes(one, other).await;
        words_at_the_hub(one, other).await;
        files_and_sockets(&desk, one, other).await;
        processes(one, other).await;
        addresses(one, other).await;
    }
    for (one, other) in [(&bo, &cy), (&cy, &bo)] {
        foreign_words(one, other).await;
        foreign_word_is_recorded(&desk, one).await;
    }
    bo.end().await;
    cy.end().await;
}

/// What lets `one` into their own session does not let anybody into the other's.
async fn keys_and_codes(one: &Person, other: &Person) {
    for (shown, what) in [
        ((COOKIE, one.visit.clone()), "a visit"),
        ((COOKIE, one.sign_in.clone()), "a sign-in"),
        ((AUTHORIZATION, format!("Bearer {}", one.token)), "a token"),
        ((AUTHORIZATION, format!("token {}", one.word)), "a word"),
        ((AUTHORIZATION, format!("Bearer {}", one.word)), "a word"),
    ] {
        let (header, value) = shown;
        let there = other.at_session(Method::GET, "/").header(&header, &value);
        let there = status(there).await;
        assert!([401, 403, 404].contains(&there), "{what}: {there}");
        let lines = other.at_session(Method::POST, "/").body("id");
        let there = status(lines.header(&header, &value)).await;
        assert!([401, 403, 404].contains(&there), "{what}: {there}");
        let here = one.at_session(Method::GET, "/").header(&header, &value);
        let is_key = what == "a visit" || what == "a token";
        assert_eq!(status(here).await == 200, is_key, "{what}, at one's own");
    }
    // A code is for one session, and is not spoilt by being tried at another.
    let code = one.code().await;
    assert_eq!(other.spend(&code).await, (410, None));
    let (status_at_own, key) = one.spend(&code).await;
    assert_eq!((status_at_own, key.is_some()), (303, true));
    // Nor is anybody led to the other's door, who has no business there.
    let open = one.to_berth(Method::GET, &format!("/open/{}", other.label));
    assert_eq!(status(open.header(COOKIE, &one.sign_in)).await, 404);
    let line = format!("session show {}", other.label);
    one.desk.run(&line).ends_with(4);
}

/// The word of `one`'s server names that server alone, wherever it is shown.
async fn words_at_the_hub(one: &Person, other: &Person) {
    let asks = |method: Method, path: String| {
        let word = format!("token {}", one.word);
        let request = one.to_berth(method, &format!("/hub/api{path}"));
        request.header(AUTHORIZATION, word)
    };
    let (own, theirs) = (one.login, other.login);
    let answer = asks(Method::GET, "/user".to_owned()).send().await;
    let named: Value = answer.expect("it").json().await.expect("JSON");
    assert_eq!(named["name"], own);
    let acted = json!({"servers": {"shell": {"last_activity": "2026-01-01T00:00:00Z"}}});
    for (method, path, expected) in [
        (Method::POST, format!("/users/{own}/activity"), 200),
        (Method::POST, format!("/users/{theirs}/activity"), 403),
        (Method::GET, format!("/users/{theirs}"), 403),
        (Method::GET, format!("/users/{theirs}/tokens"), 403),
        (Method::POST, format!("/users/{theirs}/tokens"), 403),
        (
            Method::DELETE,
            format!("/users/{theirs}/servers/shell"),
            403,
        ),
    ] {
        let request = asks(method, path.clone()).json(&acted);
        assert_eq!(status(request).await, expected, "{path}");
    }
    let api = one.to_berth(Method::GET, "/api/v1/me");
    let api = api.header(AUTHORIZATION, format!("Bearer {}", one.word));
    assert_eq!(status(api).await, 401, "it is no token of Berth's");
    // From inside the other's sandbox it is good for nothing at all, not even to say whose it is.
    let inside = |word: &str| {
        format!(
            "curl -s -m 20 -o /dev/null -w '%{{http_code}}' -H 'Authorization: token {word}' \
             http://127.0.0.1:8081/hub/api/user"
        )
    };
    assert_eq!(other.shell(&inside(&other.word)).await, "200");
    assert_eq!(other.shell(&inside(&one.word)).await, "403");
    assert_eq!(other.shell(&inside(&one.token)).await, "403");
    assert_eq!(other.shell(&inside(&other.token)).await, "403");
    // Nor does it spend what was meant for the other.
    let spend = |word: &str| {
        format!(
            "curl -s -m 20 -w '%{{http_code}}' http://127.0.0.1:8081/hub/api/oauth2/token \
             -d grant_type=authorization_code -d client_id=session-{} -d client_secret={word} \
             -d code=x -d redirect_uri=http://{}/oauth_callback",
            other.label, other.host
        )
    };
    let refused = other.shell(&spend(&other.word)).await;
    assert_eq!(refused, "{\"error\":\"invalid_grant\"}400");
    let refused = other.shell(&spend(&one.word)).await;
    assert!(refused.ends_with("403"), "{refused}");
}

/// From inside `one`'s sandbox the other's word is shown to the hub, many times.
async fn foreign_words(one: &Person, other: &Person) {
    let ask = format!(
        "for i in $(seq 40); do curl -s -m 20 -o /dev/null -H 'Authorization: token {}' \
         http://127.0.0.1:8081/hub/api/user; done",
        other.word
    );
    one.shell(&ask).await;
}

/// The site's admin reads the sum, in a few entries.
async fn foreign_word_is_recorded(desk: &Desk, one: &Person) {
    let run = one.shell("printf %s \"$BERTH_RUN\"").await;
    let entries = wait::some("the attempts in the audit log", SOON, async || {
        let listed = desk.run("audit list --action run.attempt -o json");
        let listed = listed.succeeds().json();
        let entries = listed["items"].as_array().or(listed.as_array())?.clone();
        let own = entries
            .into_iter()
            .filter(|entry| entry["after"]["run"] == run.as_str());
        let sums = own.filter_map(|entry| entry["after"]["foreign_word"].as_u64());
        let sums: Vec<u64> = sums.collect();
        // Of more than forty, as a sum is recorded when it has doubled.
        sums.iter().any(|sum| *sum > 20).then_some(sums)
    });
    let entries = entries.await;
    assert!(entries.len() <= 7, "a flood is summed: {entries:?}");
}

/// From inside `one`'s sandbox nothing of the other's, nor of the server's own, is on the disk.
async fn files_and_sockets(desk: &Desk, one: &Person, other: &Person) {
    let note = format!("/tmp/note-of-{}", other.login);
    other
        .shell(&format!("echo secret | tee diary > {note}"))
        .await;
    let own = other.shell(&format!("cat diary {note}")).await;
    assert_eq!(own, "secret\nsecret\n");
    let directory = desk.server().directory();
    let home = home_of(directory, other);
    assert!(home.join("diary").exists(), "it is on the disk");
    let hub = directory.join("work/hub.sock");
    let sockets = [other.folder.join("app.sock"), hub];
    for socket in sockets {
        assert!(socket.exists(), "{}", socket.display());
        let said = one.shell(&connect(&socket)).await;
        assert!(said.contains("FileNotFoundError"), "{said}");
    }
    let own = one.shell(&connect(Path::new("/run/berth/app.sock"))).await;
    assert_eq!(own, "it is open\n");
    for file in [
        home.join("diary"),
        PathBuf::from(format!("/home/{}/diary", other.login)),
        PathBuf::from(note),
        other.folder.join("spec.json"),
        other.folder.clone(),
        directory.join("berth.toml"),
    ] {
        let look = format!("ls -d {0} || cat {0}", file.display());
        let said = one.shell(&look).await;
        let missing = said.matches("No such file or directory").count();
        assert_eq!(missing, 2, "{}: {said}", file.display());
    }
    // Sockets without a file are those of one's own network.
    let listener = format!("listener-of-{}", other.login);
    other.shell(&NAMED.replace("{name}", &listener)).await;
    let names = "cat /proc/net/unix";
    assert!(other.shell(names).await.contains(&listener));
    assert!(!one.shell(names).await.contains(&listener));
}

/// A socket that has a name and no file, and is there when this has ended.
const NAMED: &str = r#"
python3 -c '
import os, socket
listener = socket.socket(socket.AF_UNIX)
listener.bind("\0{name}")
listener.listen()
if os.fork() == 0:
    os.setsid()
    os.close(1), os.close(2)
    listener.accept()
'"#;

fn home_of(directory: &Path, person: &Person) -> PathBuf {
    let spec = std::fs::read(person.folder.join("spec.json")).expect("its spec");
    let spec: Value = serde_json::from_slice(&spec).expect("JSON");
    let home = PathBuf::from(spec["home"].as_str().expect("a home"));
    assert!(home.starts_with(directory), "{}", home.display());
    home
}

fn connect(socket: &Path) -> String {
    format!(
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{}\"); print(\"it is open\")' 2>&1",
        socket.display()
    )
}

/// Nobody sees the other's processes, reads what they were told, or ends them.
async fn processes(one: &Person, other: &Person) {
    let canary = format!("canary-of-{}", other.login);
    let start = format!(
        "(setsid bash -c 'exec -a {canary} sleep 600' >/dev/null 2>&1 &)
         until pgrep -f ^{canary} >/dev/null; do sleep 0.05; done"
    );
    other.shell(&start).await;
    let listed = "cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' ' '";
    let own = other.shell(listed).await;
    assert!(own.contains(&canary) && own.contains(&other.word), "{own}");
    let seen = one.shell(listed).await;
    for hidden in [&canary, &other.word, &format!("/home/{}", other.login)] {
        assert!(!seen.contains(hidden), "`{hidden}` is seen: {seen}");
    }
    // Outside it has a number, which means nothing inside.
    let number = on_the_machine(&canary);
    let said = one
        .shell(&format!("kill -9 {number}; ls /proc/{number}; true"))
        .await;
    assert!(said.contains("No such process"), "{said}");
    assert!(said.contains("No such file or directory"), "{said}");
    assert_eq!(on_the_machine(&canary), number, "it still runs");
    other.shell(&format!("pkill -f ^{canary}; true")).await;
}

/// The process of this machine with this name.
fn on_the_machine(name: &str) -> u32 {
    let processes = std::fs::read_dir("/proc").expect("it is there");
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_it = |number: &u32| {
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        line.starts_with(name.as_bytes())
    };
    let mut found = numbers.filter(is_it);
    found.next().expect("it runs")
}

/// What listens in the other's network, and the server itself, are at no address that `one` can reach.
async fn addresses(one: &Person, other: &Person) {
    let serve =
        "cd /tmp; setsid python3 -m http.server 7777 --bind 0.0.0.0 >/dev/null 2>&1 & echo $!";
    let server = other.shell(serve).await;
    let knock = "for i in $(seq 600); do curl -s -m 5 -o /dev/null http://127.0.0.1:7777/ && break; sleep 0.1; done";
    let own = other
        .shell(&format!(
            "{knock}; hostname -I 2>/dev/null || ip -o -4 addr"
        ))
        .await;
    let reach = |host: &str, port: u16| {
        format!("curl -s -m 3 -o /dev/null http://{host}:{port}/ && echo reached || echo refused")
    };
    assert_eq!(other.shell(&reach("127.0.0.1", 7777)).await, "reached\n");
    for host in ["127.0.0.1", "10.0.2.2", "10.0.2.100", "10.0.2.15", "berth"] {
        let said = one.shell(&reach(host, 7777)).await;
        assert_eq!(said, "refused\n", "{host}:7777, which is at {own}");
        let said = one.shell(&reach(host, one.port)).await;
        assert_eq!(said, "refused\n", "the server, at {host}");
    }
    let said = one.shell(&reach("169.254.169.254", 80)).await;
    assert_eq!(said, "refused\n", "what clouds tell their machines");
    other.shell(&format!("kill {server}")).await;
}

/// Whoever can say what a name means may choose any address. A name that means this machine opens nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_opened_and_means_this_machine_opens_nothing() {
    let desk = people::site_with("opened_networks = ['localhost', 'nobody.invalid']\n").await;
    let bo = Person::at_work(&desk, "bo").await;
    for host in ["127.0.0.1", "10.0.2.2"] {
        let ask = format!(
            "curl -s -m 3 -o /dev/null http://{host}:{}/ && echo reached || echo refused",
            bo.port
        );
        assert_eq!(bo.shell(&ask).await, "refused\n", "the server, at {host}");
    }
    assert_eq!(
        bo.shell("ip route get 127.0.0.1 | grep -c tap0").await,
        "0\n"
    );
    let log = desk.server().log();
    for why in ["is 127.0.0.1, which no name opens", "cannot be resolved"] {
        assert!(log.contains(why), "{log}");
    }
    bo.end().await;
}
