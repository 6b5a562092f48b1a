//! How much was used, and how the server is, as they cross the wire.

use serde_json::{Value, json};

use super::support::Lab;

#[tokio::test]
async fn what_is_booked_shows_up_in_the_figures() {
    let lab = Lab::new().await;
    let (root, adele, ada, bob) = (
        lab.hand("root"),
        lab.hand("adele"),
        lab.hand("ada"),
        lab.hand("bob"),
    );
    let reservations = "/sites/torino/reservations";
    // The server has two parts.
    ada.post(reservations, lab.booking(&["gpu-01"], 0..3))
        .await
        .is(201);
    bob.post(reservations, lab.booking(&["gpu-01"], 1..2))
        .await
        .refuses(409, "reservation.conflict");
    lab.app.write_refusals().await.unwrap();

    let range = format!("from={}&to={}", lab.at(0), lab.at(10));
    let path = format!("/sites/torino/usage?{range}");
    let usage = adele.get(&format!("{path}&bucket=hour")).await.is(200);
    assert_eq!(usage["all"]["used_s"], 2 * 3 * 3600);
    let by_bucket = usage["all"]["by_bucket"].as_array().unwrap();
    assert_eq!(by_bucket.len(), usage["buckets"].as_array().unwrap().len());
    assert_eq!(usage["week"].as_array().unwrap().len(), 168);
    assert_eq!(usage["time_zone"], "Europe/Rome");
    let people = &usage["people"];
    assert_eq!(people["items"][0]["person"]["login"], "ada");
    assert_eq!(people["items"][0]["bookings"], 1);
    let course = people["items"][0]["used_s_by_bucket"].as_array().unwrap();
    let used: u64 = course.iter().filter_map(Value::as_u64).sum();
    assert_eq!((course.len(), used), (by_bucket.len(), 2 * 3 * 3600));
    assert_eq!(people["rest"]["count"], 0);
    assert_eq!(people["rest"]["used_s"], 0);
    assert_eq!(usage["projects"]["items"][0]["project"], Value::Null);
    assert_eq!(usage["outcomes"]["bookings"], 1);
    assert_eq!(usage["lead_times"]["bookings"], 1);
    let types = usage["types"].as_array().unwrap();
    let laser = types.iter().find(|one| one["type"]["name"] != "server");
    assert_eq!(laser.unwrap()["used_s"], 0);
    // The refusal was today, and the booking is tomorrow.
    let today = adele.get("/sites/torino/usage").await.is(200);
    let counted = json!([{"code": "reservation.conflict", "rule": null, "count": 1}]);
    assert_eq!(today["refusals"], counted);

    let own = bob.get(&format!("{path}&mine=true")).await.is(200);
    assert_eq!(own["all"]["used_s"], 0);
    assert!(own.body.get("refusals").is_none());
    bob.get(&path).await.refuses(403, "auth.not_allowed");
    adele
        .get("/sites/torino/usage?from=2024-01-01T00:00:00Z&to=2026-01-01T00:00:00Z")
        .await
        .refuses(422, "request.invalid");
    adele
        .get("/sites/torino/usage?type=boat")
        .await
        .refuses(404, "object.not_found");

    adele.get("/usage").await.refuses(403, "auth.not_allowed");
    let all = root.get(&format!("/usage?{range}")).await.is(200);
    assert_eq!(all["sites"][0]["site"]["name"], "torino");
    assert_eq!(all["sites"][0]["used_s"], 2 * 3 * 3600);
    assert_eq!(all["sites"][0]["people"], 1);
    let weeks = all["sites"][0]["weeks"].as_array().unwrap();
    let used: u64 = weeks
        .iter()
        .filter_map(|week| week["used_s"].as_u64())
        .sum();
    assert_eq!(used, 2 * 3 * 3600);
}

#[tokio::test]
async fn the_server_tells_its_admins_how_it_is() {
    let lab = Lab::new().await;
    lab.hand("adele")
        .get("/health/report")
        .await
        .refuses(403, "auth.not_allowed");
    let report = lab.hand("root").get("/health/report").await.is(200);
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    let database = &report["database"];
    assert_eq!(database["engine"], "sqlite");
    assert!(database["size_bytes"].as_u64().unwrap() > 4096);
    assert!(database["schema_step"].as_i64().unwrap() >= 14);
    assert_eq!(database["schema_pending"], json!([]));
    let names: Vec<&str> = report["controllers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    for name in [
        "sequencer",
        "reservations",
        "waitlist",
        "notifier",
        "sweeper",
        "closures",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    // No controller runs in this lab, so what was written waits for its number.
    assert_eq!(report["controllers"][0]["holder"], Value::Null);
    assert_eq!(report["event_head"], 0);
}
