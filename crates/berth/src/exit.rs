//! What the number means with which `berth` ends. Scripts rely on it, so it is one table: the code, the help
//! topic `berth help exit-codes` and `docs/cli.md` are all made from it.

use std::process::ExitCode;

use berth_api::Problem;
use berth_api::client::Error;

macro_rules! exits {
    ($($name:ident = $code:literal, $meaning:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Exit { $($name,)* }

        impl Exit {
            pub const ALL: &[Exit] = &[$(Exit::$name),*];

            pub fn code(self) -> u8 {
                match self { $(Exit::$name => $code,)* }
            }

            pub fn meaning(self) -> &'static str {
                match self { $(Exit::$name => $meaning,)* }
            }
        }
    };
}

exits! {
    Done = 0, "It is done, or a dry run says that it would be.";
    Failed = 1, "The server refused for a reason without a number of its own, or something here went wrong.";
    Usage = 2, "The command line was not understood. Nothing was asked of the server.";
    SignIn = 3, "You are not signed in, or your token was revoked or has expired.";
    NotFound = 4, "It does not exist, or you may not see it.";
    Conflict = 5, "What you want is taken, in use, or has changed meanwhile.";
    NoAnswer = 6, "The server could not be reached, or is not ready.";
    NotAllowed = 7, "You may see it, but not do that; or your token lacks the scope.";
    TooMuch = 8, "Too many requests or wrong passwords in a short time: try again later.";
    Differs = 9, "`berth diff`: the site is not as the file says.";
    Interrupted = 130, "You pressed Ctrl-C.";
}

impl Exit {
    /// The table as people read it, one line each.
    pub fn table() -> String {
        Self::ALL
            .iter()
            .map(|exit| format!("{:>4}  {}\n", exit.code(), exit.meaning()))
            .collect()
    }

    pub fn of_problem(problem: &Problem) -> Self {
        match problem.status {
            401 => Exit::SignIn,
            403 => Exit::NotAllowed,
            404 => Exit::NotFound,
            409 | 412 => Exit::Conflict,
            429 => Exit::TooMuch,
            503 => Exit::NoAnswer,
            _ => Exit::Failed,
        }
    }

    pub fn of_client(error: &Error) -> Self {
        match error {
            Error::Problem(problem) => Self::of_problem(problem),
            Error::Transport { .. } => Exit::NoAnswer,
            Error::Address { .. } => Exit::Usage,
            Error::Unexpected(_) | Error::Setup(_) => Exit::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_api::Code;

    #[test]
    fn each_number_means_one_thing() {
        let mut codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        codes.dedup();
        assert_eq!(codes.len(), Exit::ALL.len());
        assert!(codes.is_sorted());
    }

    #[test]
    fn problems_end_with_the_number_that_scripts_wait_for() {
        for (code, exit) in [
            (Code::ReservationConflict, Exit::Conflict),
            (Code::RequestVersionMismatch, Exit::Conflict),
            (Code::ObjectNotFound, Exit::NotFound),
            (Code::AuthSignInRequired, Exit::SignIn),
            (Code::AuthTokenExpired, Exit::SignIn),
            (Code::AuthNotAllowed, Exit::NotAllowed),
            (Code::AuthLockedOut, Exit::TooMuch),
            (Code::ServerUnavailable, Exit::NoAnswer),
            (Code::RequestInvalid, Exit::Failed),
        ] {
            assert_eq!(Exit::of_problem(&Problem::new(code)), exit, "{code}");
        }
    }
}
