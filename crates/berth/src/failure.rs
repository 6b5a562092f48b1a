//! What is said when something did not work: what was wrong, what is in the way, what to do; on stderr, and with
//! the exit code that scripts wait for.

use berth_api::client;
use berth_api::policies::Breach;
use berth_api::{Code, Problem};
use berth_model::FieldError;

use crate::exit::Exit;
use crate::output::{Format, Output, complain};
use crate::show;
use crate::table::printable;
use crate::times::Times;

/// A refusal that was decided here, with the exit code it ends in.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    message: String,
}

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
        }
    }
}

impl std::error::Error for Failure {}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// What was typed cannot be meant; nothing was asked of the server.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    Failure::new(Exit::Usage, message).into()
}

pub fn not_found(message: impl Into<String>) -> anyhow::Error {
    Failure::new(Exit::NotFound, message).into()
}

/// An end with this code, after everything was said already.
pub fn ended(exit: Exit) -> anyhow::Error {
    Failure::new(exit, "").into()
}

/// The exit code for an error.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        failure.exit
    } else if let Some(error) = error.downcast_ref::<client::Error>() {
        Exit::of_client(error)
    } else if let Some(problem) = error.downcast_ref::<Problem>() {
        Exit::of_problem(problem)
    } else {
        Exit::Failed
    }
}

/// Tells a person, or a program, why a command of the client failed.
pub fn tell(error: &anyhow::Error, out: &Output, times: &Times, base_url: &str) {
    let problem = error
        .downcast_ref::<client::Error>()
        .and_then(client::Error::problem)
        .or_else(|| error.downcast_ref());
    match (problem, out.format) {
        (Some(problem), Format::Json) => {
            complain(
                &serde_json::to_string_pretty(problem).unwrap_or_else(|_| problem.to_string()),
            );
        }
        (Some(problem), Format::Table | Format::Csv) => {
            complain(explain(problem, out, times, base_url).trim_end());
        }
        (None, _) => tell_plainly(error),
    }
}

/// The same without a server in play.
pub fn tell_plainly(error: &anyhow::Error) {
    if !error.to_string().is_empty() {
        complain(&plain(error));
    }
}

/// An error and what it came from, in one sentence.
fn plain(error: &anyhow::Error) -> String {
    format!("error: {error:#}")
}

fn explain(problem: &Problem, out: &Output, times: &Times, base_url: &str) -> String {
    let mut text = format!("error: {}\n", problem.title);
    for line in particulars(problem) {
        text += &format!("  {}\n", printable(&times.localised(&line)));
    }
    if !problem.conflicts.is_empty() {
        text += &format!(
            "\n{}\n",
            show::conflicts(&problem.conflicts, times, out.screen)
        );
    }
    if !problem.alternatives.is_empty() {
        let blank = if problem.conflicts.is_empty() {
            "\n"
        } else {
            ""
        };
        let instead = show::alternatives(&problem.alternatives, times);
        text += &format!("{blank}{instead}\n");
    }
    if let Some(instead) = &problem.instead {
        let span = times.span(instead.start, instead.end);
        text += &format!("  Accepted instead: {span} {}\n", times.zone_name());
    }
    text += &format!("hint: {}\n", hint(problem));
    if let Some(seconds) = problem.retry_after_s {
        text += &format!("      Try again in {seconds} s.\n");
    }
    if let Some(id) = &problem.request_id
        && problem.status >= 500
    {
        text += &format!("      The server's log knows this request as {id}.\n");
    }
    let page = if problem.type_uri.starts_with('/') {
        format!("{base_url}{}", problem.type_uri)
    } else {
        problem.type_uri.clone()
    };
    text + &format!("more: {page}\n")
}

/// What this one case is about. A table of conflicts says it better than the sentence that goes with it.
pub fn particulars(problem: &Problem) -> Vec<String> {
    if !problem.breaches.is_empty() {
        let line = |breach: &Breach| format!("{}: {}", breach.rule, breach.detail);
        problem.breaches.iter().map(line).collect()
    } else if !problem.errors.is_empty() {
        let line = |wrong: &FieldError| match wrong.field.as_str() {
            "" => wrong.message.clone(),
            field => format!("{field}: {}", wrong.message),
        };
        problem.errors.iter().map(line).collect()
    } else if problem.conflicts.is_empty() && problem.detail.trim_end_matches('.') != problem.title
    {
        vec![problem.detail.clone()]
    } else {
        Vec::new()
    }
}

/// What to do. The server advises programs, in the words of its documents; where they mean little here, ours stand.
pub fn hint(problem: &Problem) -> &str {
    if problem.alternatives.iter().any(|one| !one.holds.is_empty()) {
        return "Take what is held for you within two minutes, or let it go.";
    }
    match problem.code.parse() {
        Ok(Code::RequestInvalid) => "Correct that, and try again.",
        Ok(Code::ReservationConflict) => {
            "Choose another time or another resource; `berth free` shows what there is."
        }
        Ok(Code::ReservationNoRoom) => {
            "Ask when it can be had: `berth when` looks in all your sites."
        }
        Ok(Code::PolicyRefused) => {
            "Change that, and try again; `berth policy test` explains a booking rule by rule."
        }
        Ok(Code::MaintenanceInTheWay) => {
            "Decide about each with --keep, --move or --cancel ID, or about all others with --keep-all, --move-all or --cancel-all; --dry-run shows where each could go."
        }
        Ok(Code::AuthSignInRequired | Code::AuthTokenInvalid | Code::AuthTokenExpired) => {
            "Sign in again with `berth login`."
        }
        Ok(Code::ApplyInTheWay) => {
            "Cancel or move these bookings, or leave the resources as they are until they end."
        }
        Ok(Code::ApplySiteChanged) => "Look at the differences again, and repeat it.",
        Ok(Code::RequestVersionMismatch) => {
            "Look at it again, and repeat the change on what is there now."
        }
        _ => &problem.hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Colour, Screen};

    fn out() -> Output {
        Output {
            format: Format::Table,
            screen: Screen {
                width: Some(80),
                colour: Colour::Off,
            },
        }
    }

    #[test]
    fn a_problem_says_what_is_wrong_and_what_to_do() {
        let problem = Problem::new(Code::ReservationStatus).detail("`gpu-01` is MAINTENANCE");
        let said = explain(&problem, &out(), &Times::fixed(), "http://localhost:8080");
        assert_eq!(
            said,
            "error: A resource takes no new bookings now\n  \
             `gpu-01` is MAINTENANCE\n\
             hint: Choose another resource, or wait until it is ACTIVE again.\n\
             more: http://localhost:8080/docs/errors/reservation.status\n"
        );
    }

    #[test]
    fn every_wrong_field_is_named() {
        let mut errors = berth_model::FieldErrors::default();
        errors.push("start", "is missing");
        errors.push("", "must be an object");
        let said = explain(&errors.into(), &out(), &Times::fixed(), "");
        assert!(
            said.contains("\n  start: is missing\n  must be an object\n"),
            "{said}"
        );
    }

    #[test]
    fn errors_end_with_their_own_code() {
        assert_eq!(exit_of(&usage("x")), Exit::Usage);
        assert_eq!(
            exit_of(&not_found("x").context("while looking")),
            Exit::NotFound
        );
        let problem = Problem::new(Code::ReservationConflict);
        assert_eq!(
            exit_of(&client::Error::from(problem.clone()).into()),
            Exit::Conflict
        );
        assert_eq!(exit_of(&problem.into()), Exit::Conflict);
        assert_eq!(exit_of(&anyhow::anyhow!("x")), Exit::Failed);
    }
}
