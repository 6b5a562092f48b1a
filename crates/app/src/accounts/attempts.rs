//! Sign-in attempts, counted before the password is hashed.
//!
//! An attempt counts as a failure until the password proves right. So guesses that arrive together cannot all be tried.
//! Three counts hold within [`Settings::LOCK_OUT`]: per login and network, per login, and per network. A refused
//! attempt is not counted. A global admin is never locked out of a network they signed in from before; the limit of
//! requests from one network still slows guesses down there.

use std::net::{IpAddr, Ipv6Addr};

use berth_model::LoginName;
use berth_model::person::Person;
use berth_store::{Conn, sign_ins};
use jiff::Timestamp;

use crate::App;
use crate::app::Settings;
use crate::error::{Error, Result};
use crate::transact::transact;

/// An attempt that was counted.
#[derive(Debug)]
pub(super) struct Attempt {
    network: String,
    /// The subjects that the attempt counts against. None if nobody is locked out here.
    subjects: Option<Subjects>,
    at: Timestamp,
}

#[derive(Debug)]
struct Subjects {
    network: String,
    login: String,
    login_from_network: String,
}

impl App {
    /// Counts an attempt, or refuses it. `person` is the owner of the login, if it has one.
    pub(super) async fn begin_attempt(
        &self,
        login: &LoginName,
        person: Option<&Person>,
        origin: &str,
    ) -> Result<Attempt> {
        let network = network_of(origin);
        let subjects = Subjects {
            network: format!("from {network}"),
            login: format!("login {login}"),
            login_from_network: format!("{}{network}", from_anywhere(login)),
        };
        let admin = person.filter(|person| person.global_admin);
        let at = self.now();
        let is_known = transact!(self, tx => {
            if let Some(admin) = admin
                && sign_ins::knows_network(&mut tx, admin.id, &network).await?
            {
                return Ok(true);
            }
            // Every transaction takes the locks in this order, so two never wait for each other.
            for (subject, allowed) in [
                (&subjects.network, self.settings.sign_in_attempts_network_max),
                (&subjects.login, self.settings.sign_in_attempts_login_max),
                (&subjects.login_from_network, self.settings.sign_in_attempts_max),
            ] {
                sign_ins::lock_failures(&mut tx, subject).await?;
                let since = at - Settings::LOCK_OUT;
                let (failures, first) = sign_ins::failures_since(&mut tx, subject, since).await?;
                if failures >= allowed {
                    let until = first.unwrap_or(at) + Settings::LOCK_OUT;
                    return Err(Error::LockedOut { until });
                }
                sign_ins::note_failure(&mut tx, subject, at).await?;
            }
            Ok(false)
        })?;
        Ok(Attempt {
            network,
            subjects: (!is_known).then_some(subjects),
            at,
        })
    }

    /// Uncounts the attempt, because the password was right.
    pub(super) async fn attempt_succeeded(
        &self,
        conn: &mut Conn,
        person: &Person,
        attempt: &Attempt,
    ) -> Result<()> {
        if let Some(subjects) = &attempt.subjects {
            sign_ins::forget_failure(conn, &subjects.network, attempt.at).await?;
            sign_ins::forget_failure(conn, &subjects.login, attempt.at).await?;
            sign_ins::forget_failures(conn, &subjects.login_from_network).await?;
        }
        // Networks are stored for everybody: a person who becomes a global admin later keeps the networks they used
        // before.
        Ok(sign_ins::know_network(conn, person.id, &attempt.network, self.now()).await?)
    }

    /// Forgets all failures of a login. Its owner has proved their identity in another way.
    pub(super) async fn forget_attempts(&self, conn: &mut Conn, login: &LoginName) -> Result<()> {
        sign_ins::forget_failures(conn, &format!("login {login}")).await?;
        Ok(sign_ins::forget_failures_below(conn, &from_anywhere(login)).await?)
    }
}

/// The prefix of all subjects of one login from one network. A login has no spaces.
fn from_anywhere(login: &LoginName) -> String {
    format!("login {login} from ")
}

/// The network of a client's address. One person usually has 2^64 IPv6 addresses.
fn network_of(origin: &str) -> String {
    match origin.parse() {
        Ok(IpAddr::V6(address)) => {
            let network = Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64));
            format!("{network}/64")
        }
        _ => origin.to_owned(),
    }
}
