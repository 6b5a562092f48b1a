//! The one table of stable codes: what can go wrong, its HTTP status, its title and what to do.
//!
//! A code never changes its meaning and is never reused; programs match on it. Each has a page in
//! `docs/errors/`, which is compiled in here, so a code without a page does not build.

/// Declares [`Code`] and its table from one list.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $code:literal $status:literal $title:literal $hint:literal;)*) => {
        /// What went wrong, as a program reads it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$name),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)* }
            }

            /// The HTTP status it is answered with.
            pub fn status(self) -> u16 {
                match self { $(Code::$name => $status,)* }
            }

            /// What it is called; the same words every time, unlike a problem's detail.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// What to do, where the problem itself does not know better.
            pub fn hint(self) -> &'static str {
                match self { $(Code::$name => $hint,)* }
            }

            /// Its page for people, in Markdown.
            pub fn page(self) -> &'static str {
                match self {
                    $(Code::$name => include_str!(concat!("../../../../docs/errors/", $code, ".md")),)*
                }
            }
        }
    };
}

codes! {
    RequestMalformed "request.malformed" 400
        "The request could not be read"
        "Send well-formed JSON with the header Content-Type: application/json.";
    RequestInvalid "request.invalid" 422
        "The request was read, but something in it is not acceptable"
        "Correct the fields listed in `errors` and send it again.";
    RequestMisdirected "request.misdirected" 421
        "The request was sent to a host that is not this server's"
        "Open Berth at its own address. An administrator names its hosts with `public_url` or `allowed_hosts`.";
    RequestTooLarge "request.too_large" 413
        "The request is larger than the server accepts"
        "Send less at once.";
    RequestTimeout "request.timeout" 408
        "The request took too long to arrive"
        "Check the connection and send it again.";
    RequestUnsupportedMediaType "request.unsupported_media_type" 415
        "The body is of a kind that is not understood here"
        "Send JSON with the header Content-Type: application/json.";
    RequestMethodNotAllowed "request.method_not_allowed" 405
        "This address exists, but does not take this method"
        "Use one of the methods in the Allow header.";
    RequestPreconditionRequired "request.precondition_required" 428
        "The change does not say which version it is meant for"
        "Read the object, and send its ETag back in the If-Match header.";
    RequestVersionMismatch "request.version_mismatch" 412
        "The object has changed since it was read"
        "Read it again, look at what changed, and repeat the change on the new version.";
    RequestRateLimited "request.rate_limited" 429
        "Too many requests in a short time"
        "Wait as long as the Retry-After header says.";
    RequestIdempotencyMismatch "request.idempotency_mismatch" 422
        "This idempotency key was used for a different request"
        "Use a new key for a new request, and repeat a key only with the same body.";
    RequestDoneBefore "request.done_before" 409
        "An earlier request with this idempotency key was carried out"
        "Read the object; the change is made. Use a new key for another change.";

    AuthSignInRequired "auth.sign_in_required" 401
        "You are not signed in"
        "Sign in, or send an API token in the Authorization header.";
    AuthWrongCredentials "auth.wrong_credentials" 401
        "Wrong login or password"
        "Check both; an administrator can send a link to set a new password.";
    AuthTokenInvalid "auth.token_invalid" 401
        "The API token is not known, or was revoked"
        "Make a new token with `berth token create` or in your profile.";
    AuthTokenExpired "auth.token_expired" 401
        "The API token has expired"
        "Make a new token with `berth token create` or in your profile.";
    AuthLockedOut "auth.locked_out" 429
        "Too many failed attempts to sign in"
        "Wait as long as the Retry-After header says; an administrator can send a reset link meanwhile.";
    AuthResetLinkSpent "auth.reset_link_spent" 410
        "The link to set a password was used already, or is too old"
        "Ask an administrator for a new link.";
    AuthCsrf "auth.csrf" 403
        "The request does not prove that it comes from Berth's own pages"
        "Send the session's token in the X-CSRF-Token header; GET /api/v1/me gives it.";
    AuthNotAllowed "auth.not_allowed" 403
        "You do not have permission to do this"
        "Ask an administrator of the site.";
    AuthScopeMissing "auth.scope_missing" 403
        "The API token was not made for this"
        "Make a token with the scope that `detail` names.";

    ObjectNotFound "object.not_found" 404
        "It does not exist, or you may not see it"
        "Check the name or id, and that you belong to the site.";
    ObjectNameTaken "object.name_taken" 409
        "The name is taken"
        "Choose another name.";
    ObjectInUse "object.in_use" 409
        "It is still in use"
        "Remove or end what uses it first; `detail` says what that is.";

    MemberLastAdmin "member.last_admin" 409
        "Nobody would be left to administer it"
        "Make somebody else an administrator first.";
    MemberAlready "member.already" 409
        "This person belongs to the site already"
        "Change the role instead, if that was meant.";
    JoinWaiting "join.waiting" 409
        "You have asked to join this site already"
        "Wait for its administrators to answer; you are told when they have.";
    JoinDecided "join.decided" 409
        "This request to join has been decided already"
        "Read it again to see how; the person can ask once more.";

    ReservationConflict "reservation.conflict" 409
        "What you want is taken at that time"
        "Choose another time or another resource; `conflicts` lists what is in the way.";
    ReservationNoRoom "reservation.no_room" 409
        "Nothing that fits is free at that time"
        "Take one of the `alternatives`, or ask when it can be had.";
    ReservationIllegalState "reservation.illegal_state" 409
        "The reservation is not in a state that allows this"
        "Read it again: it may have started, ended or been decided meanwhile.";
    WorkloadIllegalState "workload.illegal_state" 409
        "The workload is not in a state that allows this"
        "Read it again: it may have begun, ended or been cancelled meanwhile.";
    SessionIllegalState "session.illegal_state" 409
        "The session is not in a state that allows this"
        "Read it again: it may have been started or stopped meanwhile.";
    SessionProfilePaused "session.profile_paused" 409
        "This profile is paused because it failed for several people"
        "Choose another profile, or wait until an administrator of the site lets it be started again.";
    DiskFull "disk.full" 409
        "There is no disk space for it"
        "Remove files that you no longer need, and try again; `detail` says where and how much.";
    SessionNotRunning "session.not_running" 503
        "The session does not run"
        "Open its page in Berth to see why, or to start it.";
    SessionCodeSpent "session.code_spent" 410
        "The way into the session was used already, or is too old"
        "Open the session from Berth once more.";
    SessionReasonMissing "session.reason_missing" 422
        "Opening somebody else's session needs a reason"
        "Send `reason`: the owner of the session sees it, and it is written into the audit log.";
    WorkloadTooManyWaiting "workload.too_many_waiting" 409
        "You have reached the limit of waiting jobs"
        "Submit many alike as one array, wait for some to begin, or cancel some.";
    ReservationTooManyHolds "reservation.too_many_holds" 409
        "You have reached the limit of holds"
        "Take one of your holds or let it go; each ends by itself within two minutes.";
    ReservationHoldOver "reservation.hold_over" 409
        "The hold ran out before it was taken"
        "Book it again; the time may still be free.";
    ReservationCheckInEarly "reservation.check_in_early" 409
        "It is too early to check in"
        "Check in when the reservation is about to start; `detail` says from when on.";
    ReservationInThePast "reservation.in_the_past" 422
        "The time lies in the past"
        "Choose a start and an end that are still to come.";
    ReservationStatus "reservation.status" 409
        "A resource takes no new bookings now"
        "Choose another resource, or wait until it is ACTIVE again.";

    SeriesOver "series.over" 409
        "Nothing of the series is left to change"
        "Read the series again: what has begun, was cancelled or differs is changed by itself.";
    PolicyRefused "policy.refused" 409
        "The booking does not keep the policies"
        "Change what `breaches` names to what it says would be accepted; `instead` is the nearest such time.";
    ReservationBlackout "reservation.blackout" 409
        "The site is closed at that time"
        "Choose a time outside of what `detail` names, or ask an administrator of the site to book it.";
    ClosureUnreadable "closure.unreadable" 422
        "The calendar cannot be read"
        "Bring in an iCalendar file (.ics), or the https address of one.";

    ResourceCycle "resource.cycle" 409
        "A resource cannot be inside itself"
        "Choose a parent outside the subtree that moves.";
    ResourceTooDeep "resource.too_deep" 409
        "The tree would become too deep or too wide there"
        "Put it higher up in the tree, or under another parent.";
    ResourceMoveConflict "resource.move_conflict" 409
        "In the new place bookings would collide"
        "Move or cancel one of each pair in `conflicts`, or move the resource after they end.";
    ResourceAmount "resource.amount" 422
        "The amount does not fit the resource"
        "Ask for an amount of a divisible resource up to its capacity, and for others without one.";
    ResourceLeaf "resource.leaf" 409
        "A divisible resource cannot contain others"
        "Choose a parent without a capacity.";

    MaintenanceInTheWay "maintenance.in_the_way" 409
        "Bookings stand in the way of the maintenance window"
        "Decide for each booking in `conflicts`: keep it, move it, or cancel it.";
    MaintenanceIllegalState "maintenance.illegal_state" 409
        "The maintenance window is over or cancelled"
        "Plan a new one.";

    ApplyInTheWay "apply.in_the_way" 409
        "Bookings stand in the way of what the file declares"
        "Move or cancel the bookings in `conflicts`, or leave those resources where they are until they end.";
    ApplySiteChanged "apply.site_changed" 409
        "The site has changed since the differences were shown"
        "Ask for the differences again, look at them, and apply with the fingerprint they come with.";

    ServerUnavailable "server.unavailable" 503
        "The server cannot answer just now"
        "Try again in a moment; nothing was changed unless you learn otherwise by reading it.";
    ServerInternal "server.internal" 500
        "Something went wrong inside the server"
        "Try again; if it stays, give the `request_id` to an administrator, who finds it in the log.";
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this version of Berth knows no such problem code")]
pub struct UnknownCode;

impl std::str::FromStr for Code {
    type Err = UnknownCode;
    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.as_str() == text)
            .ok_or(UnknownCode)
    }
}
