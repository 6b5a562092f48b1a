//! What a site shows to those who do not belong to it: what it set, and beyond that nothing at all.

use serde_json::json;

use super::support::Lab;

#[tokio::test]
async fn outsiders_see_what_the_site_set_and_no_more() {
    let lab = Lab::new().await;
    let (adele, otto) = (lab.hand("adele"), lab.hand("otto"));
    let booked = adele
        .post("/sites/torino/reservations", lab.booking(&["gpu-01"], 0..2))
        .await
        .is(201);
    let reservation = format!("/reservations/{}", booked.id());
    let calendar = format!("/calendar?from={}&to={}", lab.at(-1), lab.at(9));
    // Each with the least that a site must show for it to be found.
    let views = ["nothing", "name", "catalogue", "free_busy", "never"];
    let paths = [
        ("", "name"),
        ("/types", "catalogue"),
        ("/types/server", "catalogue"),
        ("/resources", "catalogue"),
        ("/resources/gpu-01", "catalogue"),
        (calendar.as_str(), "free_busy"),
        ("/free", "free_busy"),
        ("/resources/gpu-01/status-history", "never"),
        ("/reservations", "never"),
        (reservation.as_str(), "never"),
        ("/members", "never"),
        ("/join-requests", "never"),
        ("/projects", "never"),
        ("/maintenance", "never"),
        ("/audit", "never"),
    ];
    for (step, view) in views.iter().take(4).enumerate() {
        let any = adele.with("if-match", "*");
        any.patch("/sites/torino", json!({"outsiders_see": view}))
            .await
            .is(200);
        for (path, least) in paths {
            let needed = views.iter().position(|view| *view == least).unwrap();
            let answer = otto.get(&format!("/sites/torino{path}")).await;
            if step >= needed {
                answer.is(200);
            } else {
                let missing = otto.get(&format!("/sites/nowhere{path}")).await.is(404);
                assert_eq!(answer.is(404).body, missing.body, "{path} under {view}");
            }
        }
        let listed = otto.get("/sites").await.is(200).each("name").len();
        assert_eq!(listed, usize::from(*view != "nothing"), "{view}");
    }
    let seen = otto.get(&format!("/sites/torino{calendar}")).await.is(200);
    assert_eq!(seen.each("kind"), ["busy"]);
    assert_eq!(seen.each("mine"), [false]);
    for kept in ["reservation", "title", "owner", "state"] {
        assert!(seen.each(kept)[0].is_null(), "{kept}");
    }
    assert_eq!(otto.get("/sites/torino").await["you_see"], "free_busy");
}

#[tokio::test]
async fn what_one_site_has_is_not_found_in_another() {
    let lab = Lab::new().await;
    let root = lab.hand("root");
    let new = json!({"name": "genova", "title": "Genova", "time_zone": "Europe/Rome"});
    root.post("/sites", new).await.is(201);
    let booked = root
        .post("/sites/torino/reservations", lab.booking(&["gpu-01"], 0..2))
        .await
        .is(201);
    let gpu = root.get("/sites/torino/resources/gpu-01").await.is(200);
    for path in [
        format!("/reservations/{}", booked.id()),
        format!("/resources/{}", gpu.id()),
        "/resources/gpu-01".to_owned(),
        "/types/server".to_owned(),
    ] {
        root.get(&format!("/sites/genova{path}"))
            .await
            .refuses(404, "object.not_found");
    }
    let elsewhere = lab.booking(&[gpu.id()], 4..5);
    let refused = root
        .post("/sites/genova/reservations", elsewhere)
        .await
        .refuses(422, "request.invalid");
    assert_eq!(refused["errors"][0]["field"], "resources[0].resource");
    for nonsense in [
        "/sites/Not%20a%20name",
        "/sites/torino/reservations/7",
        "/sites/torino/resources/%00",
    ] {
        root.get(nonsense).await.refuses(404, "object.not_found");
    }
}
