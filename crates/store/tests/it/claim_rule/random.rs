//! Random sequences of operations, given to the oracle and to a database. Every answer must agree; at the end the
//! database must hold what the oracle holds, and nothing that breaks the rule by its definition.
//!
//! `BERTH_PROOF_CASES` sets how many sequences, `BERTH_PROOF_SEED` repeats a run.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use berth_engine::timeline::Operation;
use berth_engine::yielding::Cut;
use berth_model::inventory::Capacity;
use berth_model::{Amount, Claim, ClaimId, ResourceId, Standing};
use berth_store::{Conn, Error, Refused, Result, Store, claims, inventory};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

use super::drafts::{Draft, sequence};
use super::model::{Answer, Model, Step};
use crate::support::lab::Lab;
use crate::support::{Home, cases, definition, hour, seed};

/// What `make test` tries on each database. From here on, every answer must have been met.
const SEQUENCES: u32 = 64;

/// Before everything: what is settled at this time has not begun.
const BEFORE_ALL: i64 = -1;

/// How often each kind of operation got each answer.
type Tally = BTreeMap<(&'static str, String), u64>;

#[test]
fn sqlite_answers_like_the_oracle() {
    compare("SQLite", Home::sqlite);
}

#[test]
fn postgres_answers_like_the_oracle() {
    compare("PostgreSQL", Home::postgres);
}

#[expect(
    clippy::print_stdout,
    reason = "the record of a run, shown when it fails or when asked for"
)]
fn compare(name: &str, home: impl AsyncFnOnce() -> Home) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let home = runtime.block_on(home());
    let (cases, seed, began) = (cases(SEQUENCES), seed(), Instant::now());
    let mut runner = TestRunner::new(Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..Config::default()
    });
    let tally = RefCell::new(Tally::new());
    let outcome = runner.run(&sequence(), |drafts| {
        runtime.block_on(follow(&home.store, &drafts, &mut tally.borrow_mut()))
    });
    let tally = tally.into_inner();
    let operations: u64 = tally.values().sum();
    println!(
        "claim rule on {name}: {cases} sequences, {operations} operations, seed {seed}, {:.1} s",
        began.elapsed().as_secs_f64()
    );
    for ((operation, answer), count) in &tally {
        println!("  {operation:<12} {answer:<26} {count}");
    }
    if let Err(failure) = outcome {
        panic!("{name} differs from the oracle (BERTH_PROOF_SEED={seed}): {failure}");
    }
    if cases >= SEQUENCES {
        assert_everything_was_met(&tally);
    }
}

/// A comparison that never meets a refusal, or never gets a yes, would prove nothing.
fn assert_everything_was_met(tally: &Tally) {
    let operations: BTreeSet<&str> = tally.keys().map(|(operation, _)| *operation).collect();
    let done = format!("{:?}", Answer::Done);
    for operation in operations {
        assert!(
            tally.contains_key(&(operation, done.clone())),
            "{operation} was never done"
        );
    }
    let met: BTreeSet<&str> = tally.keys().map(|(_, answer)| answer.as_str()).collect();
    for refused in [
        Refused::Claim,
        Refused::Amount,
        Refused::OutsideContainer,
        Refused::HasInside,
        Refused::NotHolding,
        Refused::Resource,
        Refused::Cycle,
        Refused::Parent,
        Refused::Leaf,
    ] {
        let answer = format!("{:?}", Answer::Refused(refused));
        assert!(met.contains(answer.as_str()), "{answer} was never met");
    }
}

/// Gives one sequence to both, in a site of its own.
async fn follow(store: &Store, drafts: &[Draft], tally: &mut Tally) -> Result<(), TestCaseError> {
    let lab = Lab::new(store).await;
    let mut model = Model::default();
    for draft in drafts {
        let Some(step) = draft.resolve(&lab, &model) else {
            continue;
        };
        let before = model.clone();
        let right = model.apply(&step);
        let answer = perform(&lab, &before, &step).await;
        if !right.contains(&answer) {
            let difference = format!("{step:?} was answered {answer:?}, not {right:?}");
            return Err(TestCaseError::fail(difference));
        }
        *tally
            .entry((kind(&step), format!("{answer:?}")))
            .or_default() += 1;
    }
    compare_states(&lab, &model).await
}

async fn compare_states(lab: &Lab, model: &Model) -> Result<(), TestCaseError> {
    let mut conn = lab.store.read().await.expect("a connection to read");
    let claims = lab.claims(&mut conn).await;
    let resources = inventory::of_site(&mut conn, lab.site)
        .await
        .expect("the tree");

    let expected: Vec<Claim> = model.timeline.claims().cloned().collect();
    if claims != expected {
        let text = format!("the database holds {claims:#?}, the oracle {expected:#?}");
        return Err(TestCaseError::fail(text));
    }
    type Shape = BTreeMap<ResourceId, (Option<ResourceId>, Option<Amount>)>;
    let shape: Shape = resources
        .iter()
        .map(|r| {
            (
                r.id,
                (
                    r.parent,
                    r.capacity.as_ref().map(|capacity| capacity.amount),
                ),
            )
        })
        .collect();
    let tree = model.timeline.tree();
    let expected: Shape = tree
        .resources()
        .filter(|id| !model.removed.contains(id))
        .map(|id| (id, (tree.ancestors(id).next(), model.timeline.capacity(id))))
        .collect();
    if shape != expected {
        let text = format!("the database's tree is {shape:#?}, the oracle's {expected:#?}");
        return Err(TestCaseError::fail(text));
    }
    match definition::broken(&resources, &claims).as_slice() {
        [] => Ok(()),
        broken => Err(TestCaseError::fail(format!(
            "the rule is broken: {broken:#?}"
        ))),
    }
}

/// Does one step on the database, in a transaction of its own.
async fn perform(lab: &Lab, before: &Model, step: &Step) -> Answer {
    let mut tx = lab.store.begin().await.expect("a transaction");
    match perform_in(&mut tx, lab, before, step).await {
        Ok(Answer::Done) => {
            tx.commit().await.expect("a commit");
            Answer::Done
        }
        Ok(other) => other,
        Err(Error::Refused(refused)) => Answer::Refused(refused),
        Err(error) => panic!("{step:?} was neither done nor refused: {error:?}"),
    }
}

async fn perform_in(conn: &mut Conn, lab: &Lab, before: &Model, step: &Step) -> Result<Answer> {
    match step {
        Step::Do(operation) => operate(conn, lab, before, operation).await,
        Step::Firmly(claim, plan) => {
            for given in plan {
                let soft = before.timeline.claim(given.claim).expect("it gives way");
                match given.cut {
                    Cut::Void => claims::release(conn, &[soft.id], soft.span.start()).await?,
                    Cut::ShortenTo(at) => {
                        let left = soft.span.before(at).expect("it has begun by then");
                        claims::shrink(conn, soft.id, left, hour(BEFORE_ALL)).await?;
                    }
                }
            }
            claims::insert(conn, std::slice::from_ref(claim)).await?;
            Ok(Answer::Done)
        }
        Step::Remove(resource) => {
            let done = inventory::remove(conn, lab.site, *resource, hour(0)).await?;
            Ok(if done { Answer::Done } else { Answer::InUse })
        }
    }
}

async fn operate(
    conn: &mut Conn,
    lab: &Lab,
    before: &Model,
    operation: &Operation,
) -> Result<Answer> {
    match operation {
        Operation::AddResource {
            resource,
            parent,
            capacity,
        } => {
            let new = lab.resource(*resource, *parent, capacity.map(Amount::get));
            inventory::insert(conn, &new, hour(0)).await?;
        }
        Operation::Insert(claims) => {
            for claim in claims {
                check_overlapping(conn, before, claim).await?;
            }
            claims::insert(conn, claims).await?;
        }
        Operation::SetSpan { claim, span } => claims::set_span(conn, *claim, *span).await?,
        Operation::SetSpanWithInside { claim, span } => {
            claims::shrink(conn, *claim, *span, hour(BEFORE_ALL)).await?;
        }
        Operation::Rebind {
            claim,
            resource,
            take,
        } => claims::rebind(conn, *claim, *resource, *take).await?,
        Operation::ReleaseWithInside { claim, at } => {
            claims::release(conn, &[*claim], *at).await?;
        }
        Operation::MoveSubtree { resource, under } => {
            inventory::move_subtree(conn, lab.site, *resource, *under).await?;
        }
        Operation::SetCapacity { resource, capacity } => {
            let Some(mut found) = inventory::by_id(conn, lab.site, *resource).await? else {
                return Err(Error::Refused(Refused::Resource));
            };
            found.capacity = capacity.map(|amount| Capacity {
                amount,
                unit: "core".parse().expect("a unit"),
            });
            let done = inventory::update(conn, &found, found.version).await?;
            assert!(done, "nobody else changes it");
        }
        Operation::InsertFirmly { .. } | Operation::Release { .. } => {
            unreachable!("drafts do not ask for this")
        }
    }
    Ok(Answer::Done)
}

/// Whoever explains a refusal asks the database what is in the way; that answer must be the oracle's too.
async fn check_overlapping(conn: &mut Conn, before: &Model, claim: &Claim) -> Result<()> {
    const MANY: u64 = 1000;
    if before.removed.contains(&claim.resource) {
        return Ok(());
    }
    let found =
        claims::overlapping(conn, claim.resource, claim.span, claim.container, MANY).await?;
    let found: BTreeSet<ClaimId> = found.into_iter().map(|claim| claim.id).collect();
    let tree = before.timeline.tree();
    let in_the_way = before.timeline.claims().filter(|other| {
        other.standing == Standing::Holding
            && other.container == claim.container
            && other.span.overlaps(claim.span)
            && tree.related(other.resource, claim.resource)
    });
    let expected: BTreeSet<ClaimId> = in_the_way.map(|claim| claim.id).collect();
    assert_eq!(found, expected, "what overlaps {claim:?}");
    Ok(())
}

fn kind(step: &Step) -> &'static str {
    match step {
        Step::Firmly(..) => "firm claim",
        Step::Remove(_) => "remove",
        Step::Do(operation) => match operation {
            Operation::AddResource { .. } => "add",
            Operation::Insert(_) => "claim",
            Operation::InsertFirmly { .. } => "firm claim",
            Operation::SetSpan { .. } => "set span",
            Operation::SetSpanWithInside { .. } => "shrink",
            Operation::Rebind { .. } => "rebind",
            Operation::Release { .. } | Operation::ReleaseWithInside { .. } => "release",
            Operation::MoveSubtree { .. } => "move",
            Operation::SetCapacity { .. } => "set capacity",
        },
    }
}
