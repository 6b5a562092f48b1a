use super::*;
use OutsiderView::{Catalogue, FreeBusy, Name, Nothing};
use Standing::{GlobalAdmin, Member, Outsider, SiteAdmin};
use Verdict::{NotFound, Yes};

const EVERYBODY: [Standing; 7] = [
    Outsider(Nothing),
    Outsider(Name),
    Outsider(Catalogue),
    Outsider(FreeBusy),
    Member,
    SiteAdmin,
    GlobalAdmin,
];

fn all_scopes() -> BTreeSet<Scope> {
    Scope::ALL.into()
}

fn of_others(standing: Standing, action: Action) -> Verdict {
    decide(standing, false, &all_scopes(), action)
}

fn of_ones_own(standing: Standing, action: Action) -> Verdict {
    decide(standing, true, &all_scopes(), action)
}

fn is_refused_openly(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::NotAllowed { .. })
}

#[test]
fn outsiders_see_what_the_site_shows_and_the_rest_is_not_found() {
    for (action, least) in [
        (Action::SeeSite, Some(Name)),
        (Action::AskToJoin, Some(Name)),
        (Action::SeeCatalogue, Some(Catalogue)),
        (Action::SeeFreeBusy, Some(FreeBusy)),
        (Action::SeeCalendar, Some(FreeBusy)),
        (Action::SeeReservation, None),
        (Action::SeeMembers, None),
        (Action::Book, None),
        (Action::ChangeReservation, None),
        (Action::ManageSite, None),
    ] {
        for view in [Nothing, Name, Catalogue, FreeBusy] {
            let shown = least.is_some_and(|least| view >= least);
            let expected = if shown { Yes } else { NotFound };
            assert_eq!(
                of_others(Outsider(view), action),
                expected,
                "{action:?} {view:?}"
            );
            assert_eq!(
                of_ones_own(Outsider(view), action),
                expected,
                "{action:?} {view:?}"
            );
        }
    }
}

/// Even a token without the scope must not reveal to an outsider that a hidden thing exists.
#[test]
fn what_is_hidden_stays_hidden_whatever_the_scopes() {
    for action in Action::ALL
        .iter()
        .filter(|action| action.row().realm == Realm::Site)
    {
        for is_own in [false, true] {
            for scopes in [BTreeSet::new(), all_scopes()] {
                let verdict = decide(Outsider(Nothing), is_own, &scopes, *action);
                assert_eq!(verdict, NotFound, "{action:?}");
            }
        }
    }
}

#[test]
fn members_act_on_what_is_theirs() {
    for action in [
        Action::ChangeReservation,
        Action::CancelReservation,
        Action::RemoveMember,
        Action::SeeUsage,
    ] {
        assert_eq!(of_ones_own(Member, action), Yes, "{action:?}");
        let needs = "whose it is can do this, and so can the admins of the site";
        assert_eq!(
            of_others(Member, action),
            Verdict::NotAllowed { needs },
            "{action:?}"
        );
        assert_eq!(of_others(SiteAdmin, action), Yes, "{action:?}");
    }
}

#[test]
fn members_are_told_who_can_do_what_they_cannot() {
    for action in [
        Action::BookForOthers,
        Action::DecideReservation,
        Action::PlanMaintenance,
        Action::ManageInventory,
        Action::SeeProvisioningFacts,
        Action::SetStatus,
        Action::ManageMembers,
        Action::DecideJoin,
        Action::ManageProjects,
        Action::SeeAudit,
        Action::ManageSite,
    ] {
        let needs = "admins of the site can do this";
        assert_eq!(
            of_ones_own(Member, action),
            Verdict::NotAllowed { needs },
            "{action:?}"
        );
        assert_eq!(of_others(SiteAdmin, action), Yes, "{action:?}");
    }
}

#[test]
fn the_installation_is_the_global_admins() {
    for action in Action::ALL
        .iter()
        .filter(|action| action.row().realm == Realm::Installation)
    {
        for standing in EVERYBODY {
            let verdict = of_others(standing, *action);
            if standing == GlobalAdmin {
                assert_eq!(verdict, Yes, "{action:?}");
            } else {
                // The action is no secret, and no object was looked up: the refusal is open, whether or not the
                // object exists.
                assert!(is_refused_openly(verdict), "{action:?} {standing:?}");
            }
        }
    }
}

#[test]
fn accounts_are_their_owners() {
    for action in [
        Action::SeeOwnAccount,
        Action::ChangeOwnAccount,
        Action::SeeOwnTokens,
        Action::ManageOwnTokens,
    ] {
        for standing in EVERYBODY {
            assert_eq!(
                of_ones_own(standing, action),
                Yes,
                "{action:?} {standing:?}"
            );
            assert_eq!(
                of_others(standing, action),
                NotFound,
                "{action:?} {standing:?}"
            );
        }
    }
    assert_eq!(of_others(GlobalAdmin, Action::SeePerson), Yes);
    assert_eq!(of_others(SiteAdmin, Action::SeePerson), NotFound);
}

#[test]
fn a_token_does_no_more_than_its_scopes() {
    let only = |scope| BTreeSet::from([scope]);
    for action in Action::ALL {
        let row = action.row();
        for is_own in [false, true] {
            let needed = if is_own {
                row.scope
            } else {
                row.scope_for_others
            };
            if decide(GlobalAdmin, is_own, &all_scopes(), *action) != Yes {
                continue;
            }
            for scope in Scope::ALL {
                let verdict = decide(GlobalAdmin, is_own, &only(scope), *action);
                assert_eq!(verdict == Yes, scope == needed, "{action:?} {scope:?}");
            }
        }
    }
    // A booking token changes its owner's bookings; with an admin's token, not everybody's.
    let book = only(Scope::Book);
    assert_eq!(
        decide(SiteAdmin, true, &book, Action::CancelReservation),
        Yes
    );
    let others = decide(SiteAdmin, false, &book, Action::CancelReservation);
    let needs = "this needs a token with the `manage` scope";
    assert_eq!(others, Verdict::ScopeMissing { needs });
}

/// A permission of one standing is also a permission of every higher standing. Showing more to outsiders never hides
/// anything.
#[test]
fn rights_only_grow() {
    for action in Action::ALL.iter().copied() {
        for pair in EVERYBODY.windows(2) {
            for is_own in [false, true] {
                let may = |standing| decide(standing, is_own, &all_scopes(), action) == Yes;
                assert!(!may(pair[0]) || may(pair[1]), "{action:?} {pair:?}");
            }
        }
    }
}

#[test]
fn reading_needs_the_read_scope_and_nothing_else_does() {
    for row in TABLE {
        let looks = ["See", "Follow"]
            .iter()
            .any(|verb| format!("{:?}", row.action).starts_with(verb));
        assert_eq!(row.scope == Scope::Read, looks, "{:?}", row.action);
    }
}

#[test]
fn nobody_grants_a_role_above_or_outside_their_own() {
    let grants = [
        Grant::InSite(Role::Member),
        Grant::InSite(Role::SiteAdmin),
        Grant::GlobalAdmin,
    ];
    for (granter, expected) in [
        (Outsider(Nothing), [false, false, false]),
        (Outsider(Name), [false, false, false]),
        (Outsider(Catalogue), [false, false, false]),
        (Outsider(FreeBusy), [false, false, false]),
        (Member, [false, false, false]),
        (SiteAdmin, [true, true, false]),
        (GlobalAdmin, [true, true, true]),
    ] {
        assert_eq!(
            grants.map(|grant| may_grant(granter, grant)),
            expected,
            "{granter:?}"
        );
    }
    assert!(
        may_grant(SiteAdmin, Role::Member),
        "a role is a grant in the site at hand"
    );
}

#[test]
fn a_token_hands_on_no_more_than_it_has() {
    let set = |scopes: &[Scope]| scopes.iter().copied().collect::<BTreeSet<_>>();
    use Scope::{Book, Manage, Read};
    assert!(may_hand_on(&set(&[Read, Manage]), &set(&[Read])));
    assert!(may_hand_on(&set(&[Read, Manage]), &set(&[Manage, Read])));
    assert!(!may_hand_on(&set(&[Read, Manage]), &set(&[Read, Book])));
    assert!(!may_hand_on(&set(&[Manage]), &set(&Scope::ALL)));
}

#[test]
fn the_page_has_a_line_for_every_act() {
    let page = table_as_markdown();
    for action in Action::ALL {
        assert_eq!(
            page.matches(&format!("| `{action:?}` |")).count(),
            1,
            "{action:?}"
        );
    }
}
