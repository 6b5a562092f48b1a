//! The kinds of callers, in the order of the table's columns.

use crate::support::http::Who;
use crate::support::world::World;

/// One column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Anonymous,
    /// Signed in, and no member; the site shows outsiders so much.
    Outsider(View),
    /// Belongs to another site; this one shows outsiders nothing.
    MemberElsewhere,
    AdminElsewhere,
    /// Belongs to the site; what is acted on is another member's.
    Member,
    /// Belongs to the site; what is acted on is theirs.
    Owner,
    SiteAdmin,
    GlobalAdmin,
    /// An admin of the site until the account was suspended.
    Suspended,
    /// Tokens of the global admin that are good for nothing any more.
    RevokedToken,
    ExpiredToken,
    /// Tokens of the global admin that are good for some things only.
    AdminsReadToken,
    AdminsBookToken,
    /// The owner's, with `read` and `book`.
    OwnersBookToken,
    /// The global admin's browser, driven by another site's page: it has the cookie and nothing else.
    ForeignPage,
    /// The global admin's browser on Berth's own page.
    OwnPage,
}

/// What a site shows to outsiders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Nothing,
    Name,
    Catalogue,
    FreeBusy,
}

impl View {
    pub const ALL: [View; 4] = [View::Nothing, View::Name, View::Catalogue, View::FreeBusy];

    pub fn as_str(self) -> &'static str {
        match self {
            View::Nothing => "nothing",
            View::Name => "name",
            View::Catalogue => "catalogue",
            View::FreeBusy => "free_busy",
        }
    }
}

pub const CALLERS: [Caller; 19] = [
    Caller::Anonymous,
    Caller::Outsider(View::Nothing),
    Caller::Outsider(View::Name),
    Caller::Outsider(View::Catalogue),
    Caller::Outsider(View::FreeBusy),
    Caller::MemberElsewhere,
    Caller::AdminElsewhere,
    Caller::Member,
    Caller::Owner,
    Caller::SiteAdmin,
    Caller::GlobalAdmin,
    Caller::Suspended,
    Caller::RevokedToken,
    Caller::ExpiredToken,
    Caller::AdminsReadToken,
    Caller::AdminsBookToken,
    Caller::OwnersBookToken,
    Caller::ForeignPage,
    Caller::OwnPage,
];

impl Caller {
    /// Whether this caller may not even know that the site exists.
    pub fn must_not_know_the_site(self) -> bool {
        matches!(
            self,
            Caller::Anonymous
                | Caller::Outsider(View::Nothing)
                | Caller::MemberElsewhere
                | Caller::AdminElsewhere
                | Caller::Suspended
                | Caller::RevokedToken
                | Caller::ExpiredToken
        )
    }

    /// What they show of themselves; `browser` is the global admin's.
    pub fn who(self, world: &World, browser: &Who) -> Who {
        let token = match self {
            Caller::Anonymous => return Who::Nobody,
            Caller::OwnPage => return browser.clone(),
            Caller::ForeignPage => return without_proof(browser),
            Caller::Outsider(_) => "otto",
            Caller::MemberElsewhere => "bea",
            Caller::AdminElsewhere => "bruno",
            Caller::Member => "bob",
            Caller::Owner => "ada",
            Caller::SiteAdmin => "adele",
            Caller::GlobalAdmin => "root",
            Caller::Suspended => "sam",
            Caller::RevokedToken => "revoked",
            Caller::ExpiredToken => "expired",
            Caller::AdminsReadToken => "root, read",
            Caller::AdminsBookToken => "root, read and book",
            Caller::OwnersBookToken => "ada, read and book",
        };
        world.who(token)
    }
}

fn without_proof(browser: &Who) -> Who {
    match browser {
        Who::Browser { cookie, .. } => Who::Browser {
            cookie: cookie.clone(),
            csrf: None,
        },
        other => other.clone(),
    }
}
