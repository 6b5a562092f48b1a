//! Claims inside a claim.
//!
//! Work inside a person's own reservation is a claim whose `container` is the claim of the reservation. It must stay
//! within the container's resource and span. It is compared only with the other claims in the same container. A claim
//! gets its container when it is made and never changes it, so containers cannot form a cycle. Before a container
//! shrinks or ends, its inner claims are settled, the innermost first. So no step of the settlement leaves a claim
//! outside its container.

use std::collections::BTreeMap;

use berth_model::claim::{Amount, Claim, Take};
use berth_model::{ClaimId, Span};

use crate::rule::{Refusal, amount_of, is_holding};
use crate::tree::Tree;

/// Whether `claim` stays within `container`: at or below its resource, during its span, and taking no more than the
/// container holds.
pub fn is_within(tree: &Tree, claim: &Claim, container: &Claim) -> bool {
    let takes_more = amount_of(container).is_some() && amount_of(claim).is_none();
    container.span.contains(claim.span)
        && tree.is_at_or_below(claim.resource, container.resource)
        && !takes_more
}

/// Checks a claim against its container, which `find` looks up. A claim on the site's own timeline needs no check.
pub fn check<'a>(
    tree: &Tree,
    claim: &Claim,
    find: impl Fn(ClaimId) -> Option<&'a Claim>,
) -> Result<Option<&'a Claim>, Refusal> {
    let Some(id) = claim.container else {
        return Ok(None);
    };
    let container = find(id)
        .filter(|container| is_holding(container) && container.id != claim.id)
        .ok_or(Refusal::ContainerGone { container: id })?;
    if is_within(tree, claim, container) {
        Ok(Some(container))
    } else {
        let claims = vec![claim.id];
        Err(Refusal::OutsideContainer { claims })
    }
}

/// The limit for amounts of a resource in a container: the part that the container holds, or otherwise the whole
/// capacity. None if the resource is not divisible.
pub fn limit(capacity: Option<Amount>, container: Option<&Claim>) -> Option<u64> {
    match container.map(|container| container.take) {
        Some(Take::Amount(part)) => Some(part.get()),
        Some(Take::Exclusive) | None => capacity.map(Amount::get),
    }
}

/// Every holding claim inside `container`, at any depth. Each claim comes after all claims inside it.
pub fn inside<'a>(
    claims: impl IntoIterator<Item = &'a Claim>,
    container: ClaimId,
) -> Vec<&'a Claim> {
    let mut directly: BTreeMap<ClaimId, Vec<&Claim>> = BTreeMap::new();
    for claim in claims.into_iter().filter(|claim| is_holding(claim)) {
        if let Some(container) = claim.container {
            directly.entry(container).or_default().push(claim);
        }
    }
    // The loop removes each list as it reads it, so it would end even if there were a cycle.
    let mut found: Vec<&Claim> = directly.remove(&container).unwrap_or_default();
    let mut read = 0;
    while read < found.len() {
        found.extend(directly.remove(&found[read].id).unwrap_or_default());
        read += 1;
    }
    found.reverse();
    found
}

/// The effect on a claim when its container shrinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    pub claim: ClaimId,
    /// The remaining span; none if the claim becomes void.
    pub left: Option<Span>,
}

/// The changes to the claims inside `container` before it can shrink to `left`, innermost first. Claims that still
/// fit are left out.
pub fn settle<'a>(
    claims: impl IntoIterator<Item = &'a Claim>,
    container: ClaimId,
    left: Span,
) -> Vec<Settled> {
    // All inner claims lie within the span of the outermost claim. So a cut to `left` also keeps each claim within
    // its own container.
    let settled = inside(claims, container)
        .into_iter()
        .filter(|claim| !left.contains(claim.span));
    settled
        .map(|claim| Settled {
            claim: claim.id,
            left: claim.span.intersection(left),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{But, claim, claim_id, span, tree};

    /// server 0 > GPU 1, CPU 2; server 3.
    fn lab() -> Tree {
        tree(&[None, Some(0), Some(0), None])
    }

    #[test]
    fn a_claim_keeps_within_its_container() {
        let lab = lab();
        let whole = claim(1, 0, span(0, 10));
        let check =
            |inner: Claim| check(&lab, &inner, |_| Some(&whole)).map(|found| found.is_some());
        let outside = |id| {
            let claims = vec![claim_id(id)];
            Err(Refusal::OutsideContainer { claims })
        };
        assert_eq!(
            check(claim(2, 1, span(0, 10))),
            Ok(false),
            "the site's own timeline"
        );
        assert_eq!(check(claim(2, 1, span(0, 10)).inside(1)), Ok(true));
        assert_eq!(
            check(claim(2, 0, span(3, 4)).inside(1)),
            Ok(true),
            "the same resource"
        );
        assert_eq!(check(claim(2, 2, span(3, 4)).amount(5).inside(1)), Ok(true));
        assert_eq!(
            check(claim(2, 3, span(3, 4)).inside(1)),
            outside(2),
            "another server"
        );
        assert_eq!(
            check(claim(2, 1, span(3, 11)).inside(1)),
            outside(2),
            "too long"
        );
        assert_eq!(
            check(claim(2, 1, span(-1, 2)).inside(1)),
            outside(2),
            "too early"
        );
    }

    #[test]
    fn the_container_is_above_never_below() {
        let lab = lab();
        let gpu = claim(1, 1, span(0, 10));
        let server = claim(2, 0, span(0, 10)).inside(1);
        assert!(check(&lab, &server, |_| Some(&gpu)).is_err());
    }

    #[test]
    fn a_part_holds_no_whole() {
        let lab = lab();
        let part = claim(1, 2, span(0, 10)).amount(4);
        assert!(is_within(
            &lab,
            &claim(2, 2, span(0, 1)).amount(9).inside(1),
            &part
        ));
        assert!(!is_within(&lab, &claim(2, 2, span(0, 1)).inside(1), &part));
        let capacity = Amount::new(64).ok();
        assert_eq!(limit(capacity, Some(&part)), Some(4));
        assert_eq!(limit(capacity, Some(&claim(1, 0, span(0, 1)))), Some(64));
        assert_eq!(limit(capacity, None), Some(64));
        assert_eq!(limit(None, None), None);
    }

    #[test]
    fn a_container_that_is_over_or_itself_or_unknown_takes_nothing() {
        let (lab, inner) = (lab(), claim(2, 1, span(0, 1)).inside(1));
        let over = claim(1, 0, span(0, 10)).over();
        let gone = Err(Refusal::ContainerGone {
            container: claim_id(1),
        });
        assert_eq!(check(&lab, &inner, |_| Some(&over)), gone);
        assert_eq!(check(&lab, &inner, |_| None), gone);
        let own = claim(1, 1, span(0, 1)).inside(1);
        assert_eq!(check(&lab, &own, |_| Some(&own)), gone);
    }

    #[test]
    fn the_innermost_are_settled_first() {
        let claims = [
            claim(1, 0, span(0, 10)),
            claim(2, 0, span(2, 8)).inside(1),
            claim(3, 1, span(3, 7)).inside(2),
            claim(4, 1, span(8, 10)).inside(1),
            claim(5, 1, span(0, 1)).inside(1),
            claim(6, 0, span(0, 10)),
            claim(7, 1, span(2, 8)).inside(1).over(),
        ];
        let order: Vec<ClaimId> = inside(&claims, claim_id(1))
            .iter()
            .map(|claim| claim.id)
            .collect();
        assert_eq!(order, [3, 5, 4, 2].map(claim_id));
        let settled = settle(&claims, claim_id(1), span(0, 5));
        let expected = [(3, Some(span(3, 5))), (4, None), (2, Some(span(2, 5)))];
        assert_eq!(
            settled,
            expected.map(|(id, left)| Settled {
                claim: claim_id(id),
                left
            })
        );
    }
}
