//! Checks a booking before it reaches the database: forms, amounts, status, times.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::parameter::{Answers, Hidden};
use berth_model::reference::ResourceReference;
use berth_model::reservation::{MASK, Parameters};
use berth_model::{Amount, FieldErrors, Name, Reference, ResourceId, Span, Status, Take};
use berth_store::inventory::Wanted;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::error::{Error, Result};

/// One resource of a booking, as the caller asked for it.
#[derive(Debug, Clone)]
pub struct Item {
    pub resource: ResourceReference,
    pub amount: Option<Amount>,
}

/// Answers to the forms, by resource type, before any check.
pub type RawAnswers = BTreeMap<Name, BTreeMap<String, Value>>;

/// How far in the past a start may lie: a person may take a while to fill in a form.
pub(crate) const LATE_START: SignedDuration = SignedDuration::from_mins(5);
pub(crate) const LENGTH_MAX: SignedDuration = SignedDuration::from_hours(366 * 24);

pub(super) fn times(span: Span, now: Timestamp) -> Result<()> {
    if span.end() <= now {
        return Err(Error::InThePast(format!(
            "it would end at {}, which is over",
            span.end()
        )));
    }
    if span.start() + LATE_START < now {
        return Err(Error::InThePast(format!(
            "it would start at {}, which is over; start now or later",
            span.start()
        )));
    }
    length(span)
}

pub(super) fn length(span: Span) -> Result<()> {
    if span.duration() > LENGTH_MAX {
        return Err(FieldErrors::one("end", "a reservation lasts at most 366 days").into());
    }
    Ok(())
}

/// Matches the requested items with the resources found, in the order of the request.
pub(super) fn matched<'a>(items: &[Item], found: &'a [Wanted]) -> Result<Vec<(&'a Wanted, Take)>> {
    let mut errors = FieldErrors::default();
    let mut matched: Vec<(&Wanted, Take)> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let field = format!("resources[{i}]");
        let wanted = found.iter().find(|wanted| match &item.resource {
            Reference::Id(id) => wanted.resource.id == *id,
            Reference::Name(name) => wanted.resource.name == *name,
        });
        let Some(wanted) = wanted else {
            errors.push(
                format!("{field}.resource"),
                format!("this site has no resource `{}`", item.resource),
            );
            continue;
        };
        if let Some((other, _)) = matched.iter().find(|(other, _)| related(other, wanted)) {
            let message = match other.resource.id == wanted.resource.id {
                true => format!("`{}` is named twice", wanted.resource.name),
                false => format!(
                    "`{}` and `{}` contain one another; name the larger one only",
                    other.resource.name, wanted.resource.name
                ),
            };
            errors.push(format!("{field}.resource"), message);
        }
        match take(wanted, item.amount) {
            Ok(take) => matched.push((wanted, take)),
            Err(message) => errors.push(format!("{field}.amount"), message),
        }
    }
    Ok(errors.or(Some(matched))?)
}

fn related(a: &Wanted, b: &Wanted) -> bool {
    let line = |wanted: &Wanted| -> BTreeSet<ResourceId> {
        wanted
            .above
            .iter()
            .map(|above| above.id)
            .chain([wanted.resource.id])
            .collect()
    };
    line(a).contains(&b.resource.id) || line(b).contains(&a.resource.id)
}

fn take(wanted: &Wanted, amount: Option<Amount>) -> Result<Take, String> {
    let name = &wanted.resource.name;
    match (amount, &wanted.resource.capacity) {
        (None, _) => Ok(Take::Exclusive),
        (Some(_), None) => Err(format!(
            "`{name}` is taken as a whole; leave the amount out"
        )),
        (Some(amount), Some(capacity)) if amount > capacity.amount => Err(format!(
            "`{name}` has {} {}, and {} was asked for",
            capacity.amount.get(),
            capacity.unit,
            amount.get()
        )),
        (Some(amount), Some(_)) => Ok(Take::Amount(amount)),
    }
}

/// Refuses resources that are out of service.
pub(super) fn active<'a>(wanted: impl IntoIterator<Item = &'a Wanted>) -> Result<()> {
    for wanted in wanted {
        let (status, from) = wanted.effective_status();
        if status != Status::Active {
            return Err(Error::NotActive {
                resource: wanted.resource.name.clone(),
                status,
                from: from.name.clone(),
                reason: from.status_reason.clone(),
            });
        }
    }
    Ok(())
}

/// Answers that fit the forms of the types involved, split into visible ones and secrets.
#[derive(Debug, Clone, Default)]
pub(super) struct CheckedAnswers {
    pub shown: Parameters,
    pub secrets: Vec<(Name, Name, Hidden)>,
}

/// Checks the answers for every type among `wanted`. `kept` names the secrets that are already stored.
pub(super) fn answers(
    wanted: &[(&Wanted, Take)],
    given: &RawAnswers,
    kept: &BTreeSet<(Name, Name)>,
) -> Result<CheckedAnswers> {
    let mut errors = FieldErrors::default();
    let mut checked = CheckedAnswers::default();
    let kinds: BTreeMap<&Name, _> = wanted
        .iter()
        .map(|(wanted, _)| (&wanted.kind.name, &wanted.kind))
        .collect();
    for name in given.keys().filter(|name| !kinds.contains_key(name)) {
        errors.push(
            format!("parameters.{name}"),
            "nothing of this type is being booked",
        );
    }
    let nothing = BTreeMap::new();
    for (name, kind) in kinds {
        let kept: BTreeSet<Name> = kept
            .iter()
            .filter(|(of, _)| of == name)
            .map(|(_, key)| key.clone())
            .collect();
        let given = given.get(name).unwrap_or(&nothing);
        match kind.form.check(given, &kept, &format!("parameters.{name}")) {
            Err(FieldErrors(wrong)) => errors.0.extend(wrong),
            Ok(Answers { plain, secrets }) => {
                let mut shown = plain;
                for key in kept.iter().chain(secrets.keys()) {
                    shown.insert(key.clone(), MASK.into());
                }
                checked.secrets.extend(
                    secrets
                        .into_iter()
                        .map(|(key, value)| (name.clone(), key, value)),
                );
                if !shown.is_empty() {
                    checked.shown.insert(name.clone(), shown);
                }
            }
        }
    }
    Ok(errors.or(Some(checked))?)
}
