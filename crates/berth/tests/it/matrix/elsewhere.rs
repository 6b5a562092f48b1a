//! What an admin of another site can reach by way of their own: nothing of this one.
//!
//! Everything has an id, and ids travel. Put into a path or a body of one's own site, another site's id must be
//! answered like one that does not exist.

use serde_json::{Value, json};

use super::arrange::{Stage, Targets, nonexistent, operations};
use super::table::rows;
use crate::support::http::Answer;

const MEMBERS: [&str; 2] = ["put_member", "remove_member"];

/// An id of the right form that nothing has.
const NOTHING: &str = "01kc3v9xwbe8rv5w2n9q3m7t4h";

pub async fn check(stage: &Stage, wrong: &mut Vec<String>) {
    by_path(stage, wrong).await;
    by_reference(stage, wrong).await;
    by_login(stage, wrong).await;
}

/// A login that nobody has.
const NOBODY: &str = "nobody-at-all";

/// Requests that name a person: whether another tenant's people exist is told to nobody, neither by a refusal nor by
/// an empty list.
async fn by_login(stage: &Stage, wrong: &mut Vec<String>) {
    let Stage { http, world, .. } = stage;
    let site = format!("/sites/{}", world.torino);
    let (start, end) = stage.fresh.slot();
    let booking = |resource: &str, owner: &str| json!({"title": "x", "start": start, "end": end, "owner": owner, "resources": [{"resource": resource}]});
    let own =
        json!({"title": "x", "start": start, "end": end, "resources": [{"resource": "gpu-01"}]});
    let own = http
        .make(&world.who("ada"), &format!("{site}/reservations"), &own)
        .await;
    let own = own["id"].as_str().expect("an id").to_owned();
    let project = json!({"name": stage.fresh.name(), "title": "A project"});
    let project = http
        .make(&stage.root, &format!("{site}/projects"), &project)
        .await;
    let members = format!(
        "{site}/projects/{}/members",
        project["id"].as_str().expect("an id")
    );
    type Ask<'a> = (
        &'static str,
        Box<dyn Fn(&str) -> String + 'a>,
        Box<dyn Fn(&str) -> Option<Value> + 'a>,
    );
    let path = |text: &str| {
        let text = text.to_owned();
        Box::new(move |login: &str| text.replace("LOGIN", login)) as Box<dyn Fn(&str) -> String>
    };
    let no_body = || Box::new(|_: &str| None) as Box<dyn Fn(&str) -> Option<Value>>;
    let requests: Vec<Ask> = vec![
        (
            "GET",
            path(&format!("{site}/reservations?owner=LOGIN")),
            no_body(),
        ),
        (
            "GET",
            path(&format!("{site}/series?owner=LOGIN")),
            no_body(),
        ),
        (
            "GET",
            path(&format!("{site}/workloads?owner=LOGIN")),
            no_body(),
        ),
        (
            "GET",
            path(&format!("{site}/sessions?owner=LOGIN")),
            no_body(),
        ),
        ("GET", path(&format!("{site}/audit?actor=LOGIN")), no_body()),
        ("DELETE", path(&format!("{site}/members/LOGIN")), no_body()),
        ("PUT", path(&format!("{members}/LOGIN")), no_body()),
        ("DELETE", path(&format!("{members}/LOGIN")), no_body()),
        (
            "POST",
            path(&format!("{site}/reservations")),
            Box::new(|login| Some(booking("gpu-02", login))),
        ),
        (
            "POST",
            path(&format!("{site}/reservations/{own}/hand-over")),
            Box::new(|login| Some(json!({"to": login}))),
        ),
    ];
    for caller in ["ada", "adele"] {
        let who = world.who(caller);
        for (method, path, body) in &requests {
            let ask = async |login: &str| -> Answer {
                let request = http.request(&who, method, &path(login));
                let request = match body(login) {
                    Some(body) => request.json(&body),
                    None => request,
                };
                http.send(request).await
            };
            let (real, none) = (ask("bruno").await, ask(NOBODY).await);
            let hidden = real.text.replace("bruno", NOBODY);
            if (real.status, &hidden) != (none.status, &none.text) {
                wrong.push(format!(
                    "{method} {} by {caller}: {real:?} / {none:?}",
                    path("LOGIN")
                ));
            }
        }
    }
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
