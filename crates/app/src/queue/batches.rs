//! Writing together what is submitted at the same time.
//!
//! A transaction costs about the same whether it writes one workload or a hundred. So while one is being written, those
//! that come wait, and then all of them are written at once: alone, somebody waits for nobody, and in a crowd everybody
//! waits for at most two transactions. Nobody is told of success before it is on disk.

use std::collections::BTreeMap;
use std::sync::Mutex;

use berth_model::{SiteId, Workload};
use berth_store::submissions;
use tokio::sync::oneshot;

use crate::App;
use crate::caller::Caller;
use crate::error::{Error, Result};
use crate::record::By;
use crate::transact::transact;

/// However many come, a transaction ends some time.
const BATCH_MAX: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Batches(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    is_writing: bool,
    those: Vec<One>,
}

#[derive(Debug)]
struct One {
    by: By,
    workload: Workload,
    done: oneshot::Sender<Outcome>,
}

/// Why it was not written, in words: one trouble is told to all it met.
type Outcome = std::result::Result<u64, String>;

impl Batches {
    /// Writes a workload with others, and gives it back with its number.
    pub async fn add(&self, app: &App, caller: &Caller, workload: Workload) -> Result<Workload> {
        let (done, written) = oneshot::channel();
        let one = One {
            by: caller.into(),
            workload: workload.clone(),
            done,
        };
        let is_first = {
            let mut waiting = self
                .0
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            waiting.those.push(one);
            !std::mem::replace(&mut waiting.is_writing, true)
        };
        if is_first {
            // A task of its own: whoever came first may hang up, and the others would wait for ever.
            tokio::spawn(write_all(app.clone()));
        }
        match written.await {
            Ok(Ok(number)) => Ok(Workload { number, ..workload }),
            Ok(Err(trouble)) => Err(Error::Internal(trouble)),
            Err(_) => Err(Error::Internal("the server is stopping".into())),
        }
    }

    fn next(&self) -> Vec<One> {
        let mut waiting = self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let many = waiting.those.len().min(BATCH_MAX);
        let batch: Vec<One> = waiting.those.drain(..many).collect();
        waiting.is_writing = !batch.is_empty();
        batch
    }
}

/// Whoever writes lets go of it however it ends; those who waited for it are told that it did.
struct Writing(App);

impl Drop for Writing {
    fn drop(&mut self) {
        let mut waiting = self
            .0
            .batches
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if std::thread::panicking() {
            *waiting = Waiting::default();
        }
    }
}

async fn write_all(app: App) {
    let _writing = Writing(app.clone());
    loop {
        let batch = app.batches.next();
        if batch.is_empty() {
            return;
        }
        let written = write(&app, &batch).await;
        match written {
            Ok(numbers) => {
                for (one, number) in batch.into_iter().zip(numbers) {
                    one.done.send(Ok(number)).ok();
                }
                app.submitted.notify_one();
            }
            Err(error) => {
                tracing::warn!(%error, "{} workloads could not be written", batch.len());
                for one in batch {
                    one.done.send(Err(error.to_string())).ok();
                }
            }
        }
    }
}

async fn write(app: &App, batch: &[One]) -> Result<Vec<u64>> {
    transact!(*app, tx => {
        let mut counts: BTreeMap<SiteId, u64> = BTreeMap::new();
        for one in batch {
            *counts.entry(one.workload.site).or_default() += 1;
        }
        // In the order of the sites, so that no two batches of two servers wait for each other.
        let mut next: BTreeMap<SiteId, u64> = BTreeMap::new();
        for (site, count) in counts {
            next.insert(site, berth_store::workloads::next_numbers(&mut tx, site, count).await?);
        }
        let mut numbers = Vec::with_capacity(batch.len());
        let mut all = Vec::with_capacity(batch.len());
        for one in batch {
            let free = next.entry(one.workload.site).or_default();
            let workload = Workload { number: *free, ..one.workload.clone() };
            numbers.push(*free);
            *free += 1;
            all.push(app.submission(one.by.clone(), workload)?);
        }
        submissions::insert_all(&mut tx, &all).await?;
        Ok(numbers)
    })
}
