//! What one writer does next.

use berth_model::{Claim, ClaimId, ResourceId, Span, Take};
use berth_store::{Conn, Result, claims, inventory};

use super::{World, locked};
use crate::support::lab::{But, Lab, amount, span};
use crate::support::random::Random;
use crate::support::{fresh_id, hour};

/// Hours in which everything happens: few, so that everybody is in everybody's way.
const HOURS: i64 = 24;

#[derive(Debug)]
pub enum Deed {
    /// Several claims in one statement.
    Claim(Vec<Claim>),
    /// Several claims one after the other in one transaction, in an order nobody chose.
    ClaimInTurn(Vec<Claim>),
    ClaimInside(Claim),
    SetSpan(ClaimId, Span),
    Shrink(ClaimId, Span),
    Rebind(ClaimId, ResourceId, Take),
    Release(ClaimId),
    Add(ResourceId, Option<ResourceId>),
    Move(ResourceId, Option<ResourceId>),
    Remove(ResourceId),
}

pub fn draw(world: &World, random: &mut Random) -> Option<Deed> {
    let resource = |random: &mut Random| draw_resource(world, random);
    let claim = |random: &mut Random| random.pick(&locked(&world.claims)).cloned();
    Some(match random.below(22) {
        0..6 => Deed::Claim(draw_claims(world, random)),
        6..8 => Deed::ClaimInTurn(draw_claims(world, random)),
        8..11 => Deed::ClaimInside(draw_inside(world, random)?),
        11 => Deed::SetSpan(claim(random)?.id, draw_span(random)),
        12..14 => {
            let outer = claim(random)?;
            Deed::Shrink(outer.id, draw_within(outer.span, random))
        }
        14 => {
            let (to, claim) = (resource(random), claim(random)?.id);
            Deed::Rebind(claim, to, draw_take(world, to, random))
        }
        15..17 => Deed::Release(claim(random)?.id),
        17..19 => Deed::Add(ResourceId(fresh_id()), Some(resource(random))),
        19 => {
            let under = (!random.one_in(4)).then(|| resource(random));
            Deed::Move(resource(random), under)
        }
        _ => {
            // Mostly what was added, since a rack is hardly ever empty.
            let added = random.pick(&locked(&world.added)).copied();
            let added = added.filter(|_| !random.one_in(4));
            Deed::Remove(added.unwrap_or_else(|| resource(random)))
        }
    })
}

/// Mostly one of the few that everybody wants, and of those often one that can be shared.
fn draw_resource(world: &World, random: &mut Random) -> ResourceId {
    let drawn = match random.below(4) {
        0 => random.pick(&locked(&world.added)).copied(),
        1 => random.pick(&world.divisible).copied(),
        _ => None,
    };
    drawn.unwrap_or_else(|| *random.pick(&world.racks).expect("there are racks"))
}

fn draw_span(random: &mut Random) -> Span {
    let from = random.between(0, HOURS);
    span(from, from + random.between(1, 5))
}

fn draw_within(outer: Span, random: &mut Random) -> Span {
    draw_span(random).intersection(outer).unwrap_or(outer)
}

fn draw_take(world: &World, of: ResourceId, random: &mut Random) -> Take {
    match world.divisible.contains(&of) && !random.one_in(4) {
        true => Take::Amount(amount(1 + random.below(5))),
        false => Take::Exclusive,
    }
}

pub fn draw_claims(world: &World, random: &mut Random) -> Vec<Claim> {
    let span = draw_span(random);
    let count = 1 + random.below(4);
    let draw_one = |_| {
        let on = draw_resource(world, random);
        let take = draw_take(world, on, random);
        let claim = world.lab.claim(on, 0, 1);
        Claim {
            span,
            take,
            ..claim
        }
    };
    (0..count).map(draw_one).collect()
}

/// A claim within another one, as that one was made; by now it may be shorter, or elsewhere, or gone.
fn draw_inside(world: &World, random: &mut Random) -> Option<Claim> {
    let outer = random.pick(&locked(&world.claims)).cloned()?;
    let on = match random.one_in(2) {
        true => outer.resource,
        false => draw_resource(world, random),
    };
    let span = draw_within(outer.span, random);
    let take = match outer.take {
        Take::Exclusive => draw_take(world, on, random),
        Take::Amount(part) => Take::Amount(amount(1 + random.below(part.get()))),
    };
    let claim = world.lab.claim(on, 0, 1).inside(outer.id);
    Some(Claim {
        span,
        take,
        ..claim
    })
}

impl Deed {
    pub fn kind(&self) -> &'static str {
        match self {
            Deed::Claim(_) => "claim",
            Deed::ClaimInTurn(_) => "claim in turn",
            Deed::ClaimInside(_) => "claim inside",
            Deed::SetSpan(..) => "set span",
            Deed::Shrink(..) => "shrink",
            Deed::Rebind(..) => "rebind",
            Deed::Release(_) => "release",
            Deed::Add(..) => "add",
            Deed::Move(..) => "move",
            Deed::Remove(_) => "remove",
        }
    }

    /// Says whether it did it; if not, nothing of it may be committed.
    pub async fn perform(&self, conn: &mut Conn, lab: &Lab) -> Result<bool> {
        match self {
            Deed::Claim(claims) => claims::insert(conn, claims).await?,
            Deed::ClaimInTurn(claims) => {
                for claim in claims {
                    claims::insert(conn, std::slice::from_ref(claim)).await?;
                }
            }
            Deed::ClaimInside(claim) => claims::insert(conn, std::slice::from_ref(claim)).await?,
            Deed::SetSpan(id, span) => claims::set_span(conn, *id, *span).await?,
            Deed::Shrink(id, span) => claims::shrink(conn, *id, *span, hour(0)).await?,
            Deed::Rebind(id, to, take) => claims::rebind(conn, *id, *to, *take).await?,
            Deed::Release(id) => claims::release(conn, &[*id], hour(0)).await?,
            Deed::Add(id, parent) => {
                let new = lab.resource(*id, *parent, None);
                inventory::insert(conn, &new, hour(0)).await?;
            }
            Deed::Move(id, under) => inventory::move_subtree(conn, lab.site, *id, *under).await?,
            Deed::Remove(id) => return inventory::remove(conn, lab.site, *id, hour(0)).await,
        }
        Ok(true)
    }

    /// Tells the others of what was made. Nobody is told what is gone: they are to find out.
    pub fn remember(&self, world: &World) {
        match self {
            Deed::Claim(claims) | Deed::ClaimInTurn(claims) => {
                locked(&world.claims).extend(claims.iter().cloned());
            }
            Deed::ClaimInside(claim) => locked(&world.claims).push(claim.clone()),
            Deed::Add(id, _) => locked(&world.added).push(*id),
            _ => {}
        }
    }
}
