//! What is taken, as each may see it, and what is free.

use berth_model::{Amount, Claim, ClaimId, Firmness, Holder, Span, Standing, Take, WorkloadId};
use berth_store::claims;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::support::Lab;

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
    let names = |page: &super::support::Answer| -> Vec<String> {
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

/// Fifteen tasks of an array at a time, for as long as it takes, on the site's memory.
async fn run_an_array(lab: &Lab, tasks: i64) {
    let memory = lab.hand("ada").get("/sites/torino/resources/memory").await;
    let memory = memory.is(200);
    let begin: Timestamp = lab.at(0).parse().unwrap();
    let claim = |task: i64| {
        let start = begin + SignedDuration::from_mins(task / 15);
        Claim {
            id: ClaimId::from_parts(task as u64, &[7; 10]),
            site: memory["site"]["id"].as_str().unwrap().parse().unwrap(),
            resource: memory.id().parse().unwrap(),
            span: Span::new(start, start + SignedDuration::from_mins(1)).unwrap(),
            take: Take::Amount(Amount::new(2).unwrap()),
            firmness: Firmness::Firm,
            container: None,
            holder: Holder::Workload(WorkloadId::from_parts(1, &[7; 10])),
            standing: Standing::Holding,
        }
    };
    let all: Vec<Claim> = (0..tasks).map(claim).collect();
    let mut tx = lab.app.store.begin().await.unwrap();
    for part in all.chunks(5_000) {
        claims::insert(&mut tx, part).await.unwrap();
    }
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn an_array_of_thirty_thousand_tasks_takes_nobodys_calendar_away() {
    let lab = Lab::new().await;
    let (ada, bob) = (lab.hand("ada"), lab.hand("bob"));
    ada.post(RESERVATIONS, lab.booking(&["gpu-01"], 0..2))
        .await
        .is(201);
    run_an_array(&lab, 30_000).await;
    let during = format!(
        "/sites/torino/calendar?from={}&to={}",
        lab.at(0),
        lab.at(48)
    );
    let seen = bob.get(&during).await.is(200);
    assert_eq!(seen.each("kind"), ["reservation"]);
    let summary = &seen["summary"];
    assert_eq!(
        (&summary["covers"], &summary["step_s"]),
        (&json!("workloads"), &json!(900))
    );
    let row = &summary["rows"][0];
    assert_eq!(row["resource"]["name"], "memory");
    let part = json!({"kind": "workload", "mine": false, "claims": 225, "taken": 30});
    let inner = &row["steps"][1];
    assert_eq!(
        (&inner["taken"], &inner["is_full"]),
        (&json!(30), &json!(false))
    );
    assert_eq!(inner["parts"], json!([part]));
    let length = seen.body.to_string().len();
    assert!(length < 50_000, "the answer has {length} bytes");
    // Who wants each can have them, of a time in which they are not too many.
    let hour = format!("/sites/torino/calendar?from={}&to={}", lab.at(3), lab.at(4));
    let hour = bob.get(&hour).await.is(200);
    assert_eq!(hour.each("kind").len(), 60 * 15);
    assert!(hour["summary"].is_null());
    let listed = bob
        .get(&format!("{during}&max_entries=50000"))
        .await
        .is(200);
    assert_eq!(listed.each("kind").len(), 30_001);
    bob.get(&format!("{during}&max_entries=50001"))
        .await
        .refuses(422, "request.invalid");
    let ratio = listed.body.to_string().len() / length;
    println!("the list is {ratio} times as long as the sums");
    assert!(ratio > 100);
}

#[tokio::test]
async fn sums_show_outsiders_no_more_than_that_time_is_taken() {
    let lab = Lab::new().await;
    let (adele, ada, otto) = (lab.hand("adele"), lab.hand("ada"), lab.hand("otto"));
    ada.post(RESERVATIONS, lab.booking(&["gpu-01"], 0..2))
        .await
        .is(201);
    run_an_array(&lab, 45).await;
    let any = adele.with("if-match", "*");
    any.patch("/sites/torino", json!({"outsiders_see": "free_busy"}))
        .await
        .is(200);
    let during = format!(
        "/sites/torino/calendar?from={}&to={}&max_entries=10",
        lab.at(0),
        lab.at(9)
    );
    let inside = ada.get(&during).await.is(200);
    assert_eq!(
        (inside.each("mine"), &inside["summary"]["covers"]),
        (vec![&json!(true)], &json!("workloads"))
    );
    let outside = otto.get(&during).await.is(200);
    assert!(outside.each("kind").is_empty());
    assert_eq!(outside["summary"]["covers"], "all");
    let text = outside.body.to_string();
    assert!(text.contains(r#""kind":"busy""#));
    for told in ["workload", "reservation", r#""mine":true"#] {
        assert!(!text.contains(told), "{told}: {text}");
    }
}
