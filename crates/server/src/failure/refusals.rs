//! What the application refuses, as problems: every variant has its code, its words and what to do.

use berth_api::{Code, Problem};
use berth_app::{Directory, Error};

use super::Failure;
use crate::shown::{alternatives, breaches, conflicts, names};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let detail = sentence(&error.to_string());
        let say = |code| Failure::new(code).detail(detail.clone());
        match error {
            Error::NotFound(_) => say(Code::ObjectNotFound),
            Error::NotAllowed { .. } => say(Code::AuthNotAllowed),
            Error::ScopeMissing { .. } => say(Code::AuthScopeMissing),
            Error::Invalid(errors) => errors.into(),
            Error::Conflict {
                conflicts: found,
                alternatives: instead,
                directory,
            } => Problem::new(Code::ReservationConflict)
                .detail(in_the_way("It cannot be booked", &found, &directory))
                .conflicts(conflicts(&found, &directory))
                .alternatives(alternatives(&instead, &directory))
                .into(),
            Error::NoRoom {
                alternatives: instead,
                directory,
                ..
            } => Problem::new(Code::ReservationNoRoom)
                .detail(detail)
                .alternatives(alternatives(&instead, &directory))
                .into(),
            Error::MoveConflict {
                conflicts: found,
                directory,
            } => Problem::new(Code::ResourceMoveConflict)
                .detail(in_the_way("It cannot be moved there", &found, &directory))
                .conflicts(conflicts(&found, &directory))
                .into(),
            Error::InTheWay {
                conflicts: found,
                directory,
                undecided,
            } => Problem::new(Code::MaintenanceInTheWay)
                .detail(format!(
                    "{} booking(s) stand in the way and are not decided, or are to be moved and have nowhere to go.",
                    undecided.len()
                ))
                .conflicts(conflicts(&found, &directory))
                .into(),
            Error::ApplyConflict {
                conflicts: found,
                directory,
            } => Problem::new(Code::ApplyInTheWay)
                .detail(in_the_way("It cannot be applied", &found, &directory))
                .conflicts(conflicts(&found, &directory))
                .into(),
            Error::SiteChanged => say(Code::ApplySiteChanged),
            Error::NotActive { reason, .. } => match reason {
                Some(reason) => Failure::new(Code::ReservationStatus).detail(format!(
                    "{detail} The reason given: {}",
                    sentence(reason.as_str())
                )),
                None => say(Code::ReservationStatus),
            },
            Error::Policy(refusal) => {
                let sentences: Vec<String> = refusal
                    .breaches
                    .iter()
                    .map(|breach| sentence(&breach.to_string()))
                    .collect();
                Problem::new(Code::PolicyRefused)
                    .detail(sentences.join(" "))
                    .breaches(breaches(&refusal.breaches), refusal.instead.map(Into::into))
                    .into()
            }
            Error::Blackout { .. } => say(Code::ReservationBlackout),
            Error::Unreadable(_) => say(Code::ClosureUnreadable),
            Error::State(_) => say(Code::ReservationIllegalState),
            Error::NotNow(_) => say(Code::WorkloadIllegalState),
            Error::SessionNotNow(_) => say(Code::SessionIllegalState),
            Error::ProfilePaused { .. } => say(Code::SessionProfilePaused),
            Error::ReasonMissing => say(Code::SessionReasonMissing),
            Error::TooManyWaiting { .. } => say(Code::WorkloadTooManyWaiting),
            Error::DiskFull(_) => say(Code::DiskFull),
            Error::SeriesOver => say(Code::SeriesOver),
            Error::TooManyHolds => say(Code::ReservationTooManyHolds),
            Error::HoldOver => say(Code::ReservationHoldOver),
            Error::CheckInEarly(_) => say(Code::ReservationCheckInEarly),
            Error::InThePast(_) => say(Code::ReservationInThePast),
            Error::Version { current } => Problem::new(Code::RequestVersionMismatch)
                .detail(detail)
                .version(current)
                .into(),
            Error::NameTaken(_) => say(Code::ObjectNameTaken),
            Error::InUse(_) => say(Code::ObjectInUse),
            Error::Cycle => say(Code::ResourceCycle),
            Error::TooDeep => say(Code::ResourceTooDeep),
            Error::Leaf => say(Code::ResourceLeaf),
            Error::LastAdmin(_) => say(Code::MemberLastAdmin),
            Error::TooMuch(_) => say(Code::RequestInvalid).hint("Ask for less at once."),
            Error::Amount(_) => say(Code::ResourceAmount),
            Error::LinkSpent => say(Code::AuthResetLinkSpent),
            Error::AlreadyMember(_) => say(Code::MemberAlready),
            Error::JoinWaiting => say(Code::JoinWaiting),
            Error::JoinDecided => say(Code::JoinDecided),
            Error::WindowOver => say(Code::MaintenanceIllegalState),
            Error::IdempotencyMismatch => say(Code::RequestIdempotencyMismatch),
            Error::DoneBefore => say(Code::RequestDoneBefore),
            Error::SignInRequired => say(Code::AuthSignInRequired),
            Error::TokenUnknown => say(Code::AuthTokenInvalid),
            Error::Expired => say(Code::AuthTokenExpired),
            Error::WrongCredentials => say(Code::AuthWrongCredentials),
            Error::LockedOut { until } => say(Code::AuthLockedOut).until(until),
            Error::Store(error) if error.is_passing() => Failure::from(
                Problem::new(Code::ServerUnavailable)
                    .detail("The database did not answer in time.")
                    .retry_after_s(1),
            )
            .because(error),
            error @ (Error::Store(_) | Error::Internal(_)) => {
                Failure::new(Code::ServerInternal).because(error)
            }
        }
    }
}

/// Names the first thing in the way, so that even a client that shows only `detail` says something useful.
fn in_the_way(what: &str, found: &[berth_app::Conflict], directory: &Directory) -> String {
    let Some(first) = found.first() else {
        return format!("{what}: something is in the way.");
    };
    let claim = &first.claim.claim;
    let resource = names(directory).resource(claim.resource).name;
    let (start, end) = (claim.span.start(), claim.span.end());
    let others = match found.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{what}: `{resource}` is taken from {start} to {end}{others}.")
}

/// The application's words as a sentence.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let mut sentence = match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    };
    if !sentence.ends_with(['.', '!', '?']) {
        sentence.push('.');
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::FieldErrors;

    #[test]
    fn words_become_sentences() {
        assert_eq!(sentence("sign in first"), "Sign in first.");
        assert_eq!(sentence("`gpu-01` is away"), "`gpu-01` is away.");
        assert_eq!(sentence("Done."), "Done.");
    }

    #[test]
    fn what_went_wrong_inside_stays_inside() {
        let failure = Failure::from(Error::Internal("canary in the cellar".into()));
        let told = serde_json::to_string(failure.problem()).unwrap();
        assert_eq!(failure.problem().status, 500);
        assert!(!told.contains("canary"), "{told}");
    }

    /// What is counted under a code is answered with that code.
    #[test]
    fn refusals_are_counted_by_the_code_they_are_answered_with() {
        let text = |text: &str| text.parse::<berth_model::Text>().unwrap();
        let name = |text: &str| text.parse::<berth_model::Name>().unwrap();
        let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
        let span = berth_model::Span::new(at("2026-11-16T08:00:00Z"), at("2026-11-16T09:00:00Z"));
        let refusals = [
            Error::Conflict {
                conflicts: Vec::new(),
                alternatives: Vec::new(),
                directory: Box::default(),
            },
            Error::NoRoom {
                wanted: "2 x gpu".parse().unwrap(),
                alternatives: Vec::new(),
                directory: Box::default(),
            },
            Error::Policy(Box::new(berth_engine::policy::Refusal {
                breaches: Vec::new(),
                instead: None,
            })),
            Error::Blackout {
                calendar: name("campus"),
                closed: berth_model::closure::ClosedSpan {
                    span: span.unwrap(),
                    title: text("closed"),
                },
            },
            Error::NotActive {
                resource: name("gpu-01"),
                status: berth_model::Status::Maintenance,
                from: name("gpu-01"),
                reason: None,
            },
            Error::TooManyHolds,
            Error::TooManyWaiting { most: 10_000 },
            Error::InThePast("over".into()),
        ];
        for error in refusals {
            let counted = berth_app::refusal_code(&error).unwrap();
            assert!(Failure::from(error).problem().is(counted.parse().unwrap()));
        }
        assert_eq!(berth_app::refusal_code(&Error::SignInRequired), None);
    }

    #[test]
    fn refusals_keep_their_particulars() {
        let stale = Failure::from(Error::Version { current: 7 });
        assert_eq!(stale.problem().version, Some(7));
        let wrong = Failure::from(Error::Invalid(FieldErrors::one("end", "is missing")));
        assert_eq!(wrong.problem().errors[0].field, "end");
    }
}
