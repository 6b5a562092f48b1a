//! A site as a document over HTTP: what it looks like, how it is refused, and how large it may be.

use serde_json::{Value, json};

use super::support::Lab;

const APPLY: &str = "/sites/torino/apply";
const EXPORT: &str = "/sites/torino/export";

fn acts(answer: &Value) -> Vec<String> {
    let differences = answer["differences"].as_array().unwrap();
    let line = |it: &Value| {
        let word = |field: &str| it[field].as_str().unwrap().to_owned();
        format!("{} {} {}", word("act"), word("subject"), word("name"))
    };
    differences.iter().map(line).collect()
}

#[tokio::test]
async fn a_dry_run_shows_what_then_happens() {
    let lab = Lab::new().await;
    let adele = lab.hand("adele");
    let export = adele.get(EXPORT).await.is(200);
    let mut document = export["document"].clone();
    document["types"]["server"]["title"] = json!("Server");
    document["resources"]["rack-b"]["children"] = json!({"gpu-03": {"type": "server"}});
    let asked = format!("{APPLY}?dry_run=true");
    let shown = adele.post(&asked, document.clone()).await.is(200);
    assert_eq!(shown["applied"], false);
    assert_eq!(shown["fingerprint"], export["fingerprint"]);
    assert_eq!(
        acts(&shown.body),
        ["changed type server", "added resource gpu-03"]
    );
    assert_eq!(
        shown["differences"][0]["fields"],
        json!([{"field": "title", "before": "server", "after": "Server"}])
    );
    assert_eq!(
        adele.get(EXPORT).await["fingerprint"],
        export["fingerprint"]
    );

    let expected = shown["fingerprint"].as_str().unwrap();
    let apply = format!("{APPLY}?expected={expected}");
    let applied = adele.post(&apply, document.clone()).await.is(200);
    assert_eq!(
        (&applied["applied"], &applied["differences"]),
        (&json!(true), &shown["differences"])
    );
    adele
        .post(&apply, document.clone())
        .await
        .refuses(409, "apply.site_changed");
    let again = adele.post(APPLY, document.clone()).await.is(200);
    assert_eq!(again["differences"], json!([]));
    assert_eq!(adele.get(EXPORT).await["document"], document);
}

#[tokio::test]
async fn bookings_in_the_way_are_listed() {
    let lab = Lab::new().await;
    let (adele, ada) = (lab.hand("adele"), lab.hand("ada"));
    ada.post("/sites/torino/reservations", lab.booking(&["gpu-02"], 0..2))
        .await
        .is(201);
    let mut document = adele.get(EXPORT).await["document"].clone();
    let children = document["resources"]["rack-a"]["children"]
        .as_object_mut()
        .unwrap();
    children.remove("gpu-02");
    assert_eq!(
        acts(
            &adele
                .post(&format!("{APPLY}?dry_run=true"), document.clone())
                .await
                .is(200)
                .body
        ),
        ["extra resource gpu-02"]
    );
    let shown = adele
        .post(
            &format!("{APPLY}?dry_run=true&prune=true"),
            document.clone(),
        )
        .await
        .is(200);
    assert_eq!(shown["conflicts"][0]["wanted"]["name"], "gpu-02");
    let refused = adele
        .post(&format!("{APPLY}?prune=true"), document)
        .await
        .refuses(409, "apply.in_the_way");
    assert_eq!(refused["conflicts"][0]["claim"]["owner"]["login"], "ada");
    assert!(
        refused["detail"]
            .as_str()
            .unwrap()
            .contains("`gpu-02` is taken from")
    );
}

#[tokio::test]
async fn a_document_of_the_wrong_shape_is_refused_by_field() {
    let lab = Lab::new().await;
    let adele = lab.hand("adele");
    for (document, field) in [
        (json!({}), "version"),
        (json!({"version": 2}), "version"),
        (
            json!({"version": 1, "resources": {"x": {}}}),
            "resources.x.type",
        ),
        (
            json!({"version": 1, "resources": {"x": {"type": "nothing"}}}),
            "resources.x.type",
        ),
        (
            json!({"version": 1, "resources": {"X": {"type": "server"}}}),
            "resources",
        ),
        (
            json!({"version": 1, "projects": {"p": {"title": "P", "members": ["otto"]}}}),
            "projects.p.members",
        ),
    ] {
        let refused = adele
            .post(APPLY, document)
            .await
            .refuses(422, "request.invalid");
        let said = refused["errors"][0]["field"].as_str().unwrap();
        assert!(said.starts_with(field), "{said}");
    }
    adele
        .post(&format!("{APPLY}?expected=nonsense"), json!({"version": 1}))
        .await
        .is(422);
    lab.hand("ada")
        .post(APPLY, json!({"version": 1}))
        .await
        .refuses(403, "auth.not_allowed");
    lab.hand("otto")
        .get(EXPORT)
        .await
        .refuses(404, "object.not_found");
}

/// Ten thousand resources are more than other bodies may hold; the second time nothing is left to do.
#[tokio::test]
async fn ten_thousand_resources_fit_one_document() {
    let lab = Lab::new().await;
    let adele = lab.hand("adele");
    let node = |n: usize| {
        let gpu = |g: usize| {
            let attributes =
                json!({"gpu_model": "A100", "memory_gib": 80, "driver": "a".repeat(40)});
            (
                format!("node-{n}.gpu{g}"),
                json!({"type": "server", "attributes": attributes}),
            )
        };
        let children: serde_json::Map<String, Value> = (0..9).map(gpu).collect();
        (
            format!("node-{n}"),
            json!({"type": "server", "children": children}),
        )
    };
    let nodes: serde_json::Map<String, Value> = (0..1000).map(node).collect();
    let document = json!({"version": 1, "resources": nodes});
    assert!(document.to_string().len() > 1_048_576);
    let made = adele.post(APPLY, document.clone()).await.is(200);
    let added = acts(&made.body)
        .iter()
        .filter(|line| line.starts_with("added"))
        .count();
    assert_eq!(added, 10_000);
    let again = adele.post(APPLY, document).await.is(200);
    assert!(
        acts(&again.body)
            .iter()
            .all(|line| line.starts_with("extra "))
    );
}
