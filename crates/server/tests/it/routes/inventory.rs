//! Resource types, the tree, its status, and moving in it.

use serde_json::json;

use super::support::Lab;

#[tokio::test]
async fn a_type_with_its_form() {
    let lab = Lab::new().await;
    let (adele, ada) = (lab.hand("adele"), lab.hand("ada"));
    let types = "/sites/torino/types";
    let form = json!([
        {"key": "image", "label": "Image", "required": true, "kind": {"text": {"max_length": 40}}},
        {"key": "password", "label": "Password", "kind": {"secret": {}}},
    ]);
    let new = json!({"name": "vm", "title": "Machine", "colour": "#FF0000", "parameters": form});
    let made = adele.post(types, new.clone()).await.is(201);
    assert_eq!(
        (&made["parameters"][0]["key"], &made["colour"]),
        (&json!("image"), &json!("#ff0000"))
    );
    adele
        .post(types, new)
        .await
        .refuses(409, "object.name_taken");
    let twins = json!([form[0], form[0]]);
    let wrong = json!({"name": "twin", "title": "Twin", "colour": "#ff0000", "parameters": twins});
    let refused = adele
        .post(types, wrong)
        .await
        .refuses(422, "request.invalid");
    assert_eq!(refused["errors"][0]["field"], "parameters[1].key");

    let first = ada.get("/sites/torino/types?limit=2").await.is(200);
    assert_eq!(first.each("name"), ["instrument", "server"]);
    let rest = ada
        .get(&format!(
            "{types}?cursor={}",
            first["next"].as_str().unwrap()
        ))
        .await
        .is(200);
    assert_eq!(rest.each("name"), ["vm"]);

    let vm = "/sites/torino/types/vm";
    adele
        .patch(vm, json!({"needs_approval": true}))
        .await
        .is(428);
    ada.knowing(&made)
        .patch(vm, json!({"needs_approval": true}))
        .await
        .is(403);
    let changed = adele
        .knowing(&made)
        .patch(vm, json!({"needs_approval": true}))
        .await
        .is(200);
    assert_eq!(changed["needs_approval"], true);
    assert_eq!(ada.get(vm).await.is(200).header("etag"), "\"2\"");
    adele.delete(vm).await.is(204);
    ada.get(vm).await.is(404);
    adele
        .delete("/sites/torino/types/server")
        .await
        .refuses(409, "object.in_use");
}

#[tokio::test]
async fn a_resource_and_who_sees_what_of_it() {
    let lab = Lab::new().await;
    let (adele, ada) = (lab.hand("adele"), lab.hand("ada"));
    let resources = "/sites/torino/resources";
    let new = json!({
        "name": "gpu-03", "type": "server", "parent": "rack-b",
        "attributes": {"gpu_model": "A100", "gpus": 8},
        "facts": {"provisioning_address": "10.0.0.3", "location": "B 12"},
    });
    let made = adele.post(resources, new).await.is(201);
    assert_eq!(
        (&made["parent"]["name"], &made["type"]["name"]),
        (&json!("rack-b"), &json!("server"))
    );
    assert_eq!(made["facts"]["provisioning_address"], "10.0.0.3");
    let seen = ada.get("/sites/torino/resources/gpu-03").await.is(200);
    assert_eq!(
        seen["facts"],
        json!({"location": "B 12"}),
        "the address is for admins"
    );

    let names = async |query: &str| {
        let page = ada.get(&format!("{resources}?{query}")).await.is(200);
        page.each("name")
            .into_iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names("where=gpus%3E%3D4&where=gpu_model%3Da100").await,
        ["gpu-03"]
    );
    assert_eq!(
        names("under=rack-a").await,
        ["gpu-01", "gpu-01.a", "gpu-01.b", "gpu-02", "rack-a"]
    );
    assert_eq!(names("type=instrument").await, ["laser"]);
    let first = ada.get(&format!("{resources}?limit=4")).await.is(200);
    let next = first["next"].as_str().unwrap();
    assert_eq!(
        names(&format!("cursor={next}&limit=2")).await,
        ["gpu-03", "laser"]
    );
    ada.get(&format!("{resources}?where=nonsense"))
        .await
        .refuses(422, "request.invalid");
    ada.get(&format!("{resources}?colour=red"))
        .await
        .refuses(422, "request.invalid");

    let path = "/sites/torino/resources/gpu-03";
    let patch = json!({"title": "The big one", "attributes": {"gpus": 4}});
    adele.patch(path, patch.clone()).await.is(428);
    let changed = adele.knowing(&made).patch(path, patch).await.is(200);
    assert_eq!(
        (&changed["title"], &changed["attributes"]),
        (&json!("The big one"), &json!({"gpus": 4.0}))
    );
    adele
        .delete("/sites/torino/resources/rack-b")
        .await
        .refuses(409, "object.in_use");
    adele.delete(path).await.is(204);
    ada.get(path).await.is(404);
}

#[tokio::test]
async fn status_is_inherited_and_remembered() {
    let lab = Lab::new().await;
    let (adele, ada) = (lab.hand("adele"), lab.hand("ada"));
    let status = "/sites/torino/resources/rack-a/status";
    let down = json!({"status": "MAINTENANCE", "reason": "New fans"});
    adele.patch(status, down.clone()).await.is(428);
    let rack = adele.get("/sites/torino/resources/rack-a").await.is(200);
    ada.knowing(&rack).patch(status, down.clone()).await.is(403);
    let changed = adele
        .knowing(&rack)
        .patch(status, down.clone())
        .await
        .is(200);
    assert_eq!(changed["status_reason"], "New fans");
    adele.knowing(&rack).patch(status, down).await.is(412);

    let below = ada.get("/sites/torino/resources/gpu-01.a").await.is(200);
    assert_eq!(
        (&below["status"], &below["effective_status"]),
        (&json!("ACTIVE"), &json!("MAINTENANCE"))
    );
    assert_eq!(below["status_from"]["name"], "rack-a");
    let listed = ada
        .get("/sites/torino/resources?status=MAINTENANCE")
        .await
        .is(200);
    assert_eq!(listed.each("name").len(), 5);
    let booking = lab.booking(&["gpu-01.a"], 0..1);
    let refused = ada
        .post("/sites/torino/reservations", booking)
        .await
        .refuses(409, "reservation.status");
    assert!(
        refused["detail"].as_str().unwrap().contains("New fans"),
        "{refused:?}"
    );

    adele
        .knowing(&changed)
        .patch(status, json!({"status": "ACTIVE"}))
        .await
        .is(200);
    let history = format!("{status}-history");
    let newest = ada.get(&format!("{history}?limit=1")).await.is(200);
    assert_eq!(newest.each("status"), ["ACTIVE"]);
    assert_eq!(&newest.each("by")[0]["login"], &json!("adele"));
    let older = ada
        .get(&format!(
            "{history}?cursor={}",
            newest["next"].as_str().unwrap()
        ))
        .await
        .is(200);
    assert_eq!(older.each("reason"), ["New fans"]);
    assert!(older["next"].is_null());
}

#[tokio::test]
async fn a_subtree_moves_unless_bookings_would_collide() {
    let lab = Lab::new().await;
    let (adele, ada) = (lab.hand("adele"), lab.hand("ada"));
    let reservations = "/sites/torino/reservations";
    ada.post(reservations, lab.booking(&["gpu-01.a"], 0..4))
        .await
        .is(201);
    lab.hand("bob")
        .post(reservations, lab.booking(&["rack-b"], 2..6))
        .await
        .is(201);

    let moving = "/sites/torino/resources/gpu-01/move";
    let there = json!({"parent": "rack-b"});
    let tried = adele
        .post(&format!("{moving}?dry_run=true"), there.clone())
        .await
        .is(200);
    assert_eq!(
        (&tried["moved"], &tried["conflicts"][0]["wanted"]["name"]),
        (&json!(false), &json!("gpu-01.a"))
    );
    let refused = adele
        .post(moving, there)
        .await
        .refuses(409, "resource.move_conflict");
    assert_eq!(refused["conflicts"], tried["conflicts"]);
    assert_eq!(refused["conflicts"][0]["claim"]["owner"]["login"], "bob");
    adele
        .post(moving, json!({"parent": "gpu-01.b"}))
        .await
        .refuses(409, "resource.cycle");
    adele
        .post(moving, json!({}))
        .await
        .refuses(422, "request.invalid");
    ada.post(moving, json!({"parent": null}))
        .await
        .refuses(403, "auth.not_allowed");

    let free = adele
        .post(&format!("{moving}?dry_run=true"), json!({"parent": null}))
        .await
        .is(200);
    assert_eq!(free.body, json!({"moved": false, "conflicts": []}));
    let place = |answer: &super::support::Answer| answer["parent"]["name"].clone();
    assert_eq!(
        place(&ada.get("/sites/torino/resources/gpu-01").await),
        "rack-a"
    );
    assert_eq!(
        adele.post(moving, json!({"parent": null})).await.is(200)["moved"],
        true
    );
    assert!(ada.get("/sites/torino/resources/gpu-01").await["parent"].is_null());
}

#[tokio::test]
async fn what_can_be_divided_contains_nothing_and_keeps_what_it_promised() {
    let lab = Lab::new().await;
    let (adele, ada) = (lab.hand("adele"), lab.hand("ada"));
    let any = adele.with("if-match", "*");
    let capacity = |amount: u64| json!({"capacity": {"amount": amount, "unit": "gib"}});
    let rack = "/sites/torino/resources/rack-a";
    any.patch(rack, capacity(8))
        .await
        .refuses(409, "resource.leaf");
    let below = json!({"name": "dimm", "type": "server", "parent": "memory"});
    adele
        .post("/sites/torino/resources", below)
        .await
        .refuses(409, "resource.leaf");
    let moving = "/sites/torino/resources/gpu-02/move";
    adele
        .post(moving, json!({"parent": "memory"}))
        .await
        .refuses(409, "resource.leaf");

    let mut booking = lab.booking(&[], 0..2);
    booking["resources"] = json!([{"resource": "memory", "amount": 40}]);
    ada.post("/sites/torino/reservations", booking)
        .await
        .is(201);
    let memory = "/sites/torino/resources/memory";
    any.patch(memory, capacity(39))
        .await
        .refuses(422, "resource.amount");
    any.patch(memory, json!({"capacity": null}))
        .await
        .refuses(422, "resource.amount");
    any.patch(memory, capacity(40)).await.is(200);
    adele.delete(memory).await.refuses(409, "object.in_use");
}
