//! Many writers at once on few resources: whatever the order, nothing is promised twice.
//!
//! Each writer draws deeds from chance and from what it believes is there, which may be gone by the time it acts. A
//! deed that met another is tried again, as the server does; anything else but done or refused fails the test. In the
//! end every pair of claims is compared.
//!
//! `BERTH_PROOF_CASES` sets how many deeds each writer does, `BERTH_PROOF_SEED` where chance begins.

mod deeds;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use berth_model::{Claim, ClaimId, ResourceId};
use berth_store::{Error, Result, claims, inventory};

use crate::support::lab::Lab;
use crate::support::random::Random;
use crate::support::{Home, cases, definition, on_both, seed};
use deeds::{Deed, draw, draw_claims};

const WRITERS: u64 = 32;
/// What `make test` has each writer do. From here on, every kind of deed must have been done and refused.
const DEEDS: u32 = 40;

on_both!(nothing_is_promised_twice);

/// What the writers know of the lab, and what they did to it.
#[derive(Debug)]
pub struct World {
    pub lab: Lab,
    /// What was there at the beginning.
    pub racks: Vec<ResourceId>,
    pub divisible: Vec<ResourceId>,
    /// What was added meanwhile.
    pub added: Mutex<Vec<ResourceId>>,
    /// Every claim that was acknowledged, as it was made.
    pub claims: Mutex<Vec<Claim>>,
    tally: Mutex<BTreeMap<(&'static str, String), u64>>,
    retries: Mutex<u64>,
}

impl World {
    /// Two racks with two servers each; a server has two GPUs with two slices, and a CPU of 8.
    async fn new(home: &Home) -> Self {
        let lab = Lab::new(&home.store).await;
        let (mut racks, mut divisible) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let rack = lab.thing(None).await;
            racks.push(rack);
            for _ in 0..2 {
                let server = lab.thing(Some(rack)).await;
                let cpu = lab.divisible(Some(server), 8).await;
                divisible.push(cpu);
                racks.extend([server, cpu]);
                for _ in 0..2 {
                    let gpu = lab.thing(Some(server)).await;
                    let slices = [lab.thing(Some(gpu)).await, lab.thing(Some(gpu)).await];
                    racks.push(gpu);
                    racks.extend(slices);
                }
            }
        }
        Self {
            lab,
            racks,
            divisible,
            added: Mutex::default(),
            claims: Mutex::default(),
            tally: Mutex::default(),
            retries: Mutex::default(),
        }
    }

    /// Does a deed, and tries again for as long as the server would.
    async fn persist(&self, deed: &Deed) {
        let store = &self.lab.store;
        let mut attempt = 0;
        let result = loop {
            match self.try_once(deed).await {
                Err(error) if store.should_retry(&error, attempt).await => attempt += 1,
                result => break result,
            }
        };
        let answer = match result {
            Ok(true) => "done".to_owned(),
            Ok(false) => "in use".to_owned(),
            Err(Error::Retry) => "gave up".to_owned(),
            Err(Error::Refused(refused)) => format!("{refused:?}"),
            Err(error) => panic!("{deed:?} was neither done nor refused: {error:?}"),
        };
        if answer == "done" {
            deed.remember(self);
        }
        *locked(&self.retries) += u64::from(attempt);
        *locked(&self.tally)
            .entry((deed.kind(), answer))
            .or_default() += 1;
    }

    async fn try_once(&self, deed: &Deed) -> Result<bool> {
        let mut tx = self.lab.store.begin().await?;
        let done = deed.perform(&mut tx, &self.lab).await?;
        if done {
            tx.commit().await?;
        }
        Ok(done)
    }
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no writer panicked")
}

async fn nothing_is_promised_twice(home: &Home) {
    let deeds = cases(DEEDS);
    let world = Arc::new(World::new(home).await);
    race(&world, deeds, draw).await;
    check(home, &world).await;
    if deeds >= DEEDS {
        let tally = locked(&world.tally);
        for deed in [
            "claim",
            "claim in turn",
            "claim inside",
            "shrink",
            "move",
            "remove",
        ] {
            let done = tally.get(&(deed, "done".to_owned()));
            assert!(done.is_some(), "no {deed} was ever done");
        }
        let refused: u64 = tally
            .iter()
            .filter(|((_, answer), _)| answer != "done")
            .map(|(_, count)| count)
            .sum();
        assert!(refused > 0, "nobody was ever in anybody's way");
    }
}

/// On PostgreSQL bookings run side by side. However many resources each takes, and on whatever levels, none must ever
/// wait for another that waits for it: the database would cut such a knot only after a second.
#[tokio::test(flavor = "multi_thread")]
async fn bookings_never_lock_each_other_out() {
    let home = Home::postgres().await;
    let world = Arc::new(World::new(&home).await);
    race(&world, cases(DEEDS), |world, random| {
        // What is released makes room, so that the fight goes on.
        let released = random.pick(&locked(&world.claims)).map(|claim| claim.id);
        match released.filter(|_| random.one_in(2)) {
            Some(id) => Some(Deed::Release(id)),
            None => Some(Deed::Claim(draw_claims(world, random))),
        }
    })
    .await;
    check(&home, &world).await;
    assert_eq!(*locked(&world.retries), 0);
}

/// Lets every writer do its deeds, all at once, and tells what came of them.
#[expect(
    clippy::print_stdout,
    reason = "the record of a run, shown when it fails or when asked for"
)]
async fn race(
    world: &Arc<World>,
    deeds: u32,
    draw: impl Fn(&World, &mut Random) -> Option<Deed> + Clone + Send + 'static,
) {
    let (seed, began) = (seed(), Instant::now());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (world, draw) = (world.clone(), draw.clone());
            let mut random = Random::new(seed ^ writer.wrapping_mul(0x2545_f491_4f6c_dd1d));
            tokio::spawn(async move {
                for _ in 0..deeds {
                    if let Some(deed) = draw(&world, &mut random) {
                        world.persist(&deed).await;
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer met neither done nor refused");
    }

    let tally = locked(&world.tally);
    println!(
        "races on {:?}: {} deeds by {WRITERS} writers, {} tried again, seed {seed}, {:.1} s",
        world.lab.store.engine(),
        tally.values().sum::<u64>(),
        locked(&world.retries),
        began.elapsed().as_secs_f64()
    );
    for ((deed, answer), count) in tally.iter() {
        println!("  {deed:<14} {answer:<18} {count}");
    }
}

/// Looks at everything the database holds now.
async fn check(home: &Home, world: &World) {
    let mut conn = home.read().await;
    let resources = inventory::of_site(&mut conn, world.lab.site)
        .await
        .expect("the tree");
    let claims = world.lab.claims(&mut conn).await;
    let broken = definition::broken(&resources, &claims);
    assert!(broken.is_empty(), "the rule is broken: {broken:#?}");

    let (stored, holding) = claims::counts(&mut conn).await.expect("counts");
    assert_eq!(stored, claims.len() as u64);
    assert!(holding > 0, "nothing holds: there was nothing to compare");
    let kept: BTreeSet<ClaimId> = claims.iter().map(|claim| claim.id).collect();
    let acknowledged: BTreeSet<ClaimId> =
        locked(&world.claims).iter().map(|claim| claim.id).collect();
    assert_eq!(kept, acknowledged, "made and acknowledged are the same");
}
