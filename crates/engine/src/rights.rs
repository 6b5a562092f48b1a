//! Permissions by role. One table contains them all; [`decide`] only reads it.
//!
//! Every use case calls this first, and `docs/rights.md` is printed from the same table. No other module may decide
//! by role. [`crate::sight`] decides how much of an entry a permitted reader sees.

use std::collections::BTreeSet;

use berth_model::person::{Person, Scope};
use berth_model::site::{OutsiderView, Role};

mod print;
mod table;

pub use print::table_as_markdown;
pub use table::{Action, May, Outsiders, Realm, Row, TABLE};

/// A signed-in person's relation to a site. For actions that concern no site, everybody except a global admin is an
/// outsider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Not a member; sees the part of the site that it shows to outsiders.
    Outsider(OutsiderView),
    Member,
    SiteAdmin,
    /// An admin of the whole installation, member of the site or not.
    GlobalAdmin,
}

impl Standing {
    /// The standing of `person` in a site. `role` is their role there, if any; `view` is the site's view for
    /// outsiders.
    pub fn of(person: &Person, role: Option<Role>, view: OutsiderView) -> Standing {
        match role {
            _ if person.global_admin => Standing::GlobalAdmin,
            Some(Role::SiteAdmin) => Standing::SiteAdmin,
            Some(Role::Member) => Standing::Member,
            None => Standing::Outsider(view),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    /// Refused, and the person may know that the thing exists.
    NotAllowed {
        /// The people who have the permission, as a sentence.
        needs: &'static str,
    },
    /// The person has permission, but the token lacks the scope.
    ScopeMissing {
        needs: &'static str,
    },
    /// Refused, and the person may not know that the thing exists: the answer is the same whether it exists or not.
    NotFound,
}

/// Decides whether a caller may perform an action. `is_own` tells whether the caller owns its object: their
/// reservation, their membership, their account. `scopes` limits an API token; a browser sign-in has all scopes.
pub fn decide(
    standing: Standing,
    is_own: bool,
    scopes: &BTreeSet<Scope>,
    action: Action,
) -> Verdict {
    let row = action.row();
    let may = row.may(standing);
    if may == May::No || (may == May::Own && !is_own) {
        return row.refuse(standing);
    }
    let scope = if is_own {
        row.scope
    } else {
        row.scope_for_others
    };
    if scopes.contains(&scope) {
        Verdict::Yes
    } else {
        Verdict::ScopeMissing {
            needs: needs_scope(scope),
        }
    }
}

fn needs_scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "this needs a token with the `read` scope",
        Scope::Book => "this needs a token with the `book` scope",
        Scope::Manage => "this needs a token with the `manage` scope",
    }
}

impl Row {
    fn may(&self, standing: Standing) -> May {
        match standing {
            Standing::Outsider(view) => match self.outsiders {
                Outsiders::From(least) if view >= least => May::Yes,
                Outsiders::From(_) | Outsiders::No => May::No,
                Outsiders::Own => May::Own,
            },
            Standing::Member => self.member,
            Standing::SiteAdmin => self.site_admin,
            Standing::GlobalAdmin => self.global_admin,
        }
    }

    fn refuse(&self, standing: Standing) -> Verdict {
        let is_hidden = match self.realm {
            // Outsiders must not learn what exists in a site beyond its view for outsiders.
            Realm::Site => matches!(standing, Standing::Outsider(_)),
            // Other people's accounts are private.
            Realm::Account => true,
            Realm::Installation => false,
        };
        if is_hidden {
            Verdict::NotFound
        } else {
            Verdict::NotAllowed {
                needs: self.who_can(),
            }
        }
    }

    fn who_can(&self) -> &'static str {
        match (self.member, self.site_admin) {
            (May::Yes, _) => "members of the site can do this",
            (May::Own, May::Yes) => "whose it is can do this, and so can the admins of the site",
            (_, May::Yes) => "admins of the site can do this",
            _ => "global admins can do this",
        }
    }
}

/// A role that one person can give to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// In the site of the granter's standing.
    InSite(Role),
    GlobalAdmin,
}

impl From<Role> for Grant {
    fn from(role: Role) -> Grant {
        Grant::InSite(role)
    }
}

/// Nobody gives a role above their own, or in a site where they have none. To replace a person's role, the granter
/// must also be able to give the present role.
pub fn may_grant(granter: Standing, grant: impl Into<Grant>) -> bool {
    match granter {
        Standing::Outsider(_) | Standing::Member => false,
        Standing::SiteAdmin => matches!(grant.into(), Grant::InSite(_)),
        Standing::GlobalAdmin => true,
    }
}

/// A token cannot create a token with more scopes than its own.
pub fn may_hand_on(own: &BTreeSet<Scope>, wanted: &BTreeSet<Scope>) -> bool {
    wanted.is_subset(own)
}

#[cfg(test)]
mod tests;
