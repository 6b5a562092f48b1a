//! A site's own colour and logo.

use serde_json::{Value, json};

use super::support::Lab;

const SVG: &str = "<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";

#[tokio::test]
async fn an_accent_is_set_checked_and_taken_away() {
    let lab = Lab::new().await;
    let adele = lab.hand("adele").with("if-match", "*");
    let set = |accent: Value| adele.patch("/sites/torino", json!({ "accent": accent }));
    assert_eq!(set(json!("#1F77B4")).await.is(200)["accent"], "#1f77b4");
    let refused = set(json!("#ffff00")).await.refuses(422, "request.invalid");
    let said = refused["errors"][0]["message"].as_str().unwrap();
    assert!(said.contains("choose a darker one"), "{said}");
    let title = json!({"title": "Torino lab"});
    let kept = adele.patch("/sites/torino", title).await.is(200);
    assert_eq!(kept["accent"], "#1f77b4", "what is absent stays");
    assert_eq!(set(Value::Null).await.is(200)["accent"], Value::Null);
    lab.hand("ada")
        .with("if-match", "*")
        .patch("/sites/torino", json!({"accent": "#1f77b4"}))
        .await
        .refuses(403, "auth.not_allowed");
}

#[tokio::test]
async fn a_logo_is_what_is_in_it_and_does_nothing() {
    let lab = Lab::new().await;
    let (adele, ada) = (lab.hand("adele"), lab.hand("ada"));
    let logo = "/sites/torino/logo";
    ada.get(logo).await.refuses(404, "object.not_found");
    ada.put_bytes(logo, SVG.as_bytes())
        .await
        .refuses(403, "auth.not_allowed");
    lab.hand("otto")
        .put_bytes(logo, b"nothing")
        .await
        .refuses(404, "object.not_found");

    let site = adele.put_bytes(logo, SVG.as_bytes()).await.is(200);
    let digest = site["logo"].as_str().unwrap().to_owned();
    let seen = ada.get(logo).await.is(200);
    assert_eq!(seen.raw, SVG.as_bytes());
    assert_eq!(seen.header("content-type"), "image/svg+xml");
    assert_eq!(
        seen.header("content-security-policy"),
        "sandbox; default-src 'none'; style-src 'unsafe-inline'"
    );
    assert_eq!(seen.header("etag"), format!("W/\"{digest}\""));
    let known = ada.with("if-none-match", seen.header("etag"));
    assert_eq!(known.get(logo).await.is(304).raw, b"");
    assert_eq!(ada.get("/sites/torino").await["logo"], digest.as_str());

    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend([0; 17]);
    let again = adele.put_bytes(logo, &png).await.is(200);
    assert_ne!(again["logo"], digest.as_str());
    let seen = ada.get(logo).await.is(200);
    assert_eq!(seen.header("content-type"), "image/png");
    assert!(!seen.header("content-security-policy").contains("sandbox"));
    // The same once more changes nothing.
    let same = adele.put_bytes(logo, &png).await.is(200);
    assert_eq!(same["version"], again["version"]);

    for wrong in [
        &b"GIF89a"[..],
        b"",
        b"<html></html>",
        b"<!DOCTYPE svg><svg/>",
    ] {
        adele
            .put_bytes(logo, wrong)
            .await
            .refuses(422, "request.invalid");
    }
    png.resize(128 * 1024 + 1, 0);
    adele
        .put_bytes(logo, &png)
        .await
        .refuses(413, "request.too_large");
    adele.delete(logo).await.is(204);
    adele.delete(logo).await.is(204);
    ada.get(logo).await.refuses(404, "object.not_found");
    assert_eq!(ada.get("/sites/torino").await["logo"], Value::Null);
}
