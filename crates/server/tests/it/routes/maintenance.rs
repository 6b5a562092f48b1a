//! Maintenance windows: around the bookings that are kept, over those that are cancelled.

use serde_json::json;

use super::support::Lab;

const RESERVATIONS: &str = "/sites/torino/reservations";
const MAINTENANCE: &str = "/sites/torino/maintenance";

#[tokio::test]
async fn a_window_is_negotiated_with_the_bookings_in_its_way() {
    let lab = Lab::new().await;
    let (ada, bob, adele) = (lab.hand("ada"), lab.hand("bob"), lab.hand("adele"));
    let kept = ada
        .post(RESERVATIONS, lab.booking(&["gpu-01"], 2..4))
        .await
        .is(201);
    let given_up = bob
        .post(RESERVATIONS, lab.booking(&["gpu-02"], 5..6))
        .await
        .is(201);
    let mut new = json!({
        "title": "Firmware", "resources": ["rack-a"], "start": lab.at(0), "end": lab.at(8),
    });
    ada.post(MAINTENANCE, new.clone())
        .await
        .refuses(403, "auth.not_allowed");
    let dry = format!("{MAINTENANCE}?dry_run=true");
    let tried = adele.post(&dry, new.clone()).await.is(200);
    assert_eq!(tried["accepted"], false);
    let in_the_way = tried["in_the_way"].as_array().unwrap();
    let bookings: Vec<_> = in_the_way
        .iter()
        .map(|one| &one["booking"]["reservation"])
        .collect();
    assert_eq!(bookings, [kept.id(), given_up.id()]);
    let refused = adele
        .post(MAINTENANCE, new.clone())
        .await
        .refuses(409, "maintenance.in_the_way");
    assert_eq!(refused["conflicts"].as_array().unwrap().len(), 2);

    new["in_the_way"] = json!([
        {"reservation": kept.id(), "choice": "keep"},
        {"reservation": given_up.id(), "choice": "cancel"},
    ]);
    let tried = adele.post(&dry, new.clone()).await.is(200);
    assert_eq!(
        (&tried["accepted"], tried["parts"].as_array().unwrap().len()),
        (&json!(true), 2)
    );
    assert!(
        adele.get(MAINTENANCE).await.is(200).each("id").is_empty(),
        "a dry run plans nothing"
    );
    let path = format!("{RESERVATIONS}/{}", given_up.id());
    assert_eq!(
        bob.get(&path).await.is(200)["state"],
        "confirmed",
        "and cancels nothing"
    );

    let keyed = adele.with("idempotency-key", "firmware");
    let window = keyed.post(MAINTENANCE, new.clone()).await.is(201);
    assert_eq!(
        (&window["state"], &window["created_by"]["login"]),
        (&json!("planned"), &json!("adele"))
    );
    assert_eq!(window["parts"], tried["parts"], "what the dry run said");
    let around: Vec<_> = window["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["end"].clone())
        .collect();
    assert_eq!(around, [json!(lab.at(2)), json!(lab.at(8))]);
    assert_eq!(keyed.post(MAINTENANCE, new).await.is(200).id(), window.id());
    let cancelled = bob.get(&path).await.is(200);
    assert_eq!(cancelled["state"], "cancelled");
    assert!(
        cancelled["state_reason"]
            .as_str()
            .unwrap()
            .contains("Firmware")
    );
    let kept = ada
        .get(&format!("{RESERVATIONS}/{}", kept.id()))
        .await
        .is(200);
    assert_eq!(kept["state"], "confirmed");

    let met = bob
        .post(RESERVATIONS, lab.booking(&["gpu-02"], 5..6))
        .await
        .refuses(409, "reservation.conflict");
    assert_eq!(met["conflicts"][0]["claim"]["window"], window.id());
}

#[tokio::test]
async fn a_window_is_listed_and_given_up() {
    let lab = Lab::new().await;
    let (ada, adele) = (lab.hand("ada"), lab.hand("adele"));
    for (title, hours) in [("late", 6..7), ("early", 0..2), ("middle", 3..4)] {
        let new = json!({
            "title": title, "resources": ["gpu-01"], "start": lab.at(hours.start), "end": lab.at(hours.end),
        });
        adele.post(MAINTENANCE, new).await.is(201);
    }
    let first = ada.get(&format!("{MAINTENANCE}?limit=2")).await.is(200);
    assert_eq!(first.each("title"), ["early", "middle"]);
    let rest = ada
        .get(&format!(
            "{MAINTENANCE}?cursor={}",
            first["next"].as_str().unwrap()
        ))
        .await
        .is(200);
    assert_eq!(rest.each("title"), ["late"]);
    let later = ada
        .get(&format!("{MAINTENANCE}?from={}", lab.at(2)))
        .await
        .is(200);
    assert_eq!(later.each("title"), ["middle", "late"]);

    let path = format!("{MAINTENANCE}/{}", first.each("id")[0].as_str().unwrap());
    assert_eq!(ada.get(&path).await.is(200)["title"], "early");
    let cancel = format!("{path}/cancel");
    ada.post(&cancel, json!({}))
        .await
        .refuses(403, "auth.not_allowed");
    assert_eq!(
        adele
            .post(&cancel, json!({"reason": "No parts"}))
            .await
            .is(200)["state"],
        "cancelled"
    );
    adele
        .post(&cancel, json!({}))
        .await
        .refuses(409, "maintenance.illegal_state");
    ada.post(RESERVATIONS, lab.booking(&["gpu-01"], 0..2))
        .await
        .is(201);

    let over =
        json!({"title": "Past", "resources": ["gpu-02"], "start": lab.at(-90), "end": lab.at(-80)});
    adele
        .post(MAINTENANCE, over.clone())
        .await
        .refuses(422, "reservation.in_the_past");
    adele
        .post(&format!("{MAINTENANCE}?dry_run=true"), over)
        .await
        .refuses(422, "reservation.in_the_past");
}
