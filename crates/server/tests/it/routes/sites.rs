//! Sites, who gets into them, and their projects.

use serde_json::json;

use super::support::Lab;

#[tokio::test]
async fn a_site_is_opened_and_changed() {
    let lab = Lab::new().await;
    let (root, adele, ada) = (lab.hand("root"), lab.hand("adele"), lab.hand("ada"));
    let new = json!({"name": "genova", "title": "Genova", "time_zone": "Europe/Rome"});
    let made = root.post("/sites", new.clone()).await.is(201);
    assert_eq!(made["outsiders_see"], "nothing");
    root.post("/sites", new.clone())
        .await
        .refuses(409, "object.name_taken");
    ada.post("/sites", new)
        .await
        .refuses(403, "auth.not_allowed");

    assert_eq!(
        root.get("/sites").await.is(200).each("name"),
        ["genova", "torino"]
    );
    let seen = ada.get("/sites").await.is(200);
    assert_eq!(seen.each("name"), ["torino"]);
    assert_eq!(seen.each("standing"), ["member"]);
    assert_eq!(seen.each("you_see"), ["everything"]);

    let torino = adele.get("/sites/torino").await.is(200);
    assert_eq!(torino["standing"], "site_admin");
    let change = json!({"title": "Torino lab", "outsiders_see": "name"});
    adele.patch("/sites/torino", change.clone()).await.is(428);
    ada.knowing(&torino)
        .patch("/sites/torino", change.clone())
        .await
        .is(403);
    let changed = adele
        .knowing(&torino)
        .patch("/sites/torino", change.clone())
        .await
        .is(200);
    assert_eq!(
        (&changed["title"], &changed["version"]),
        (&json!("Torino lab"), &json!(2))
    );
    adele
        .knowing(&torino)
        .patch("/sites/torino", change)
        .await
        .refuses(412, "request.version_mismatch");
    adele.get(&format!("/sites/{}", torino.id())).await.is(200);
}

#[tokio::test]
async fn someone_asks_to_join_and_is_let_in() {
    let lab = Lab::new().await;
    let (adele, ada, otto) = (lab.hand("adele"), lab.hand("ada"), lab.hand("otto"));
    let asking = "/sites/torino/join-requests";
    otto.post(asking, json!({}))
        .await
        .refuses(404, "object.not_found");
    let any = adele.with("if-match", "*");
    any.patch("/sites/torino", json!({"outsiders_see": "name"}))
        .await
        .is(200);

    let keyed = otto.with("idempotency-key", "please");
    let asked = keyed
        .post(asking, json!({"message": "Please"}))
        .await
        .is(201);
    assert_eq!(
        (&asked["state"], &asked["person"]["login"]),
        (&json!("waiting"), &json!("otto"))
    );
    assert_eq!(
        keyed
            .post(asking, json!({"message": "Please"}))
            .await
            .is(200)
            .id(),
        asked.id()
    );
    otto.post(asking, json!({}))
        .await
        .refuses(409, "join.waiting");
    let asked_sites = async || otto.get("/me").await.is(200)["asked"].clone();
    assert_eq!(asked_sites().await[0]["site"]["name"], "torino");
    ada.post(asking, json!({}))
        .await
        .refuses(409, "member.already");

    ada.get(asking).await.refuses(403, "auth.not_allowed");
    assert_eq!(adele.get(asking).await.is(200).each("message"), ["Please"]);
    let accept = format!("{asking}/{}/accept", asked.id());
    let accepted = adele.post(&accept, json!({})).await.is(200);
    assert_eq!(accepted["state"], "accepted");
    adele
        .post(&accept, json!({}))
        .await
        .refuses(409, "join.decided");
    assert_eq!(
        otto.get("/sites/torino").await.is(200)["standing"],
        "member"
    );

    otto.delete("/sites/torino/members/otto").await.is(200);
    let again = otto.post(asking, json!({})).await.is(201);
    let decline = format!("{asking}/{}/decline", again.id());
    let declined = adele
        .post(&decline, json!({"reason": "Full"}))
        .await
        .is(200);
    assert_eq!(declined["state"], "declined");
    assert_eq!(asked_sites().await, json!([]));
    assert!(adele.get(asking).await.is(200).each("id").is_empty());
}

#[tokio::test]
async fn members_get_roles_from_those_who_have_them() {
    let lab = Lab::new().await;
    let (adele, ada) = (lab.hand("adele"), lab.hand("ada"));
    let otto = "/sites/torino/members/otto";
    ada.put(otto, json!({"role": "member"}))
        .await
        .refuses(403, "auth.not_allowed");
    let member = adele.put(otto, json!({"role": "member"})).await.is(200);
    assert_eq!(
        (&member["person"]["login"], &member["role"]),
        (&json!("otto"), &json!("member"))
    );
    assert_eq!(
        adele.put(otto, json!({"role": "site_admin"})).await.is(200)["role"],
        "site_admin"
    );
    adele
        .put("/sites/torino/members/nobody", json!({"role": "member"}))
        .await
        .is(404);

    let first = ada.get("/sites/torino/members?limit=2").await.is(200);
    let logins = |page: &super::support::Answer| -> Vec<String> {
        let people = page.each("person").into_iter();
        people
            .map(|person| person["login"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(logins(&first), ["ada", "adele"]);
    let next = first["next"].as_str().unwrap();
    let rest = ada
        .get(&format!("/sites/torino/members?cursor={next}"))
        .await
        .is(200);
    assert_eq!(logins(&rest), ["bob", "otto"]);
}

#[tokio::test]
async fn a_project_and_who_is_in_it() {
    let lab = Lab::new().await;
    let (adele, ada) = (lab.hand("adele"), lab.hand("ada"));
    let projects = "/sites/torino/projects";
    let new = json!({"name": "vision", "title": "Vision"});
    ada.post(projects, new.clone())
        .await
        .refuses(403, "auth.not_allowed");
    let made = adele.post(projects, new).await.is(201);
    assert_eq!(made["site"]["name"], "torino");
    assert_eq!(ada.get(projects).await.is(200).each("name"), ["vision"]);

    let vision = "/sites/torino/projects/vision";
    adele
        .patch(vision, json!({"title": "Seeing"}))
        .await
        .is(428);
    let changed = adele
        .knowing(&made)
        .patch(vision, json!({"title": "Seeing"}))
        .await
        .is(200);
    assert_eq!(changed["title"], "Seeing");
    assert_eq!(ada.get(vision).await.is(200)["version"], 2);

    let member = format!("{vision}/members/ada");
    let put = adele.send("PUT", &member, None).await.is(200);
    assert_eq!(
        adele.send("PUT", &member, None).await.is(200)["since"],
        put["since"]
    );
    adele
        .send("PUT", &format!("{vision}/members/otto"), None)
        .await
        .is(404);
    let members = ada.get(&format!("{vision}/members")).await.is(200);
    assert_eq!(members.each("since"), [&put["since"]]);
    adele.delete(&member).await.is(204);
    adele.delete(&member).await.refuses(404, "object.not_found");
    adele.delete(vision).await.is(204);
    ada.get(vision).await.refuses(404, "object.not_found");
}
