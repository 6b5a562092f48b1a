//! Two at once on PostgreSQL, step by step: the first has written and not yet committed when the second comes. The
//! second waits, and then answers to what the first made of the world.
//!
//! Each of these is a lock that a random race would miss only rarely; here it is missed never.

use std::time::Duration;

use berth_model::inventory::Capacity;
use berth_model::{Claim, ClaimId, ResourceId, Span};
use berth_store::{Conn, Error, Refused, Result, Tx, claims, inventory};
use berth_testkit::wait;

use crate::support::lab::{But, Lab, amount, span};
use crate::support::{Home, fresh_id, hour, refusal, someone_waits, transact};

const PATIENCE: Duration = Duration::from_secs(60);

/// A server with a GPU and a CPU of 8, and a rack to move it to.
struct Two {
    home: Home,
    lab: Lab,
    rack: ResourceId,
    server: ResourceId,
    gpu: ResourceId,
    cpu: ResourceId,
}

async fn two() -> Two {
    let home = Home::postgres().await;
    let lab = Lab::new(&home.store).await;
    let (rack, server) = (lab.thing(None).await, lab.thing(None).await);
    let gpu = lab.thing(Some(server)).await;
    let cpu = lab.divisible(Some(server), 8).await;
    Two {
        home,
        lab,
        rack,
        server,
        gpu,
        cpu,
    }
}

impl Two {
    /// A first one that has done its work and holds its breath.
    async fn first(&self, work: impl AsyncFnOnce(&mut Conn) -> Result<()>) -> Tx {
        let mut tx = self.home.store.begin().await.expect("a transaction");
        work(&mut tx).await.expect("nobody is in its way yet");
        tx
    }

    /// The second one's answer: it comes, waits, and goes on when the first has committed.
    async fn second<T>(
        &self,
        first: Tx,
        work: impl AsyncFnOnce(&mut Conn) -> Result<T>,
    ) -> Result<T> {
        let end_the_first = async {
            self.until_someone_waits().await;
            first.commit().await.expect("a commit");
        };
        let (answer, ()) = tokio::join!(transact(&self.home.store, work), end_the_first);
        answer
    }

    /// The same, but the first gives up.
    async fn second_after_none<T>(
        &self,
        first: Tx,
        work: impl AsyncFnOnce(&mut Conn) -> Result<T>,
    ) -> Result<T> {
        let end_the_first = async {
            self.until_someone_waits().await;
            drop(first);
        };
        let (answer, ()) = tokio::join!(transact(&self.home.store, work), end_the_first);
        answer
    }

    async fn until_someone_waits(&self) {
        wait::until("the second to wait", PATIENCE, async || {
            someone_waits(&self.home).await
        })
        .await;
    }
}

async fn insert(conn: &mut Conn, claim: &Claim) -> Result<()> {
    claims::insert(conn, std::slice::from_ref(claim)).await
}

async fn shrink(conn: &mut Conn, id: ClaimId, to: Span) -> Result<()> {
    claims::shrink(conn, id, to, hour(0)).await
}

async fn set_capacity(conn: &mut Conn, lab: &Lab, id: ResourceId, capacity: u64) -> Result<()> {
    let found = inventory::by_id(conn, lab.site, id).await?;
    let mut resource = found.expect("a resource");
    resource.capacity = Some(Capacity {
        amount: amount(capacity),
        unit: "core".parse().expect("a unit"),
    });
    inventory::update(conn, &resource, resource.version)
        .await
        .map(drop)
}

#[track_caller]
fn assert_tried_again<T: std::fmt::Debug>(answer: Result<T>) {
    assert!(matches!(answer, Err(Error::Retry)), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_on_related_resources_the_first_stays() {
    let two = two().await;
    let (mine, yours) = (
        two.lab.claim(two.gpu, 0, 2),
        two.lab.claim(two.server, 1, 3),
    );
    let first = two.first(async |tx| insert(tx, &mine).await).await;
    let answer = two.second(first, async |tx| insert(tx, &yours).await).await;
    assert_eq!(refusal(answer), Some(Refused::Claim));

    let (mine, yours) = (
        two.lab.claim(two.gpu, 4, 6),
        two.lab.claim(two.server, 5, 7),
    );
    let first = two.first(async |tx| insert(tx, &mine).await).await;
    let answer = two
        .second_after_none(first, async |tx| insert(tx, &yours).await)
        .await;
    assert_eq!(refusal(answer), None, "the first gave up");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_amounts_the_second_gets_what_is_left() {
    let two = two().await;
    let five = two.lab.claim(two.cpu, 0, 2).amount(5);
    for (wanted, refused) in [(4, Some(Refused::Amount)), (3, None)] {
        let (mine, yours) = (five.clone(), two.lab.claim(two.cpu, 1, 3).amount(wanted));
        let mine = Claim {
            id: ClaimId(fresh_id()),
            ..mine
        };
        let first = two.first(async |tx| insert(tx, &mine).await).await;
        let answer = two.second(first, async |tx| insert(tx, &yours).await).await;
        assert_eq!(refusal(answer), refused, "{wanted} beside 5 of 8");
        let both = [mine.id, yours.id];
        transact(&two.home.store, async |tx| {
            claims::release(tx, &both, hour(0)).await
        })
        .await
        .expect("a release");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capacity_and_an_amount_take_turns() {
    let two = two().await;
    let six = two.lab.claim(two.cpu, 0, 2).amount(6);
    let first = two
        .first(async |tx| set_capacity(tx, &two.lab, two.cpu, 5).await)
        .await;
    let answer = two.second(first, async |tx| insert(tx, &six).await).await;
    assert_eq!(refusal(answer), Some(Refused::Amount));

    let four = two.lab.claim(two.cpu, 0, 2).amount(4);
    let first = two.first(async |tx| insert(tx, &four).await).await;
    let lower = async |tx: &mut Conn| set_capacity(tx, &two.lab, two.cpu, 3).await;
    assert_eq!(
        refusal(two.second(first, lower).await),
        Some(Refused::Amount)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_and_its_content_take_turns() {
    let two = two().await;
    let container = two.lab.made(two.lab.claim(two.server, 0, 10)).await;

    // The content first: whoever shrinks looked too early, and settles it when tried again.
    let inner = two.lab.claim(two.gpu, 4, 8).inside(container);
    let first = two.first(async |tx| insert(tx, &inner).await).await;
    let to_six = async |tx: &mut Conn| shrink(tx, container, span(0, 6)).await;
    assert_tried_again(two.second(first, to_six).await);
    transact(&two.home.store, to_six)
        .await
        .expect("it is settled now");
    assert_eq!(two.lab.get(inner.id).await.span, span(4, 6));

    // The container first: there is less room than the content believes.
    let late = two.lab.claim(two.gpu, 3, 4).inside(container);
    let first = two
        .first(async |tx| shrink(tx, container, span(0, 3)).await)
        .await;
    let answer = two.second(first, async |tx| insert(tx, &late).await).await;
    assert_eq!(refusal(answer), Some(Refused::OutsideContainer));

    let late = two.lab.claim(two.gpu, 0, 1).inside(container);
    let first = two
        .first(async |tx| claims::release(tx, &[container], hour(0)).await)
        .await;
    let answer = two.second(first, async |tx| insert(tx, &late).await).await;
    assert_eq!(refusal(answer), Some(Refused::OutsideContainer));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_ends_takes_late_content_along() {
    let two = two().await;
    let container = two.lab.made(two.lab.claim(two.server, 0, 10)).await;
    let inner = two.lab.claim(two.gpu, 4, 8).inside(container);
    let first = two.first(async |tx| insert(tx, &inner).await).await;
    let end = async |tx: &mut Conn| claims::release(tx, &[container], hour(0)).await;
    assert_tried_again(two.second(first, end).await);
    transact(&two.home.store, end).await.expect("both end");
    two.lab.made(two.lab.claim(two.gpu, 0, 10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moving_subtree_and_a_claim_on_it_take_turns() {
    let two = two().await;
    two.lab.made(two.lab.claim(two.rack, 0, 2)).await;
    let to_rack = async |tx: &mut Conn| {
        inventory::move_subtree(tx, two.lab.site, two.server, Some(two.rack)).await
    };
    // The claim first: the move finds it in the way.
    let early = two.lab.claim(two.gpu, 1, 3);
    let first = two.first(async |tx| insert(tx, &early).await).await;
    assert_eq!(
        refusal(two.second(first, to_rack).await),
        Some(Refused::Claim)
    );
    transact(&two.home.store, async |tx| {
        claims::release(tx, &[early.id], hour(0)).await
    })
    .await
    .expect("a release");

    // The move first: the claim knew the old place, and looks again.
    let late = two.lab.claim(two.gpu, 1, 3);
    let first = two.first(to_rack).await;
    assert_tried_again(two.second(first, async |tx| insert(tx, &late).await).await);
    assert_eq!(
        refusal(two.lab.make(&[late]).await),
        Some(Refused::Claim),
        "below the rack"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_and_a_claim_take_turns() {
    let two = two().await;
    let remove = async |tx: &mut Conn| inventory::remove(tx, two.lab.site, two.gpu, hour(0)).await;
    let early = two.lab.claim(two.gpu, 0, 1);
    let first = two.first(async |tx| insert(tx, &early).await).await;
    assert_tried_again(two.second(first, remove).await);
    let removed = transact(&two.home.store, remove).await;
    assert!(!removed.expect("an answer"), "it is booked");
    transact(&two.home.store, async |tx| {
        claims::release(tx, &[early.id], hour(0)).await
    })
    .await
    .expect("a release");

    let late = two.lab.claim(two.gpu, 0, 1);
    let first = two
        .first(async |tx| remove(tx).await.map(|done| assert!(done)))
        .await;
    assert_tried_again(two.second(first, async |tx| insert(tx, &late).await).await);
    assert_eq!(
        refusal(two.lab.make(&[late]).await),
        Some(Refused::Resource)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moving_subtree_and_a_new_child_take_turns() {
    let two = two().await;
    let to_rack = async |tx: &mut Conn| {
        inventory::move_subtree(tx, two.lab.site, two.server, Some(two.rack)).await
    };
    let child = two
        .lab
        .resource(ResourceId(fresh_id()), Some(two.gpu), None);
    let first = two
        .first(async |tx| inventory::insert(tx, &child, hour(0)).await)
        .await;
    assert_tried_again(two.second(first, to_rack).await);

    let child = two
        .lab
        .resource(ResourceId(fresh_id()), Some(two.gpu), None);
    let first = two.first(to_rack).await;
    let answer = two
        .second(first, async |tx| {
            inventory::insert(tx, &child, hour(0)).await
        })
        .await;
    assert_eq!(refusal(answer), None, "it hangs where its parent is now");
    two.lab.made(two.lab.claim(child.id, 0, 1)).await;
    let refused = refusal(two.lab.make(&[two.lab.claim(two.rack, 0, 1)]).await);
    assert_eq!(refused, Some(Refused::Claim));
}
