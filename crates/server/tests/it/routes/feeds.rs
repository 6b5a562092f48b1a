//! Feeds at their secret addresses: what they show, to whom, and for how long.

use std::io::Write;
use std::process::{Command, Stdio};

use berth_testkit::tool;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::support::Lab;

const FEEDS: &str = "/me/feeds";
const RESERVATIONS: &str = "/sites/torino/reservations";

/// The lines of a feed, joined again where they were folded.
fn lines(text: &str) -> Vec<String> {
    assert!(text.ends_with("END:VCALENDAR\r\n"), "{text}");
    assert!(text.split("\r\n").all(|line| line.len() <= 75), "{text}");
    text.replace("\r\n ", "")
        .lines()
        .map(str::to_owned)
        .collect()
}

/// What each event says of one property, in the order of the feed; `-` for those that do not say.
fn each(text: &str, property: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in lines(text) {
        if line == "BEGIN:VEVENT" {
            found.push("-".to_owned());
        }
        let (name, value) = line.split_once([':', ';']).expect("a property");
        if name == property
            && let Some(last) = found.last_mut()
        {
            *last = value.to_owned();
        }
    }
    found
}

async fn feed(lab: &Lab, login: &str, mut new: Value) -> String {
    new["label"] = json!("a test");
    let made = lab.hand(login).post(FEEDS, new).await.is(201);
    made["address"].as_str().expect("an address").to_owned()
}

#[tokio::test]
async fn my_bookings_in_their_words_and_states() {
    let lab = Lab::new().await;
    let ada = lab.hand("ada");
    let address = feed(&lab, "ada", json!({})).await;
    assert!(
        address.starts_with("/feeds/") && address.ends_with(".ics"),
        "{address}"
    );

    let mut first = lab.booking(&["gpu-01", "gpu-02"], 0..2);
    first["title"] = json!(
        "Training; round 2, “naïve” \\ 图像生成模型的长时间训练与评估，以及所有后续实验的准备工作"
    );
    let first = ada.post(RESERVATIONS, first).await.is(201);
    let pending = ada
        .post(RESERVATIONS, lab.booking(&["laser"], 2..3))
        .await
        .is(201);
    let gone = ada
        .post(RESERVATIONS, lab.booking(&["rack-b"], 4..5))
        .await
        .is(201);
    lab.hand("bob")
        .post(RESERVATIONS, lab.booking(&["rack-b"], 6..7))
        .await
        .is(201);
    let path = format!("{RESERVATIONS}/{}/cancel", gone.id());
    ada.post(&path, json!({})).await.is(200);

    let (status, headers, text) = lab.read(&address, &[]).await;
    assert_eq!(status, 200, "{text}");
    assert_eq!(headers["content-type"], "text/calendar; charset=utf-8");
    assert_eq!(headers["cache-control"], "private, no-cache");
    let ids = [&first, &pending, &gone].map(|booked| format!("{}@berth", booked.id()));
    assert_eq!(each(&text, "UID"), ids, "bob's is not ada's");
    assert_eq!(
        each(&text, "STATUS"),
        ["CONFIRMED", "TENTATIVE", "CANCELLED"]
    );
    assert_eq!(each(&text, "SEQUENCE"), ["1", "1", "2"]);
    assert_eq!(each(&text, "LOCATION")[0], "gpu-01\\, gpu-02");
    assert_eq!(
        each(&text, "CATEGORIES"),
        ["server", "instrument", "server"]
    );
    assert_eq!(
        each(&text, "SUMMARY")[0],
        "Training\\; round 2\\, “naïve” \\\\ 图像生成模型的长时间训练与评估，以及所有后续实验的准备工作"
    );
    assert!(
        each(&text, "DTSTART")[0].starts_with("TZID=Europe/Rome:"),
        "{text}"
    );

    // A copy that is still good is not sent again; after a change it is, with a higher number.
    let tag = headers["etag"].to_str().unwrap().to_owned();
    let (status, _, text) = lab.read(&address, &[("if-none-match", &tag)]).await;
    assert_eq!((status, text.as_str()), (304, ""));
    let path = format!("{RESERVATIONS}/{}", first.id());
    ada.knowing(&first)
        .patch(&path, json!({"title": "Other"}))
        .await
        .is(200);
    let (status, _, text) = lab.read(&address, &[("if-none-match", &tag)]).await;
    assert_eq!(status, 200);
    assert_eq!(
        (each(&text, "UID"), each(&text, "SEQUENCE")[0].as_str()),
        (ids.to_vec(), "2")
    );
}

#[tokio::test]
async fn what_a_feed_shows_is_what_its_maker_may_see_now() {
    let lab = Lab::new().await;
    let (ada, bob, adele) = (lab.hand("ada"), lab.hand("bob"), lab.hand("adele"));
    let mut private = lab.booking(&["gpu-01", "rack-b"], 0..2);
    private["privacy"] = json!("private");
    private["title"] = json!("secret plans");
    let private = ada.post(RESERVATIONS, private).await.is(201);
    let open = ada
        .post(RESERVATIONS, lab.booking(&["gpu-02"], 3..4))
        .await
        .is(201);
    let window = json!({
        "title": "Firmware", "resources": ["rack-a"], "start": lab.at(10), "end": lab.at(12),
    });
    let window = adele
        .post("/sites/torino/maintenance", window)
        .await
        .is(201);

    let site = json!({"site": "torino"});
    let bobs = feed(&lab, "bob", site.clone()).await;
    let adas = feed(&lab, "ada", site).await;
    let (_, _, seen) = lab.read(&bobs, &[]).await;
    assert_eq!(
        each(&seen, "SUMMARY"),
        ["Busy", "Busy", "fine tuning", "Maintenance: Firmware"]
    );
    assert!(
        !seen.contains(private.id()) && !seen.contains("secret plans"),
        "{seen}"
    );
    assert!(seen.contains(open.id()) && seen.contains(window.id()));
    let (_, _, own) = lab.read(&adas, &[]).await;
    assert_eq!(
        each(&own, "SUMMARY"),
        ["secret plans", "fine tuning", "Maintenance: Firmware"]
    );

    // A resource shows what occupies it, from above and from below; a type what occupies any of its kind.
    for (new, expected) in [
        (
            json!({"site": "torino", "resource": "gpu-02"}),
            vec!["fine tuning", "Maintenance: Firmware"],
        ),
        (
            json!({"site": "torino", "resource": "rack-a"}),
            vec!["Busy", "fine tuning", "Maintenance: Firmware"],
        ),
        (json!({"site": "torino", "resource": "laser"}), vec![]),
        (json!({"site": "torino", "type": "instrument"}), vec![]),
        (
            json!({"site": "torino", "type": "server"}),
            vec!["Busy", "Busy", "fine tuning", "Maintenance: Firmware"],
        ),
    ] {
        let address = feed(&lab, "bob", new.clone()).await;
        let (_, _, text) = lab.read(&address, &[]).await;
        assert_eq!(each(&text, "SUMMARY"), expected, "{new}");
    }

    // Who leaves gets nothing any more, not even the names; who comes back sees it again.
    adele.delete("/sites/torino/members/bob").await.is(200);
    let (status, _, left) = lab.read(&bobs, &[]).await;
    assert_eq!((status, each(&left, "UID").len()), (200, 0));
    assert!(!left.to_lowercase().contains("torino"), "{left}");
    // An outsider sees as much as the site shows to outsiders.
    let show = json!({"outsiders_see": "free_busy"});
    adele
        .with("if-match", "*")
        .patch("/sites/torino", show)
        .await
        .is(200);
    let (_, _, outside) = lab.read(&bobs, &[]).await;
    assert_eq!(each(&outside, "SUMMARY"), ["Busy"; 4]);
    assert!(
        !outside.contains(open.id()) && !outside.contains(window.id()),
        "{outside}"
    );
    adele
        .put("/sites/torino/members/bob", json!({"role": "site_admin"}))
        .await
        .is(200);
    let (_, _, back) = lab.read(&bobs, &[]).await;
    assert_eq!(
        each(&back, "SUMMARY"),
        ["secret plans", "fine tuning", "Maintenance: Firmware"]
    );
    assert_eq!(bob.get(FEEDS).await.is(200).each("label").len(), 6);
}

#[tokio::test]
async fn a_feed_ends_when_it_is_revoked_or_its_maker_may_not_sign_in() {
    let lab = Lab::new().await;
    let (ada, root) = (lab.hand("ada"), lab.hand("root"));
    let made = ada
        .with("idempotency-key", "k")
        .post(FEEDS, json!({"label": "phone"}))
        .await
        .is(201);
    let again = ada
        .with("idempotency-key", "k")
        .post(FEEDS, json!({"label": "phone"}))
        .await
        .is(200);
    assert_eq!(again["feed"], made["feed"]);
    assert!(again["address"].is_null(), "shown once");
    let address = made["address"].as_str().unwrap();
    assert_eq!(
        ada.get(FEEDS).await.is(200).each("last_read_at"),
        [&Value::Null]
    );
    assert_eq!(lab.read(address, &[]).await.0, 200);
    let listed = ada.get(FEEDS).await.is(200);
    assert!(listed.each("last_read_at")[0].is_string());
    let secret = address
        .trim_start_matches("/feeds/")
        .trim_end_matches(".ics");
    assert!(!listed.body.to_string().contains(secret));

    let suspend = |suspended: bool| json!({"suspended": suspended});
    root.with("if-match", "*")
        .patch("/people/ada", suspend(true))
        .await
        .is(200);
    let (status, _, suspended) = lab.read(address, &[]).await;
    root.with("if-match", "*")
        .patch("/people/ada", suspend(false))
        .await
        .is(200);
    assert_eq!(lab.read(address, &[]).await.0, 200);
    let (_, _, unknown) = lab.read("/feeds/nonsense.ics", &[]).await;
    assert_eq!(
        (status, &suspended),
        (404, &unknown),
        "not to be told apart"
    );

    let path = format!("{FEEDS}/{}", made["feed"]["id"].as_str().unwrap());
    lab.hand("bob")
        .delete(&path)
        .await
        .refuses(404, "object.not_found");
    ada.delete(&path).await.is(204);
    ada.delete(&path).await.refuses(404, "object.not_found");
    assert_eq!(lab.read(address, &[]).await.2, unknown);
    for wrong in [
        json!({"label": "x", "resource": "gpu-01"}),
        json!({"label": "x", "site": "torino", "resource": "gpu-01", "type": "server"}),
        json!({"label": ""}),
    ] {
        ada.post(FEEDS, wrong).await.refuses(422, "request.invalid");
    }
    let nowhere = json!({"label": "x", "site": "torino", "resource": "nothing"});
    ada.post(FEEDS, nowhere)
        .await
        .refuses(404, "object.not_found");
    lab.hand("otto")
        .post(FEEDS, json!({"label": "x", "site": "torino"}))
        .await
        .refuses(404, "object.not_found");
}

/// The events of a feed as Python's icalendar package reads them.
fn as_python_reads(text: &str) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/routes/read_feed.py");
    let mut python = Command::new(tool::python_with_icalendar().unwrap())
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    python
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = python.wait_with_output().unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complained}\n{text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn another_project_s_parser_reads_the_same() {
    let lab = Lab::new().await;
    let (ada, adele) = (lab.hand("ada"), lab.hand("adele"));
    let address = feed(&lab, "ada", json!({})).await;
    let now = lab.app.now();
    let hours = SignedDuration::from_hours;
    let zones = [
        "Europe/Rome",
        "America/New_York",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
        "UTC",
    ];
    // Around every change of a clock in the coming year: over it, in the hour before, in the one after.
    let mut moments: Vec<Timestamp> = zones
        .iter()
        .flat_map(|name| {
            let zone = TimeZone::get(name).unwrap();
            let changes = zone.following(now + hours(48)).take(2);
            let changes: Vec<Timestamp> = changes.map(|change| change.timestamp()).collect();
            changes.into_iter().filter(|at| *at < now + hours(360 * 24))
        })
        .collect();
    assert!(moments.len() >= 5, "{moments:?}");
    moments.push(now + hours(30));
    let titles = [
        "naïve, “fine”; \\n not a line",
        "图像生成模型的长时间训练与评估，以及所有后续实验的准备工作 🧪🧪🧪",
        "a:b",
    ];
    let mut expected = Vec::new();
    for (nth, moment) in moments.iter().enumerate() {
        let moment = moment.round(jiff::Unit::Second).unwrap();
        let half = SignedDuration::from_mins(30);
        for (resources, start, end) in [
            (
                vec!["gpu-01", "laser"],
                moment - hours(1),
                moment + hours(1),
            ),
            (vec!["gpu-02"], moment - half, moment),
            (vec!["rack-b"], moment, moment + half),
        ] {
            let mut new = lab.booking(&resources, 0..1);
            let title = format!("{} {nth}", titles[nth % titles.len()]);
            new["title"] = json!(title);
            (new["start"], new["end"]) = (json!(start), json!(end));
            let booked = ada.post(RESERVATIONS, new).await.is(201);
            let kinds = if resources.len() == 2 {
                vec!["instrument", "server"]
            } else {
                vec!["server"]
            };
            expected.push(json!({
                "uid": format!("{}@berth", booked.id()), "start": start, "end": end, "summary": title,
                "location": resources.join(", "), "sequence": 1, "categories": kinds,
                "status": if resources.len() == 2 { "TENTATIVE" } else { "CONFIRMED" },
            }));
        }
    }
    let sorted = |mut events: Vec<Value>| {
        events.sort_by_key(|event| event["uid"].as_str().unwrap().to_owned());
        events
    };
    let expected = sorted(expected);
    for zone in zones {
        let change = json!({"time_zone": zone});
        adele
            .with("if-match", "*")
            .patch("/sites/torino", change)
            .await
            .is(200);
        let (_, _, text) = lab.read(&address, &[]).await;
        assert_eq!(sorted(as_python_reads(&text)), expected, "{zone}");
        // Under a name that no database has, only what is written out can tell the hour.
        let own = text
            .replace(&format!("TZID={zone}:"), "TZID=Lab/Own:")
            .replace(&format!("TZID:{zone}"), "TZID:Lab/Own");
        assert!(zone == "UTC" || own != text);
        assert_eq!(
            sorted(as_python_reads(&own)),
            expected,
            "{zone} as written out"
        );
    }
}
