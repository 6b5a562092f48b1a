//! What JupyterHub's words mean here: whose server, which one, at which site, and what was said of it.

use berth_api::Code;
use berth_app::sessions::{HUB_DEFAULT as DEFAULT, SessionFilter, SessionView};
use berth_app::{Caller, Error};
use berth_model::person::Person;
use berth_model::reference::SiteReference;
use berth_model::site::Site;
use berth_model::{LoginName, Name, Reference};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::malformed;
use crate::failure::{Failure, Result};
use crate::server::Server;

/// The most sites that are looked through.
const SITES_MAX: u64 = 500;

/// Which server is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Which(Name);

impl Which {
    pub fn default_one() -> Result<Which> {
        let name = DEFAULT.parse();
        name.map(Which)
            .map_err(|error| Failure::new(Code::ServerInternal).because(error))
    }

    pub fn named(name: &str) -> Result<Which> {
        if name == DEFAULT {
            return Err(malformed(format!(
                "`{DEFAULT}` is what the server without a name is called here: leave the name out."
            )));
        }
        let name = name.parse().map(Which);
        name.map_err(|error| malformed(format!("A server cannot have this name: {error}.")))
    }

    /// By the name that JupyterHub's clients know it by.
    pub fn told(name: &str) -> Result<Which> {
        match name {
            "" => Which::default_one(),
            name => Which::named(name),
        }
    }

    pub fn session(&self) -> &Name {
        &self.0
    }

    /// Of several sites with a session of this name, the one that runs is meant, or else the newest.
    pub fn among<'a>(&self, servers: &'a [SessionView]) -> Option<&'a SessionView> {
        let same = servers.iter().filter(|one| one.session.name == self.0);
        same.max_by_key(|one| (one.session.state.is_live(), one.session.created_at))
    }
}

/// The one whom an address names: oneself, or for administrators of all sites anyone.
pub async fn person(server: &Server, caller: &Caller, name: &str) -> Result<Person> {
    let login: LoginName = name.parse().map_err(|_| nobody())?;
    if login == caller.person.login {
        return Ok(caller.person.clone());
    }
    match server.app.get_person(caller, &Reference::Name(login)).await {
        // Who there is, is nobody's business.
        Err(Error::NotFound(_) | Error::NotAllowed { .. }) => Err(nobody()),
        found => Ok(found?),
    }
}

pub fn nobody() -> Failure {
    Failure::new(Code::ObjectNotFound)
        .detail("There is no such user, or they are not yours to see.")
}

pub fn no_server() -> Failure {
    Failure::new(Code::ObjectNotFound).detail("There is no server of this name.")
}

/// Everything that somebody has, as far as the caller may see it.
pub async fn servers_of(
    server: &Server,
    caller: &Caller,
    person: &Person,
) -> Result<Vec<SessionView>> {
    let filter = SessionFilter {
        owner: Some(person.id),
        ..SessionFilter::default()
    };
    let mut found = Vec::new();
    for site in sites(server, caller).await? {
        let site = site.id.into();
        let here = server.app.list_sessions(caller, &site, filter.clone());
        match here.await {
            Ok(here) => found.extend(here),
            Err(Error::NotFound(_) | Error::NotAllowed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// Where the caller may have servers, or see others'.
async fn sites(server: &Server, caller: &Caller) -> Result<Vec<Site>> {
    if caller.person.global_admin {
        let all = server.app.list_sites(caller, "", SITES_MAX).await?;
        return Ok(all.into_iter().map(|place| place.site).collect());
    }
    let belonging = server.app.me(caller).await?;
    let own = belonging.memberships.into_iter();
    Ok(own.map(|(site, _)| site).collect())
}

/// JupyterHub's `user_options`: where a server runs, and what.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    pub site: Option<String>,
    pub profile: Option<Name>,
    pub environment: Option<berth_model::Text>,
    pub project: Option<Name>,
}

impl Options {
    /// They stand under `user_options`, or are the whole body, as in JupyterHub before its sixth version.
    pub fn read(body: &[u8]) -> Result<Options> {
        let Some(body) = json::<serde_json::Value>(body)? else {
            return Ok(Options::default());
        };
        let whole = body.as_object().ok_or_else(not_an_object)?;
        let has_parts = ["user_options", "display_name"]
            .iter()
            .any(|part| whole.contains_key(*part));
        let options = match has_parts {
            true => whole.get("user_options").cloned().unwrap_or_default(),
            false => body,
        };
        if options.is_null() {
            return Ok(Options::default());
        }
        serde_json::from_value(options).map_err(|error| {
            malformed(format!(
                "These user_options cannot be read: {error}. There are site, profile, environment and project."
            ))
        })
    }
}

/// A body of JSON; none, where nothing was sent. What kind of body it is, JupyterHub's clients often do not say.
pub fn json<T: DeserializeOwned>(body: &[u8]) -> Result<Option<T>> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let read = serde_json::from_slice(body).map(Some);
    read.map_err(|error| malformed(format!("The body cannot be read: {error}.")))
}

pub fn not_an_object() -> Failure {
    malformed("The body has to be a JSON object.")
}

/// Where a new server runs: where its owner says, or at the only site that has something to start.
pub async fn place(
    server: &Server,
    caller: &Caller,
    options: &Options,
) -> Result<(SiteReference, Name)> {
    let mut possible = Vec::new();
    for site in sites(server, caller).await? {
        if options
            .site
            .as_ref()
            .is_some_and(|wanted| *wanted != site.name.as_str())
        {
            continue;
        }
        let profiles = match server.app.session_profiles(caller, &site.id.into()).await {
            Ok(profiles) => profiles,
            Err(Error::NotFound(_) | Error::NotAllowed { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        // What nobody may start at the moment is nobody's first choice.
        let first = profiles.iter().find(|one| one.pause.is_none());
        let first = first.or(profiles.first()).map(|one| one.name.clone());
        if let Some(profile) = options.profile.clone().or(first) {
            possible.push((site, profile));
        }
    }
    match (possible.as_slice(), &options.site) {
        ([(site, profile)], _) => Ok((site.id.into(), profile.clone())),
        ([], Some(site)) => Err(malformed(format!(
            "You have no site `{site}` with a profile for sessions."
        ))),
        ([], None) => Err(malformed(
            "None of your sites has a profile for sessions: an admin has to make one.",
        )),
        (several, _) => {
            let names: Vec<&str> = several.iter().map(|(site, _)| site.name.as_str()).collect();
            Err(malformed(format!(
                "Say in user_options at which `site` it runs: {}.",
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_in_their_part_or_are_the_whole_body() {
        for body in [
            r#"{"user_options": {"profile": "lab"}}"#,
            r#"{"display_name": "Lab", "user_options": {"profile": "lab"}}"#,
            r#"{"profile": "lab"}"#,
        ] {
            let options = Options::read(body.as_bytes()).unwrap();
            assert_eq!(options.profile.unwrap().as_str(), "lab", "{body}");
        }
        for nothing in [
            "",
            "  ",
            "{}",
            r#"{"user_options": null}"#,
            r#"{"display_name": "x"}"#,
        ] {
            assert!(Options::read(nothing.as_bytes()).unwrap().profile.is_none());
        }
        for bad in ["[]", "{", r#"{"image": "x"}"#, r#"{"user_options": 3}"#] {
            let failure = Options::read(bad.as_bytes()).unwrap_err();
            assert_eq!(failure.status(), 400, "{bad}");
        }
    }

    #[test]
    fn the_server_without_a_name_is_a_session_with_one() {
        assert_eq!(Which::told("").unwrap().session().as_str(), DEFAULT);
        assert_eq!(Which::told("lab").unwrap().session().as_str(), "lab");
        for bad in [DEFAULT, "My Lab", "a/b", ".."] {
            assert_eq!(Which::named(bad).unwrap_err().status(), 400, "{bad}");
        }
    }
}
