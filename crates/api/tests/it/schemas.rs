//! The schemas of the wire types, as they will stand in the OpenAPI document.

#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use std::collections::BTreeMap;

use berth_api::{
    audit, calendar, declared, desk, events, health, maintenance, members, notifications, page,
    people, policies, problem, projects, reservations, resources, schemas, series, sessions,
    sign_in, sites, tokens, types, usage,
};
use serde_json::Value;
use utoipa::openapi::{ComponentsBuilder, OpenApiBuilder};
use utoipa::{IntoParams, ToSchema};

/// One type with all that it refers to. Two types of one name would be one in the document, and the other lost.
fn add<T: ToSchema>(
    known: &mut BTreeMap<String, Value>,
    components: ComponentsBuilder,
) -> ComponentsBuilder {
    let mut all = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut all);
    for (name, schema) in &all {
        let schema = serde_json::to_value(schema).unwrap();
        let before = known.insert(name.clone(), schema.clone());
        assert!(
            before.is_none_or(|before| before == schema),
            "two are called {name}"
        );
    }
    components.schemas_from_iter(all)
}

macro_rules! document {
    ($($of:ty),* $(,)?) => {{
        let mut components = ComponentsBuilder::new();
        let mut known = BTreeMap::new();
        $(components = add::<$of>(&mut known, components);)*
        let document = OpenApiBuilder::new().components(Some(components.build())).build();
        serde_json::to_value(document).unwrap()
    }};
}

/// Every body of a request.
fn requests() -> Value {
    document![
        people::NewPerson,
        people::PersonPatch,
        sign_in::SignIn,
        sign_in::ProfilePatch,
        sign_in::PasswordChange,
        sign_in::PasswordReset,
        tokens::NewToken,
        sites::NewSite,
        sites::SitePatch,
        members::MemberRole,
        members::NewJoinRequest,
        members::JoinAcceptance,
        members::Reason,
        projects::NewProject,
        projects::ProjectPatch,
        types::NewType,
        types::TypePatch,
        resources::NewResource,
        resources::ResourcePatch,
        resources::MoveResource,
        resources::StatusPatch,
        schemas::Document,
        maintenance::NewMaintenance,
        policies::NewPolicy,
        policies::PolicyTest,
        reservations::NewReservation,
        reservations::ReservationPatch,
        reservations::Extension,
        reservations::Rejection,
        series::NewSeries,
        series::SeriesPatch,
        sessions::NewSession,
        sessions::StartSession,
        sessions::StopSession,
        sessions::SessionPatch,
        sessions::ShareSession,
        sessions::KeepSession,
        notifications::MarkRead,
        notifications::MarkUnread,
    ]
}

/// Every body of an answer.
fn answers() -> Value {
    document![
        problem::Problem,
        people::Person,
        people::CreatedPerson,
        people::ResetLink,
        sign_in::SignedIn,
        sign_in::Me,
        tokens::Token,
        tokens::CreatedToken,
        sites::Site,
        members::Member,
        members::JoinRequest,
        members::Settlement,
        projects::Project,
        projects::ProjectMember,
        types::ResourceType,
        resources::Resource,
        resources::MoveOutcome,
        resources::StatusChange,
        calendar::Calendar,
        calendar::FreeResource,
        declared::SiteExport,
        declared::ApplyOutcome,
        maintenance::MaintenanceWindow,
        maintenance::MaintenancePreview,
        desk::When,
        policies::PolicyList,
        policies::PolicyFindings,
        reservations::Reservation,
        reservations::ReservationPreview,
        reservations::HistoryEntry,
        series::Series,
        series::SeriesPreview,
        sessions::Session,
        sessions::SessionLog,
        sessions::Visit,
        sessions::Profile,
        health::HealthReport,
        usage::Usage,
        usage::AllUsage,
        audit::AuditEntry,
        audit::AuditVerification,
        events::Event,
        events::EventPage,
        notifications::NotificationPage,
        notifications::Unread,
        page::Page<reservations::Reservation>,
    ]
}

/// Calls `check` on every schema below `value`, with its place.
fn walk(value: &Value, at: &str, check: &mut dyn FnMut(&str, &Value)) {
    check(at, value);
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                walk(member, &format!("{at}.{name}"), check);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                walk(item, &format!("{at}[{i}]"), check);
            }
        }
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere() {
    for document in [requests(), answers()] {
        let schemas = &document["components"]["schemas"];
        walk(schemas, "schemas", &mut |at, value| {
            if let Some(to) = value.get("$ref").and_then(Value::as_str) {
                let name = to.strip_prefix("#/components/schemas/").unwrap_or(to);
                assert!(schemas.get(name).is_some(), "{at} refers to {to}");
            }
        });
    }
}

#[test]
fn a_name_means_the_same_in_what_is_sent_and_what_is_answered() {
    let (sent, answered) = (requests(), answers());
    let (sent, answered) = [sent, answered]
        .map(|document| document["components"]["schemas"].clone())
        .into();
    for (name, schema) in sent.as_object().unwrap() {
        if let Some(other) = answered.get(name) {
            assert_eq!(schema, other, "two are called {name}");
        }
    }
}

/// What a client may send is bounded, and the document says how: the server enforces the same bounds.
#[test]
fn every_text_and_list_of_a_request_has_bounds() {
    let document = requests();
    walk(
        &document["components"]["schemas"],
        "schemas",
        &mut |at, value| {
            let has = |keyword: &str| value.get(keyword).is_some();
            match value.get("type").and_then(Value::as_str) {
                Some("string") => {
                    let bounded =
                        has("maxLength") || has("enum") || has("format") || has("pattern");
                    assert!(bounded, "{at} is a text without bounds");
                }
                Some("array") => assert!(has("maxItems"), "{at} is a list without bounds"),
                Some("integer") => assert!(has("maximum"), "{at} is a number without bounds"),
                Some("object") => {
                    let closed = value.get("additionalProperties") == Some(&Value::Bool(false));
                    assert!(closed || has("maxProperties"), "{at} takes any field");
                }
                _ => {}
            }
        },
    );
}

/// A parameter stands beside its operation, where nothing collects the schemas it refers to.
#[test]
fn query_parameters_refer_to_nothing_and_have_bounds() {
    let queries = [
        page::PageQuery::into_params(|| None),
        page::DryRunQuery::into_params(|| None),
        resources::ResourceQuery::into_params(|| None),
        declared::ApplyQuery::into_params(|| None),
        calendar::CalendarQuery::into_params(|| None),
        calendar::FreeQuery::into_params(|| None),
        reservations::ReservationQuery::into_params(|| None),
        reservations::MyReservationQuery::into_params(|| None),
        series::SeriesQuery::into_params(|| None),
        series::ScopeQuery::into_params(|| None),
        usage::UsageQuery::into_params(|| None),
        usage::AllUsageQuery::into_params(|| None),
        notifications::NotificationQuery::into_params(|| None),
        events::EventQuery::into_params(|| None),
        events::EventStreamQuery::into_params(|| None),
    ];
    for query in queries {
        for parameter in query {
            let parameter = serde_json::to_value(parameter).unwrap();
            assert_eq!(parameter["in"], "query");
            let mandatory = ["from", "to"].contains(&parameter["name"].as_str().unwrap());
            assert!(mandatory || parameter["required"] == false, "{parameter}");
            walk(&parameter, "parameter", &mut |_, value| {
                assert!(value.get("$ref").is_none(), "{parameter}");
            });
        }
    }
}

#[test]
fn a_change_says_which_fields_can_be_cleared() {
    let document = requests();
    let person = &document["components"]["schemas"]["PersonPatch"]["properties"];
    assert_eq!(person["email"]["oneOf"][1]["type"], "null");
    assert_eq!(person["display_name"]["$ref"], "#/components/schemas/Text");
    assert_eq!(person["global_admin"]["type"], "boolean");
}

#[test]
fn moments_are_date_times_everywhere() {
    let schemas = &requests()["components"]["schemas"];
    assert_eq!(schemas["Moment"]["format"], "date-time");
    let schemas = &answers()["components"]["schemas"];
    assert_eq!(
        schemas["Reservation"]["properties"]["start"]["format"],
        "date-time"
    );
}
