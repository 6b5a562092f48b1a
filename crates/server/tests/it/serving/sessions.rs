//! Signing in as a browser does, and what another site's page cannot do with it.

use anyhow::Result;
use berth_api::Code;
use berth_api::sign_in::{PasswordChange, ProfilePatch, SignIn};

use super::support::{PASSWORD, Running};

fn sign_in(password: &str) -> Result<SignIn> {
    Ok(serde_json::from_value(
        serde_json::json!({"login": "ada", "password": password}),
    )?)
}

#[tokio::test]
async fn a_session_begins_changes_things_and_ends() -> Result<()> {
    let server = Running::start("").await?;
    let client = server.client("")?;
    let (signed_in, credential) = client.sign_in(&sign_in(PASSWORD)?).await?;
    assert_eq!(signed_in.person.login.to_string(), "ada");
    let client = client.with(credential);
    let me = client.me().await?;
    assert_eq!(me.person.id, server.admin.id);
    assert!(me.csrf_token.is_some() && me.scopes.is_none());

    let patch = ProfilePatch {
        display_name: Some("Ada Rossi".parse()?),
        ..ProfilePatch::default()
    };
    let version = berth_api::headers::IfMatch::Version(me.person.version);
    let changed = client.change_profile(version, &patch).await?;
    assert_eq!(changed.display_name.to_string(), "Ada Rossi");
    let stale = client.change_profile(version, &patch).await.unwrap_err();
    assert!(stale.is(Code::RequestVersionMismatch), "{stale:?}");

    let new = "a much better password";
    let change: PasswordChange =
        serde_json::from_value(serde_json::json!({"current": PASSWORD, "new": new}))?;
    client.change_password(&change).await?;
    client.me().await?;
    client.sign_out().await?;
    let ended = client.me().await.unwrap_err();
    assert!(ended.is(Code::AuthSignInRequired), "{ended:?}");
    server.client("")?.sign_in(&sign_in(new)?).await?;
    server.stop().await
}

#[tokio::test]
async fn another_site_s_page_cannot_act_with_the_cookie() -> Result<()> {
    let server = Running::start("public_url = 'http://berth.example'").await?;
    let body = format!(r#"{{"login":"ada","password":"{PASSWORD}"}}"#);
    let json = "content-type: application/json\r\n";
    let signed_in = server.send("POST", "/api/v1/sign-in", json, &body).await?;
    let cookie = signed_in.header("set-cookie").unwrap_or_default();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap_or_default();
    let csrf = signed_in.json()?["csrf_token"]
        .as_str()
        .unwrap_or_default()
        .to_owned();

    let patch = async |extra: &str| {
        let headers = format!("{json}cookie: {cookie}\r\n{extra}");
        server
            .send("PATCH", "/api/v1/me", &headers, r#"{"display_name":"X"}"#)
            .await
    };
    let token = format!("x-csrf-token: {csrf}\r\n");
    for forged in [
        "",
        "x-csrf-token: 00\r\n",
        "origin: http://berth.example\r\n",
        &format!("{token}origin: https://evil.example\r\n"),
        &format!("{token}origin: null\r\n"),
    ] {
        patch(forged).await?.expect_problem(403, "auth.csrf")?;
    }
    for own in [
        token.clone(),
        format!("{token}origin: http://berth.example\r\n"),
        format!("{token}origin: http://{}\r\n", server.address),
    ] {
        assert_eq!(patch(&own).await?.status, 200, "{own}");
    }
    let reading = format!("cookie: {cookie}\r\norigin: https://evil.example\r\n");
    let answer = server.send("GET", "/api/v1/me", &reading, "").await?;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        None,
        "their page cannot read it"
    );

    let both = format!("{json}cookie: {cookie}\r\nauthorization: Bearer berth_nonsense\r\n{token}");
    let answer = server.send("PATCH", "/api/v1/me", &both, "{}").await?;
    answer.expect_problem(401, "auth.token_invalid")?;
    server.stop().await
}

#[tokio::test]
async fn a_cookie_of_the_same_name_does_not_hide_the_right_one() -> Result<()> {
    let server = Running::start("").await?;
    let body = format!(r#"{{"login":"ada","password":"{PASSWORD}"}}"#);
    let json = "content-type: application/json\r\n";
    let signed_in = server.send("POST", "/api/v1/sign-in", json, &body).await?;
    let cookie = signed_in.header("set-cookie").unwrap_or_default();
    let cookie = cookie.split(';').next().unwrap_or_default();
    let (name, _) = cookie.split_once('=').unwrap_or_default();
    let ask = async |cookies: &str| {
        let headers = format!("cookie: {cookies}\r\n");
        let answer = server.send("GET", "/api/v1/me", &headers, "").await?;
        anyhow::Ok(answer.status)
    };
    assert_eq!(ask(&format!("{name}=planted; {cookie}")).await?, 200);
    assert_eq!(ask(&format!("{cookie}; {name}=planted")).await?, 200);
    assert_eq!(ask(&format!("{name}=planted; {name}=too")).await?, 401);
    // Browsers send cookies with longer paths first, and a neighbour can set many.
    let planted = |count: usize| {
        let one = |number| format!("{name}={number:043}; ");
        (0..count).map(one).collect::<String>()
    };
    for count in [5, 500] {
        assert_eq!(
            ask(&format!("{}{cookie}", planted(count))).await?,
            200,
            "{count}"
        );
        assert_eq!(ask(&planted(count)).await?, 401, "{count}");
    }
    server.stop().await
}
