//! Every operation of the API x every kind of caller, from one table (`matrix/table.rs`).
//!
//! The operations come from the OpenAPI document that the code produces: one without a row fails, and so does a row
//! without an operation. JupyterHub's routes, which are not in it, have a table of their own (`matrix/hub.rs`). What is
//! hidden from a caller must be answered word for word like what does not exist.

mod arrange;
mod callers;
mod contents;
mod elsewhere;
mod hub;
mod table;

use std::collections::BTreeSet;

use crate::support::ground::Ground;
use crate::support::http::{Answer, Http, Who};
use crate::support::world::{PASSWORD, World};
use arrange::{Operation, Stage, Targets, nonexistent, operations};
use berth_store::Engine;
use callers::{CALLERS, Caller, View};
use contents::Exhibit;
use jiff::Timestamp;
use serde_json::{Value, json};
use table::{Expected, Row, rows};

#[test]
fn every_operation_has_a_row_and_every_row_an_operation() {
    let known: BTreeSet<String> = operations().into_iter().map(|one| one.id).collect();
    let rows = rows();
    let listed: BTreeSet<String> = rows.iter().map(|row| row.operation.to_owned()).collect();
    let without_row: Vec<_> = known.difference(&listed).collect();
    let without_operation: Vec<_> = listed.difference(&known).collect();
    assert!(
        without_row.is_empty(),
        "add to matrix/table.rs: {without_row:?}"
    );
    assert!(
        without_operation.is_empty(),
        "gone from the API: {without_operation:?}"
    );
    for row in &rows {
        let (operation, letters) = (row.operation, row.expected().len());
        assert_eq!(
            letters,
            CALLERS.len(),
            "{operation} needs a letter for each caller"
        );
    }
}

#[test]
fn every_route_of_jupyterhubs_has_a_row_and_every_row_a_route() {
    hub::compare_with_the_router();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_caller_gets_what_the_table_says_on_sqlite() {
    walk(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_caller_gets_what_the_table_says_on_postgres() {
    walk(Engine::Postgres).await;
}

async fn walk(engine: Engine) {
    let ground = Ground::new(engine).await;
    let world = World::build(&ground.url).await;
    let server = ground.serve().await;
    let http = Http::new(&server.url(""));
    let browser = http.sign_in("root", PASSWORD).await;
    #[expect(
        clippy::disallowed_methods,
        reason = "the server runs on the machine's clock"
    )]
    let stage = Stage::new(http, world, Timestamp::now());
    let exhibit = Exhibit::put_up(&stage).await;
    let mut wrong = Vec::new();
    // What the site shows is changed once for each view, not once for each cell.
    for view in View::ALL {
        stage.show(view.as_str()).await;
        exhibit.check_outsider(&stage, view, &mut wrong).await;
        let outsider = Caller::Outsider(view);
        hub::check(&stage, &browser, &mut wrong, |caller| caller == outsider).await;
        check(&stage, &browser, &mut wrong, |caller| caller == outsider).await;
    }
    stage.show("nothing").await;
    exhibit.check_others(&stage, &mut wrong).await;
    elsewhere::check(&stage, &mut wrong).await;
    stale_versions(&stage, &mut wrong).await;
    let is_outsider = |caller| matches!(caller, Caller::Outsider(_));
    hub::check(&stage, &browser, &mut wrong, |caller| !is_outsider(caller)).await;
    check(&stage, &browser, &mut wrong, |caller| !is_outsider(caller)).await;
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Whoever may change something is refused, and nothing else, where they mean another version than the one there is.
async fn stale_versions(stage: &Stage, wrong: &mut Vec<String>) {
    let operations = operations();
    for row in rows() {
        let operation = operations.iter().find(|one| one.id == row.operation);
        let Some(operation) = operation.filter(|one| one.needs_version) else {
            continue;
        };
        let mut callers = CALLERS.into_iter().zip(row.expected());
        let mut may = |wanted| callers.any(|cell| cell == (wanted, Expected::Done));
        let caller = match may(Caller::Owner) {
            true => "ada",
            false => "root",
        };
        let targets = stage.targets(operation, &row).await;
        let body = row.body.map(|body| body(&stage.fresh));
        let who = stage.world.who(caller);
        let asked = stage.ask_for_stale(&who, operation, &row, &targets, body.as_ref());
        let answer = asked.await;
        if answer.status != 412 || answer.code() != "request.version_mismatch" {
            let (operation, about) = (row.operation, row.about);
            wrong.push(format!(
                "{operation} ({about}) on a stale version: {answer:?}"
            ));
        }
    }
}

/// Walks through the rows with those callers that are `wanted`.
async fn check(
    stage: &Stage,
    browser: &Who,
    wrong: &mut Vec<String>,
    wanted: impl Fn(Caller) -> bool,
) {
    let operations = operations();
    for row in rows() {
        let operation = operations.iter().find(|one| one.id == row.operation);
        let Some(operation) = operation else {
            continue;
        };
        for (caller, expected) in CALLERS.into_iter().zip(row.expected()) {
            if !wanted(caller) {
                continue;
            }
            let cell = Cell {
                stage,
                operation,
                row: &row,
                caller,
                who: caller.who(&stage.world, browser),
            };
            if let Err(complaint) = cell.check(expected).await {
                let (operation, about) = (row.operation, row.about);
                wrong.push(format!("{operation} ({about}), {caller:?}: {complaint}"));
            }
        }
    }
}

/// Actions that may find nothing to change; repeating them changes nothing either.
const IDLE: [&str; 5] = [
    "mark_notifications_read",
    "mark_notifications_unread",
    "refresh_closure",
    "check_in",
    "resume_session_profile",
];

struct Cell<'a> {
    stage: &'a Stage,
    operation: &'a Operation,
    row: &'a Row,
    caller: Caller,
    who: Who,
}

impl Cell<'_> {
    async fn check(&self, expected: Expected) -> Result<(), String> {
        let targets = self.stage.targets(self.operation, self.row).await;
        let body = self.row.body.map(|body| body(&self.stage.fresh));
        let key = (self.operation.takes_key && expected == Expected::Done)
            .then(|| self.stage.fresh.name());
        let answer = self.ask(&targets, body.as_ref(), key.as_deref()).await;
        let (status, code) = self.wanted(expected);
        let fits = answer.status == status && (code.is_empty() || answer.code() == code);
        if !fits {
            return Err(format!("{status} {code} expected, got {answer:?}"));
        }
        if self.caller.must_not_know_the_site() && names_the_site(self.stage, &answer) {
            return Err(format!("the answer speaks of the site: {answer:?}"));
        }
        if self.must_look_nonexistent(expected) {
            self.compare_with_nothing(&targets, body.as_ref(), &answer)
                .await?;
        }
        if let Some(key) = key.filter(|_| status < 300 && !self.row.query.contains("dry_run")) {
            self.repeat(&targets, body.as_ref(), &key, &answer).await?;
        }
        if self.row.is_undone && answer.status == self.row.done {
            self.decline(&answer).await;
        }
        Ok(())
    }

    /// The same request with the same key does nothing more, and is answered as the first one was.
    async fn repeat(
        &self,
        targets: &Targets,
        body: Option<&Value>,
        key: &str,
        first: &Answer,
    ) -> Result<(), String> {
        let again = self.ask(targets, body, Some(key)).await;
        let is_replayed = again.header("idempotency-replayed") == Some("true");
        let is_same = match first.status {
            // A create gives the object as it is now, without the secrets that are told once.
            201 => again.status == 200,
            status if IDLE.contains(&self.operation.id.as_str()) => again.status == status,
            status => (again.status, &again.text) == (status, &first.text),
        };
        let may_be_idle = IDLE.contains(&self.operation.id.as_str());
        match is_same && (is_replayed || may_be_idle) {
            true => Ok(()),
            false => Err(format!(
                "{first:?}, and repeated with its key {again:?} ({is_replayed})"
            )),
        }
    }

    async fn ask(&self, targets: &Targets, body: Option<&Value>, key: Option<&str>) -> Answer {
        let Cell { stage, who, .. } = self;
        stage
            .ask(who, self.operation, self.row, targets, body, key)
            .await
    }

    fn wanted(&self, expected: Expected) -> (u16, &'static str) {
        match expected {
            Expected::Done => (self.row.done, ""),
            Expected::NotFound => (404, "object.not_found"),
            Expected::NotAllowed => (403, "auth.not_allowed"),
            Expected::ScopeMissing => (403, "auth.scope_missing"),
            // Only what changes something needs the proof.
            Expected::Csrf => (403, "auth.csrf"),
            Expected::Conflict => (409, ""),
            Expected::SignIn => match self.caller {
                Caller::Suspended | Caller::RevokedToken => (401, "auth.token_invalid"),
                Caller::ExpiredToken => (401, "auth.token_expired"),
                _ => (401, "auth.sign_in_required"),
            },
        }
    }

    /// Whether the answer must not tell what exists from what does not. Nobody but global admins may learn that of
    /// accounts either, although they are told that they are not allowed.
    fn must_look_nonexistent(&self, expected: Expected) -> bool {
        match expected {
            Expected::NotFound | Expected::SignIn | Expected::Csrf => true,
            Expected::NotAllowed => self.operation.path.starts_with("/people"),
            _ => false,
        }
    }

    async fn compare_with_nothing(
        &self,
        targets: &Targets,
        body: Option<&Value>,
        real: &Answer,
    ) -> Result<(), String> {
        // Whoever may know the site is told apart whether it is the site that does not exist, or something in it.
        let knows_the_site = !self.caller.must_not_know_the_site() && targets.len() > 1;
        for variant in nonexistent(targets) {
            if knows_the_site && variant.get("site") != targets.get("site") {
                continue;
            }
            let nothing = self.ask(&variant, body, None).await;
            if (nothing.status, &nothing.text) != (real.status, &real.text) {
                return Err(format!(
                    "{real:?} where it exists, {nothing:?} where nothing does: {variant:?}"
                ));
            }
        }
        Ok(())
    }

    /// Makes room for the next who asks to join.
    async fn decline(&self, answer: &Answer) {
        let (site, request) = (&self.stage.world.torino, answer.json()["id"].clone());
        let request = request.as_str().expect("an id");
        let path = format!("/sites/{site}/join-requests/{request}/decline");
        let declined = self
            .stage
            .http
            .post(&self.stage.root, &path, &json!({}))
            .await;
        declined.expect(200);
    }
}

fn names_the_site(stage: &Stage, answer: &Answer) -> bool {
    let text = answer.text.to_lowercase();
    text.contains("torino") || text.contains(&stage.world.torino)
}
