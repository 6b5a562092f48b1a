//! The effect of a resource's status on bookings: a resource that is not active accepts no new bookings.
//!
//! A status is a flag and moves nobody. While a resource is not active, its claims stay and may be shortened and
//! cancelled. They may not be extended, and nothing is booked or moved there. A resource inherits the status of its
//! ancestors ([`Tree::effective_status`]).

use berth_model::claim::Take;
use berth_model::{ResourceId, Span, Status};

use crate::tree::Tree;

/// The resource, time and amount that a claim occupies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub resource: ResourceId,
    pub span: Span,
    pub take: Take,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{resource} takes no new bookings: {cause} is in status {status}")]
pub struct OutOfService {
    pub resource: ResourceId,
    pub status: Status,
    /// The origin of the status: the resource itself, or an ancestor.
    pub cause: ResourceId,
}

/// Whether a claim may occupy `new`, given that it already occupies `old` (none for a new claim).
pub fn check(
    tree: &Tree,
    status_of: impl Fn(ResourceId) -> Status,
    old: Option<Place>,
    new: Place,
) -> Result<(), OutOfService> {
    let (status, cause) = tree.effective_status(new.resource, status_of);
    if status == Status::Active || old.is_some_and(|old| covers(old, new)) {
        return Ok(());
    }
    Err(OutOfService {
        resource: new.resource,
        status,
        cause,
    })
}

/// Whether `old` included all of `new`.
fn covers(old: Place, new: Place) -> bool {
    let as_much = match (old.take, new.take) {
        (Take::Exclusive, _) => true,
        (Take::Amount(had), Take::Amount(wants)) => wants <= had,
        (Take::Amount(_), Take::Exclusive) => false,
    };
    old.resource == new.resource && old.span.contains(new.span) && as_much
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{resource, span, tree};
    use berth_model::claim::Amount;

    fn place(on: u64, span: Span, take: Take) -> Place {
        let resource = resource(on);
        Place {
            resource,
            span,
            take,
        }
    }

    #[test]
    fn out_of_service_nothing_new_is_occupied() {
        // server 0 (in maintenance) > CPU 1; server 2 > CPU 3.
        let lab = tree(&[None, Some(0), None, Some(2)]);
        let status_of = |id| match id {
            id if id == resource(0) => Status::Maintenance,
            _ => Status::Active,
        };
        let part = |amount| Take::Amount(Amount::new(amount).unwrap());
        let old = place(1, span(0, 10), part(4));
        for (new, expected, why) in [
            (place(1, span(0, 9), part(4)), true, "shortened"),
            (place(1, span(2, 10), part(3)), true, "less, and later"),
            (place(1, span(0, 10), part(4)), true, "as it is"),
            (place(1, span(0, 11), part(4)), false, "extended"),
            (place(1, span(0, 10), part(5)), false, "more"),
            (place(1, span(0, 10), Take::Exclusive), false, "all of it"),
            (
                place(0, span(0, 10), Take::Exclusive),
                false,
                "moved within what is out",
            ),
            (place(3, span(0, 99), part(9)), true, "moved away"),
        ] {
            assert_eq!(
                check(&lab, status_of, Some(old), new).is_ok(),
                expected,
                "{why}"
            );
        }
        let whole = place(1, span(0, 10), Take::Exclusive);
        assert!(
            check(&lab, status_of, Some(whole), old).is_ok(),
            "a part of the whole it had"
        );
        let refused = check(&lab, status_of, None, old).unwrap_err();
        assert_eq!(
            (refused.status, refused.cause),
            (Status::Maintenance, resource(0))
        );
        assert!(check(&lab, status_of, None, place(3, span(0, 1), part(1))).is_ok());
    }
}
