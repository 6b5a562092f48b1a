//! Decides how much of an entry on the timeline a caller sees, and which events they may read.
//!
//! [`crate::rights`] decides who may open a site's calendar at all; this module decides how much each entry shows.

use berth_model::PersonId;
use berth_model::event::Audience;
use berth_model::reservation::Privacy;
use berth_model::site::OutsiderView;

use crate::rights::Standing;

/// Ordered: each level shows more than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sight {
    /// Not even that the time is taken.
    Nothing,
    /// That the time is taken, but neither by whom nor for what purpose.
    Busy,
    Full,
}

/// How much of a claim `viewer` sees. A maintenance window has no owner and is [`Privacy::Site`].
///
/// Outsiders never see more than "busy", not even of bookings that they made as members: those were settled when they
/// left.
pub fn see(
    standing: Standing,
    viewer: PersonId,
    owner: Option<PersonId>,
    privacy: Privacy,
) -> Sight {
    match standing {
        Standing::Outsider(view) if view >= OutsiderView::FreeBusy => Sight::Busy,
        Standing::Outsider(_) => Sight::Nothing,
        Standing::SiteAdmin | Standing::GlobalAdmin => Sight::Full,
        Standing::Member if owner == Some(viewer) => Sight::Full,
        Standing::Member => match privacy {
            Privacy::Site => Sight::Full,
            Privacy::Private => Sight::Busy,
        },
    }
}

/// Whether `listener`, who has this standing in a site, may read an event of the site. The person that an event is
/// about may read it with any standing: removal from a site is news to that person too.
pub fn hears(standing: Standing, listener: PersonId, audience: Audience) -> bool {
    let is_admin = matches!(standing, Standing::SiteAdmin | Standing::GlobalAdmin);
    match audience {
        Audience::Members => is_admin || standing == Standing::Member,
        Audience::Person(person) => is_admin || person == listener,
        Audience::Admins => is_admin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::person;

    #[test]
    fn what_each_caller_sees() {
        use OutsiderView::{Catalogue, FreeBusy, Name, Nothing};
        use Standing::{GlobalAdmin, Member, Outsider, SiteAdmin};
        let (site, private) = (Privacy::Site, Privacy::Private);
        let (me, other, nobody) = (Some(person(1)), Some(person(2)), None);
        for (standing, owner, privacy, expected) in [
            (Outsider(Nothing), other, site, Sight::Nothing),
            (Outsider(Name), other, site, Sight::Nothing),
            (Outsider(Catalogue), other, site, Sight::Nothing),
            (Outsider(FreeBusy), other, site, Sight::Busy),
            (Outsider(FreeBusy), nobody, site, Sight::Busy),
            (Outsider(FreeBusy), me, site, Sight::Busy),
            (Outsider(Nothing), me, private, Sight::Nothing),
            (Member, other, site, Sight::Full),
            (Member, other, private, Sight::Busy),
            (Member, me, private, Sight::Full),
            (Member, nobody, site, Sight::Full),
            (SiteAdmin, other, private, Sight::Full),
            (GlobalAdmin, other, private, Sight::Full),
        ] {
            assert_eq!(
                see(standing, person(1), owner, privacy),
                expected,
                "{standing:?} {owner:?} {privacy:?}"
            );
        }
    }

    #[test]
    fn who_reads_which_events() {
        use Standing::{GlobalAdmin, Member, Outsider, SiteAdmin};
        let outsider = Outsider(OutsiderView::FreeBusy);
        let (me, other) = (Audience::Person(person(1)), Audience::Person(person(2)));
        for (audience, expected) in [
            (Audience::Members, [false, true, true, true]),
            (me, [true, true, true, true]),
            (other, [false, false, true, true]),
            (Audience::Admins, [false, false, true, true]),
        ] {
            let heard = [outsider, Member, SiteAdmin, GlobalAdmin]
                .map(|standing| hears(standing, person(1), audience));
            assert_eq!(heard, expected, "{audience:?}");
        }
    }
}
