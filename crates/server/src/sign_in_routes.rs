//! Signing in and out, and what a person sees and changes of themselves.

use axum::Json;
use axum::extract::State;
use axum::response::{AppendHeaders, IntoResponse};
use berth_api::about::About;
use berth_api::people::Person;
use berth_api::secret::Revealed;
use berth_api::sign_in::{
    AskedSite, Me, MySite, PasswordChange, PasswordReset, ProfilePatch, SignIn, SignedIn,
};
use berth_api::{Code, Names, paths};
use berth_app::accounts::SessionToken;
use berth_app::{PersonChange, Via};
use http::header::SET_COOKIE;
use http::{HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::Versioned;
use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::openapi::IfMatchOptionalHeader;
use crate::request::address::Origin;
use crate::request::{Body, IfMatch, Session, Signed, cookie_name};
use crate::server::{Server, is_secure};

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(about))
        .routes(routes!(sign_in))
        .routes(routes!(sign_out))
        .routes(routes!(me, change_me))
        .routes(routes!(change_password))
        .routes(routes!(reset_password))
}

/// What this server is, for whoever has not signed in yet.
#[utoipa::path(
    get, path = paths::ABOUT, tag = "session", security(()),
    responses((status = 200, description = "About this server.", body = About))
)]
async fn about(State(server): State<Server>) -> Result<Json<About>> {
    Ok(Json(About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        is_set_up: server.app.is_set_up().await?,
        unsafe_shared_user: server.config.shares_a_user(),
        sessions_share_origin: server.shares_origin(),
        demo: server.demo.clone(),
    }))
}

type SetCookie = AppendHeaders<[(HeaderName, HeaderValue); 1]>;

/// Sign in with a password.
///
/// The session travels in a cookie that pages cannot read. After too many wrong passwords the account is
/// locked for a while.
#[utoipa::path(
    post, path = paths::SIGN_IN, tag = "session", security(()),
    request_body = SignIn,
    responses(
        (status = 200, description = "Signed in; the cookie is set.", body = SignedIn,
            headers(("Set-Cookie" = String, description = "The session."))),
        (status = 401, description = "`auth.wrong_credentials`: Wrong login or password.",
            body = berth_api::Problem, content_type = "application/problem+json"),
    )
)]
async fn sign_in(
    State(server): State<Server>,
    Origin(origin): Origin,
    Body(given): Body<SignIn>,
) -> Result<(SetCookie, Json<SignedIn>)> {
    let password = given.password.into_inner();
    let signed_in = server.app.sign_in(&given.login, &password, &origin).await?;
    let answer = SignedIn {
        csrf_token: csrf_token(&signed_in.token)?,
        person: signed_in.person.into(),
    };
    let life = Life::Until(signed_in.expires_at, server.app.now());
    let cookie = cookie(&server.config, &signed_in.token, life)?;
    server.throttle.cookies.made(signed_in.token.reveal());
    Ok((cookie, Json(answer)))
}

/// End this browser's session.
#[utoipa::path(
    post, path = paths::SIGN_OUT, tag = "session",
    responses((status = 204, description = "Signed out; the cookie is gone.",
        headers(("Set-Cookie" = String, description = "Removes the session."))))
)]
async fn sign_out(
    State(server): State<Server>,
    Signed(caller): Signed,
) -> Result<(StatusCode, SetCookie)> {
    server.app.sign_out(&caller).await?;
    let cookie = cookie(&server.config, &SessionToken::new(""), Life::Over)?;
    Ok((StatusCode::NO_CONTENT, cookie))
}

/// Who I am, and where I belong.
#[utoipa::path(
    get, path = paths::ME, tag = "session",
    responses((status = 200, description = "You.", body = Me))
)]
async fn me(
    State(server): State<Server>,
    Signed(caller): Signed,
    Session(session): Session,
) -> Result<impl IntoResponse> {
    let belongs = server.app.me(&caller).await?;
    let mut names = Names::default();
    for (site, _) in &belongs.memberships {
        names.add_site(site.into());
    }
    let asked = belongs.asked.iter().map(|(site, request)| AskedSite {
        site: site.into(),
        since: request.created_at,
    });
    let memberships = belongs
        .memberships
        .iter()
        .map(|(_, membership)| MySite::new(membership, &names))
        .collect();
    let scopes = match caller.via {
        Via::Token(_) => Some(caller.scopes.iter().copied().collect()),
        Via::Session(_) | Via::Direct => None,
    };
    let version = caller.person.version;
    let me = Me {
        person: caller.person.into(),
        memberships,
        asked: asked.collect(),
        csrf_token: session.as_ref().map(csrf_token).transpose()?,
        scopes,
    };
    Ok(Versioned(me, version))
}

/// Change my name, address or time zone.
#[utoipa::path(
    patch, path = paths::ME, tag = "session", params(IfMatchOptionalHeader),
    request_body = ProfilePatch,
    responses((status = 200, description = "You, as you are now.", body = Person))
)]
async fn change_me(
    State(server): State<Server>,
    Signed(caller): Signed,
    version: IfMatch,
    Body(patch): Body<ProfilePatch>,
) -> Result<Versioned<Person>> {
    let change = PersonChange {
        display_name: patch.display_name,
        email: patch
            .email
            .map(|email| email.map(|email| email.to_string())),
        time_zone: patch.time_zone,
        ..PersonChange::default()
    };
    let person = server
        .app
        .update_me(&caller, version.optional(), change)
        .await?;
    let version = person.version;
    Ok(Versioned(person.into(), version))
}

/// Change my password; my other sign-ins end, and my API tokens if I want that.
#[utoipa::path(
    post, path = paths::MY_PASSWORD, tag = "session",
    request_body = PasswordChange,
    responses((status = 204, description = "Changed."))
)]
async fn change_password(
    State(server): State<Server>,
    Signed(caller): Signed,
    Body(change): Body<PasswordChange>,
) -> Result<StatusCode> {
    let (current, new) = (change.current.into_inner(), change.new.into_inner());
    let revoke_tokens = change.revoke_tokens;
    server
        .app
        .change_password(&caller, &current, &new, revoke_tokens)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Set a password with the token of a one-time link.
///
/// Nobody needs to be signed in. The link is spent by this. All sign-ins of that person end, and all their API tokens are
/// revoked.
#[utoipa::path(
    post, path = paths::PASSWORD_RESET, tag = "session", security(()),
    request_body = PasswordReset,
    responses(
        (status = 204, description = "The password is set; sign in with it."),
        (status = 410, description = "`auth.reset_link_spent`: The link was used already, or is too old.",
            body = berth_api::Problem, content_type = "application/problem+json"),
    )
)]
async fn reset_password(
    State(server): State<Server>,
    Origin(origin): Origin,
    Body(reset): Body<PasswordReset>,
) -> Result<StatusCode> {
    let (token, new) = (reset.token.into_inner(), reset.new_password.into_inner());
    server.app.reset_password(&token, &new, &origin).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn csrf_token(session: &SessionToken) -> Result<Revealed> {
    Revealed::new(session.csrf_token())
        .map_err(|error| Failure::new(Code::ServerInternal).because(error))
}

/// How long a browser keeps the cookie.
enum Life {
    /// Until the first moment, counted from the second.
    Until(Timestamp, Timestamp),
    /// No longer: this removes it.
    Over,
}

fn cookie(config: &Config, token: &SessionToken, life: Life) -> Result<SetCookie> {
    let age_s = match life {
        Life::Until(end, now) => end.duration_since(now).as_secs().max(0),
        Life::Over => 0,
    };
    let secure = if is_secure(config) { "; Secure" } else { "" };
    let text = format!(
        "{}={}; HttpOnly; SameSite=Lax; Path={}; Max-Age={age_s}{secure}",
        cookie_name(config),
        token.reveal(),
        config.base_path,
    );
    let mut value = HeaderValue::from_str(&text)
        .map_err(|error| Failure::new(Code::ServerInternal).because(error))?;
    value.set_sensitive(true);
    Ok(AppendHeaders([(SET_COOKIE, value)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie_text(file: &str, life: Life) -> String {
        let env = [("HOME".to_owned(), "/home/ada".to_owned())];
        let loaded = Config::layer(Some(("t", file)), env.into_iter(), Default::default());
        let config = loaded.unwrap().config;
        let AppendHeaders([(_, value)]) = cookie(&config, &SessionToken::new("abc"), life).unwrap();
        value.to_str().unwrap().to_owned()
    }

    #[test]
    fn the_cookie_is_as_narrow_as_the_address_allows() {
        let now: Timestamp = "2026-11-20T09:00:00Z".parse().unwrap();
        let until = || Life::Until("2026-11-20T10:00:00Z".parse().unwrap(), now);
        assert_eq!(
            cookie_text("", until()),
            "berth_session=abc; HttpOnly; SameSite=Lax; Path=/; Max-Age=3600"
        );
        assert_eq!(
            cookie_text("public_url = 'https://berth.example.org'", until()),
            "__Host-berth_session=abc; HttpOnly; SameSite=Lax; Path=/; Max-Age=3600; Secure"
        );
        assert_eq!(
            cookie_text(
                "public_url = 'https://lab.example.org'\nbase_path = '/berth'",
                Life::Over
            ),
            "berth_session=abc; HttpOnly; SameSite=Lax; Path=/berth; Max-Age=0; Secure"
        );
    }
}
