//! A server, and a site for each cell of the matrix.

use std::sync::atomic::{AtomicU64, Ordering};

use berth_store::Engine;
use berth_testkit::server::BerthServer;
use berth_testkit::wait;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};
use serde_json::{Value, json};

use super::case::{Case, Condition, Times, Way};
use crate::support::SOON;
use crate::support::ground::Ground;
use crate::support::http::{Http, Who};
use crate::support::world::World;

const ZONE: &str = "Europe/Rome";

pub struct Lab {
    pub http: Http,
    world: World,
    made: AtomicU64,
    _server: BerthServer,
    _ground: Ground,
}

/// One cell on its stage.
pub struct Stage<'a> {
    pub lab: &'a Lab,
    pub case: &'a Case,
    pub site: String,
    pub times: Times,
    origin: Timestamp,
}

impl Lab {
    pub async fn start(engine: Engine) -> Self {
        let ground = Ground::new(engine).await;
        let world = World::build(&ground.url).await;
        let settings = "rate_limit_per_s = 0\nqueue_backend = \"simulated\"";
        let server = ground.launch(settings).start().await;
        let server = server.expect("the server starts");
        Self {
            http: Http::new(&server.url("")),
            world,
            made: AtomicU64::new(0),
            _server: server,
            _ground: ground,
        }
    }

    pub fn who(&self, login: &str) -> Who {
        self.world.who(login)
    }

    pub async fn put(&self, who: &str, path: &str, body: &Value) {
        let request = self.http.request(&self.who(who), "PUT", path);
        let request = request.header("if-match", "*").json(body);
        self.http.send(request).await.expect(200);
    }

    /// A site with people, racks, nodes and their GPUs.
    pub async fn stage<'a>(&'a self, case: &'a Case) -> Stage<'a> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let site = format!("case-{number}");
        let body = json!({
            "name": site, "title": "A case", "time_zone": ZONE, "outsiders_see": "nothing",
        });
        self.http.make(&self.who("root"), "/sites", &body).await;
        for (login, role) in [
            ("adele", "site_admin"),
            ("ada", "member"),
            ("bob", "member"),
        ] {
            let path = format!("/sites/{site}/members/{login}");
            self.put("root", &path, &json!({ "role": role })).await;
        }
        let (origin, times) = times(case);
        let stage = Stage {
            lab: self,
            case,
            site,
            times,
            origin,
        };
        stage.stock().await;
        stage
    }
}

impl Stage<'_> {
    pub fn path(&self, rest: &str) -> String {
        format!("/sites/{}/{rest}", self.site)
    }

    /// A moment as the API writes it.
    pub fn at(&self, minute: i64) -> String {
        (self.origin + SignedDuration::from_mins(minute)).to_string()
    }

    pub async fn make(&self, who: &str, rest: &str, body: &Value) -> Value {
        let (http, who) = (&self.lab.http, self.lab.who(who));
        http.make(&who, &self.path(rest), body).await
    }

    async fn stock(&self) {
        for kind in ["rack", "node", "gpu", "cpu", "memory", "marker"] {
            let body = json!({ "name": kind, "title": kind, "colour": "#123456" });
            self.make("adele", "types", &body).await;
        }
        self.resource("m", "marker", None).await;
        let needs_other = [Way::ChangeOfResources, Way::Replacement].contains(&self.case.way);
        for (rack, node) in [("rack-a", "a"), ("rack-b", "b")] {
            if node == "a" || needs_other {
                self.resource(rack, "rack", None).await;
                self.resource(node, "node", Some(rack)).await;
                if self.case.has(Condition::Amount) {
                    continue;
                }
                for part in ["gpu", "cpu", "memory"] {
                    let name = format!("{node}.{part}");
                    self.resource(&name, part, Some(node)).await;
                }
            }
        }
    }

    pub async fn resource(&self, name: &str, kind: &str, parent: Option<&str>) {
        let mut body = json!({ "name": name, "type": kind, "parent": parent });
        if kind == "node" && self.case.has(Condition::Amount) {
            body["capacity"] = json!({ "amount": 4, "unit": "seat" });
        }
        if ["cpu", "memory"].contains(&kind) {
            body["capacity"] = json!({ "amount": 16, "unit": "part" });
        }
        self.make("adele", "resources", &body).await;
    }

    pub async fn set_status(&self, resource: &str, status: &str) {
        let path = self.path(&format!("resources/{resource}/status"));
        let body = json!({ "status": status, "reason": "a test" });
        let who = self.lab.who("adele");
        let request = self.lab.http.request(&who, "PATCH", &path);
        let request = request.header("if-match", "*").json(&body);
        self.lab.http.send(request).await.expect(200);
    }

    /// A booking of `resource`, and its id.
    pub async fn book(
        &self,
        who: &str,
        resource: &str,
        span: (i64, i64),
        amount: Option<u64>,
    ) -> String {
        let booked = self
            .make(who, "reservations", &self.booking(resource, span, amount))
            .await;
        booked["id"].as_str().expect("an id").to_owned()
    }

    pub fn booking(&self, resource: &str, (from, to): (i64, i64), amount: Option<u64>) -> Value {
        json!({
            "title": "a case", "start": self.at(from), "end": self.at(to),
            "resources": [{ "resource": resource, "amount": amount }],
        })
    }

    /// Jobs that yield, one on each GPU, from now until after the booking that is wanted.
    pub async fn run_yielding_jobs(&self) {
        if !self.case.has(Condition::YieldingJob) {
            return;
        }
        let settings = json!({ "roles": { "node": "node", "gpu": "gpu", "cpu": "cores", "memory": "memory" }, "limit_max": "PT8784H" });
        self.lab
            .put("adele", &self.path("queue/settings"), &settings)
            .await;
        let hours = ((self.times.to - self.times.now) / 60 + 2).min(8784);
        let nodes = match self.case.way {
            Way::ChangeOfResources | Way::Replacement => 2,
            _ => 1,
        };
        for _ in 0..nodes {
            let task = json!({ "cores_milli": 1000, "memory_mib": 1024, "gpus": { "count": 1 } });
            let body = json!({
                "title": "a job that yields", "class": "opportunistic",
                "program": { "command": ["sleep", "1000000000"] },
                "wishes": [{ "task": task, "limit": format!("PT{hours}H") }],
            });
            let job = self.make("bob", "workloads", &body).await;
            let path = self.path(&format!("workloads/{}", job["id"].as_str().expect("an id")));
            wait::until("the job to run", SOON, async || {
                let job = self.lab.http.get(&self.lab.who("bob"), &path).await.json();
                job["state"]
                    .as_str()
                    .is_some_and(|state| state.eq_ignore_ascii_case("running"))
            })
            .await;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server runs on the machine's clock"
)]
fn today() -> Zoned {
    Timestamp::now().to_zoned(TimeZone::get(ZONE).expect("a zone"))
}

/// Ten to twelve in four days; or, where the clocks change, one to four in the night in which they jump forward.
fn times(case: &Case) -> (Timestamp, Times) {
    let now = today();
    let wall = |day: &Zoned, hour: i8| {
        day.with()
            .time(Time::constant(hour, 0, 0, 0))
            .build()
            .expect("a time of that day")
    };
    let (start, end, jump) = if case.has(Condition::DaylightSaving) {
        let zone = now.time_zone().clone();
        let jump = zone.following(now.timestamp()).take(4).find(|change| {
            let before = zone.to_offset(change.timestamp() - SignedDuration::from_hours(1));
            let is_soon = change.timestamp() < now.timestamp() + SignedDuration::from_hours(24);
            !is_soon && change.offset().seconds() > before.seconds()
        });
        let jump = jump.expect("the clocks change twice a year").timestamp();
        let day = jump.to_zoned(zone);
        (wall(&day, 1), wall(&day, 4), Some(jump))
    } else {
        let day = now.checked_add(4.days()).expect("a day to come");
        (wall(&day, 10), wall(&day, 12), None)
    };
    let origin = start.timestamp();
    let minutes = |at: Timestamp| at.duration_since(origin).as_secs().div_euclid(60);
    let times = Times {
        now: minutes(now.timestamp()),
        from: 0,
        to: minutes(end.timestamp()),
        from_of_day: i64::from(start.hour()) * 60,
        jump: jump.map(|at| (minutes(at), 60)),
    };
    (origin, times)
}
