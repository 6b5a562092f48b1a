//! The table of rights: a row for every action, a column for every standing.

use berth_model::person::Scope;
use berth_model::site::OutsiderView;

macro_rules! actions {
    ($($action:ident),* $(,)?) => {
        /// Every action that needs a permission.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Action { $($action),* }

        impl Action {
            pub const ALL: &[Action] = &[$(Action::$action),*];
        }
    };
}

actions! {
    SeeSite,
    AskToJoin,
    SeeCatalogue,
    SeeFreeBusy,
    SeeCalendar,
    FollowSite,
    SeeStatusHistory,
    SeeReservation,
    Book,
    ChangeReservation,
    CancelReservation,
    BookForOthers,
    DecideReservation,
    DecideWhenAsked,
    SeePolicies,
    ManagePolicies,
    SeeQueue,
    Submit,
    ChangeWorkload,
    ManageQueue,
    StartSession,
    SeeSession,
    ChangeSession,
    VisitSession,
    ManageSessions,
    SeeEnvironments,
    ManageEnvironment,
    SeeMaintenance,
    PlanMaintenance,
    SeeClosures,
    ManageClosures,
    BookOverBlackouts,
    ManageInventory,
    SeeProvisioningFacts,
    SetStatus,
    SeeMembers,
    ManageMembers,
    RemoveMember,
    SeeJoinRequests,
    DecideJoin,
    SeeProjects,
    ManageProjects,
    SeeAudit,
    SeeUsage,
    ManageSite,
    SeeOwnAccount,
    ChangeOwnAccount,
    SeeOwnTokens,
    ManageOwnTokens,
    SeeOwnFeeds,
    ManageOwnFeeds,
    SeeOwnNotifications,
    MarkOwnNotifications,
    SeePerson,
    SeePeople,
    ManagePeople,
    SeeAnyTokens,
    RevokeAnyToken,
    CreateSite,
    SeeGlobalPolicies,
    ManageGlobalPolicies,
    SeeAllAudit,
    SeeAllUsage,
    SeeHealth,
}

impl Action {
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

/// The subject of an action. It decides what a refusal may reveal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Realm {
    /// One site and its contents.
    Site,
    /// One person's account.
    Account,
    /// The whole installation of Berth.
    Installation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum May {
    Yes,
    /// Only with objects of their own.
    Own,
    No,
}

/// The permissions of people who are not members of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outsiders {
    /// If the site shows outsiders at least this much.
    From(OutsiderView),
    Own,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub action: Action,
    /// The action in words.
    pub does: &'static str,
    pub realm: Realm,
    pub outsiders: Outsiders,
    pub member: May,
    pub site_admin: May,
    pub global_admin: May,
    /// The scope that an API token needs.
    pub scope: Scope,
    /// The scope that it needs when the object belongs to another person.
    pub scope_for_others: Scope,
}

use Action::*;
use OutsiderView::{Catalogue, FreeBusy, Name};
use Scope::{Book as BookScope, Manage, Read};

/// In the order of the actions; a missing or misplaced row does not compile. Each row is on one line, so that the
/// source reads as a table.
#[rustfmt::skip]
pub const TABLE: &[Row; Action::ALL.len()] = &[
    outsiders(SeeSite, Name, Read, "see that the site exists, and its name"),
    outsiders(AskToJoin, Name, Manage, "ask to become a member"),
    outsiders(SeeCatalogue, Catalogue, Read, "see resource types, resources and their status"),
    outsiders(SeeFreeBusy, FreeBusy, Read, "see when each resource is free"),
    outsiders(SeeCalendar, FreeBusy, Read, "see the calendar; outsiders see only that a time is taken"),
    members(FollowSite, Read, "follow the site's events"),
    members(SeeStatusHistory, Read, "see who changed a resource's status, when and why"),
    members(SeeReservation, Read, "see reservations; of others' private ones only that the time is taken"),
    members(Book, BookScope, "make a reservation"),
    owners(ChangeReservation, BookScope, "change, shorten or extend a reservation"),
    owners(CancelReservation, BookScope, "cancel a reservation"),
    site_admins(BookForOthers, Manage, "make a reservation on somebody's behalf"),
    site_admins(DecideReservation, Manage, "approve or reject a reservation"),
    owners(DecideWhenAsked, Manage, "approve or reject a reservation that a policy asks one about"),
    members(SeePolicies, Read, "see the site's policies, and try a booking against them"),
    site_admins(ManagePolicies, Manage, "set the site's policies"),
    members(SeeQueue, Read, "see the queue, the shares and how the queue is run"),
    members(Submit, BookScope, "submit work to the queue"),
    owners(ChangeWorkload, BookScope, "hold, release or cancel a workload"),
    site_admins(ManageQueue, Manage, "set shares, quotas, levels and profiles, and grant urgency"),
    members(StartSession, BookScope, "start a session"),
    Row { scope_for_others: Read, ..owners(SeeSession, Read, "see a session, its log and who came to it; and any workload's log") },
    owners(ChangeSession, BookScope, "stop a session, start it again, rename, share, keep or remove it"),
    owners(VisitSession, BookScope, "open a session; whoever it is not shared with says why, and its owner sees that"),
    site_admins(ManageSessions, Manage, "let a paused profile be started again"),
    members(SeeEnvironments, Read, "see the site's environments, run work in them, and extend them"),
    owners(ManageEnvironment, BookScope, "make, change or remove an environment: one's own, or as an admin the site's"),
    members(SeeMaintenance, Read, "see planned maintenance"),
    site_admins(PlanMaintenance, Manage, "plan or cancel maintenance"),
    members(SeeClosures, Read, "see the calendars of days on which the site is closed"),
    site_admins(ManageClosures, Manage, "bring in, refresh or remove calendars of closed days"),
    site_admins(BookOverBlackouts, BookScope, "make a reservation at a time that a blackout closes"),
    site_admins(ManageInventory, Manage, "add, change, move or remove resource types and resources"),
    site_admins(SeeProvisioningFacts, Read, "see a resource's provisioning address"),
    site_admins(SetStatus, Manage, "take a resource out of service, or back into it"),
    members(SeeMembers, Read, "see who the members are"),
    site_admins(ManageMembers, Manage, "add a member or change a role"),
    owners(RemoveMember, Manage, "end a membership: one's own, or as an admin another's"),
    site_admins(SeeJoinRequests, Read, "see who asks to join"),
    site_admins(DecideJoin, Manage, "let in or turn away who asks to join"),
    members(SeeProjects, Read, "see projects and who is in them"),
    site_admins(ManageProjects, Manage, "add, change or remove projects and who is in them"),
    site_admins(SeeAudit, Read, "read the site's audit log"),
    Row { scope_for_others: Read, ..owners(SeeUsage, Read, "see how much of the site was used; members see their own use") },
    site_admins(ManageSite, Manage, "change the site's title, time zone, accent, logo and what outsiders see"),
    account(SeeOwnAccount, Read, "see one's own account, memberships and reservations"),
    account(ChangeOwnAccount, Manage, "change one's own details and password"),
    account(SeeOwnTokens, Read, "list one's own API tokens"),
    account(ManageOwnTokens, Manage, "make and revoke one's own API tokens"),
    account(SeeOwnFeeds, Read, "list one's own calendar feeds"),
    account(ManageOwnFeeds, Manage, "make and revoke one's own calendar feeds"),
    account(SeeOwnNotifications, Read, "read one's own notifications"),
    account(MarkOwnNotifications, Manage, "mark one's own notifications as read or not"),
    Row { global_admin: May::Yes, ..account(SeePerson, Read, "see somebody's account") },
    global_admins(SeePeople, Read, "list everybody who has an account"),
    global_admins(ManagePeople, Manage, "add, change, suspend or remove people, and make reset links"),
    global_admins(SeeAnyTokens, Read, "list somebody else's API tokens"),
    global_admins(RevokeAnyToken, Manage, "revoke somebody else's API token"),
    global_admins(CreateSite, Manage, "create a site"),
    global_admins(SeeGlobalPolicies, Read, "see the ceilings and defaults of all sites, and their history"),
    global_admins(ManageGlobalPolicies, Manage, "set the ceilings and defaults of all sites"),
    global_admins(SeeAllAudit, Read, "read and verify the audit log of everything"),
    global_admins(SeeAllUsage, Read, "see how much of every site was used"),
    global_admins(SeeHealth, Read, "see how the server, its controllers and its database are"),
];

const _: () = {
    let mut place = 0;
    while place < TABLE.len() {
        assert!(
            TABLE[place].action as usize == place,
            "a row stands in another's place"
        );
        place += 1;
    }
};

/// An action on a site that the site's admins may perform. The functions below allow it to more people.
const fn site_admins(action: Action, scope: Scope, does: &'static str) -> Row {
    Row {
        action,
        does,
        realm: Realm::Site,
        outsiders: Outsiders::No,
        member: May::No,
        site_admin: May::Yes,
        global_admin: May::Yes,
        scope,
        scope_for_others: scope,
    }
}

const fn members(action: Action, scope: Scope, does: &'static str) -> Row {
    let member = May::Yes;
    Row {
        member,
        ..site_admins(action, scope, does)
    }
}

/// Members may act on objects of their own. To act on other people's objects is to manage, for any scope of the
/// owner.
const fn owners(action: Action, scope: Scope, does: &'static str) -> Row {
    let (member, scope_for_others) = (May::Own, Scope::Manage);
    Row {
        member,
        scope_for_others,
        ..site_admins(action, scope, does)
    }
}

const fn outsiders(action: Action, from: OutsiderView, scope: Scope, does: &'static str) -> Row {
    let outsiders = Outsiders::From(from);
    Row {
        outsiders,
        ..members(action, scope, does)
    }
}

/// Everybody may act on their own account, and nobody on another's.
const fn account(action: Action, scope: Scope, does: &'static str) -> Row {
    Row {
        realm: Realm::Account,
        outsiders: Outsiders::Own,
        member: May::Own,
        site_admin: May::Own,
        global_admin: May::Own,
        ..site_admins(action, scope, does)
    }
}

const fn global_admins(action: Action, scope: Scope, does: &'static str) -> Row {
    let (realm, site_admin) = (Realm::Installation, May::No);
    Row {
        realm,
        site_admin,
        ..site_admins(action, scope, does)
    }
}
