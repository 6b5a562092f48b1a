//! Sessions whose server takes Berth for a JupyterHub: what it is told when it begins, and whom the words name that it
//! shows.
//!
//! No word is kept anywhere. Each is sealed under the installation's own key and says only whom or what it names; what
//! that may do is looked up whenever it is shown. A server's own word is good for as long as that very run, and is
//! nowhere but in the run's environment. See `docs/jupyterhub.md`.

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

/// The session that is JupyterHub's server without a name.
pub const HUB_DEFAULT: &str = "default";
/// So that they are told from Berth's own tokens, which no app ever sees.
pub const HUB_WORD: &str = "hub_";
/// How OAuth's client is called: this, and the session's label.
pub const HUB_CLIENT: &str = "session-";

/// What stands in variables for what is known only when a run begins, or is not to be kept.
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

/// Whom or what a word names.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    /// The server of a session, while this run of it lives.
    Server { session: SessionId, run: RunId },
    /// Somebody who came in with a browser.
    Visit { label: String, key: String },
    /// Somebody whose program comes with their token.
    Program {
        session: SessionId,
        person: PersonId,
        until: Timestamp,
    },
    /// A code for one visit, and what its spender has to prove.
    Code {
        code: String,
        challenge: Option<String>,
    },
}

/// Who shows a word.
#[derive(Debug, Clone)]
pub enum HubAsker {
    /// A session's own server.
    Server {
        session: Session,
        owner: Person,
        run: RunId,
    },
    /// Somebody whom a server asks about.
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

/// What JupyterHub's clients call a session.
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

/// The variables that may be kept with the workload.
pub(super) fn plain_variables(app: &Catalogued) -> BTreeMap<String, String> {
    let is_plain = |value: &str| !TOLD_LATE.iter().any(|word| value.contains(word));
    let all = app.variables.clone().into_iter();
    all.filter(|(_, value)| is_plain(value)).collect()
}

impl App {
    /// Where this server listens for what runs; nowhere, if nothing that runs could ask.
    pub fn hub_socket(&self) -> Option<std::path::PathBuf> {
        self.backend.as_ref()?.hub_socket()
    }

    /// The variables that only this run is told.
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

    /// Who shows this, as far as it is still so.
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

    /// Whose run it is.
    pub async fn owner_of_run(&self, run: RunId) -> Result<Option<PersonId>> {
        let mut reader = self.store.read().await?;
        let Some(run) = workloads::get_run(&mut reader, run).await? else {
            return Ok(None);
        };
        let workload = workloads::get(&mut reader, run.site, run.workload).await?;
        Ok(workload.map(|workload| workload.owner))
    }

    /// Whether this is what runs of a session now.
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

    /// What a program's visit is called in the app, which never sees the token that it came with.
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

    /// Binds a code to what its spender has to prove.
    pub fn hub_code(&self, code: &Key, challenge: Option<String>) -> Result<String> {
        let code = code.reveal().to_owned();
        self.seal(&Word::Code { code, challenge })
    }

    /// Spends a code for a word that names the visitor; none if it is not good, or nothing is proven. `proof` is what the
    /// challenge would be.
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

    /// Something was done in a session, as its own server says.
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
