//! Seals and removes the folders of environments, each in a task of its own. A huge folder takes an hour, and nobody
//! waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use berth_drivers::backend::{Backend, Trouble};
use berth_drivers::environments::{Removed, Sealed};
use berth_model::EnvironmentId;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// Folders that are sealed, or removed, at the same time.
const AT_ONCE: usize = 8;
/// How long a pass waits for a task that it begins: most folders are small.
const QUICK: Duration = Duration::from_millis(250);

type Tasks<T> = HashMap<EnvironmentId, AbortOnDropHandle<Result<T, Trouble>>>;

/// Tasks in progress. They are lost with the server, which begins again.
#[derive(Debug, Default)]
pub(crate) struct Shelving {
    seals: Mutex<Tasks<Sealed>>,
    removals: Mutex<Tasks<Removed>>,
    ended: Arc<Notify>,
}

fn locked<T>(tasks: &Mutex<T>) -> MutexGuard<'_, T> {
    tasks.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shelving {
    /// Result of sealing a folder, or `None` while that is in progress. The first call begins it.
    pub async fn seal(
        &self,
        backend: &Option<Arc<dyn Backend>>,
        id: EnvironmentId,
    ) -> Option<Result<Sealed, Trouble>> {
        let backend = backend.clone()?;
        let work = async move {
            match backend.shelf() {
                Some(shelf) => shelf.seal(id).await,
                None => Err(Trouble::Refused("nothing here keeps environments".into())),
            }
        };
        self.begin_or_take(&self.seals, id, work).await
    }

    /// Result of removing a folder, or `None` while that is in progress. The first call begins it.
    pub async fn remove(
        &self,
        backend: &Option<Arc<dyn Backend>>,
        id: EnvironmentId,
    ) -> Option<Result<Removed, Trouble>> {
        let backend = backend.clone()?;
        let work = async move {
            match backend.shelf() {
                Some(shelf) => shelf.remove(id).await,
                None => Err(Trouble::Refused("nothing here keeps environments".into())),
            }
        };
        self.begin_or_take(&self.removals, id, work).await
    }

    async fn begin_or_take<T: Send + 'static>(
        &self,
        tasks: &Mutex<Tasks<T>>,
        id: EnvironmentId,
        work: impl Future<Output = Result<T, Trouble>> + Send + 'static,
    ) -> Option<Result<T, Trouble>> {
        let (known, count) = {
            let mut tasks = locked(tasks);
            (tasks.remove(&id), tasks.len())
        };
        let patience = match known {
            None if count >= AT_ONCE => return None,
            None => QUICK,
            Some(_) => Duration::ZERO,
        };
        let mut task = known.unwrap_or_else(|| {
            let ended = self.ended.clone();
            AbortOnDropHandle::new(tokio::spawn(async move {
                let done = work.await;
                ended.notify_one();
                done
            }))
        });
        match timeout(patience, &mut task).await {
            Ok(done) => done.ok(),
            Err(_) => {
                locked(tasks).insert(id, task);
                None
            }
        }
    }

    /// Waits until a task has ended.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }
}
