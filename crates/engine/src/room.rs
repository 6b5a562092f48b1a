//! Finds the claims in the way of many claims at once. A series requests the same resource a thousand times, and one
//! pass over the existing claims answers all the requests.
//!
//! This predicts the refusals of the claim rule; the database decides.

use berth_model::{Claim, ResourceId, Span, Take};
use jiff::Timestamp;

use crate::rule::{peak_amount, usage};

/// For each request, the claims that prevent it; empty if it fits.
///
/// The requests are for one resource, ordered by start, and do not overlap each other. `standing` contains the
/// holding claims that count: on this resource, above it or below it, and in the same container. `capacity` is the
/// shareable amount.
pub fn in_the_way(
    resource: ResourceId,
    capacity: u64,
    wishes: &[(Span, Take)],
    mut standing: Vec<Claim>,
) -> Vec<Vec<Claim>> {
    standing.sort_by_key(|claim| claim.span.start());
    let mut coming = standing.into_iter().peekable();
    let mut passing: Vec<Claim> = Vec::new();
    let mut met = Vec::with_capacity(wishes.len());
    for (span, take) in wishes {
        while let Some(claim) = coming.next_if(|claim| claim.span.start() < span.end()) {
            passing.push(claim);
        }
        passing.retain(|claim| claim.span.end() > span.start());
        met.push(match take {
            Take::Exclusive => passing.clone(),
            Take::Amount(amount) => {
                let taken = peak_amount(&passing, resource, None, *span);
                let is_too_much = taken.saturating_add(amount.get()) > capacity;
                let blocks = |claim: &&Claim| is_too_much || claim.take == Take::Exclusive;
                passing.iter().filter(blocks).cloned().collect()
            }
        });
    }
    met
}

/// How long a claim could last before another claim is in its way; its own start if it could not even begin.
/// `standing` and `capacity` are as for [`in_the_way`].
pub fn open_until(wanted: &Claim, capacity: u64, standing: &[Claim]) -> Timestamp {
    let met: Vec<(Span, &Claim)> = standing
        .iter()
        .filter_map(|claim| Some((claim.span.intersection(wanted.span)?, claim)))
        .collect();
    let begins = |(span, _): &(Span, &Claim)| span.start();
    let wall = match wanted.take {
        Take::Exclusive => met.iter().map(begins).min(),
        Take::Amount(amount) => {
            let whole = |(_, claim): &&(Span, &Claim)| claim.take == Take::Exclusive;
            let shared = met
                .iter()
                .filter(|(_, claim)| claim.resource == wanted.resource)
                .filter_map(|(span, claim)| Some((*span, claim.take.amount()?.get())));
            let is_too_much = |taken: u64| taken.saturating_add(amount.get()) > capacity;
            let full = usage(shared)
                .into_iter()
                .find(|(_, taken)| is_too_much(*taken));
            let whole = met.iter().filter(whole).map(begins);
            whole.chain(full.map(|(at, _)| at)).min()
        }
    };
    wall.unwrap_or(wanted.span.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{But, claim, resource, span};
    use berth_model::Amount;
    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::*;

    const CAPACITY: u64 = 4;
    const WANTED: u64 = 7;

    fn take(amount: u64) -> Take {
        Amount::new(amount).map_or(Take::Exclusive, Take::Amount)
    }

    /// Minute by minute: whether a request fits with the existing claims.
    fn fits_by_definition(wish: Span, take: Take, standing: &[Claim]) -> bool {
        let beside: Vec<&Claim> = standing.iter().filter(|c| c.span.overlaps(wish)).collect();
        let Take::Amount(amount) = take else {
            return beside.is_empty();
        };
        let taken = |at: Timestamp| -> u64 {
            let there = beside
                .iter()
                .filter(|c| c.span.start() <= at && at < c.span.end());
            there
                .map(|c| match c.take {
                    Take::Amount(amount) => amount.get(),
                    Take::Exclusive => CAPACITY + 1,
                })
                .sum()
        };
        let mut at = wish.start();
        while at < wish.end() {
            if taken(at) + amount.get() > CAPACITY {
                return false;
            }
            at += SignedDuration::from_mins(1);
        }
        true
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn one_pass_finds_what_the_definition_finds(
            standing in prop::collection::vec((0i64..60, 1i64..20, 0u64..4), 0..12),
            first in 0i64..10, length in 1i64..8, gap in 0i64..8, amount in 0u64..5,
        ) {
            let standing: Vec<Claim> = (1..)
                .zip(standing)
                .map(|(id, (from, long, amount))| {
                    let whole = claim(id, WANTED, span(from, from + long));
                    if amount == 0 { whole } else { whole.amount(amount) }
                })
                .collect();
            let wishes: Vec<(Span, Take)> = (0..6)
                .map(|n| first + n * (length + gap))
                .map(|from| (span(from, from + length), take(amount)))
                .collect();
            let met = in_the_way(resource(WANTED), CAPACITY, &wishes, standing.clone());
            for ((wish, take), met) in wishes.iter().zip(&met) {
                let fits = fits_by_definition(*wish, *take, &standing);
                prop_assert_eq!(met.is_empty(), fits, "{:?} {:?}: {:?}", wish, take, met);
                prop_assert!(met.iter().all(|claim| claim.span.overlaps(*wish)));
            }
        }

        #[test]
        fn a_claim_is_open_as_long_as_it_fits_and_no_longer(
            standing in prop::collection::vec((0i64..60, 1i64..20, 0u64..4), 0..6),
            from in 0i64..30, length in 1i64..30, amount in 0u64..5,
        ) {
            let standing: Vec<Claim> = (1..)
                .zip(standing)
                .map(|(id, (from, long, amount))| {
                    let whole = claim(id, WANTED, span(from, from + long));
                    if amount == 0 { whole } else { whole.amount(amount) }
                })
                .collect();
            let wanted = Claim { take: take(amount), ..claim(99, WANTED, span(from, from + length)) };
            // A larger amount than the capacity is never free.
            prop_assume!(amount <= CAPACITY);
            let until = open_until(&wanted, CAPACITY, &standing);
            let fits = |span| fits_by_definition(span, wanted.take, &standing);
            if let Some(open) = wanted.span.before(until) {
                prop_assert!(fits(open), "{until}");
            }
            let longer = wanted.span.before(until + SignedDuration::from_mins(1));
            let longer = longer.filter(|longer| longer.end() > until);
            prop_assert!(longer.is_none_or(|longer| !fits(longer)), "{until}");
        }
    }
}
