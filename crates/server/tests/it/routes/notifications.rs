//! Notifications as their readers get them: in pages, with names, marked as read and not.

use berth_app::controllers::ByHand;
use serde_json::json;

use super::support::Lab;

const MINE: &str = "/me/notifications";

#[tokio::test]
async fn what_happened_is_read_in_pages_and_marked() {
    let lab = Lab::new().await;
    let (ada, adele) = (lab.hand("ada"), lab.hand("adele"));
    let mut hand = ByHand::new(&lab.app);
    hand.notify().await.unwrap();
    let asked = ada
        .post("/sites/torino/reservations", lab.booking(&["laser"], 0..2))
        .await
        .is(201);
    let path = format!("/sites/torino/reservations/{}", asked.id());
    hand.notify().await.unwrap();
    let told = adele.get(MINE).await.is(200);
    assert_eq!(told["unread"], 1);
    let one = &told.body["items"][0];
    assert_eq!(one["kind"], "reservation.created");
    assert_eq!(
        (&one["read"], &one["data"]["as"]),
        (&json!(false), &json!("approver"))
    );
    assert_eq!(one["site"]["name"], "torino");
    assert_eq!(one["reservation"]["id"], asked["id"]);
    assert_eq!(one["reservation"]["owner"]["login"], "ada");
    assert_eq!(one["reservation"]["resources"][0]["name"], "laser");
    assert_eq!(
        (&one["resource"], &one["by"]["login"]),
        (&json!(null), &json!("ada"))
    );
    let text = one["text"].as_str().unwrap();
    assert!(text.starts_with("ada asks for your approval of"), "{text}");

    let approve = format!("{path}/approve");
    adele.send("POST", &approve, None).await.is(200);
    let status = json!({"status": "MAINTENANCE", "reason": "A lens"});
    let set = adele.with("if-match", "*");
    let laser = "/sites/torino/resources/laser/status";
    set.send("PATCH", laser, Some(status)).await.is(200);
    hand.notify().await.unwrap();
    let newest = ada.get(&format!("{MINE}?limit=1")).await.is(200);
    assert_eq!(newest.each("kind"), ["resource.status"]);
    assert_eq!(newest["unread"], 2);
    assert_eq!(newest.body["items"][0]["resource"]["name"], "laser");
    let next = newest["next"].as_str().unwrap();
    let older = ada
        .get(&format!("{MINE}?limit=1&cursor={next}"))
        .await
        .is(200);
    assert_eq!(older.each("kind"), ["reservation.approved"]);
    assert_eq!(older["next"], json!(null));
    let number = older.body["items"][0]["number"].clone();
    let filtered = ada
        .get(&format!("{MINE}?kind=reservation.approved&site=torino"))
        .await
        .is(200);
    assert_eq!(filtered.each("number"), [&number]);

    let read = format!("{MINE}/read");
    let left = ada.post(&read, json!({"numbers": [number]})).await.is(200);
    assert_eq!(left.body, json!({"unread": 1}));
    let unread = ada.get(&format!("{MINE}?unread=true")).await.is(200);
    assert_eq!(unread.each("kind"), ["resource.status"]);
    let newest = newest.body["items"][0]["number"].clone();
    let left = ada.post(&read, json!({"up_to": newest})).await.is(200);
    assert_eq!(left["unread"], 0);
    let left = ada
        .post(&format!("{MINE}/unread"), json!({"numbers": [number]}))
        .await
        .is(200);
    assert_eq!(left["unread"], 1);
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused() {
    let lab = Lab::new().await;
    let (ada, otto) = (lab.hand("ada"), lab.hand("otto"));
    let read = format!("{MINE}/read");
    for bad in [
        json!({}),
        json!({"numbers": []}),
        json!({"numbers": [1], "up_to": 1}),
        json!({"numbers": vec![1; 501]}),
        json!({"up_to": -1}),
    ] {
        ada.post(&read, bad).await.refuses(422, "request.invalid");
    }
    ada.get(&format!("{MINE}?kind=gossip"))
        .await
        .refuses(422, "request.invalid");
    otto.get(&format!("{MINE}?site=torino"))
        .await
        .refuses(404, "object.not_found");
}
