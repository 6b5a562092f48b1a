//! Reads the audit log, and checks that nobody has rewritten it.

use berth_engine::rights::Action;
use berth_model::audit::{Actor, ChainedEntry};
use berth_model::reference::{PersonReference, SiteReference};
use berth_store::audit::{self, Filter, Verification};
use berth_store::{Conn, sites};
use jiff::Timestamp;

use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::Result;

/// Which entries to return.
#[derive(Debug, Clone, Default)]
pub struct WantedEntries {
    pub actor: Option<PersonReference>,
    pub action: Option<String>,
    pub subject: Option<String>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

impl App {
    /// A site's entries before the given number, newest first.
    pub async fn site_audit(
        &self,
        caller: &Caller,
        site: &SiteReference,
        wanted: &WantedEntries,
        before: u64,
        limit: u64,
    ) -> Result<(Vec<ChainedEntry>, Directory)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeAudit)
            .await?;
        let filter = self.audit_filter(&mut reader, wanted).await?;
        let entries = audit::of_site(&mut reader, place.id(), &filter, before, limit).await?;
        let directory = named(
            &mut reader,
            caller,
            &entries,
            Directory::with_site(&place.site),
        )
        .await?;
        Ok((entries, directory))
    }

    pub async fn whole_audit(
        &self,
        caller: &Caller,
        wanted: &WantedEntries,
        before: u64,
        limit: u64,
    ) -> Result<(Vec<ChainedEntry>, Directory)> {
        caller.may(Action::SeeAllAudit, false, "audit log")?;
        let mut reader = self.store.read().await?;
        let filter = self.audit_filter(&mut reader, wanted).await?;
        let entries = audit::of_all(&mut reader, &filter, before, limit).await?;
        let directory = named(&mut reader, caller, &entries, Directory::default()).await?;
        Ok((entries, directory))
    }

    async fn audit_filter(&self, conn: &mut Conn, wanted: &WantedEntries) -> Result<Filter> {
        let actor = match &wanted.actor {
            Some(actor) => Some(self.narrowed_to(conn, actor).await?),
            None => None,
        };
        Ok(Filter {
            actor,
            action: wanted.action.clone(),
            subject: wanted.subject.clone(),
            from: wanted.from,
            to: wanted.to,
        })
    }

    pub async fn verify_audit(&self, caller: &Caller) -> Result<Verification> {
        caller.may(Action::SeeAllAudit, false, "audit log")?;
        let mut reader = self.store.read().await?;
        Ok(audit::verify(&mut reader).await?)
    }
}

async fn named(
    conn: &mut Conn,
    caller: &Caller,
    entries: &[ChainedEntry],
    mut directory: Directory,
) -> Result<Directory> {
    let people = entries
        .iter()
        .filter_map(|chained| match chained.entry.actor {
            Actor::Person(id) => Some(id),
            Actor::System | Actor::Anonymous => None,
        });
    directory.learn_people(conn, people).await?;
    for site in entries.iter().filter_map(|chained| chained.entry.site) {
        if !directory.sites.contains_key(&site)
            && let Some((site, _)) = sites::by_id_for(conn, site, caller.id()).await?
        {
            directory.add_site(&site);
        }
    }
    Ok(directory)
}
