//! Everything that can be read: by people of every role over the API, and by whoever gets at the machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use berth_testkit::server::BerthServer;
use berth_testkit::tool;
use serde_json::Value;

use super::canaries::Readable;
use super::planting::after;
use crate::support::ground::Ground;
use crate::support::http::Http;
use crate::support::world::World;

const ROLES: [&str; 7] = ["root", "adele", "ada", "bob", "otto", "bea", "bruno"];

/// What every read of the API answers to people of every role, the site as open as it can be.
pub async fn answers(http: &Http, world: &World, reservation: &str) -> Vec<Readable> {
    let root = world.who("root");
    let open = http
        .request(&root, "PATCH", "/sites/torino")
        .header("if-match", "*");
    http.send(open.json(&serde_json::json!({"outsiders_see": "free_busy"})))
        .await
        .expect(200);
    let document = serde_json::to_value(berth_server::openapi()).expect("the document");
    let paths = document["paths"].as_object().expect("paths");
    let mut answers = Vec::new();
    let mut read = 0;
    for (path, item) in paths.iter().filter(|(_, item)| item.get("get").is_some()) {
        let Some(path) = fill(path, &item["get"], reservation) else {
            continue;
        };
        for role in ROLES {
            let answer = http.get(&world.who(role), &path).await;
            read += usize::from(answer.status == 200);
            answers.push((format!("GET {path} as {role}"), answer.text.into_bytes()));
        }
    }
    assert!(read > 60, "only {read} reads were answered");
    answers
}

/// The path with things that there are; none for what has no end, or of which there is nothing.
fn fill(path: &str, operation: &Value, reservation: &str) -> Option<String> {
    if operation["operationId"] == "stream_events" {
        return None;
    }
    let mut filled = path.to_owned();
    for (parameter, value) in [
        ("site", "torino"),
        ("person", "ada"),
        ("kind", "server"),
        ("resource", "gpu-01"),
        ("reservation", reservation),
    ] {
        filled = filled.replace(&format!("{{{parameter}}}"), value);
    }
    let query = match operation["operationId"].as_str()? {
        "get_calendar" => &format!("?from={}&to={}", after(0), after(240)),
        "list_events" | "list_audit" | "list_site_audit" => "?limit=500",
        _ => "",
    };
    (!filled.contains('{')).then(|| filled + query)
}

pub async fn metrics(server: &BerthServer) -> String {
    let answer = reqwest::get(server.url("/metrics"))
        .await
        .expect("an answer");
    answer.text().await.expect("the metrics")
}

/// The server's log and everything else in its directory.
pub fn files(directory: &Path) -> Vec<Readable> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("the directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            let bytes = fs::read(&path).expect("a file that can be read");
            files.push((path.display().to_string(), bytes));
        }
    }
    files
}

/// The bytes of the SQLite files, or a whole dump of the PostgreSQL database.
pub fn database(ground: &Ground) -> Vec<Readable> {
    let Some(database) = &ground.database else {
        let folder = ground.sqlite_file();
        return files(folder.parent().expect("a directory"));
    };
    let dump = Command::new(tool::find("pg_dump").expect("pg_dump"))
        .args(["--dbname", &database.url])
        .output()
        .expect("run pg_dump");
    assert!(
        dump.status.success(),
        "{}",
        String::from_utf8_lossy(&dump.stderr)
    );
    vec![("pg_dump".to_owned(), dump.stdout)]
}
