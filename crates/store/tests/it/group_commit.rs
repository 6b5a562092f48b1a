//! SQLite's one writer: many transactions share one flush to disk, and none of them can harm another.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use berth_model::{Claim, ClaimId, ResourceId};
use berth_store::{Conn, Refused, Result, Store, Tx, claims};
use futures::future::join_all;

use crate::support::lab::Lab;
use crate::support::{Home, refusal};

const PATIENCE: Duration = Duration::from_secs(60);

/// A lab in a SQLite file, with one resource.
struct Place {
    home: Home,
    lab: Lab,
    gpu: ResourceId,
}

async fn place() -> Place {
    let home = Home::sqlite().await;
    let lab = Lab::new(&home.store).await;
    let gpu = lab.thing(None).await;
    Place { home, lab, gpu }
}

impl Place {
    fn claim(&self, hour: i64) -> Claim {
        self.lab.claim(self.gpu, hour, hour + 1)
    }

    /// What whoever looks now sees.
    async fn seen(&self) -> BTreeSet<ClaimId> {
        seen_in(&self.home.store, &self.lab).await
    }
}

async fn seen_in(store: &Store, lab: &Lab) -> BTreeSet<ClaimId> {
    let mut conn = store.read().await.expect("a connection to read");
    let claims = lab.claims(&mut conn).await;
    claims.into_iter().map(|claim| claim.id).collect()
}

async fn insert(conn: &mut Conn, claim: &Claim) {
    claims::insert(conn, std::slice::from_ref(claim))
        .await
        .expect("room");
}

/// Lets a future get as far as it can without waiting; its result, if that was the end.
async fn nudge<F: Future>(future: &mut Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// The turn of one who waits, after another left the commit to them.
async fn take_over(
    committing: &mut Pin<&mut impl Future<Output = Result<()>>>,
    waiting: &mut Pin<&mut impl Future<Output = Result<Tx>>>,
) -> Tx {
    loop {
        assert!(nudge(committing).await.is_none(), "not durable yet");
        if let Some(next) = nudge(waiting).await {
            return next.expect("a transaction");
        }
        tokio::task::yield_now().await;
    }
}

/// Runs a future for so many polls and then drops it, as when a client hangs up; says whether it ended before.
async fn abandon_after<F: Future>(future: F, polls: usize) -> bool {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_transaction_leaves_nothing() {
    let place = place().await;
    let (dropped, kept) = (place.claim(0), place.claim(0));
    let mut tx = place.home.store.begin().await.expect("a transaction");
    insert(&mut tx, &dropped).await;
    drop(tx);
    place.lab.made(kept.clone()).await;
    assert_eq!(place.seen().await, BTreeSet::from([kept.id]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_transaction_leaves_its_neighbours_alone() {
    let place = place().await;
    let store = &place.home.store;
    let (first, dropped, last) = (place.claim(0), place.claim(1), place.claim(1));
    let write = async |claim: &Claim, is_kept: bool| {
        let mut tx = store.begin().await.expect("a transaction");
        insert(&mut tx, claim).await;
        if is_kept {
            tx.commit().await.expect("a commit");
        }
    };
    // All three are under way at once, so that they share a commit.
    tokio::join!(
        write(&first, true),
        write(&dropped, false),
        write(&last, true)
    );
    assert_eq!(place.seen().await, BTreeSet::from([first.id, last.id]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_transaction_leaves_its_neighbours_alone() {
    let place = place().await;
    let store = &place.home.store;
    let (first, second) = (place.claim(0), place.claim(1));
    let (beside, clashing) = (place.claim(2), place.claim(0));

    let mut tx = store.begin().await.expect("a transaction");
    insert(&mut tx, &first).await;
    let mut waiting = pin!(store.begin());
    assert!(nudge(&mut waiting).await.is_none(), "one at a time");
    // Somebody waits, so this one leaves the commit to them.
    let mut committing = pin!(tx.commit());
    let mut tx = take_over(&mut committing, &mut waiting).await;
    insert(&mut tx, &beside).await;
    let refused = refusal(claims::insert(&mut tx, &[clashing]).await);
    assert_eq!(refused, Some(Refused::Claim));
    drop(tx);

    committing.await.expect("what was finished before is kept");
    place.lab.made(second.clone()).await;
    assert_eq!(place.seen().await, BTreeSet::from([first.id, second.id]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_told_when_what_it_rests_on_is_durable() {
    let place = place().await;
    let store = &place.home.store;
    let (first, clashing) = (place.claim(0), place.claim(0));

    let mut tx = store.begin().await.expect("a transaction");
    insert(&mut tx, &first).await;
    let mut waiting = pin!(store.begin());
    assert!(nudge(&mut waiting).await.is_none(), "one at a time");
    let mut committing = pin!(tx.commit());
    let mut tx = take_over(&mut committing, &mut waiting).await;
    let refused = refusal(claims::insert(&mut tx, &[clashing]).await);
    assert_eq!(refused, Some(Refused::Claim));
    assert_eq!(place.seen().await, BTreeSet::new(), "only this one saw it");

    tx.withdraw().await.expect("nothing to keep");
    assert_eq!(place.seen().await, BTreeSet::from([first.id]));
    committing.await.expect("they shared the commit");

    // With nothing to wait for, there is no waiting.
    let tx = store.begin().await.expect("a transaction");
    tx.withdraw().await.expect("nothing to keep");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_see_only_what_is_durable() {
    let place = place().await;
    let store = &place.home.store;
    let (first, second) = (place.claim(0), place.claim(1));

    let mut tx = store.begin().await.expect("a transaction");
    insert(&mut tx, &first).await;
    assert_eq!(place.seen().await, BTreeSet::new(), "not finished");
    let mut waiting = pin!(store.begin());
    assert!(nudge(&mut waiting).await.is_none(), "one at a time");
    let mut committing = pin!(tx.commit());
    let mut tx = take_over(&mut committing, &mut waiting).await;
    insert(&mut tx, &second).await;
    assert_eq!(
        place.seen().await,
        BTreeSet::new(),
        "finished, but not on disk"
    );

    let (one, other) = tokio::join!(committing, tx.commit());
    one.and(other).expect("both at once");
    assert_eq!(place.seen().await, BTreeSet::from([first.id, second.id]));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_was_to_commit_may_give_up_waiting() {
    let place = place().await;
    let store = &place.home.store;
    // Giving up sooner and later, so that it falls before, while and after the commit is left to the one who waits.
    for patience in 0..50 {
        let claim = place.claim(patience);
        let mut tx = store.begin().await.expect("a transaction");
        insert(&mut tx, &claim).await;
        let committing = {
            let mut waiting = pin!(store.begin());
            assert!(nudge(&mut waiting).await.is_none(), "one at a time");
            let committing = tokio::spawn(tx.commit());
            for _ in 0..patience {
                tokio::task::yield_now().await;
            }
            committing
        };
        let committed = tokio::time::timeout(PATIENCE, committing).await;
        let committed = committed.expect("somebody commits").expect("no panic");
        committed.expect("a commit");
        assert!(place.seen().await.contains(&claim.id));
    }
}

/// A client may hang up at any moment. Wherever that is, the writer serves the next one, and what was begun either
/// happened whole or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_does_not_wedge_the_writer() {
    let place = place().await;
    let mut kept = BTreeSet::new();
    // Where each poll stops depends on the machine; going up the ladder often leaves out no rung.
    for round in 0..20 {
        let mut rung = 1;
        let mut hour = 1000 * round;
        while !go_away_after(&place, rung, hour, &mut kept).await {
            (rung, hour) = (rung + 1, hour + 3);
            assert!(rung < 100, "it never comes to an end of itself");
        }
    }
}

/// Goes away after so many polls, then asks the writer again; says whether all was over before.
async fn go_away_after(
    place: &Place,
    polls: usize,
    hour: i64,
    kept: &mut BTreeSet<ClaimId>,
) -> bool {
    let pair = [place.claim(hour), place.claim(hour + 1)];
    let next = place.claim(hour + 2);
    let whole = async {
        let mut tx = place.home.store.begin().await?;
        claims::insert(&mut tx, &pair).await?;
        tx.commit().await
    };
    let ended = abandon_after(whole, polls).await;
    let served = tokio::time::timeout(PATIENCE, place.lab.make(std::slice::from_ref(&next)));
    served.await.expect("the writer answers").expect("room");
    kept.insert(next.id);

    let seen = place.seen().await;
    let [one, other] = pair.map(|claim| seen.contains(&claim.id));
    assert_eq!(one, other, "half a transaction, after {polls} polls");
    assert!(one || !ended, "a lost transaction, after {polls} polls");
    assert!(
        kept.is_subset(&seen),
        "a lost neighbour, after {polls} polls"
    );
    ended
}

/// The same with many at once, so that the abandoned ones share their commits with others.
#[tokio::test(flavor = "multi_thread")]
async fn many_that_go_away_harm_nobody() {
    let place = place().await;
    let store = &place.home.store;
    let write = async |claim: &Claim| {
        let mut tx = store.begin().await?;
        claims::insert(&mut tx, std::slice::from_ref(claim)).await?;
        tx.commit().await
    };
    let claims: Vec<Claim> = (0..300).map(|hour| place.claim(hour)).collect();
    let writing = claims.iter().zip(0..).map(async |(claim, nth)| {
        if nth % 3 == 0 {
            write(claim).await.expect("it stays to the end");
            Some(claim.id)
        } else {
            abandon_after(write(claim), 1 + nth % 17).await;
            None
        }
    });
    let kept: BTreeSet<ClaimId> = join_all(writing).await.into_iter().flatten().collect();
    assert_eq!(kept.len(), 100);
    assert!(kept.is_subset(&place.seen().await));
    place.lab.made(place.claim(1000)).await;
}

/// What is on disk now, in a copy: as much as a crash at this moment would leave.
fn copied_as_it_is(url: &str, to: &Path) -> String {
    let from = PathBuf::from(url.strip_prefix("sqlite:").expect("a SQLite file"));
    for end in ["", "-wal"] {
        let name = format!("{}{end}", from.display());
        std::fs::copy(name, to.join(format!("copy.db{end}"))).expect("a copy");
    }
    format!("sqlite:{}/copy.db", to.display())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_at_once_are_all_durable() {
    let place = place().await;
    let writers: Vec<_> = (0..200)
        .map(|hour| {
            let (store, claim) = (place.home.store.clone(), place.claim(hour));
            tokio::spawn(async move {
                let mut tx = store.begin().await.expect("a transaction");
                insert(&mut tx, &claim).await;
                tx.commit().await.expect("a commit");
                claim.id
            })
        })
        .collect();
    let mut acknowledged = BTreeSet::new();
    for writer in writers {
        acknowledged.insert(writer.await.expect("a writer"));
    }
    assert_eq!(acknowledged.len(), 200);

    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let copy = copied_as_it_is(&place.home.url, directory.path());
    let crashed = Store::open(&copy, 1).await.expect("the copy opens");
    assert_eq!(
        seen_in(&crashed, &place.lab).await,
        acknowledged,
        "after a crash"
    );
    crashed.close().await;

    place.home.store.close().await;
    let reopened = Store::open(&place.home.url, 1)
        .await
        .expect("it opens again");
    assert_eq!(
        seen_in(&reopened, &place.lab).await,
        acknowledged,
        "after a restart"
    );
    reopened.close().await;
}
