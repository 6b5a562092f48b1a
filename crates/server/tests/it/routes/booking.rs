//! Booking and changing bookings; what a refusal tells, and to whom.

use serde_json::json;

use super::support::Lab;

const RESERVATIONS: &str = "/sites/torino/reservations";

#[tokio::test]
async fn a_booking_is_made_once_and_read_everywhere() {
    let lab = Lab::new().await;
    let (ada, bob) = (lab.hand("ada"), lab.hand("bob"));
    let keyed = ada.with("idempotency-key", "monday");
    let new = lab.booking(&["gpu-01", "gpu-02"], 0..2);
    let made = keyed.post(RESERVATIONS, new.clone()).await.is(201);
    assert_eq!(
        (&made["state"], &made["owner"]["login"]),
        (&json!("confirmed"), &json!("ada"))
    );
    assert_eq!(made["resources"][1]["resource"]["name"], "gpu-02");
    let (site, id) = (made["site"]["id"].as_str().unwrap(), made.id());
    let path = format!("{RESERVATIONS}/{id}");
    assert_eq!(
        made.header("location"),
        format!("/api/v1/sites/{site}/reservations/{id}")
    );
    let again = keyed.post(RESERVATIONS, new).await.is(200);
    assert_eq!(
        (again.header("idempotency-replayed"), again.id()),
        ("true", id)
    );

    assert_eq!(bob.get(&path).await.is(200).body, made.body);
    assert_eq!(
        bob.get(&format!("{RESERVATIONS}?owner=ada&resource=gpu-02"))
            .await
            .is(200)
            .each("id"),
        [id]
    );
    assert!(
        bob.get(&format!("{RESERVATIONS}?state=active"))
            .await
            .is(200)
            .each("id")
            .is_empty()
    );
    assert_eq!(ada.get("/me/reservations").await.is(200).each("id"), [id]);
    assert!(
        bob.get("/me/reservations")
            .await
            .is(200)
            .each("id")
            .is_empty()
    );
    let history = bob.get(&format!("{path}/history")).await.is(200);
    assert_eq!(history.each("to"), ["confirmed"]);
    assert_eq!(&history.each("by")[0]["login"], &json!("ada"));
}

#[tokio::test]
async fn a_list_goes_on_where_it_was_left() {
    let lab = Lab::new().await;
    let ada = lab.hand("ada");
    for hour in 0..5 {
        ada.post(RESERVATIONS, lab.booking(&["gpu-01"], hour..hour + 1))
            .await
            .is(201);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = ada
            .get(&format!("{RESERVATIONS}?limit=2{cursor}"))
            .await
            .is(200);
        seen.extend(
            page.each("start")
                .into_iter()
                .map(|start| start.as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, (0..5).map(|hour| lab.at(hour)).collect::<Vec<_>>());
    ada.get(&format!("{RESERVATIONS}?cursor=bm9uc2Vuc2U"))
        .await
        .refuses(422, "request.invalid");
}

#[tokio::test]
async fn a_refusal_names_what_one_may_see() {
    let lab = Lab::new().await;
    let (ada, bob, adele) = (lab.hand("ada"), lab.hand("bob"), lab.hand("adele"));
    ada.post(RESERVATIONS, lab.booking(&["gpu-01.a"], 0..2))
        .await
        .is(201);
    let mut private = lab.booking(&["gpu-01.b"], 0..2);
    private["privacy"] = json!("private");
    let hidden = ada.post(RESERVATIONS, private).await.is(201);

    let open = bob
        .post(RESERVATIONS, lab.booking(&["gpu-01.a"], 1..3))
        .await;
    let open = open.refuses(409, "reservation.conflict");
    let claim = &open["conflicts"][0]["claim"];
    assert_eq!(
        (&claim["kind"], &claim["owner"]["login"]),
        (&json!("reservation"), &json!("ada"))
    );

    let masked = bob
        .post(RESERVATIONS, lab.booking(&["gpu-01.b"], 1..3))
        .await;
    let masked = masked.refuses(409, "reservation.conflict");
    let claim = masked["conflicts"][0]["claim"].as_object().unwrap();
    assert_eq!(
        (&claim["kind"], &claim["resource"]["name"]),
        (&json!("busy"), &json!("gpu-01.b"))
    );
    for kept in ["reservation", "title", "owner", "state"] {
        assert!(!claim.contains_key(kept), "{kept}");
    }
    assert!(!masked.body.to_string().contains("fine tuning"));

    // A rack contains both, and what is in the way stands below it.
    let above = bob
        .post(RESERVATIONS, lab.booking(&["rack-a"], 1..3))
        .await
        .is(409);
    assert_eq!(above["conflicts"].as_array().unwrap().len(), 2);
    assert_eq!(above["conflicts"][0]["wanted"]["name"], "rack-a");

    let path = format!("{RESERVATIONS}/{}", hidden.id());
    for path in [path.clone(), format!("{path}/history")] {
        let unseen = bob.get(&path).await.refuses(404, "object.not_found");
        let missing = path.replace(hidden.id(), "rsv_01kc3v9xwbe8rv5w2n9q3m7t4h");
        assert_eq!(unseen.body, bob.get(&missing).await.is(404).body);
        adele.get(&path).await.is(200);
    }
    bob.post(&format!("{path}/cancel"), json!({}))
        .await
        .refuses(404, "object.not_found");
    assert_eq!(bob.get(RESERVATIONS).await.is(200).each("id").len(), 1);
    assert_eq!(ada.get(RESERVATIONS).await.is(200).each("id").len(), 2);
}

#[tokio::test]
async fn a_change_says_which_version_it_means() {
    let lab = Lab::new().await;
    let (ada, bob) = (lab.hand("ada"), lab.hand("bob"));
    let made = ada
        .post(RESERVATIONS, lab.booking(&["gpu-01"], 0..4))
        .await
        .is(201);
    let path = format!("{RESERVATIONS}/{}", made.id());
    let shorter = json!({"end": lab.at(3), "title": "training"});
    ada.patch(&path, shorter.clone())
        .await
        .refuses(428, "request.precondition_required");
    ada.with("if-match", "7")
        .patch(&path, shorter.clone())
        .await
        .refuses(400, "request.malformed");
    let stale = ada
        .with("if-match", "\"18446744073709551615\"")
        .patch(&path, shorter.clone())
        .await;
    assert_eq!(stale.refuses(412, "request.version_mismatch")["version"], 1);
    bob.knowing(&made)
        .patch(&path, shorter.clone())
        .await
        .refuses(403, "auth.not_allowed");
    let changed = ada.knowing(&made).patch(&path, shorter).await.is(200);
    assert_eq!(
        (changed["end"].clone(), changed.header("etag")),
        (json!(lab.at(3)), "\"2\"")
    );

    bob.post(RESERVATIONS, lab.booking(&["gpu-01"], 5..6))
        .await
        .is(201);
    let extend = format!("{path}/extend");
    assert_eq!(
        ada.post(&extend, json!({"by": "PT1H"})).await.is(200)["end"],
        lab.at(4)
    );
    assert_eq!(
        ada.post(&extend, json!({"until": lab.at(5)})).await.is(200)["end"],
        lab.at(5)
    );
    let refused = ada
        .post(&extend, json!({"by": "PT1M"}))
        .await
        .refuses(409, "reservation.conflict");
    assert_eq!(refused["conflicts"][0]["claim"]["owner"]["login"], "bob");
    let backwards = ada
        .post(&extend, json!({"until": lab.at(2)}))
        .await
        .refuses(422, "request.invalid");
    assert_eq!(backwards["errors"][0]["field"], "until");
    let moved =
        json!({"resources": [{"resource": "gpu-02"}], "start": lab.at(5), "end": lab.at(6)});
    let moved = ada.with("if-match", "*").patch(&path, moved).await.is(200);
    assert_eq!(moved["resources"][0]["resource"]["name"], "gpu-02");
}

#[tokio::test]
async fn a_dry_run_says_what_would_happen_and_changes_nothing() {
    let lab = Lab::new().await;
    let (ada, bob) = (lab.hand("ada"), lab.hand("bob"));
    let dry = format!("{RESERVATIONS}?dry_run=true");
    let accepted = ada.post(&dry, lab.booking(&["gpu-01"], 0..2)).await.is(200);
    assert_eq!(
        accepted.body,
        json!({"accepted": true, "state": "confirmed"})
    );
    let waits = ada.post(&dry, lab.booking(&["laser"], 0..2)).await.is(200);
    assert_eq!(waits["state"], "pending_approval");
    assert!(ada.get(RESERVATIONS).await.is(200).each("id").is_empty());

    ada.post(RESERVATIONS, lab.booking(&["gpu-01"], 0..2))
        .await
        .is(201);
    let refused = bob.post(&dry, lab.booking(&["gpu-01"], 1..3)).await.is(200);
    assert_eq!(refused["accepted"], false);
    let real = bob
        .post(RESERVATIONS, lab.booking(&["gpu-01"], 1..3))
        .await
        .is(409);
    assert_eq!(
        refused["refusal"], real.body,
        "the same problem as the real one"
    );
    let past = bob
        .post(&dry, lab.booking(&["gpu-02"], -90..-80))
        .await
        .is(200);
    assert_eq!(past["refusal"]["code"], "reservation.in_the_past");
    lab.hand("otto")
        .post(&dry, lab.booking(&["gpu-02"], 0..1))
        .await
        .is(404);
}

#[tokio::test]
async fn amounts_share_what_can_be_shared() {
    let lab = Lab::new().await;
    let (ada, bob) = (lab.hand("ada"), lab.hand("bob"));
    let some = |amount: u64| {
        let mut new = lab.booking(&[], 0..2);
        new["resources"] = json!([{"resource": "memory", "amount": amount}]);
        new
    };
    assert_eq!(
        ada.post(RESERVATIONS, some(40)).await.is(201)["resources"][0]["amount"],
        40
    );
    bob.post(RESERVATIONS, some(25))
        .await
        .refuses(409, "reservation.conflict");
    bob.post(RESERVATIONS, some(24)).await.is(201);
    let too_much = bob
        .post(RESERVATIONS, some(65))
        .await
        .refuses(422, "request.invalid");
    assert_eq!(too_much["errors"][0]["field"], "resources[0].amount");
}

#[tokio::test]
async fn a_secret_answer_is_never_shown_again() {
    let lab = Lab::new().await;
    let (adele, ada) = (lab.hand("adele"), lab.hand("ada"));
    let form = json!([
        {"key": "image", "label": "Image", "required": true, "kind": {"text": {}}},
        {"key": "password", "label": "Password", "kind": {"secret": {}}},
    ]);
    let any = adele.with("if-match", "*");
    any.patch("/sites/torino/types/server", json!({"parameters": form}))
        .await
        .is(200);
    let mut new = lab.booking(&["gpu-01"], 0..2);
    let refused = ada
        .post(RESERVATIONS, new.clone())
        .await
        .refuses(422, "request.invalid");
    assert_eq!(refused["errors"][0]["field"], "parameters.server.image");
    new["parameters"] = json!({"server": {"image": "ubuntu", "password": "canary"}});
    let made = ada.post(RESERVATIONS, new).await.is(201);
    assert_eq!(
        made["parameters"]["server"],
        json!({"image": "ubuntu", "password": "********"})
    );
    let path = format!("{RESERVATIONS}/{}", made.id());
    let again = json!({"parameters": {"server": {"image": "debian"}}});
    let changed = ada.knowing(&made).patch(&path, again).await.is(200);
    assert_eq!(
        changed["parameters"]["server"],
        json!({"image": "debian", "password": "********"})
    );
    assert!(
        !adele
            .get(&path)
            .await
            .is(200)
            .body
            .to_string()
            .contains("canary")
    );
}
