//! What an admin of another site can reach by way of their own: nothing of this one.
//!
//! Everything has an id, and ids travel. Put into a path or a body of one's own site, another site's id must be
//! answered like one that does not exist.

use serde_json::{Value, json};

use super::arrange::{Stage, Targets, nonexistent, operations};
use super::table::{self, rows};
use crate::support::http::Answer;

const MEMBERS: [&str; 2] = ["put_member", "remove_member"];

/// An id of the right form that nothing has.
const NOTHING: &str = "01kc3v9xwbe8rv5w2n9q3m7t4h";

pub async fn check(stage: &Stage, wrong: &mut Vec<String>) {
    by_path(stage, wrong).await;
    by_reference(stage, wrong).await;
    by_name(stage, wrong).await;
}

/// A login that nobody has.
const NOBODY: &str = "nobody-at-all";

/// A request that names a person: with `PERSON` in its path and its body where their login or id goes.
struct Naming {
    method: &'static str,
    path: String,
    body: Option<Value>,
    /// The statuses that a member and a site admin are answered.
    expected: [u16; 2],
}

/// Requests that name a person: whether another tenant's people exist is told to nobody, neither by a refusal nor by
/// an empty list. `PUT members` is left out: whom an admin lets in, they must be able to name.
async fn by_name(stage: &Stage, wrong: &mut Vec<String>) {
    let Stage { http, world, .. } = stage;
    let no_id = format!("per_{NOTHING}");
    let bruno = world.id("bruno");
    assert_eq!(bruno.split('_').next(), Some("per"), "the ids of people");
    for naming in naming(stage).await {
        let Naming {
            method,
            path,
            body,
            expected,
        } = &naming;
        for (caller, expected) in ["ada", "adele"].into_iter().zip(expected) {
            for (real, none) in [("bruno", NOBODY), (bruno.as_str(), no_id.as_str())] {
                let ask = async |person: &str| -> Answer {
                    let path = path.replace("PERSON", person);
                    let request = http.request(&world.who(caller), method, &path);
                    let request = request.header("if-match", "*");
                    let body = body.as_ref().map(|body| body.to_string());
                    let request = match body.map(|body| body.replace("PERSON", person)) {
                        Some(body) => request
                            .header("content-type", "application/json")
                            .body(body),
                        None => request,
                    };
                    http.send(request).await
                };
                let (of_real, of_none) = (ask(real).await, ask(none).await);
                let hidden = of_real.text.replace(real, none);
                let is_same = (of_real.status, &hidden) == (of_none.status, &of_none.text);
                // A setting that takes logins only refuses the form of an id.
                let is_form = of_real.status == 422 && real.starts_with("per_");
                if !is_same || (of_real.status != *expected && !is_form) {
                    wrong.push(format!(
                        "{method} {path} by {caller}, {expected} expected: {of_real:?} / {of_none:?}"
                    ));
                }
            }
        }
    }
}

async fn naming(stage: &Stage) -> Vec<Naming> {
    let Stage { http, world, .. } = stage;
    let site = format!("/sites/{}", world.torino);
    let (start, end) = stage.fresh.slot();
    let ada = world.who("ada");
    let items = json!([{"resource": "gpu-01"}]);
    let own = json!({"title": "x", "start": start, "end": end, "resources": items});
    let own = id(&http.make(&ada, &format!("{site}/reservations"), &own).await);
    let session = json!({"profile": "notebook", "name": stage.fresh.name()});
    let session = id(&http.make(&ada, &format!("{site}/sessions"), &session).await);
    let project = json!({"name": stage.fresh.name(), "title": "A project"});
    let projects = format!("{site}/projects");
    let project = id(&http.make(&stage.root, &projects, &project).await);
    let in_project = format!("projects/{project}/members/PERSON");
    let (start, end) = stage.fresh.slot();
    let items = json!([{"resource": "gpu-02"}]);
    let booking = json!({
        "title": "x", "start": start, "end": end, "resources": items, "on_behalf_of": "PERSON",
    });
    let mut series = booking.clone();
    series["rule"] = json!("FREQ=DAILY;COUNT=1");
    let mut any = table::any(&stage.fresh);
    any["on_behalf_of"] = json!("PERSON");
    let test = json!({"start": start, "end": end, "resources": items, "on_behalf_of": "PERSON"});
    let mut queue = table::queue();
    queue["quotas"] = json!([{"person": "PERSON", "amounts": {"gpus_milli": 1000}}]);
    let mut grant = table::grant(&stage.fresh.tomorrow());
    grant["person"] = json!("PERSON");
    let asking = |who: &str| {
        let mut approval = json!({"approvers": ["site_admins"]});
        approval[who] = json!([{"person": "PERSON"}]);
        json!({"policy": {"approval": approval}})
    };
    let naming = |method, path: &str, body, expected| Naming {
        method,
        path: format!("{site}/{path}"),
        body,
        expected,
    };
    vec![
        naming("GET", "reservations?owner=PERSON", None, [200, 200]),
        naming("GET", "series?owner=PERSON", None, [200, 200]),
        naming("GET", "workloads?owner=PERSON", None, [200, 200]),
        naming("GET", "sessions?owner=PERSON", None, [403, 200]),
        naming("GET", "audit?actor=PERSON", None, [403, 200]),
        naming("DELETE", "members/PERSON", None, [403, 404]),
        naming("PUT", &in_project, None, [403, 404]),
        naming("DELETE", &in_project, None, [403, 404]),
        naming("POST", "reservations", Some(booking), [403, 404]),
        naming("POST", "reservations/any", Some(any), [403, 404]),
        naming("POST", "series", Some(series), [403, 404]),
        naming("POST", "policy/test", Some(test), [403, 404]),
        naming(
            "POST",
            &format!("reservations/{own}/hand-over"),
            Some(json!({"to": "PERSON"})),
            [422, 422],
        ),
        naming(
            "POST",
            &format!("sessions/{session}/share"),
            Some(json!({"with": "PERSON", "access": "view"})),
            [422, 422],
        ),
        naming("POST", "queue/grants", Some(grant), [403, 404]),
        naming("PUT", "queue/settings", Some(queue), [403, 422]),
        naming(
            "PUT",
            "policy?dry_run=true",
            Some(asking("approvers")),
            [403, 422],
        ),
        naming(
            "PUT",
            "policy?dry_run=true",
            Some(asking("deputies")),
            [403, 422],
        ),
    ]
}

fn id(made: &Value) -> String {
    made["id"].as_str().expect("an id").to_owned()
}

/// Each operation on something in a site, with this site's things under the other's address.
async fn by_path(stage: &Stage, wrong: &mut Vec<String>) {
    let bruno = stage.world.who("bruno");
    let operations = operations();
    for row in rows() {
        let Some(operation) = operations.iter().find(|one| one.id == row.operation) else {
            continue;
        };
        let inner = operation
            .parameters()
            .filter(|parameter| *parameter != "site")
            .count();
        // People belong to no site, and letting one in is what an admin is there for: who can do that knows them.
        if !operation.path.starts_with("/sites/{site}/")
            || inner == 0
            || MEMBERS.contains(&row.operation)
        {
            continue;
        }
        let mut targets = stage.targets(operation, &row).await;
        targets.insert("site".to_owned(), stage.world.bologna.clone());
        let body = row.body.map(|body| body(&stage.fresh));
        let ask = |targets: Targets| {
            let (bruno, row, body) = (&bruno, &row, body.as_ref());
            async move { stage.ask(bruno, operation, row, &targets, body, None).await }
        };
        let real = ask(targets.clone()).await;
        let nothing = nonexistent(&targets)
            .into_iter()
            .filter(|one| one["site"] == targets["site"]);
        for variant in nothing {
            let nothing = ask(variant).await;
            if real.status != 404 || (real.status, &real.text) != (nothing.status, &nothing.text) {
                wrong.push(format!(
                    "{} from another site: {real:?} / {nothing:?}",
                    row.operation
                ));
            }
        }
    }
}

/// Requests of the other site's admin to their own site that refer to things of this one.
async fn by_reference(stage: &Stage, wrong: &mut Vec<String>) {
    let Stage { http, world, .. } = stage;
    let bruno = world.who("bruno");
    let resource = id_of(stage, "resources/gpu-01").await;
    let kind = id_of(stage, "types/server").await;
    let body = json!({"name": stage.fresh.name(), "title": "A project"});
    let project = http
        .make(
            &stage.root,
            &format!("/sites/{}/projects", world.torino),
            &body,
        )
        .await;
    let project = project["id"].as_str().expect("an id").to_owned();
    let (start, end) = stage.fresh.slot();
    let booking = |resource: &str| json!({"title": "x", "start": start, "end": end, "resources": [{"resource": resource}]});
    let mut with_project = booking("gpu-01");
    with_project["project"] = json!(project);
    let site = format!("/sites/{}", world.bologna);
    let requests: Vec<(&str, String, Option<Value>)> = vec![
        (
            "POST",
            format!("{site}/reservations"),
            Some(booking(&resource)),
        ),
        ("POST", format!("{site}/reservations"), Some(with_project)),
        (
            "POST",
            format!("{site}/resources"),
            Some(json!({"name": "thief", "type": kind})),
        ),
        (
            "POST",
            format!("{site}/resources"),
            Some(json!({"name": "thief", "type": "server", "parent": resource})),
        ),
        (
            "POST",
            format!("{site}/resources/gpu-01/move"),
            Some(json!({"parent": resource})),
        ),
        (
            "POST",
            format!("{site}/maintenance"),
            Some(json!({"title": "x", "start": start, "end": end, "resources": [resource]})),
        ),
        (
            "GET",
            format!("{site}/calendar?from={start}&to={end}&resource={resource}"),
            None,
        ),
        (
            "GET",
            format!("{site}/calendar?from={start}&to={end}&under={resource}"),
            None,
        ),
        (
            "GET",
            format!("{site}/calendar?from={start}&to={end}&type={kind}"),
            None,
        ),
        ("GET", format!("{site}/resources?under={resource}"), None),
        ("GET", format!("{site}/resources?type={kind}"), None),
        ("GET", format!("{site}/free?type={kind}"), None),
        (
            "GET",
            format!("{site}/reservations?resource={resource}"),
            None,
        ),
        ("GET", "/events?site=torino".to_owned(), None),
    ];
    for (method, path, body) in requests {
        let ask = async |path: &str, body: Option<&Value>| -> Answer {
            let request = http.request(&bruno, method, path);
            let request = match body {
                Some(body) => request.json(body),
                None => request,
            };
            http.send(request).await
        };
        let real = ask(&path, body.as_ref()).await;
        let nothing = |text: &str| {
            [&resource, &kind, &project]
                .into_iter()
                .fold(text.to_owned(), |text, id| {
                    let prefix = id.split('_').next().unwrap_or_default();
                    text.replace(id, &format!("{prefix}_{NOTHING}"))
                })
        };
        let body = body.map(|body| nothing(&body.to_string()));
        let body = body.map(|body| serde_json::from_str::<Value>(&body).expect("JSON still"));
        let path_to_nothing = nothing(&path).replace("=torino", "=nowhere");
        let none = ask(&path_to_nothing, body.as_ref()).await;
        // An answer may repeat the id that was asked for, and nothing else of it.
        if (real.status, nothing(&real.text)) != (none.status, none.text.clone()) {
            wrong.push(format!(
                "{method} {path} from another site: {real:?} / {none:?}"
            ));
        }
        if method == "POST" && real.status < 400 {
            wrong.push(format!(
                "{method} {path} was done with another site's things: {real:?}"
            ));
        }
    }
}

async fn id_of(stage: &Stage, path: &str) -> String {
    let path = format!("/sites/{}/{path}", stage.world.torino);
    let answer = stage.http.get(&stage.root, &path).await.expect(200);
    answer.json()["id"].as_str().expect("an id").to_owned()
}
