//! Writes submissions that come at the same time in one transaction (group commit).
//!
//! A transaction costs about the same for one workload as for a hundred. While one transaction runs, new submissions
//! wait, and the next transaction writes all of them. A lone caller waits for nobody. Under load, a caller waits for at
//! most two transactions. A caller gets a success only after its workload is on disk.

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

/// Bounds a transaction, however many submissions wait.
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

/// The workload's number, or an error message. One error goes to all callers of the batch, so it is text.
type Outcome = std::result::Result<u64, String>;

impl Batches {
    /// Writes a workload in the next batch, and returns it with its number.
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
            // A separate task: the first caller may disconnect, and the others would wait forever.
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

/// Clears the waiting submissions if the writing task panics. Their callers then get an error.
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
        // In the order of the sites, so two batches of two servers never wait for each other.
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
