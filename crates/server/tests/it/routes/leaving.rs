//! Somebody leaves: what becomes of what they held is said first, and then settled.

use serde_json::json;

use super::support::Lab;

const RESERVATIONS: &str = "/sites/torino/reservations";

#[tokio::test]
async fn a_member_s_claims_are_settled_when_they_leave() {
    let lab = Lab::new().await;
    let (adele, bob, ada) = (lab.hand("adele"), lab.hand("bob"), lab.hand("ada"));
    let held = bob
        .post(RESERVATIONS, lab.booking(&["gpu-01"], 0..2))
        .await
        .is(201);
    let (path, member) = (
        format!("{RESERVATIONS}/{}", held.id()),
        "/sites/torino/members/bob",
    );
    ada.delete(member).await.refuses(403, "auth.not_allowed");
    let tried = adele
        .delete(&format!("{member}?dry_run=true"))
        .await
        .is(200);
    assert_eq!(
        (&tried["applied"], &tried["person"]["login"]),
        (&json!(false), &json!("bob"))
    );
    let settled = &tried["reservations"][0];
    assert_eq!(
        (settled["id"].as_str(), &settled["state"]),
        (Some(held.id()), &json!("cancelled"))
    );
    assert_eq!(
        bob.get(&path).await.is(200)["state"],
        "confirmed",
        "a dry run changes nothing"
    );

    let done = adele.delete(member).await.is(200);
    assert_eq!(
        (&done["applied"], &done["reservations"]),
        (&json!(true), &tried["reservations"])
    );
    assert_eq!(done["sites"][0]["name"], "torino");
    bob.get(&path).await.refuses(404, "object.not_found");
    assert_eq!(adele.get(&path).await.is(200)["state"], "cancelled");
    ada.post(RESERVATIONS, lab.booking(&["gpu-01"], 0..2))
        .await
        .is(201);
    adele.delete(member).await.refuses(404, "object.not_found");
}

#[tokio::test]
async fn a_removed_person_leaves_everything() {
    let lab = Lab::new().await;
    let (root, ada) = (lab.hand("root"), lab.hand("ada"));
    let held = ada
        .post(RESERVATIONS, lab.booking(&["gpu-01"], 0..2))
        .await
        .is(201);
    let tried = root.delete("/people/ada?dry_run=true").await.is(200);
    assert_eq!(
        (&tried["applied"], &tried["tokens_revoked"]),
        (&json!(false), &json!(1))
    );
    ada.get("/me/reservations").await.is(200);
    let done = root.delete("/people/ada").await.is(200);
    assert_eq!(done["reservations"], tried["reservations"]);
    assert_eq!(done["sites"], tried["sites"]);
    ada.get("/me/reservations").await.is(401);
    let left = root
        .get(&format!("{RESERVATIONS}/{}", held.id()))
        .await
        .is(200);
    assert_eq!(
        (&left["state"], &left["owner"]["login"]),
        (&json!("cancelled"), &json!("ada"))
    );
}
