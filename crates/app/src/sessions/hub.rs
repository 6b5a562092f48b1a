//! Sessions with a server that takes Berth for a JupyterHub: the variables for their start, and the hub tokens (`Word`)
//! that they show.
//!
//! No hub token is stored. Each one is sealed with the installation's own key, and says only whom or what it names.
//! Every use looks up the rights anew. A server's own hub token is valid only for one run, and exists only in the
//! environment of that run. See `docs/jupyterhub.md`.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use berth_drivers::backend::HUB_PORT;
use berth_model::person::{Person, PersonState};
use berth_model::session::{App as Catalogued, Session, Visit};
use berth_model::workload::{Run, Workload};
use berth_model::{PersonId, RunId, SessionId, VisitId};
use berth_store::{Conn, people, queues, sessions, workloads};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::visits::{Entered, Key};
use crate::App;
use crate::error::{Error, Result};
use crate::transact::transact;

/// Name of the session that is JupyterHub's unnamed server.
pub const HUB_DEFAULT: &str = "default";
/// Prefix of hub tokens. It distinguishes them from Berth's own tokens, which no app ever sees.
pub const HUB_WORD: &str = "hub_";
/// Prefix of the OAuth client's name. The session's label follows.
pub const HUB_CLIENT: &str = "session-";

/// Placeholders in variables for values that are known only when a run starts, or that must not be stored.
const TOKEN: &str = "{hub_token}";
const TOLD_LATE: [&str; 9] = [
    TOKEN,
    "{hub_url}",
    "{hub_base}",
    "{hub_origin}",
    "{client}",
    "{person}",
    "{server}",
    "{origin}",
    "{base}",
];

/// The subject of a hub token.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    /// The server of a session, while this run is live.
    Server { session: SessionId, run: RunId },
    /// A visitor with a browser.
    Visit { label: String, key: String },
    /// A program that came with its person's token.
    Program {
        session: SessionId,
        person: PersonId,
        until: Timestamp,
    },
    /// A code for one visit, and the challenge that its user has to meet.
    Code {
        code: String,
        challenge: Option<String>,
    },
}

/// The holder of a hub token.
#[derive(Debug, Clone)]
pub enum HubAsker {
    /// The session's own server.
    Server {
        session: Session,
        owner: Person,
        run: RunId,
    },
    /// A visitor that a server asks about.
    Visitor {
        session: Session,
        owner: Person,
        person: Person,
    },
}

impl HubAsker {
    pub fn session(&self) -> &Session {
        match self {
            HubAsker::Server { session, .. } | HubAsker::Visitor { session, .. } => session,
        }
    }
}

/// A session's name for JupyterHub's clients.
pub fn hub_name(session: &Session) -> &str {
    match session.name.as_str() {
        HUB_DEFAULT => "",
        name => name,
    }
}

/// Whether an app's server takes Berth for a JupyterHub.
pub(super) fn speaks_hub(app: &Catalogued) -> bool {
    app.variables.values().any(|value| value.contains(TOKEN))
}

/// The variables that may be stored with the workload.
pub(super) fn plain_variables(app: &Catalogued) -> BTreeMap<String, String> {
    let is_plain = |value: &str| !TOLD_LATE.iter().any(|word| value.contains(word));
    let all = app.variables.clone().into_iter();
    all.filter(|(_, value)| is_plain(value)).collect()
}

impl App {
    /// The socket where this server listens for its runs. `None` if no run could connect.
    pub fn hub_socket(&self) -> Option<std::path::PathBuf> {
        self.backend.as_ref()?.hub_socket()
    }

    /// The variables that only this run gets.
    pub(crate) async fn hub_variables(
        &self,
        conn: &mut Conn,
        workload: &Workload,
        run: &Run,
    ) -> Result<BTreeMap<String, String>> {
        let none = BTreeMap::new();
        if workload.ask.program.serves.is_none() {
            return Ok(none);
        }
        let Some(session) = sessions::by_workload(conn, workload.id).await? else {
            return Ok(none);
        };
        let policy = queues::policy(conn, session.site).await?;
        let app = policy.session_app(&session.profile);
        let owner = people::get(conn, session.owner).await?;
        let (Some(app), Some(owner)) = (app.filter(speaks_hub), owner) else {
            return Ok(none);
        };
        let word = self.seal(&Word::Server {
            session: session.id,
            run: run.id,
        })?;
        let home = self.settings.addresses.home();
        let words = [
            (TOKEN, word),
            (
                "{hub_url}",
                format!("http://127.0.0.1:{HUB_PORT}{}/hub/api", home.base),
            ),
            ("{hub_base}", format!("{}/", home.base)),
            ("{hub_origin}", home.origin),
            ("{client}", format!("{HUB_CLIENT}{}", session.label)),
            ("{person}", owner.login.to_string()),
            ("{server}", hub_name(&session).to_owned()),
            ("{origin}", self.settings.addresses.origin(&session.label)),
            ("{base}", self.settings.addresses.base(&session.label)),
        ];
        let plain = plain_variables(&app);
        let late = app
            .variables
            .into_iter()
            .filter(|(name, _)| !plain.contains_key(name));
        let fill = |(name, value): (String, String)| {
            let fill = |value: String, (word, told): &(&str, String)| value.replace(word, told);
            (name, words.iter().fold(value, fill))
        };
        Ok(late.map(fill).collect())
    }

    /// The holder of this hub token, if it is still valid.
    pub async fn hub_asker(&self, word: &str) -> Result<Option<HubAsker>> {
        let mut reader = self.store.read().await?;
        match self.unseal(word) {
            Some(Word::Server { session, run }) => self.hub_server(&mut reader, session, run).await,
            Some(Word::Visit { label, key }) => {
                drop(reader);
                let entered = self.visitor(&label, &Key::new(key)).await?;
                let mut reader = self.store.read().await?;
                self.hub_visitor(&mut reader, entered).await
            }
            Some(Word::Program {
                session,
                person,
                until,
            }) => {
                let now = self.now();
                let Some(session) = sessions::get(&mut reader, session).await? else {
                    return Ok(None);
                };
                let visit = Visit {
                    id: VisitId(session.id.0),
                    session: session.id,
                    person,
                    sign_in: None,
                    token: None,
                    access: berth_model::session::Access::Edit,
                    reason: None,
                    began: now,
                    expires_at: until,
                };
                let entered = match until > now {
                    true => self.still_may(&mut reader, &session, &visit).await?,
                    false => None,
                };
                self.hub_visitor(&mut reader, entered).await
            }
            Some(Word::Code { .. }) | None => Ok(None),
        }
    }

    async fn hub_server(
        &self,
        conn: &mut Conn,
        session: SessionId,
        run: RunId,
    ) -> Result<Option<HubAsker>> {
        let session = sessions::get(conn, session).await?;
        let Some(session) = session.filter(|session| session.state.is_live()) else {
            return Ok(None);
        };
        let runs = match session.workload {
            Some(workload) => workloads::live_runs_of(conn, workload).await?,
            None => Vec::new(),
        };
        let owner = people::get(conn, session.owner).await?;
        let owner = owner.filter(|owner| owner.state == PersonState::Active);
        let owner = owner.filter(|_| runs.iter().any(|live| live.id == run));
        Ok(owner.map(|owner| HubAsker::Server {
            session,
            owner,
            run,
        }))
    }

    /// The owner of a run.
    pub async fn owner_of_run(&self, run: RunId) -> Result<Option<PersonId>> {
        let mut reader = self.store.read().await?;
        let Some(run) = workloads::get_run(&mut reader, run).await? else {
            return Ok(None);
        };
        let workload = workloads::get(&mut reader, run.site, run.workload).await?;
        Ok(workload.map(|workload| workload.owner))
    }

    /// Whether this is a live run of the session.
    pub async fn is_run_of(&self, session: &Session, run: RunId) -> Result<bool> {
        let mut reader = self.store.read().await?;
        let runs = match session.workload {
            Some(workload) => workloads::live_runs_of(&mut reader, workload).await?,
            None => Vec::new(),
        };
        Ok(runs.iter().any(|live| live.id == run))
    }

    async fn hub_visitor(
        &self,
        conn: &mut Conn,
        entered: Option<Entered>,
    ) -> Result<Option<HubAsker>> {
        let Some(entered) = entered else {
            return Ok(None);
        };
        let session = sessions::get(conn, entered.session).await?;
        let Some(session) = session.filter(|session| session.state.is_live()) else {
            return Ok(None);
        };
        let owner = people::get(conn, session.owner).await?;
        let person = entered.person;
        Ok(owner.map(|owner| HubAsker::Visitor {
            session,
            owner,
            person,
        }))
    }

    /// Hub token for a program's visit. The app never sees the token that the program came with.
    pub fn hub_word_for(
        &self,
        session: SessionId,
        person: PersonId,
        until: Timestamp,
    ) -> Result<String> {
        self.seal(&Word::Program {
            session,
            person,
            until,
        })
    }

    /// Binds a code to the challenge that its user has to meet.
    pub fn hub_code(&self, code: &Key, challenge: Option<String>) -> Result<String> {
        let code = code.reveal().to_owned();
        self.seal(&Word::Code { code, challenge })
    }

    /// Exchanges a code for a hub token that names the visitor. Returns `None` if the code is not valid, or if `proof`
    /// is not the challenge.
    pub async fn hub_enter(
        &self,
        label: &str,
        code: &str,
        proof: Option<&str>,
    ) -> Result<Option<(String, Entered)>> {
        let Some(Word::Code { code, challenge }) = self.unseal(code) else {
            return Ok(None);
        };
        if challenge.is_some() && challenge.as_deref() != proof {
            return Ok(None);
        }
        let Some((key, entered)) = self.enter(label, &Key::new(code)).await? else {
            return Ok(None);
        };
        let (label, key) = (label.to_owned(), key.reveal().to_owned());
        let word = self.seal(&Word::Visit { label, key })?;
        Ok(Some((word, entered)))
    }

    /// Records activity in a session, as its own server reports it.
    pub async fn hub_activity(&self, session: SessionId, at: Timestamp) -> Result<()> {
        transact!(self, tx => {
            let before = self.session_locked(&mut tx, session).await?;
            self.was_active(&mut tx, before, at).await
        })
    }

    fn seal(&self, word: &Word) -> Result<String> {
        let plain = serde_json::to_vec(word).map_err(|error| Error::Internal(error.to_string()))?;
        let sealed = self.vault.seal_word(&plain);
        let sealed = sealed.map_err(|error| Error::Internal(error.to_string()))?;
        Ok(format!("{HUB_WORD}{}", URL_SAFE_NO_PAD.encode(sealed)))
    }

    fn unseal(&self, text: &str) -> Option<Word> {
        let sealed = URL_SAFE_NO_PAD.decode(text.strip_prefix(HUB_WORD)?).ok()?;
        serde_json::from_slice(&self.vault.open_word(&sealed)?).ok()
    }
}
