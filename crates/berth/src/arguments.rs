//! What people type after a command, as types: parsed once by clap, so that a mistake is told before anything is
//! asked of a server.

use std::fmt;
use std::str::FromStr;

use berth_api::reference::{ResourceReference, SiteReference, WorkloadReference};
use berth_api::reservations::WantedResource;
use berth_model::attribute::AttributeValue;
use berth_model::inventory::Capacity;
use berth_model::workload::Tasks;
use berth_model::{Amount, Name};

/// Something inside a site, which may be named with it: `torino/gpu-01`, or `gpu-01` in the site at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed<T> {
    pub site: Option<SiteReference>,
    pub it: T,
}

impl<T: FromStr<Err: fmt::Display>> FromStr for Placed<T> {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (site, it) = match text.split_once('/') {
            Some((site, it)) => (Some(site.parse().map_err(said)?), it),
            None => (None, text),
        };
        Ok(Self {
            site,
            it: it.parse().map_err(said)?,
        })
    }
}

/// A workload, or some tasks of an array as Slurm writes them: `12`, `12_3`, `12_[3-7,9]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SomeOf {
    pub whole: WorkloadReference,
    pub tasks: Option<Tasks>,
}

impl FromStr for SomeOf {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // An id has a `_` of its own.
        let (whole, tasks) = match text.split_once('_') {
            Some((number, tasks)) if is_number(number) => (number, Some(tasks)),
            _ => (text, None),
        };
        let tasks = tasks.map(|tasks| {
            let list = tasks
                .strip_prefix('[')
                .and_then(|list| list.strip_suffix(']'));
            let list = list.or(is_number(tasks).then_some(tasks));
            let list = list.filter(|list| !list.is_empty()).ok_or_else(|| {
                format!("`{text}` is not a task: write `{whole}_3` or `{whole}_[3-7,9]`")
            })?;
            list.parse().map_err(said)
        });
        Ok(Self {
            whole: whole.parse().map_err(said)?,
            tasks: tasks.transpose()?,
        })
    }
}

fn said(error: impl fmt::Display) -> String {
    error.to_string()
}

/// A resource to book, with how much of it: `gpu-01`, `licences:3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub resource: ResourceReference,
    pub amount: Option<Amount>,
}

impl FromStr for Wanted {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (resource, amount) = match text.split_once(':') {
            Some((resource, amount)) => (resource, Some(parse_amount(amount)?)),
            None => (text, None),
        };
        Ok(Self {
            resource: resource.parse().map_err(said)?,
            amount,
        })
    }
}

impl From<Wanted> for WantedResource {
    fn from(wanted: Wanted) -> Self {
        Self {
            resource: wanted.resource,
            amount: wanted.amount,
        }
    }
}

fn parse_amount(text: &str) -> Result<Amount, String> {
    let number = text.parse::<u64>().ok();
    let amount = number.and_then(|number| Amount::new(number).ok());
    amount.ok_or_else(|| {
        format!(
            "`{text}` is not an amount: after `:` comes a whole number from 1, as in `licences:3`"
        )
    })
}

/// How much of a divisible resource there is: `64:cores`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divisible(pub Capacity);

impl FromStr for Divisible {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let shape =
            || format!("`{text}` is not a capacity: write it with its unit, as in `64:cores`");
        let (amount, unit) = text.split_once(':').ok_or_else(shape)?;
        Ok(Self(Capacity {
            amount: parse_amount(amount).map_err(|_| shape())?,
            unit: unit.parse().map_err(said)?,
        }))
    }
}

/// An attribute to set, `gpus=8`, or to remove, `gpus=`.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeChange {
    pub name: Name,
    pub value: Option<AttributeValue>,
}

impl FromStr for AttributeChange {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            format!("`{text}` is not an attribute: write `gpus=8`, or `gpus=` to remove it")
        })?;
        let value = Some(value).filter(|value| !value.is_empty());
        Ok(Self {
            name: name.parse().map_err(said)?,
            value: value.map(AttributeValue::from_text),
        })
    }
}

/// Which question of which type's booking form: `gpu-server.image`. The last dot parts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub type_name: Name,
    pub key: Name,
}

impl FromStr for Question {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (type_name, key) = text.rsplit_once('.').ok_or_else(|| {
            format!(
                "`{text}` is not a parameter: write the type and the key, as in `gpu-server.image`"
            )
        })?;
        Ok(Self {
            type_name: type_name.parse().map_err(said)?,
            key: key.parse().map_err(said)?,
        })
    }
}

/// An answer to a booking form: `gpu-server.image=ubuntu-24.04`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub question: Question,
    pub value: String,
}

impl FromStr for Answer {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (question, value) = text.split_once('=').ok_or_else(|| {
            format!(
                "`{text}` answers nothing: write `TYPE.KEY=VALUE`, as in `gpu-server.image=ubuntu`"
            )
        })?;
        Ok(Self {
            question: question.parse()?,
            value: value.to_owned(),
        })
    }
}

/// A word of the model on the command line, spelled as on the wire; `-` does for `_`.
macro_rules! words {
    ($name:ident: $type:ty, $wanted:literal, [$($word:literal => $value:expr),+ $(,)?]) => {
        pub fn $name(text: &str) -> Result<$type, String> {
            let word = text.to_lowercase().replace('-', "_");
            [$(($word, $value)),+]
                .into_iter()
                .find(|(known, _)| *known == word)
                .map(|(_, value)| value)
                .ok_or_else(|| format!("choose {}: {}", $wanted, [$($word),+].join(", ").replace('_', "-")))
        }
    };
}

words!(role: berth_model::site::Role, "a role", [
    "member" => berth_model::site::Role::Member,
    "site_admin" => berth_model::site::Role::SiteAdmin,
]);

words!(outsider_view: berth_model::site::OutsiderView, "what outsiders see", [
    "nothing" => berth_model::site::OutsiderView::Nothing,
    "name" => berth_model::site::OutsiderView::Name,
    "catalogue" => berth_model::site::OutsiderView::Catalogue,
    "free_busy" => berth_model::site::OutsiderView::FreeBusy,
]);

words!(closure_kind: berth_model::closure::ClosureKind, "what follows from it", [
    "holidays" => berth_model::closure::ClosureKind::Holidays,
    "blackouts" => berth_model::closure::ClosureKind::Blackouts,
]);

words!(status: berth_model::Status, "a status", [
    "active" => berth_model::Status::Active,
    "maintenance" => berth_model::Status::Maintenance,
    "unavailable" => berth_model::Status::Unavailable,
]);

words!(scope: berth_model::person::Scope, "a scope", [
    "read" => berth_model::person::Scope::Read,
    "book" => berth_model::person::Scope::Book,
    "manage" => berth_model::person::Scope::Manage,
]);

/// The states of a reservation, from the one table of them.
pub fn state(text: &str) -> Result<berth_model::reservation::State, String> {
    use berth_model::reservation::State;
    let word = text.to_lowercase().replace('-', "_");
    let known = State::ALL.iter().find(|state| state.as_str() == word);
    known.copied().ok_or_else(|| {
        let all: Vec<String> = State::ALL
            .iter()
            .map(|state| state.as_str().replace('_', "-"))
            .collect();
        format!("choose a state: {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_come_with_its_site() {
        let read = |text: &str| text.parse::<Placed<Wanted>>();
        let plain = read("gpu-01").unwrap();
        assert_eq!((plain.site, plain.it.amount), (None, None));
        let full = read("torino/licences:3").unwrap();
        assert_eq!(full.site.unwrap().to_string(), "torino");
        assert_eq!(full.it.resource.to_string(), "licences");
        assert_eq!(full.it.amount.unwrap().get(), 3);
        for bad in [
            "", "torino/", "/gpu-01", "a/b/c", "gpu-01:0", "gpu-01:x", "GPU",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tasks_of_an_array_are_named_with_its_number() {
        let read = |text: &str| text.parse::<Placed<SomeOf>>();
        let tasks = |text: &str| read(text).unwrap().it.tasks.map(|tasks| tasks.to_string());
        assert_eq!(tasks("12"), None);
        assert_eq!(tasks("torino/12_3").as_deref(), Some("3"));
        assert_eq!(tasks("12_[3-7,9]").as_deref(), Some("3-7,9"));
        assert_eq!(tasks("job_01kc3v9xwbe8rv5w2n9q3m7t4h"), None);
        for bad in ["12_", "12_[]", "12_[3", "12_3-7", "12_x", "_3"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn answers_name_their_type_and_key() {
        let answer: Answer = "gpu.a100.image=ubuntu=24.04".parse().unwrap();
        assert_eq!(answer.question.type_name.as_str(), "gpu.a100");
        assert_eq!(answer.question.key.as_str(), "image");
        assert_eq!(answer.value, "ubuntu=24.04");
        for bad in ["image=ubuntu", "gpu.image", ".=", "gpu.=x"] {
            assert!(bad.parse::<Answer>().is_err(), "{bad}");
        }
    }

    #[test]
    fn attributes_are_set_and_removed() {
        let change = |text: &str| text.parse::<AttributeChange>().unwrap();
        assert_eq!(change("gpus=8").value, Some(AttributeValue::Number(8.0)));
        assert_eq!(change("gpus=").value, None);
        assert!("gpus".parse::<AttributeChange>().is_err());
    }

    #[test]
    fn words_are_read_with_either_dash_and_refused_with_the_list() {
        assert!(role("site-admin").is_ok() && role("SITE_ADMIN").is_ok());
        assert!(state("pending-approval").is_ok());
        assert!(outsider_view("free-busy").is_ok());
        assert!(
            scope("everything")
                .unwrap_err()
                .contains("read, book, manage")
        );
        assert_eq!("64:cores".parse::<Divisible>().unwrap().0.amount.get(), 64);
    }
}
