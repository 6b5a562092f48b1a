//! Approving, rejecting, cancelling, and booking for somebody else.

use serde_json::json;

use super::support::Lab;

const RESERVATIONS: &str = "/sites/torino/reservations";

#[tokio::test]
async fn an_admin_allows_or_turns_down_what_needs_approval() {
    let lab = Lab::new().await;
    let (ada, bob, adele) = (lab.hand("ada"), lab.hand("bob"), lab.hand("adele"));
    let asked = ada
        .post(RESERVATIONS, lab.booking(&["laser"], 0..2))
        .await
        .is(201);
    assert_eq!(asked["state"], "pending_approval");
    // The claim holds while it waits.
    bob.post(RESERVATIONS, lab.booking(&["laser"], 1..3))
        .await
        .refuses(409, "reservation.conflict");
    let path = format!("{RESERVATIONS}/{}", asked.id());
    let approve = format!("{path}/approve");
    ada.send("POST", &approve, None)
        .await
        .refuses(403, "auth.not_allowed");
    let stale = adele
        .with("if-match", "\"9\"")
        .send("POST", &approve, None)
        .await;
    stale.refuses(412, "request.version_mismatch");
    let approved = adele
        .knowing(&asked)
        .send("POST", &approve, None)
        .await
        .is(200);
    assert_eq!(approved["state"], "confirmed");
    adele
        .send("POST", &approve, None)
        .await
        .refuses(409, "reservation.illegal_state");

    let other = bob
        .post(RESERVATIONS, lab.booking(&["laser"], 2..3))
        .await
        .is(201);
    let reject = format!("{RESERVATIONS}/{}/reject", other.id());
    adele
        .post(&reject, json!({}))
        .await
        .refuses(422, "request.invalid");
    let rejected = adele
        .post(&reject, json!({"reason": "Not trained"}))
        .await
        .is(200);
    assert_eq!(
        (&rejected["state"], &rejected["state_reason"]),
        (&json!("rejected"), &json!("Not trained"))
    );
    ada.post(RESERVATIONS, lab.booking(&["laser"], 2..3))
        .await
        .is(201);
    let history = ada.get(&format!("{path}/history?limit=1")).await.is(200);
    assert_eq!(history.each("to"), ["pending_approval"]);
    let next = history["next"].as_str().unwrap();
    let rest = ada
        .get(&format!("{path}/history?cursor={next}"))
        .await
        .is(200);
    assert_eq!(rest.each("to"), ["confirmed"]);
    assert_eq!(&rest.each("by")[0]["login"], &json!("adele"));
}

#[tokio::test]
async fn a_cancelled_booking_gives_its_time_back() {
    let lab = Lab::new().await;
    let (ada, bob) = (lab.hand("ada"), lab.hand("bob"));
    let made = ada
        .post(RESERVATIONS, lab.booking(&["gpu-01"], 0..2))
        .await
        .is(201);
    let cancel = format!("{RESERVATIONS}/{}/cancel", made.id());
    bob.post(&cancel, json!({}))
        .await
        .refuses(403, "auth.not_allowed");
    let cancelled = ada.post(&cancel, json!({"reason": "Ill"})).await.is(200);
    assert_eq!(
        (&cancelled["state"], &cancelled["state_reason"]),
        (&json!("cancelled"), &json!("Ill"))
    );
    ada.post(&cancel, json!({}))
        .await
        .refuses(409, "reservation.illegal_state");
    bob.post(RESERVATIONS, lab.booking(&["gpu-01"], 0..2))
        .await
        .is(201);
    let path = format!("{RESERVATIONS}/{}", made.id());
    let late = ada
        .with("if-match", "*")
        .patch(&path, json!({"title": "late"}))
        .await;
    late.refuses(409, "reservation.illegal_state");
}

#[tokio::test]
async fn an_admin_books_for_somebody_else_and_for_a_project() {
    let lab = Lab::new().await;
    let (ada, adele) = (lab.hand("ada"), lab.hand("adele"));
    adele
        .post(
            "/sites/torino/projects",
            json!({"name": "vision", "title": "Vision"}),
        )
        .await
        .is(201);
    adele
        .send("PUT", "/sites/torino/projects/vision/members/bob", None)
        .await
        .is(200);
    let mut new = lab.booking(&["gpu-01"], 0..2);
    new["on_behalf_of"] = json!("bob");
    new["project"] = json!("vision");
    ada.post(RESERVATIONS, new.clone())
        .await
        .refuses(403, "auth.not_allowed");
    let made = adele.post(RESERVATIONS, new).await.is(201);
    assert_eq!(
        (&made["owner"]["login"], &made["project"]["name"]),
        (&json!("bob"), &json!("vision"))
    );
    assert_eq!(
        lab.hand("bob")
            .get("/me/reservations")
            .await
            .is(200)
            .each("id"),
        [made.id()]
    );

    let mut foreign = lab.booking(&["gpu-02"], 0..2);
    foreign["project"] = json!("vision");
    let refused = ada
        .post(RESERVATIONS, foreign)
        .await
        .refuses(422, "request.invalid");
    assert_eq!(refused["errors"][0]["field"], "project");
    let path = format!("{RESERVATIONS}/{}", made.id());
    let alone = lab
        .hand("bob")
        .knowing(&made)
        .patch(&path, json!({"project": null}))
        .await
        .is(200);
    assert!(alone["project"].is_null());
}
