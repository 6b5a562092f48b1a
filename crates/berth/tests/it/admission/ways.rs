//! Going each way to a claim, with the conditions in place.

use std::collections::BTreeSet;
use std::fmt;

use berth_testkit::naive::Reason;
use berth_testkit::wait;
use serde_json::{Value, json};

use super::case::{Case, Condition, Outcome, Way};
use super::lab::{Lab, Stage};
use crate::support::SOON;
use crate::support::http::Answer;

/// A week, in minutes: far enough away to be in nobody's way.
const WEEK: i64 = 7 * 24 * 60;

/// What the server answered, and what it should have.
pub struct Found {
    answered: Answered,
    expected: Outcome,
}

enum Answered {
    State(String),
    Code(String),
}

impl Found {
    pub fn agrees(&self) -> bool {
        match (&self.expected, &self.answered) {
            (Outcome::Confirmed, Answered::State(state)) => {
                ["confirmed", "planned"].contains(&state.to_lowercase().as_str())
            }
            (Outcome::Pending, Answered::State(state)) => {
                state.eq_ignore_ascii_case("pending_approval")
            }
            // It goes on waiting.
            (Outcome::Refused(_), Answered::State(state)) => state.eq_ignore_ascii_case("waiting"),
            (Outcome::Refused(reasons), Answered::Code(code)) => {
                codes(reasons).contains(code.as_str())
            }
            _ => false,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answered = match &self.answered {
            Answered::State(state) => format!("it is {state}"),
            Answered::Code(code) => format!("refused by {code}"),
        };
        write!(f, "{answered}, and should be {:?}", self.expected)
    }
}

/// The problem codes that a refusal for these reasons may have.
fn codes(reasons: &BTreeSet<Reason>) -> BTreeSet<&'static str> {
    let codes = reasons.iter().flat_map(|reason| match reason {
        Reason::OutOfService => ["reservation.status", "reservation.no_room"],
        Reason::Closed => ["reservation.blackout", "reservation.blackout"],
        Reason::Rule => ["policy.refused", "policy.refused"],
        Reason::Taken => ["reservation.conflict", "reservation.no_room"],
        Reason::Approval => ["auth.not_allowed", "auth.not_allowed"],
    });
    let in_the_way = reasons
        .contains(&Reason::Taken)
        .then_some("maintenance.in_the_way");
    codes.chain(in_the_way).collect()
}

impl Lab {
    pub async fn try_case(&self, case: &Case) -> Found {
        let stage = self.stage(case).await;
        stage.run_yielding_jobs().await;
        let base = stage.prepare().await;
        stage.set_conditions().await;
        let answered = stage.go(base).await;
        Found {
            answered,
            expected: case.judge(stage.times),
        }
    }
}

impl Stage<'_> {
    fn wanted(&self) -> (i64, i64) {
        (self.times.from, self.times.to)
    }

    /// The booking that the way begins with, if it begins with one.
    async fn prepare(&self) -> Option<String> {
        let (from, to) = self.wanted();
        let amount = self.case.amount();
        match self.case.way {
            Way::Named | Way::Any | Way::Series | Way::HoldAndTake | Way::Maintenance => None,
            Way::ChangeOfTime => Some(
                self.book("ada", "a", (from + WEEK, to + WEEK), amount)
                    .await,
            ),
            Way::ChangeOfResources => Some(self.book("ada", "b", (from, to), amount).await),
            Way::Extend => Some(self.book("ada", "a", (from - 60, from), amount).await),
            Way::HandOver => Some(self.book("ada", "a", (from, to), amount).await),
            Way::Waitlist => {
                let blocker = self.book("bob", "a", (from, from + 30), None).await;
                let mut body = self.booking("a", (from, to), amount);
                body["wait"] = json!("booking");
                let waiting = self.make("ada", "reservations", &body).await;
                assert_eq!(
                    waiting["state"].as_str().map(str::to_lowercase).as_deref(),
                    Some("waiting")
                );
                let waiting = waiting["id"].as_str().expect("an id");
                Some(format!("{waiting} {blocker}"))
            }
            Way::Replacement => {
                self.set_status("b", "MAINTENANCE").await;
                let booked = self.make("ada", "reservations/any", &self.any()).await;
                self.set_status("b", "ACTIVE").await;
                Some(booked["id"].as_str().expect("an id").to_owned())
            }
        }
    }

    fn any(&self) -> Value {
        let (from, to) = self.wanted();
        let mut wish = json!({
            "what": "node", "variants": [{ "for": format!("PT{}M", to - from) }],
            "earliest": self.at(from), "before": self.at(to),
        });
        if let Some(amount) = self.case.amount() {
            wish["amount"] = json!(amount);
        }
        json!({ "title": "a case", "wish": wish })
    }

    async fn set_conditions(&self) {
        for condition in &self.case.conditions {
            self.set_bookings(*condition).await;
        }
        let policy = self.policy();
        if policy != json!({}) {
            let path = self.path("policy?type=node");
            self.lab
                .put("adele", &path, &json!({ "policy": policy }))
                .await;
        }
        if self.case.has(Condition::Blackout) {
            let (from, to) = self.wanted();
            let stamp = |at: i64| self.at(at).replace(['-', ':'], "");
            let file = format!(
                "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//case//EN\r\nBEGIN:VEVENT\r\nUID:1@case\r\n\
                 DTSTAMP:{0}\r\nDTSTART:{1}\r\nDTEND:{2}\r\nSUMMARY:Power cut\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
                stamp(from),
                stamp(from + 30),
                stamp(to)
            );
            let body = json!({ "name": "power", "kind": "blackouts", "file": file });
            self.make("adele", "closures", &body).await;
        }
        if self.case.has(Condition::OutOfService) {
            let resource = if self.case.way == Way::Replacement {
                "b"
            } else {
                "a"
            };
            self.set_status(resource, "MAINTENANCE").await;
        }
    }

    /// What others have booked.
    async fn set_bookings(&self, condition: Condition) {
        let (from, to) = self.wanted();
        // Nothing else can stand where the booking stands that is handed over.
        let is_there = self.case.way == Way::HandOver;
        let (rack, node) = match self.case.way {
            Way::Replacement => ("rack-b", "b"),
            _ => ("rack-a", "a"),
        };
        // The start is taken already by what the waiting booking waits for.
        let start = if self.case.way == Way::Waitlist {
            from + 30
        } else {
            from
        };
        match condition {
            Condition::LimitPerPerson => {
                let owner = if is_there { "bob" } else { "ada" };
                self.resource("other", "node", None).await;
                self.book(owner, "other", (from, to), None).await;
            }
            Condition::Buffer => {
                self.book("bob", node, (to + 30, to + 90), None).await;
            }
            Condition::Amount if !is_there => {
                self.book("bob", node, (start, to), Some(3)).await;
            }
            Condition::ParentBooked if !is_there => {
                self.book("bob", rack, (start, to), None).await;
            }
            Condition::ChildBooked if !is_there => {
                self.book("bob", &format!("{node}.gpu"), (start, to), None)
                    .await;
            }
            _ => {}
        }
    }

    fn policy(&self) -> Value {
        let mut policy = serde_json::Map::new();
        for condition in &self.case.conditions {
            let (rule, value) = match condition {
                Condition::OpeningHours => {
                    let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
                    let open = days.map(|day| (day.to_owned(), json!(["08:00-11:00"])));
                    let open: serde_json::Map<_, _> = open.into_iter().collect();
                    ("opening_hours", json!(open))
                }
                Condition::Length => ("length_max", json!("1h")),
                Condition::Notice => ("notice", json!("500d")),
                Condition::LimitPerPerson => ("active_bookings", json!(1)),
                Condition::Approval => {
                    let time_out = json!({ "after": "1h", "outcome": "reject" });
                    ("approval", json!({ "time_out": time_out }))
                }
                Condition::Buffer => ("buffer_after", json!("1h")),
                _ => continue,
            };
            policy.insert(rule.to_owned(), value);
        }
        Value::Object(policy)
    }

    async fn go(&self, base: Option<String>) -> Answered {
        let (from, to) = self.wanted();
        let amount = self.case.amount();
        let base = base.unwrap_or_default();
        let of_base = |act: &str| format!("reservations/{base}{act}");
        match self.case.way {
            Way::Named => {
                self.ask(
                    "ada",
                    "POST",
                    "reservations",
                    self.booking("a", (from, to), amount),
                )
                .await
            }
            Way::Any => {
                self.ask("ada", "POST", "reservations/any", self.any())
                    .await
            }
            Way::Series => {
                let mut body = self.booking("a", (from, to), amount);
                body["rule"] = json!("FREQ=WEEKLY;COUNT=2");
                self.ask("ada", "POST", "series", body).await
            }
            Way::HoldAndTake => {
                let mut body = self.booking("a", (from, to), amount);
                body["hold"] = json!(true);
                let path = self.path("reservations");
                let held = self.lab.http.post(&self.lab.who("ada"), &path, &body).await;
                if held.status != 201 {
                    self.let_go(&held).await;
                    return answered(&held);
                }
                let held = held.json();
                let take = format!("reservations/{}/take", held["id"].as_str().expect("an id"));
                self.ask("ada", "POST", &take, json!({})).await
            }
            Way::ChangeOfTime => {
                let body = json!({ "start": self.at(from), "end": self.at(to) });
                self.ask("ada", "PATCH", &of_base(""), body).await
            }
            Way::ChangeOfResources => {
                let body = json!({ "resources": [{ "resource": "a", "amount": amount }] });
                self.ask("ada", "PATCH", &of_base(""), body).await
            }
            Way::Extend => {
                let body = json!({ "until": self.at(to) });
                self.ask("ada", "POST", &of_base("/extend"), body).await
            }
            Way::HandOver => {
                self.ask(
                    "ada",
                    "POST",
                    &of_base("/hand-over"),
                    json!({ "to": "bob" }),
                )
                .await
            }
            Way::Waitlist => self.make_room(&base).await,
            Way::Replacement => self.fail_the_node(&base).await,
            Way::Maintenance => {
                let body = json!({
                    "title": "a case", "resources": ["a"],
                    "start": self.at(from), "end": self.at(to),
                });
                let who = self.lab.who("adele");
                let planned = self
                    .lab
                    .http
                    .post(&who, &self.path("maintenance"), &body)
                    .await;
                match planned.status {
                    201 => Answered::State("planned".into()),
                    _ => answered(&planned),
                }
            }
        }
    }

    async fn ask(&self, who: &str, method: &str, rest: &str, body: Value) -> Answered {
        let request = self
            .lab
            .http
            .request(&self.lab.who(who), method, &self.path(rest));
        let request = match method {
            "PATCH" => request.header("if-match", "*"),
            _ => request,
        };
        answered(&self.lab.http.send(request.json(&body)).await)
    }

    async fn state(&self, who: &str, id: &str) -> String {
        let path = self.path(&format!("reservations/{id}"));
        let read = self
            .lab
            .http
            .get(&self.lab.who(who), &path)
            .await
            .expect(200);
        read.json()["state"].as_str().expect("a state").to_owned()
    }

    async fn cancel(&self, who: &str, id: &str) {
        let path = self.path(&format!("reservations/{id}/cancel"));
        let who = self.lab.who(who);
        self.lab
            .http
            .post(&who, &path, &json!({}))
            .await
            .expect(200);
    }

    /// Cancels the holds that keep a refusal's alternatives.
    async fn let_go(&self, refusal: &Answer) {
        let refusal = refusal.json();
        let alternatives = refusal["alternatives"].as_array();
        for alternative in alternatives.into_iter().flatten() {
            let parts = alternative["parts"].as_array().into_iter().flatten();
            let holds = alternative["holds"].as_array().into_iter().flatten();
            for (part, hold) in parts.zip(holds) {
                let site = part["site"]["name"].as_str().expect("a site");
                let hold = hold.as_str().expect("an id");
                let path = format!("/sites/{site}/reservations/{hold}/cancel");
                let who = self.lab.who("ada");
                self.lab
                    .http
                    .post(&who, &path, &json!({}))
                    .await
                    .expect(200);
            }
        }
    }

    /// Cancels the booking in the way. Who waits is served in order, so once a later one has been served that
    /// waits for something else, this one has been looked at too.
    async fn make_room(&self, base: &str) -> Answered {
        let (waiting, blocker) = base.split_once(' ').expect("two ids");
        let (from, _) = self.wanted();
        let later = (from + WEEK, from + WEEK + 30);
        let in_the_way = self.book("ada", "m", later, None).await;
        let mut body = self.booking("m", later, None);
        body["wait"] = json!("booking");
        let marker = self.make("bob", "reservations", &body).await;
        let marker = marker["id"].as_str().expect("an id");
        self.cancel("bob", blocker).await;
        self.cancel("ada", &in_the_way).await;
        wait::until("the later one to be served", SOON, async || {
            !self
                .state("bob", marker)
                .await
                .eq_ignore_ascii_case("waiting")
        })
        .await;
        Answered::State(self.state("ada", waiting).await)
    }

    /// Takes the node out of service, and waits until the booking has another or its owner is notified of trouble.
    async fn fail_the_node(&self, id: &str) -> Answered {
        self.set_status("a", "UNAVAILABLE").await;
        let path = self.path(&format!("reservations/{id}"));
        let who = self.lab.who("ada");
        let events = format!("/events?site={}&limit=500", self.site);
        wait::some("the booking's fate", SOON, async || {
            let now = self.lab.http.get(&who, &path).await.expect(200).json();
            if now["resources"][0]["resource"]["name"] == "b" {
                return Some(Answered::State(
                    now["state"].as_str().expect("a state").to_owned(),
                ));
            }
            let events = self.lab.http.get(&who, &events).await.expect(200).json();
            let is_trouble = |one: &Value| one["kind"] == "reservation.troubled";
            let all = events["items"].as_array().expect("events");
            let in_trouble = all.iter().any(is_trouble);
            in_trouble.then(|| Answered::Code("reservation.no_room".into()))
        })
        .await
    }
}

/// The state of what was made or changed, or the code of the refusal.
fn answered(answer: &Answer) -> Answered {
    if !(200..300).contains(&answer.status) {
        return Answered::Code(answer.code());
    }
    let body = answer.json();
    let state = body["state"]
        .as_str()
        .or_else(|| body["instances"][0]["state"].as_str());
    Answered::State(state.unwrap_or_default().to_owned())
}
