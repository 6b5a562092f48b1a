//! Every path of the server, once: routes are mounted from these templates, and the client fills them in.
//!
//! Templates are written as axum and OpenAPI both read them (`/sites/{site}`). Those of the API are
//! relative to [`API`]; the rest stand by themselves.

use std::fmt::{Display, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What every path of the API begins with.
pub const API: &str = "/api/v1";

/// All that RFC 3986 leaves unreserved stays readable.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Puts `values` in place of the template's braces, in order. A value cannot leave its segment.
pub fn fill(template: &str, values: &[&dyn Display]) -> String {
    let mut values = values.iter();
    let mut path = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((_, after)) = after.split_once('}') else {
            break;
        };
        path.push_str(before);
        if let Some(value) = values.next() {
            let value = value.to_string();
            // A segment of dots alone would be taken for a way up the tree.
            match value.as_str() {
                "." => path.push_str("%2E"),
                ".." => path.push_str("%2E%2E"),
                // Writing to a text cannot fail.
                value => {
                    write!(path, "{}", utf8_percent_encode(value, SEGMENT)).unwrap_or_default()
                }
            }
        }
        rest = after;
    }
    path + rest
}

/// Declares a template and, from it, the function that fills it in.
macro_rules! paths {
    ($($(#[$doc:meta])* $template:ident $fill:ident($($value:ident),*) = $path:literal;)*) => {
        $(
            $(#[$doc])*
            pub const $template: &str = $path;
            $(#[$doc])*
            pub fn $fill($($value: &dyn Display),*) -> String {
                fill($template, &[$($value),*])
            }
        )*

        /// Every template, with the names of the values it takes.
        pub const ALL: &[(&str, &[&str])] = &[$(($path, &[$(stringify!($value)),*])),*];
    };
}

paths! {
    // Outside the API.
    HOME home() = "/";
    WELCOME welcome() = "/welcome";
    HEALTHZ healthz() = "/healthz";
    READYZ readyz() = "/readyz";
    METRICS metrics() = "/metrics";
    DOCS docs() = "/docs";
    RESET_PAGE reset_page() = "/reset-password";
    GUIDES guides() = "/docs/guides";
    GUIDE_PAGE guide_page(guide) = "/docs/{guide}";
    ERROR_PAGE error_page(code) = "/docs/errors/{code}";
    /// The way into a session; goes on to its own address.
    OPEN_SESSION open_session(label) = "/open/{label}";
    /// What calendar programs read. The file's name is a secret and `.ics`.
    FEED_FILE feed_file(file) = "/feeds/{file}";

    // Relative to `API`, from here on.
    OPENAPI openapi() = "/openapi.json";

    ABOUT about() = "/about";
    SIGN_IN sign_in() = "/sign-in";
    SIGN_OUT sign_out() = "/sign-out";
    PASSWORD_RESET password_reset() = "/password-reset";
    ME me() = "/me";
    MY_PASSWORD my_password() = "/me/password";
    MY_TOKENS my_tokens() = "/me/tokens";
    MY_TOKEN my_token(token) = "/me/tokens/{token}";
    MY_FEEDS my_feeds() = "/me/feeds";
    MY_FEED my_feed(feed) = "/me/feeds/{feed}";
    MY_RESERVATIONS my_reservations() = "/me/reservations";
    MY_APPROVALS my_approvals() = "/me/approvals";
    MY_SITES my_sites() = "/me/sites";
    MY_NOTIFICATIONS my_notifications() = "/me/notifications";
    NOTIFICATIONS_READ notifications_read() = "/me/notifications/read";
    NOTIFICATIONS_UNREAD notifications_unread() = "/me/notifications/unread";

    PEOPLE people() = "/people";
    PERSON person(person) = "/people/{person}";
    PERSON_RESET_LINK person_reset_link(person) = "/people/{person}/reset-link";
    PERSON_TOKENS person_tokens(person) = "/people/{person}/tokens";
    PERSON_TOKEN person_token(person, token) = "/people/{person}/tokens/{token}";

    SITES sites() = "/sites";
    SITE site(site) = "/sites/{site}";
    LOGO logo(site) = "/sites/{site}/logo";
    APPLY apply(site) = "/sites/{site}/apply";
    EXPORT export(site) = "/sites/{site}/export";
    JOIN_REQUESTS join_requests(site) = "/sites/{site}/join-requests";
    JOIN_ACCEPT join_accept(site, request) = "/sites/{site}/join-requests/{request}/accept";
    JOIN_DECLINE join_decline(site, request) = "/sites/{site}/join-requests/{request}/decline";
    MEMBERS members(site) = "/sites/{site}/members";
    MEMBER member(site, person) = "/sites/{site}/members/{person}";

    PROJECTS projects(site) = "/sites/{site}/projects";
    PROJECT project(site, project) = "/sites/{site}/projects/{project}";
    PROJECT_MEMBERS project_members(site, project) = "/sites/{site}/projects/{project}/members";
    PROJECT_MEMBER project_member(site, project, person)
        = "/sites/{site}/projects/{project}/members/{person}";

    POLICIES policies(site) = "/sites/{site}/policies";
    POLICY policy(site) = "/sites/{site}/policy";
    POLICY_HISTORY policy_history(site) = "/sites/{site}/policy/history";
    POLICY_TEST policy_test(site) = "/sites/{site}/policy/test";
    GLOBAL_POLICIES global_policies() = "/policies";
    GLOBAL_POLICY global_policy(scope) = "/policies/{scope}";
    GLOBAL_POLICY_HISTORY global_policy_history(scope) = "/policies/{scope}/history";

    TYPES types(site) = "/sites/{site}/types";
    TYPE resource_type(site, kind) = "/sites/{site}/types/{kind}";
    RESOURCES resources(site) = "/sites/{site}/resources";
    RESOURCE resource(site, resource) = "/sites/{site}/resources/{resource}";
    RESOURCE_COUNTS resource_counts(site) = "/sites/{site}/resource-counts";
    RESOURCE_MOVE resource_move(site, resource) = "/sites/{site}/resources/{resource}/move";
    RESOURCE_STATUS resource_status(site, resource) = "/sites/{site}/resources/{resource}/status";
    RESOURCE_STATUS_HISTORY resource_status_history(site, resource)
        = "/sites/{site}/resources/{resource}/status-history";

    WHEN when() = "/when";
    CALENDAR calendar(site) = "/sites/{site}/calendar";
    FREE free(site) = "/sites/{site}/free";
    MAINTENANCE maintenance(site) = "/sites/{site}/maintenance";
    WINDOW window(site, window) = "/sites/{site}/maintenance/{window}";
    WINDOW_CANCEL window_cancel(site, window) = "/sites/{site}/maintenance/{window}/cancel";

    CLOSURES closures(site) = "/sites/{site}/closures";
    CLOSURE closure(site, closure) = "/sites/{site}/closures/{closure}";
    CLOSURE_REFRESH closure_refresh(site, closure) = "/sites/{site}/closures/{closure}/refresh";

    RESERVATIONS reservations(site) = "/sites/{site}/reservations";
    RESERVATIONS_ANY reservations_any(site) = "/sites/{site}/reservations/any";
    RESERVATION reservation(site, reservation) = "/sites/{site}/reservations/{reservation}";
    RESERVATION_EXTEND reservation_extend(site, reservation)
        = "/sites/{site}/reservations/{reservation}/extend";
    RESERVATION_CANCEL reservation_cancel(site, reservation)
        = "/sites/{site}/reservations/{reservation}/cancel";
    RESERVATION_APPROVE reservation_approve(site, reservation)
        = "/sites/{site}/reservations/{reservation}/approve";
    RESERVATION_REJECT reservation_reject(site, reservation)
        = "/sites/{site}/reservations/{reservation}/reject";
    RESERVATION_TAKE reservation_take(site, reservation)
        = "/sites/{site}/reservations/{reservation}/take";
    RESERVATION_CHECK_IN reservation_check_in(site, reservation)
        = "/sites/{site}/reservations/{reservation}/check-in";
    RESERVATION_HAND_OVER reservation_hand_over(site, reservation)
        = "/sites/{site}/reservations/{reservation}/hand-over";
    RESERVATION_HISTORY reservation_history(site, reservation)
        = "/sites/{site}/reservations/{reservation}/history";

    ALL_SERIES all_series(site) = "/sites/{site}/series";
    SERIES series(site, series) = "/sites/{site}/series/{series}";
    SERIES_CANCEL series_cancel(site, series) = "/sites/{site}/series/{series}/cancel";

    WORKLOADS workloads(site) = "/sites/{site}/workloads";
    WORKLOAD workload(site, workload) = "/sites/{site}/workloads/{workload}";
    WORKLOAD_EXTEND workload_extend(site, workload) = "/sites/{site}/workloads/{workload}/extend";
    WORKLOAD_CANCEL workload_cancel(site, workload) = "/sites/{site}/workloads/{workload}/cancel";
    WORKLOAD_HOLD workload_hold(site, workload) = "/sites/{site}/workloads/{workload}/hold";
    WORKLOAD_RELEASE workload_release(site, workload) = "/sites/{site}/workloads/{workload}/release";
    WORKLOAD_LOG workload_log(site, workload) = "/sites/{site}/workloads/{workload}/log";
    SESSIONS sessions(site) = "/sites/{site}/sessions";
    SESSION session(site, session) = "/sites/{site}/sessions/{session}";
    SESSION_START session_start(site, session) = "/sites/{site}/sessions/{session}/start";
    SESSION_STOP session_stop(site, session) = "/sites/{site}/sessions/{session}/stop";
    SESSION_KEEP session_keep(site, session) = "/sites/{site}/sessions/{session}/keep";
    SESSION_SHARE session_share(site, session) = "/sites/{site}/sessions/{session}/share";
    SESSION_LOG session_log(site, session) = "/sites/{site}/sessions/{session}/log";
    SESSION_VISITS session_visits(site, session) = "/sites/{site}/sessions/{session}/visits";
    SESSION_PROFILES session_profiles(site) = "/sites/{site}/session-profiles";
    SESSION_PROFILE_RESUME session_profile_resume(site, profile)
        = "/sites/{site}/session-profiles/{profile}/resume";
    ENVIRONMENTS environments(site) = "/sites/{site}/environments";
    ENVIRONMENT environment(site, environment) = "/sites/{site}/environments/{environment}";
    ENVIRONMENT_VERSIONS environment_versions(site, environment)
        = "/sites/{site}/environments/{environment}/versions";
    ENVIRONMENT_LOG environment_log(site, environment)
        = "/sites/{site}/environments/{environment}/log";
    QUEUE_SETTINGS queue_settings(site) = "/sites/{site}/queue/settings";
    QUEUE_SHARES queue_shares(site) = "/sites/{site}/queue/shares";
    QUEUE_NODES queue_nodes(site) = "/sites/{site}/queue/nodes";
    QUEUE_COUNTS queue_counts(site) = "/sites/{site}/queue/counts";
    GRANTS grants(site) = "/sites/{site}/queue/grants";
    GRANT grant(site, grant) = "/sites/{site}/queue/grants/{grant}";

    USAGE usage(site) = "/sites/{site}/usage";
    ALL_USAGE all_usage() = "/usage";

    HEALTH_REPORT health_report() = "/health/report";

    SITE_AUDIT site_audit(site) = "/sites/{site}/audit";
    AUDIT audit() = "/audit";
    AUDIT_VERIFY audit_verify() = "/audit/verify";
    EVENTS events() = "/events";
    EVENT_STREAM event_stream() = "/events/stream";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_brace_has_its_value_in_order() {
        for (template, values) in ALL {
            let braces: Vec<&str> = template
                .split('{')
                .skip(1)
                .filter_map(|part| part.split_once('}').map(|(name, _)| name))
                .collect();
            assert_eq!(&braces, values, "{template}");
        }
    }

    #[test]
    fn no_path_stands_twice() {
        let distinct: BTreeSet<&str> = ALL.iter().map(|(template, _)| *template).collect();
        assert_eq!(distinct.len(), ALL.len());
    }

    #[test]
    fn values_stay_in_their_segment() {
        assert_eq!(
            resource(&"torino", &"gpu-01"),
            "/sites/torino/resources/gpu-01"
        );
        assert_eq!(site(&"a/b?c#d e%"), "/sites/a%2Fb%3Fc%23d%20e%25");
        assert_eq!(member(&"x", &".."), "/sites/x/members/%2E%2E");
        assert_eq!(person(&"ada@lab.example"), "/people/ada%40lab.example");
        assert_eq!(people(), "/people");
    }
}
