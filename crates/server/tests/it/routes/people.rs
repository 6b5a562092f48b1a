//! Accounts and API tokens.

use serde_json::json;

use super::support::Lab;

#[tokio::test]
async fn an_account_from_its_making_to_its_removal() {
    let lab = Lab::new().await;
    let root = lab.hand("root");
    let new = json!({"login": "eve", "display_name": "Eve", "email": "eve@lab.example"});
    let made = root.post("/people", new).await.is(201);
    assert_eq!(made["person"]["login"], "eve");
    let link = made["reset_link"]["link"].as_str().unwrap();
    assert!(link.starts_with("/reset-password#"), "{link}");
    let id = made["person"]["id"].as_str().unwrap();
    assert_eq!(made.header("location"), format!("/api/v1/people/{id}"));

    let eve = root.get("/people/eve").await.is(200);
    assert_eq!(eve.header("etag"), "\"1\"");
    let change = json!({"email": null, "suspended": true});
    root.patch("/people/eve", change.clone())
        .await
        .refuses(428, "request.precondition_required");
    let stale = root
        .with("if-match", "\"7\"")
        .patch("/people/eve", change.clone())
        .await;
    assert_eq!(stale.refuses(412, "request.version_mismatch")["version"], 1);
    let changed = root
        .knowing(&eve)
        .patch("/people/eve", change)
        .await
        .is(200);
    assert_eq!(
        (&changed["state"], &changed["email"]),
        (&json!("suspended"), &json!(null))
    );
    assert_eq!(changed.header("etag"), "\"2\"");
    root.send("POST", "/people/eve/reset-link", None)
        .await
        .refuses(409, "object.in_use");
    let any = root.with("if-match", "*");
    any.patch("/people/eve", json!({"suspended": false}))
        .await
        .is(200);
    root.send("POST", "/people/eve/reset-link", None)
        .await
        .is(200);

    let tried = root.delete("/people/eve?dry_run=true").await.is(200);
    assert_eq!(tried["applied"], false);
    root.get("/people/eve").await.is(200);
    assert_eq!(root.delete("/people/eve").await.is(200)["applied"], true);
    root.get("/people/eve")
        .await
        .refuses(404, "object.not_found");
    root.delete("/people/root")
        .await
        .refuses(409, "member.last_admin");
}

#[tokio::test]
async fn a_create_that_comes_twice_makes_one_person() {
    let lab = Lab::new().await;
    let root = lab.hand("root").with("idempotency-key", "eve-once");
    let new = json!({"login": "eve", "display_name": "Eve"});
    let first = root.post("/people", new.clone()).await.is(201);
    let again = root.post("/people", new).await.is(200);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again["person"]["id"], first["person"]["id"]);
    assert!(
        again.body.get("reset_link").is_none(),
        "a secret is shown once"
    );
    let other = json!({"login": "eva", "display_name": "Eva"});
    root.post("/people", other)
        .await
        .refuses(422, "request.idempotency_mismatch");
}

#[tokio::test]
async fn people_see_themselves_and_admins_see_all() {
    let lab = Lab::new().await;
    let (root, ada) = (lab.hand("root"), lab.hand("ada"));
    ada.get("/people").await.refuses(403, "auth.not_allowed");
    ada.get("/people/ada").await.is(200);
    let hidden = ada
        .get("/people/bob")
        .await
        .refuses(404, "object.not_found");
    let missing = ada.get("/people/nobody").await.is(404);
    assert_eq!(
        hidden.body, missing.body,
        "hidden and missing look the same"
    );

    let first = root.get("/people?limit=3").await.is(200);
    assert_eq!(first.each("login"), ["ada", "adele", "bob"]);
    let next = first["next"].as_str().unwrap();
    let rest = root
        .get(&format!("/people?limit=3&cursor={next}"))
        .await
        .is(200);
    assert_eq!(rest.each("login"), ["otto", "root"]);
    assert!(rest["next"].is_null());
}

#[tokio::test]
async fn a_token_lives_until_it_is_revoked() {
    let lab = Lab::new().await;
    let (root, ada) = (lab.hand("root"), lab.hand("ada"));
    let new = json!({"label": "ci", "scopes": ["read"], "expires_at": lab.at(5)});
    let keyed = ada.with("idempotency-key", "ci");
    let made = keyed.post("/me/tokens", new.clone()).await.is(201);
    assert!(
        keyed
            .post("/me/tokens", new.clone())
            .await
            .is(200)
            .body
            .get("secret")
            .is_none()
    );
    let reader = lab.hand_with(made["secret"].as_str().unwrap());
    reader.get("/sites/torino").await.is(200);
    let booking = lab.booking(&["gpu-01"], 0..1);
    reader
        .post("/sites/torino/reservations", booking)
        .await
        .refuses(403, "auth.scope_missing");

    assert_eq!(
        ada.get("/me/tokens").await.is(200).each("label"),
        ["test", "ci"]
    );
    assert_eq!(
        root.get("/people/ada/tokens").await.is(200).each("label"),
        ["test", "ci"]
    );
    lab.hand("bob")
        .get("/people/ada/tokens")
        .await
        .refuses(403, "auth.not_allowed");
    let path = format!("/me/tokens/{}", made["token"]["id"].as_str().unwrap());
    lab.hand("bob")
        .delete(&path)
        .await
        .refuses(404, "object.not_found");
    ada.delete(&path).await.is(204);
    reader.get("/sites/torino").await.is(401);

    let second = ada.post("/me/tokens", new).await.is(201);
    let path = format!(
        "/people/ada/tokens/{}",
        second["token"]["id"].as_str().unwrap()
    );
    root.delete(&path).await.is(204);
    root.delete(&path).await.refuses(404, "object.not_found");
}
