//! The table: every operation of the API, and what each kind of caller is answered.
//!
//! A row's letters stand for the callers in the order of [`CALLERS`](super::callers::CALLERS):
//!
//! ```text
//! - 0000 00 0000 --- 00 0 00
//! | |    |  |    |   |  | +- the global admin's browser: from another site's page, from Berth's own
//! | |    |  |    |   |  +--- the owner's token with `read` and `book`
//! | |    |  |    |   +------ the global admin's tokens: `read`; `read` and `book`
//! | |    |  |    +---------- a suspended admin; a revoked and an expired token of the global admin
//! | |    |  +--------------- in the site: member, owner, site admin; global admin
//! | |    +------------------ of another site: member, admin
//! | +----------------------- outsider, where the site shows nothing, its name, the catalogue, free and busy
//! +------------------------- nobody
//! ```
//!
//! What is expected is written down here and not computed from `engine::rights`: this is the other opinion.

use serde_json::{Value, json};

use super::arrange::Fresh;

/// What a caller is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// `y`: what they asked for, with the row's status.
    Done,
    /// `-`: 401, the kind of which the caller decides.
    SignIn,
    /// `0`: 404, the same as for what does not exist.
    NotFound,
    /// `x`: 403, not allowed.
    NotAllowed,
    /// `s`: 403, a scope is missing.
    ScopeMissing,
    /// `c`: 403, no proof that it came from Berth's own page.
    Csrf,
    /// `!`: 409; it would be allowed, but makes no sense for this caller.
    Conflict,
}

impl Expected {
    pub fn of(letter: char) -> Self {
        match letter {
            'y' => Expected::Done,
            '-' => Expected::SignIn,
            '0' => Expected::NotFound,
            'x' => Expected::NotAllowed,
            's' => Expected::ScopeMissing,
            'c' => Expected::Csrf,
            '!' => Expected::Conflict,
            other => panic!("the table has no letter `{other}`"),
        }
    }
}

const ANYBODY: &str = "y yyyy yy yyyy yyy yy y yy";
const SIGNED_IN: &str = "- yyyy yy yyyy --- yy y yy";
const SIGNED_IN_DO: &str = "- yyyy yy yyyy --- ss s cy";
const SEE_NAME: &str = "- 0yyy 00 yyyy --- yy y yy";
const SEE_CATALOGUE: &str = "- 00yy 00 yyyy --- yy y yy";
const SEE_FREE_BUSY: &str = "- 000y 00 yyyy --- yy y yy";
const MEMBERS_SEE: &str = "- 0000 00 yyyy --- yy y yy";
const MEMBERS_SEE_BY_POST: &str = "- 0000 00 yyyy --- yy y cy";
const MEMBERS_BOOK: &str = "- 0000 00 yyyy --- sy y cy";
const OWNERS_SEE: &str = "- 0000 00 0yyy --- yy y yy";
const OWNERS_DO: &str = "- 0000 00 xyyy --- ss y cy";
const OWNERS_DO_HIDDEN: &str = "- 0000 00 0yyy --- ss y cy";
const ADMINS_SEE: &str = "- 0000 00 xxyy --- yy x yy";
const ADMINS_DO: &str = "- 0000 00 xxyy --- ss x cy";
const GLOBAL_SEE: &str = "- xxxx xx xxxy --- yy x yy";
const GLOBAL_DO: &str = "- xxxx xx xxxy --- ss x cy";

pub fn rows() -> Vec<Row> {
    vec![
        // Sessions, and oneself.
        row("about", ANYBODY),
        row("sign_in", ANYBODY).body(|_| json!({"login": "ada", "password": super::PASSWORD})),
        row("reset_password", ANYBODY).gives(410).body(|_| {
            json!({"token": "a link that nobody made", "new_password": "another quiet harbour"})
        }),
        row("me", SIGNED_IN),
        row("change_me", SIGNED_IN_DO).body(|_| json!({"time_zone": "Europe/Rome"})),
        // The wrong password is refused as a field, and only to those who may change it at all.
        row("change_password", SIGNED_IN_DO)
            .gives(422)
            .body(|_| json!({"current": "not this", "new": "another quiet harbour"})),
        row("list_my_reservations", SIGNED_IN),
        row("list_my_approvals", SIGNED_IN),
        row("list_my_sites", SIGNED_IN),
        row("list_my_notifications", SIGNED_IN),
        row("list_my_notifications", SEE_NAME)
            .about("of the site")
            .query("?site={site}&unread=true"),
        row("mark_notifications_read", SIGNED_IN_DO).body(|_| json!({"up_to": 0})),
        row("mark_notifications_unread", SIGNED_IN_DO).body(|_| json!({"numbers": [1]})),
        row("list_my_tokens", SIGNED_IN),
        row("create_token", SIGNED_IN_DO).gives(201).body(|fresh| {
            json!({"label": "t", "scopes": ["read"], "expires_at": fresh.tomorrow()})
        }),
        row("list_my_feeds", SIGNED_IN),
        row("create_feed", SIGNED_IN_DO).gives(201).body(|_| json!({"label": "f"})),
        row("create_feed", "- 000y 00 yyyy --- ss s cy")
            .about("of the site")
            .gives(201)
            .body(|_| json!({"label": "f", "site": "torino"})),
        row("revoke_my_feed", "- 0000 00 0y00 --- ss s c0").gives(204),
        row("revoke_my_token", "- 0000 00 0y00 --- ss s c0").gives(204),
        // People.
        row("list_people", GLOBAL_SEE),
        row("create_person", GLOBAL_DO)
            .gives(201)
            .body(|fresh| json!({"login": fresh.name(), "display_name": "New"})),
        row("get_person", "- 0000 00 0y0y --- yy y yy"),
        row("change_person", GLOBAL_DO).body(|_| json!({"display_name": "Ada"})),
        row("remove_person", GLOBAL_DO).person(Whom::Stranger),
        row("create_reset_link", GLOBAL_DO),
        row("list_tokens_of_person", GLOBAL_SEE),
        row("revoke_token_of_person", GLOBAL_DO).gives(204),
        // Sites, members, and the way in.
        row("list_sites", SIGNED_IN),
        row("create_site", GLOBAL_DO).gives(201).body(|fresh| {
            json!({"name": fresh.name(), "title": "New", "time_zone": "UTC", "outsiders_see": "nothing"})
        }),
        row("get_site", SEE_NAME),
        row("change_site", ADMINS_DO).body(|_| json!({"title": "The lab of torino"})),
        row("get_logo", SEE_NAME),
        // What is sent is no image, which only those hear who may set one.
        row("put_logo", ADMINS_DO).gives(422).body(|_| json!({})),
        row("remove_logo", ADMINS_DO).gives(204),
        row("export_site", ADMINS_SEE),
        row("apply_site", ADMINS_DO)
            .body(|fresh| json!({"version": 1, "resources": {fresh.name(): {"type": "server"}}})),
        row("apply_site", ADMINS_DO)
            .about("only tried")
            .query("?dry_run=true")
            .body(|fresh| json!({"version": 1, "resources": {fresh.name(): {"type": "server"}}})),
        row("list_members", MEMBERS_SEE),
        row("put_member", ADMINS_DO)
            .person(Whom::Stranger)
            .body(|_| json!({"role": "site_admin"})),
        row("remove_member", ADMINS_DO).person(Whom::FreshMember),
        row("remove_member", "- 0000 00 xyyy --- ss s cy")
            .about("one's own membership")
            .query("?dry_run=true"),
        row("list_join_requests", ADMINS_SEE),
        row("ask_to_join", "- 0yyy 00 !!!y --- ss s cy")
            .gives(201)
            .body(|_| json!({}))
            .undone_by_declining(),
        row("accept_join_request", ADMINS_DO).body(|_| json!({"role": "member"})),
        row("decline_join_request", ADMINS_DO).body(|_| json!({"reason": "full"})),
        // Projects.
        row("list_projects", MEMBERS_SEE),
        row("create_project", ADMINS_DO)
            .gives(201)
            .body(|fresh| json!({"name": fresh.name(), "title": "New"})),
        row("get_project", MEMBERS_SEE),
        row("change_project", ADMINS_DO).body(|_| json!({"title": "Other"})),
        row("remove_project", ADMINS_DO).gives(204),
        row("list_project_members", MEMBERS_SEE),
        row("put_project_member", ADMINS_DO),
        row("remove_project_member", ADMINS_DO).gives(204),
        // Policies. They ask so little that every other row keeps them.
        row("list_policies", MEMBERS_SEE),
        row("put_policy", ADMINS_DO)
            .query("?type=server")
            .body(|_| json!({"policy": {"length_max": "300d"}})),
        row("put_policy", ADMINS_DO)
            .about("only tried")
            .query("?dry_run=true")
            .body(|_| json!({"policy": {"length_max": "1h"}})),
        row("remove_policy", ADMINS_DO).query("?dry_run=true&type=server"),
        row("list_policy_history", MEMBERS_SEE).query("?type=server"),
        row("test_policies", MEMBERS_SEE_BY_POST).body(|fresh| {
            let (start, end) = fresh.slot();
            json!({"start": start, "end": end, "resources": [{"resource": "gpu-01"}]})
        }),
        row("list_global_policies", GLOBAL_SEE),
        row("put_global_policy", GLOBAL_DO).body(|_| json!({"policy": {"length_max": "300d"}})),
        row("remove_global_policy", GLOBAL_DO).query("?dry_run=true"),
        row("list_global_policy_history", GLOBAL_SEE),
        // The inventory.
        row("list_types", SEE_CATALOGUE),
        row("create_type", ADMINS_DO)
            .gives(201)
            .body(|fresh| json!({"name": fresh.name(), "title": "New", "colour": "#123456"})),
        row("get_type", SEE_CATALOGUE),
        row("change_type", ADMINS_DO).body(|_| json!({"title": "Other"})),
        row("remove_type", ADMINS_DO).gives(204),
        row("list_resources", SEE_CATALOGUE),
        row("create_resource", ADMINS_DO)
            .gives(201)
            .body(|fresh| json!({"name": fresh.name(), "type": "server"})),
        row("get_resource", SEE_CATALOGUE),
        row("change_resource", ADMINS_DO).body(|_| json!({"title": "Other"})),
        row("remove_resource", ADMINS_DO).gives(204),
        row("move_resource", ADMINS_DO).body(|_| json!({"parent": "rack-b"})),
        row("move_resource", ADMINS_DO)
            .about("only tried")
            .query("?dry_run=true")
            .body(|_| json!({"parent": "rack-b"})),
        row("set_resource_status", ADMINS_DO)
            .body(|_| json!({"status": "MAINTENANCE", "reason": "fans"})),
        row("list_status_history", MEMBERS_SEE),
        row("count_resources", SEE_FREE_BUSY),
        // The timeline.
        row("get_calendar", SEE_FREE_BUSY)
            .query("?from=2027-01-01T00:00:00Z&to=2027-02-01T00:00:00Z"),
        row("list_free", SEE_FREE_BUSY),
        row("when", "- yyyy yy yyyy --- yy y cy").body(|_| json!({"wish": wish()})),
        row("when", "- 000y 00 yyyy --- yy y cy")
            .about("in a site")
            .body(|_| json!({"wish": wish(), "sites": ["torino"]})),
        row("list_maintenance", MEMBERS_SEE),
        row("plan_maintenance", ADMINS_DO).gives(201).body(window),
        row("plan_maintenance", ADMINS_DO)
            .about("only tried")
            .query("?dry_run=true")
            .body(window),
        row("get_maintenance", MEMBERS_SEE),
        row("cancel_maintenance", ADMINS_DO).body(|_| json!({})),
        row("list_closures", MEMBERS_SEE),
        row("add_closure", ADMINS_DO).gives(201).body(|fresh| {
            json!({"name": fresh.name(), "kind": "holidays", "file": super::arrange::CALENDAR})
        }),
        row("get_closure", MEMBERS_SEE),
        row("refresh_closure", ADMINS_DO),
        row("remove_closure", ADMINS_DO).gives(204),
        // Reservations.
        row("list_reservations", MEMBERS_SEE),
        row("create_reservation", MEMBERS_BOOK).gives(201).body(booking),
        row("create_reservation", MEMBERS_BOOK)
            .about("only tried")
            .query("?dry_run=true")
            .body(booking),
        row("create_reservation", ADMINS_DO).about("for somebody else").gives(201).body(|fresh| {
            let mut body = booking(fresh);
            body["on_behalf_of"] = json!("adele");
            body
        }),
        row("book_any", MEMBERS_BOOK).gives(201).body(any),
        row("book_any", MEMBERS_BOOK).about("only tried").query("?dry_run=true").body(any),
        row("get_reservation", MEMBERS_SEE),
        row("get_reservation", OWNERS_SEE).private(),
        row("list_reservation_history", MEMBERS_SEE),
        row("list_reservation_history", OWNERS_SEE).private(),
        row("change_reservation", OWNERS_DO).body(|_| json!({"title": "Other"})),
        row("change_reservation", OWNERS_DO_HIDDEN).private().body(|_| json!({"title": "Other"})),
        row("extend_reservation", OWNERS_DO).body(|_| json!({"by": "PT30M"})),
        row("extend_reservation", OWNERS_DO_HIDDEN).private().body(|_| json!({"by": "PT30M"})),
        row("cancel_reservation", OWNERS_DO).body(|_| json!({})),
        row("cancel_reservation", OWNERS_DO_HIDDEN).private().body(|_| json!({})),
        row("take_reservation", OWNERS_DO),
        row("take_reservation", OWNERS_DO_HIDDEN).private(),
        row("check_in", OWNERS_DO),
        row("check_in", OWNERS_DO_HIDDEN).private(),
        row("hand_over", OWNERS_DO).body(|_| json!({"to": "adele"})),
        row("hand_over", OWNERS_DO_HIDDEN).private().body(|_| json!({"to": "adele"})),
        row("approve_reservation", ADMINS_DO),
        row("approve_reservation", "- 0000 00 0xyy --- ss x cy").private(),
        row("reject_reservation", ADMINS_DO).body(|_| json!({"reason": "no"})),
        row("reject_reservation", "- 0000 00 0xyy --- ss x cy")
            .private()
            .body(|_| json!({"reason": "no"})),
        // Series.
        row("list_series", MEMBERS_SEE),
        row("create_series", MEMBERS_BOOK).gives(201).body(series),
        row("create_series", MEMBERS_BOOK)
            .about("only tried")
            .query("?dry_run=true")
            .body(series),
        row("create_series", ADMINS_DO).about("for somebody else").gives(201).body(|fresh| {
            let mut body = series(fresh);
            body["on_behalf_of"] = json!("adele");
            body
        }),
        row("get_series", MEMBERS_SEE),
        row("get_series", OWNERS_SEE).private(),
        row("change_series", OWNERS_DO).body(|_| json!({"title": "Other"})),
        row("change_series", OWNERS_DO_HIDDEN).private().body(|_| json!({"title": "Other"})),
        row("cancel_series", OWNERS_DO).body(|_| json!({})),
        row("cancel_series", OWNERS_DO_HIDDEN).private().body(|_| json!({})),
        // The queue.
        row("list_workloads", MEMBERS_SEE),
        row("submit_workload", MEMBERS_BOOK).gives(201).body(|_| work()),
        row("submit_workload", MEMBERS_BOOK).about("dry run").query("?dry_run=true").body(|_| work()),
        row("get_workload", MEMBERS_SEE),
        row("cancel_workload", OWNERS_DO).body(|_| json!({})),
        // Nothing runs here, so whoever may ask is told that.
        row("extend_workload", OWNERS_DO).gives(422).body(|_| json!({ "by": "PT1H" })),
        row("hold_workload", OWNERS_DO),
        row("release_workload", OWNERS_DO),
        row("list_environments", MEMBERS_SEE),
        row("make_environment", MEMBERS_BOOK)
            .gives(201)
            .body(|fresh| json!({"name": fresh.name(), "packages": ["numpy"]})),
        row("make_environment", ADMINS_DO)
            .about("for everybody")
            .gives(201)
            .body(|fresh| json!({"name": fresh.name(), "curated": true})),
        row("get_environment", MEMBERS_SEE),
        row("get_environment_log", MEMBERS_SEE),
        row("make_environment_version", OWNERS_DO)
            .gives(201)
            .body(|_| json!({"add": ["six"]})),
        row("remove_environment", OWNERS_DO).gives(204),
        row("get_queue_settings", MEMBERS_SEE),
        row("set_queue_settings", ADMINS_DO).body(|_| queue()),
        row("list_shares", MEMBERS_SEE),
        row("list_queue_nodes", MEMBERS_SEE),
        row("count_queue", MEMBERS_SEE),
        row("list_grants", MEMBERS_SEE),
        row("give_grant", ADMINS_DO).gives(201).body(|fresh| grant(&fresh.tomorrow())),
        row("revoke_grant", ADMINS_DO).gives(204),
        row("workload_log", "- 0000 00 xyyy --- yy y yy"),
        // Sessions. Nothing runs them here, so they wait. Whether somebody has one is nobody else's business.
        row("session_profiles", MEMBERS_SEE),
        row("resume_session_profile", ADMINS_DO).gives(204),
        row("list_sessions", MEMBERS_SEE),
        row("list_sessions", ADMINS_SEE).about("everybody's").query("?everybody=true"),
        row("start_new_session", MEMBERS_BOOK).gives(201).body(|_| json!({"profile": "notebook"})),
        row("get_session", OWNERS_SEE),
        row("session_log", OWNERS_SEE),
        row("session_visits", OWNERS_SEE),
        row("rename_session", OWNERS_DO_HIDDEN).body(|fresh| json!({"name": fresh.name()})),
        row("keep_session", OWNERS_DO_HIDDEN).body(|_| json!({"for": "PT1H"})),
        row("share_session", OWNERS_DO_HIDDEN).body(|_| json!({"with": "adele", "access": "view"})),
        row("visit_session", OWNERS_DO_HIDDEN).body(|_| json!({"reason": "a test"})),
        row("stop_session", OWNERS_DO_HIDDEN).body(|_| json!({})),
        // It waits, so it can be neither started nor removed; and it is its owner's alone to start.
        row("start_session", "- 0000 00 0y00 --- 00 y c0").gives(409).body(|_| json!({})),
        row("remove_session", OWNERS_DO_HIDDEN).gives(409),
        // What happened.
        row("list_events", SIGNED_IN),
        row("list_events", MEMBERS_SEE).about("of the site").query("?site={site}"),
        row("stream_events", SIGNED_IN),
        row("stream_events", MEMBERS_SEE).about("of the site").query("?site={site}"),
        row("get_usage", ADMINS_SEE),
        row("get_usage", MEMBERS_SEE).about("one's own").query("?mine=true"),
        row("get_all_usage", GLOBAL_SEE),
        row("get_health_report", GLOBAL_SEE),
        row("list_site_audit", ADMINS_SEE),
        row("list_audit", GLOBAL_SEE),
        row("verify_audit", GLOBAL_SEE),
        // Last, because it ends the browser's session.
        row("sign_out", "- xxxx xx xxxx --- xx x cy").gives(204),
    ]
}

fn booking(fresh: &Fresh) -> Value {
    let (start, end) = fresh.slot();
    json!({"title": "a test", "start": start, "end": end, "resources": [{"resource": "gpu-01"}]})
}

/// Of one instance, so that it stands in nobody's way but its slot's.
fn series(fresh: &Fresh) -> Value {
    let (start, end) = fresh.slot();
    json!({
        "title": "a test", "start": start, "end": end, "rule": "FREQ=DAILY;COUNT=1",
        "resources": [{"resource": "gpu-01"}],
    })
}

fn wish() -> Value {
    json!({"what": "server", "variants": [{"for": "PT1H"}]})
}

pub fn any(fresh: &Fresh) -> Value {
    let (start, end) = fresh.slot();
    let variants = [json!({"for": "PT1H"})];
    let wish = json!({"what": "server", "variants": variants, "earliest": start, "before": end});
    json!({"title": "a test", "wish": wish})
}

pub fn queue() -> Value {
    let task = json!({"cores_milli": 1000, "memory_mib": 1024});
    json!({
        "roles": {"server": "node"},
        "profiles": {"notebook": {
            "title": "Notebook",
            "wishes": [{"task": task, "limit": "PT1H"}],
            "session": {"app": "notebook"},
        }},
        "apps": {"notebook": {"title": "Notebook", "command": ["notebook"], "serves": "socket"}},
    })
}

/// Nothing runs it here, so it waits.
pub fn work() -> Value {
    let task = json!({"cores_milli": 1000, "memory_mib": 1024});
    json!({"title": "a test", "wishes": [{"task": task, "limit": "PT1H"}]})
}

pub fn grant(until: &str) -> Value {
    json!({"person": "ada", "until": until, "gpu_hours": 10, "reason": "a thesis"})
}

fn window(fresh: &Fresh) -> Value {
    let (start, end) = fresh.slot();
    json!({"title": "a test", "start": start, "end": end, "resources": ["press"]})
}

/// One row of the table.
#[derive(Debug, Clone)]
pub struct Row {
    pub operation: &'static str,
    /// What is particular, where an operation has several rows.
    pub about: &'static str,
    letters: &'static str,
    /// The status for those who may.
    pub done: u16,
    pub query: &'static str,
    pub body: Option<fn(&Fresh) -> Value>,
    /// Who `{person}` in the path is.
    pub person: Whom,
    /// Whether `{reservation}` is one that only its owner and the admins may see.
    pub is_private: bool,
    /// Whether what was made stands in the next caller's way.
    pub is_undone: bool,
}

/// A person that is acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    Owner,
    /// Somebody new, who belongs nowhere.
    Stranger,
    /// Somebody new in the site.
    FreshMember,
}

fn row(operation: &'static str, letters: &'static str) -> Row {
    Row {
        operation,
        about: "",
        letters,
        done: 200,
        query: "",
        body: None,
        person: Whom::Owner,
        is_private: false,
        is_undone: false,
    }
}

impl Row {
    fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    fn gives(self, done: u16) -> Self {
        Self { done, ..self }
    }

    fn query(self, query: &'static str) -> Self {
        Self { query, ..self }
    }

    fn body(self, body: fn(&Fresh) -> Value) -> Self {
        let body = Some(body);
        Self { body, ..self }
    }

    fn person(self, person: Whom) -> Self {
        Self { person, ..self }
    }

    fn private(self) -> Self {
        let is_private = true;
        let about = "a private one";
        Self {
            is_private,
            about,
            ..self
        }
    }

    fn undone_by_declining(self) -> Self {
        let is_undone = true;
        Self { is_undone, ..self }
    }

    /// What each caller is answered, in the order of the columns.
    pub fn expected(&self) -> Vec<Expected> {
        let letters = self
            .letters
            .chars()
            .filter(|letter| !letter.is_whitespace());
        letters.map(Expected::of).collect()
    }
}
