//! What is taken, as each may see it, and what is free.

use serde_json::json;

use crate::support::Lab;

const RESERVATIONS: &str = "/sites/torino/reservations";

#[tokio::test]
async fn the_calendar_shows_each_what_they_may_see() {
    let lab = Lab::new().await;
    let (ada, bob) = (lab.hand("ada"), lab.hand("bob"));
    ada.post(RESERVATIONS, lab.booking(&["rack-a"], 0..1))
        .await
        .is(201);
    let mut private = lab.booking(&["gpu-01.a"], 2..3);
    private["privacy"] = json!("private");
    ada.post(RESERVATIONS, private).await.is(201);
    let during = format!("/sites/torino/calendar?from={}&to={}", lab.at(0), lab.at(9));

    let mine = ada.get(&during).await.is(200);
    assert_eq!(mine.each("kind"), ["reservation"; 2]);
    assert_eq!(mine.each("mine"), [true; 2]);
    let theirs = bob.get(&during).await.is(200);
    assert_eq!(theirs.each("kind"), ["reservation", "busy"]);
    assert!(theirs.each("title")[1].is_null() && theirs.each("owner")[1].is_null());
    // A booked rack occupies what is in it.
    let one = bob.get(&format!("{during}&resource=gpu-02")).await.is(200);
    assert_eq!(one.each("resource")[0]["name"], "rack-a");
    assert!(
        bob.get(&format!("{during}&type=instrument"))
            .await
            .is(200)
            .each("kind")
            .is_empty()
    );
    bob.get(&format!("{during}&resource=nothing"))
        .await
        .refuses(404, "object.not_found");
    let backwards = format!("/sites/torino/calendar?from={}&to={}", lab.at(9), lab.at(0));
    assert_eq!(
        bob.get(&backwards).await.refuses(422, "request.invalid")["errors"][0]["field"],
        "to"
    );
}

#[tokio::test]
async fn free_time_lies_between_what_is_taken() {
    let lab = Lab::new().await;
    let (ada, bob) = (lab.hand("ada"), lab.hand("bob"));
    ada.post(RESERVATIONS, lab.booking(&["gpu-01"], 2..3))
        .await
        .is(201);
    ada.post(RESERVATIONS, lab.booking(&["rack-a"], 4..5))
        .await
        .is(201);
    let during = format!("/sites/torino/free?from={}&to={}", lab.at(0), lab.at(9));
    let free = bob.get(&format!("{during}&under=gpu-01")).await.is(200);
    assert_eq!(free.each("status"), ["ACTIVE"; 3]);
    let spans = json!([
        {"start": lab.at(0), "end": lab.at(2)},
        {"start": lab.at(3), "end": lab.at(4)},
        {"start": lab.at(5), "end": lab.at(9)},
    ]);
    assert_eq!(
        (free.each("free")[0], free.each("free_until")[0]),
        (&spans, &json!(lab.at(2)))
    );
    let long = bob
        .get(&format!("{during}&under=gpu-01&for=PT3H"))
        .await
        .is(200);
    assert_eq!(long.each("free")[1], &json!([spans[2]]));

    let first = bob.get(&format!("{during}&limit=2")).await.is(200);
    let names = |page: &crate::support::Answer| -> Vec<String> {
        let resources = page.each("resource").into_iter();
        resources
            .map(|resource| resource["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&first), ["gpu-01", "gpu-01.a"]);
    let next = first["next"].as_str().unwrap();
    let second = bob
        .get(&format!("{during}&limit=1&cursor={next}"))
        .await
        .is(200);
    assert_eq!(names(&second), ["gpu-01.b"]);
    assert_eq!(
        bob.get("/sites/torino/free")
            .await
            .is(200)
            .each("free")
            .len(),
        8
    );
}
