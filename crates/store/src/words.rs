//! The words for Berth's enums in text columns. Each list is complete by construction, and unknown words are refused.

use berth_model::branding::LogoKind;
use berth_model::closure::ClosureKind;
use berth_model::environment::EnvironmentState;
use berth_model::person::PersonState;
use berth_model::recut::CutOutcome;
use berth_model::reservation::{Privacy, State};
use berth_model::session::Access;
use berth_model::site::{JoinState, OutsiderView, Role};
use berth_model::workload::Class;
use berth_model::{Standing, Status};

use crate::error::{Error, Result};
use crate::sql::Row;

pub(crate) trait Word: Sized + Copy + 'static {
    const ALL: &'static [Self];
    fn word(self) -> &'static str;
}

macro_rules! words {
    ($($type:ty { $($variant:ident = $word:literal),* $(,)? })*) => {$(
        impl Word for $type {
            const ALL: &'static [Self] = &[$(<$type>::$variant),*];
            fn word(self) -> &'static str {
                match self { $(<$type>::$variant => $word),* }
            }
        }
    )*};
}

words! {
    PersonState { Active = "active", Suspended = "suspended", Removed = "removed" }
    OutsiderView { Nothing = "nothing", Name = "name", Catalogue = "catalogue", FreeBusy = "free_busy" }
    Role { Member = "member", SiteAdmin = "site_admin" }
    JoinState { Waiting = "waiting", Accepted = "accepted", Declined = "declined" }
    Status { Active = "active", Maintenance = "maintenance", Unavailable = "unavailable" }
    Standing { Holding = "holding", Past = "past", Void = "void" }
    LogoKind { Png = "png", WebP = "webp", Svg = "svg" }
    CutOutcome { Done = "done", Failed = "failed" }
    ClosureKind { Holidays = "holidays", Blackouts = "blackouts" }
    EnvironmentState { Building = "building", Ready = "ready", Failed = "failed", Retired = "retired" }
    Privacy { Site = "site", Private = "private" }
    Access { View = "view", Edit = "edit" }
    Class { Opportunistic = "opportunistic", Guaranteed = "guaranteed" }
}

impl Word for berth_model::workload::State {
    const ALL: &'static [Self] = berth_model::workload::State::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for berth_model::session::State {
    const ALL: &'static [Self] = berth_model::session::State::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for State {
    const ALL: &'static [Self] = State::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

pub(crate) fn read<W: Word>(column: &str, text: &str) -> Result<W> {
    let found = W::ALL.iter().copied().find(|word| word.word() == text);
    found.ok_or_else(|| Error::Corrupt(format!("{column}: `{text}`")))
}

impl Row {
    pub fn word<W: Word>(&self, column: &str) -> Result<W> {
        read(column, &self.get::<String>(column)?)
    }

    pub fn optional_word<W: Word>(&self, column: &str) -> Result<Option<W>> {
        self.get::<Option<String>>(column)?
            .map(|text| read(column, &text))
            .transpose()
    }
}
