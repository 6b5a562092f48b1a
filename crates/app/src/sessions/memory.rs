//! Notifies owners when a program in their session was killed for lack of memory, while the session itself goes on.
//!
//! A kernel that is killed in a live JupyterLab leaves nothing but a message that it "died".

use berth_model::Text;
use berth_model::event::EventKind;
use berth_model::session::{Session, State};
use berth_store::sessions;
use futures::future::join_all;
use jiff::SignedDuration;
use tokio::time::timeout;

use super::follow::{Followed, OTHERS_WAIT};
use crate::App;
use crate::authority::Authority;
use crate::error::Result;

/// How often the operating system's counters are read.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(5);
const MIB_IN_GIB: u64 = 1024;

impl App {
    /// Finds sessions with new out-of-memory kills, and notifies their owners.
    pub(super) async fn tell_of_memory(
        &self,
        authority: Authority<'_>,
        followed: &[Followed],
    ) -> Result<()> {
        let Some(backend) = &self.backend else {
            return Ok(());
        };
        let now = self.now();
        if !self.pulse.is_memory_due(now, LOOK_EVERY) {
            return Ok(());
        }
        let ready = followed
            .iter()
            .filter(|one| one.session.state == State::Ready);
        let look = async |one| {
            // A slow one is checked again the next time.
            let used = timeout(OTHERS_WAIT, backend.used(Followed::job(one)?)).await;
            Some((one, used.ok()?.ok()??))
        };
        let looked = join_all(ready.map(look)).await;
        for (one, used) in looked.into_iter().flatten() {
            let kills = used.out_of_memory;
            if kills > one.session.memory_kills {
                self.note_memory(authority, one, kills).await?;
            }
        }
        Ok(())
    }

    async fn note_memory(
        &self,
        authority: Authority<'_>,
        one: &Followed,
        kills: u64,
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let Some(before) = sessions::get_locked(&mut tx, one.session.id).await? else {
            return Ok(());
        };
        let is_same = before.state == State::Ready && before.workload == one.session.workload;
        if is_same && kills > before.memory_kills {
            let after = Session {
                memory_kills: kills,
                said: words(one),
                ..before.clone()
            };
            self.write_session(&mut tx, &before, &after, EventKind::SessionOutOfMemory)
                .await?;
        }
        tx.commit().await?;
        self.written.notify_one();
        Ok(())
    }
}

fn words(one: &Followed) -> Option<Text> {
    let (workload, run) = (one.workload.as_ref()?, one.run.as_ref()?);
    let task = &workload.ask.wishes.get(run.wish)?.task;
    let most = task.memory_mib_limit.unwrap_or(task.memory_mib).get();
    let most = match most % MIB_IN_GIB {
        0 => format!("{} GiB", most / MIB_IN_GIB),
        _ => format!("{most} MiB"),
    };
    let words = format!(
        "a program in it, such as a notebook's kernel, was ended because the session used all of its {most} of memory; \
         use less at a time, or start it from a profile with more"
    );
    words.parse().ok()
}
