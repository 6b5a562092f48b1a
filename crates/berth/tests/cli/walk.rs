//! Every command of the client, run once in an order that makes sense.
//!
//! A line is what someone types; `{name}` in it stands for what an earlier line left under that name, and a line
//! may leave the id of what it made. A command without a line fails the test.

/// What to type, what becomes of it, and under which name its id is kept.
pub struct Line {
    pub typed: &'static str,
    pub input: &'static str,
    pub keep: Option<&'static str>,
}

const fn line(typed: &'static str) -> Line {
    Line {
        typed,
        input: "",
        keep: None,
    }
}

const fn with(typed: &'static str, input: &'static str) -> Line {
    Line {
        typed,
        input,
        keep: None,
    }
}

/// Its answer has an id, which later lines need.
const fn keep(name: &'static str, typed: &'static str) -> Line {
    Line {
        typed,
        input: "",
        keep: Some(name),
    }
}

pub const WALK: &[Line] = &[
    line("whoami"),
    line("site create pisa --title Pisa --time-zone Europe/Rome --outsiders-see catalogue"),
    line("site use pisa"),
    line("site edit --title |Scuola di Pisa|"),
    line("site edit --accent #1f77b4"),
    with("site logo -", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
    line("site logo --remove"),
    line("site edit --no-accent"),
    line("site show"),
    line("site list"),
    line("profile edit --name |Ada Lovelace| --email ada@lab.example --time-zone Europe/London"),
    with(
        "profile password --stdin",
        "correct horse battery\nanother long password\n",
    ),
    with(
        "profile password --stdin",
        "another long password\ncorrect horse battery\n",
    ),
    line("person create bo --name Bo --email bo@lab.example"),
    with(
        "person create cy --name Cy --password-stdin",
        "correct horse battery\n",
    ),
    line("person list"),
    line("person show bo"),
    line("person edit bo --name |Bo Ek| --no-email --suspended false"),
    line("person reset-link bo"),
    line("person remove bo --yes"),
    line("member add cy --role site-admin"),
    line("member role cy member"),
    line("member list"),
    line("project create vision --title Vision"),
    line("project edit vision --title |Computer vision|"),
    line("project add-member vision cy"),
    line("project members vision"),
    line("project show vision"),
    line("project list"),
    line("type create rack --title Rack"),
    line("type create node --title Node --needs-approval"),
    line("type create spare --title Spare"),
    line("type edit spare --colour #aabbcc"),
    line("type show spare"),
    line("type list"),
    line("type remove spare"),
    line("resource add rack-1 --type rack"),
    line("resource add rack-2 --type rack"),
    line("resource add node-1 --type node --in rack-1 --attribute gpus=2 --location |row 1|"),
    line("resource edit node-1 --attribute gpus=4 --title |Node one|"),
    line("resource move node-1 --in rack-2 --dry-run"),
    line("resource move node-1 --in rack-2"),
    line("resource status node-1 maintenance --reason dusting"),
    line("resource status node-1 active"),
    line("resource history node-1"),
    line("resource show node-1"),
    line("resource list --where gpus>=4"),
    line("resource tree --under rack-2"),
    line("resource remove rack-1"),
    line("free --for 1h --type node"),
    line(
        "when |1 x node| --for 1h --where gpus>=4 --or |1 for 30m| --from 2101-03-08 --before 2101-03-10",
    ),
    keep(
        "any",
        "book --any node --where gpus>=4 --from |2101-03-07 09:00| --for 1h -o json",
    ),
    keep(
        "waiting",
        "book pisa/node-1 --from |2101-03-07 09:00| --for 1h --wait=offer -o json",
    ),
    line("reservation show {waiting}"),
    line("reservation cancel {waiting}"),
    line("reservation cancel {any}"),
    keep(
        "mine",
        "book pisa/node-1 --from |2101-03-08 09:00| --for 2h -o json",
    ),
    line("reservation list"),
    line("reservation show {mine}"),
    line("reservation extend {mine} --until |2101-03-08 12:00|"),
    line("reservation set {mine} --title |shorter| --end |2101-03-08 10:00|"),
    line("reservation history {mine}"),
    keep(
        "held",
        "book pisa/node-1 --from |2101-03-10 09:00| --for 1h --hold -o json",
    ),
    line("reservation take {held}"),
    line("reservation check-in {held}"),
    line("reservation hand-over {held} --to cy --reason |on leave|"),
    line("reservation cancel {held}"),
    keep(
        "series",
        "book pisa/node-1 --from |2101-04-04 09:00| --for 2h --every week --count 3 -o json",
    ),
    line("series list"),
    line("series show {series}"),
    line("series change {series} --at 10:00 --for 3h"),
    line("series cancel {series} --reason |no longer|"),
    line("calendar node-1 --from 2101-03-08 --days 2"),
    keep(
        "window",
        "maintenance plan rack-2 --from |2101-03-09 09:00| --for 2h --title dusting -o json",
    ),
    line("maintenance list"),
    line("maintenance show {window}"),
    line("maintenance cancel {window} --reason |clean enough|"),
    with(
        "closure add days-off --kind holidays --file -",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:New Year\nDTSTART;VALUE=DATE:20260101\nRRULE:FREQ=YEARLY\n\
         END:VEVENT\nEND:VCALENDAR\n",
    ),
    line("closure list"),
    line("closure refresh days-off"),
    line("closure show days-off"),
    line("closure remove pisa/days-off"),
    line("reservation cancel {mine}"),
    line("policy set --type node length_max=12h buffer_after=15m active_bookings=3 --reason fair"),
    with(
        "policy set --file - --dry-run",
        "length_max: 24h\nopening_hours:\n  mon: [\"08:00-18:00\"]\n",
    ),
    line("policy set --ceilings length_max=30d"),
    line("policy list"),
    line("policy list --global"),
    line("policy show --type node"),
    line("policy history --type node"),
    line("policy test node-1 --from |2101-03-08 09:00| --for 2h"),
    line("policy remove --type node --dry-run"),
    line("policy remove --type node --reason |enough for all|"),
    line("approvals"),
    line("notification list --unread --all"),
    line("notification read --all"),
    line("project remove-member vision cy"),
    line("project remove vision"),
    line("token create ci --scope read --scope book"),
    line("token list"),
    line("feed create phone"),
    line("feed create wall --whole-site"),
    line("feed create door --resource pisa/node-1"),
    line("feed create corridor --type node"),
    line("feed list"),
    line("usage"),
    line("usage --bucket hour --from 2026-11-01 --to 2026-11-08 --type node"),
    line("usage --mine -o csv"),
    line("usage --all-sites"),
    line("audit list --everywhere --limit 10"),
    line("audit list --everywhere --action site --from 2020-01-01 --limit 10"),
    line("audit verify"),
    line("event list --limit 10"),
    line("member remove cy --yes"),
];

/// Commands that other tests run, and which.
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("apply", "a_file_is_shown_confirmed_applied_and_done_once"),
    ("diff", "a_file_is_shown_confirmed_applied_and_done_once"),
    ("export", "what_was_exported_is_what_there_is"),
    (
        "resource import",
        "the_inventory_goes_through_a_spreadsheet",
    ),
    (
        "resource export",
        "the_inventory_goes_through_a_spreadsheet",
    ),
    ("resource import-slurm", "a_slurm_cluster_becomes_a_tree"),
    ("reservation approve", "a_request_for_approval_is_decided"),
    ("reservation reject", "a_request_for_approval_is_decided"),
    ("site join", "people_come_ask_to_join_and_go"),
    ("site requests", "people_come_ask_to_join_and_go"),
    ("site accept", "people_come_ask_to_join_and_go"),
    ("site decline", "a_request_for_approval_is_decided"),
    ("profile reset", "people_come_ask_to_join_and_go"),
    ("token revoke", "a_request_for_approval_is_decided"),
    ("feed revoke", "a_feed_is_read_until_it_is_revoked"),
    ("event watch", "events_are_told_as_they_happen"),
    ("login", "a_sign_in_is_kept_private_and_ends"),
    ("logout", "a_sign_in_is_kept_private_and_ends"),
    ("serve", "every test here"),
    ("demo", "src/demo/tests.rs"),
    (
        "config check",
        "the_doctor_and_the_configuration_say_what_is_wrong",
    ),
    ("config show-docs", "every_failure_has_its_number"),
    (
        "doctor",
        "the_doctor_and_the_configuration_say_what_is_wrong",
    ),
    ("admin create", "every test here"),
    ("db move", "everything_moves_to_postgresql"),
    ("slurm link", "links_replace_nothing_unasked"),
    ("openapi", "every_failure_has_its_number"),
    ("completion", "every_failure_has_its_number"),
    ("version", "every_failure_has_its_number"),
];
