//! The audit log as its readers get it.

use berth_app::controllers::ByHand;
use serde_json::json;

use super::support::Lab;

#[tokio::test]
async fn the_log_says_who_did_what_and_holds_together() {
    let lab = Lab::new().await;
    let (root, adele, ada) = (lab.hand("root"), lab.hand("adele"), lab.hand("ada"));
    let made = ada
        .post("/sites/torino/reservations", lab.booking(&["gpu-01"], 0..2))
        .await
        .is(201);
    let cancel = format!("/sites/torino/reservations/{}/cancel", made.id());
    ada.post(&cancel, json!({"reason": "Ill"})).await.is(200);
    ByHand::new(&lab.app).number().await.unwrap();

    ada.get("/sites/torino/audit")
        .await
        .refuses(403, "auth.not_allowed");
    let newest = adele.get("/sites/torino/audit?limit=2").await.is(200);
    assert_eq!(
        newest.each("action"),
        ["reservation.cancel", "reservation.create"]
    );
    let entry = &newest.body["items"][0];
    assert_eq!(
        (&entry["actor"]["person"]["login"], &entry["reason"]),
        (&json!("ada"), &json!("Ill"))
    );
    assert_eq!(
        (&entry["before"]["state"], &entry["after"]["state"]),
        (&json!("confirmed"), &json!("cancelled"))
    );
    let next = newest["next"].as_str().unwrap();
    let older = adele
        .get(&format!("/sites/torino/audit?limit=1&cursor={next}"))
        .await
        .is(200);
    assert_eq!(older.each("action"), ["resource.create"]);

    let asked = async |query: &str| {
        let path = format!("/sites/torino/audit?limit=100&{query}");
        let found = adele.get(&path).await.is(200);
        let actions = found.each("action").into_iter().cloned();
        actions.collect::<Vec<_>>()
    };
    let both = ["reservation.cancel", "reservation.create"];
    assert_eq!(asked("actor=ada").await, both);
    assert_eq!(asked("action=reservation").await, both);
    assert_eq!(asked(&format!("subject={}", made.id())).await, both);
    assert_eq!(asked("action=reservation.cancel").await, both[..1]);
    assert!(asked("action=reserv").await.is_empty());
    assert!(asked("from=2090-01-01T00:00:00Z").await.is_empty());
    assert!(asked("to=2020-01-01T00:00:00Z").await.is_empty());
    // Whether a login exists is not told: who is not of this site is answered like nobody.
    assert!(asked("actor=nobody-here").await.is_empty());
    adele
        .get("/sites/torino/audit?action=%25")
        .await
        .refuses(422, "request.invalid");

    adele.get("/audit").await.refuses(403, "auth.not_allowed");
    let all = root.get("/audit?limit=500").await.is(200);
    assert!(all.each("action").contains(&&json!("site.create")));
    let verified = root.get("/audit/verify").await.is(200);
    assert_eq!(
        (&verified["intact"], &verified["waiting"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(verified["last_hash"], all.body["items"][0]["hash"]);
    assert_eq!(verified["entries"], all.body["items"][0]["number"]);
    ada.get("/audit/verify")
        .await
        .refuses(403, "auth.not_allowed");
}
