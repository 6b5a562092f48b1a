//! Two servers on one PostgreSQL: whoever is asked, there is one timeline; and one of them may die at any moment.

use std::time::Duration;

use crate::support::SOON;
use crate::support::ground::Ground;
use crate::support::http::{Answer, Http, Who};
use crate::support::world::World;
use berth_api::client::{Client, Credential, EventStream};
use berth_api::events::EventStreamQuery;
use berth_store::Engine;
use berth_testkit::server::BerthServer;
use berth_testkit::wait;
use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// How late a reservation may start when the server that was to start it is dead: until its lease has run out, and
/// the other has looked.
const TAKE_OVER: Duration = Duration::from_secs(20);

struct Pair {
    ground: Ground,
    world: World,
    servers: [BerthServer; 2],
    apis: [Http; 2],
}

impl Pair {
    async fn start() -> Self {
        let ground = Ground::new(Engine::Postgres).await;
        let world = World::build(&ground.url).await;
        let servers = [ground.serve().await, ground.serve().await];
        let apis = [0, 1].map(|number: usize| Http::new(&servers[number].url("")));
        Self {
            ground,
            world,
            servers,
            apis,
        }
    }

    fn count(&self, query: &str) -> u64 {
        let database = self.ground.database.as_ref().expect("PostgreSQL");
        let printed = database.execute(query).expect("an answer");
        printed.parse().expect("a number")
    }

    /// The server that runs the controllers; the other stands by.
    async fn holder(&self) -> usize {
        let runs =
            |server: &BerthServer| server.log().contains("runs the controller `reservations`");
        wait::some("a server to run the controllers", SOON, async || {
            self.servers.iter().position(runs)
        })
        .await
    }

    async fn listen(&self, number: usize) -> EventStream {
        let token = Credential::Token(self.world.token("root").into());
        let client = Client::new(&self.servers[number].url(""), token).expect("a client");
        let stream = client.events_stream(&EventStreamQuery::default()).await;
        stream.expect("a stream")
    }

    /// What every reader relies on: numbers from 1 on without a gap, each once, in events and in the audit log.
    async fn expect_numbers_without_gaps(&self) {
        for table in ["event", "audit_entry"] {
            wait::until("everything to be numbered", SOON, async || {
                self.count(&format!(
                    "SELECT count(*) FROM {table} WHERE number IS NULL"
                )) == 0
            })
            .await;
            let (all, distinct, last) = (
                self.count(&format!("SELECT count(*) FROM {table}")),
                self.count(&format!("SELECT count(DISTINCT number) FROM {table}")),
                self.count(&format!("SELECT max(number) FROM {table}")),
            );
            assert_eq!((all, distinct), (last, last), "{table}");
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the servers run on the machine's clock"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

async fn book(api: &Http, who: &Who, resource: &str, start: Timestamp, end: Timestamp) -> Answer {
    let body = json!({
        "title": "two servers", "start": start.to_string(), "end": end.to_string(),
        "resources": [{"resource": resource}],
    });
    api.post(who, "/sites/torino/reservations", &body).await
}

fn id(answer: &Answer) -> String {
    answer.json()["id"].as_str().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn bookings_through_both_never_conflict_and_each_hears_of_the_others() {
    let pair = Pair::start().await;
    let mut streams = [pair.listen(0).await, pair.listen(1).await];
    let start = now() + SignedDuration::from_hours(24);
    let clients = (0..16).map(|number: usize| {
        let api = pair.apis[number % 2].clone();
        let who = pair.world.who(["ada", "bob", "adele", "root"][number % 4]);
        async move {
            let mut accepted = Vec::new();
            // Everybody wants the same hours of the same machines, a rack among them, in an order of their own.
            for attempt in 0..12 {
                let place = (number * 7 + attempt * 5) % 24;
                let resource = ["gpu-01", "gpu-02", "rack-a"][(number + attempt) % 3];
                let from =
                    start + SignedDuration::from_mins(30 * i64::try_from(place).expect("small"));
                let answer = book(
                    &api,
                    &who,
                    resource,
                    from,
                    from + SignedDuration::from_hours(1),
                )
                .await;
                match answer.status {
                    201 => accepted.push(id(&answer)),
                    409 => assert_eq!(answer.code(), "reservation.conflict"),
                    other => panic!("{other}: {}", answer.text),
                }
            }
            accepted
        }
    });
    let accepted = futures::future::join_all(clients.map(tokio::spawn)).await;
    let accepted: Vec<String> = accepted
        .into_iter()
        .flat_map(|ids| ids.expect("no panic"))
        .collect();
    assert!(accepted.len() > 5, "too few to mean anything: {accepted:?}");

    // Looked at from outside: no two claims of one machine, or of it and its rack, at one time.
    let overlaps = "SELECT count(*) FROM claim a JOIN claim b ON a.id < b.id AND a.starts < b.ends AND b.starts < a.ends \
        JOIN resource ra ON ra.id = a.resource JOIN resource rb ON rb.id = b.resource \
        WHERE a.standing = 'holding' AND b.standing = 'holding' \
        AND (ra.id = rb.id OR ra.parent = rb.id OR rb.parent = ra.id)";
    assert_eq!(pair.count(overlaps), 0);
    let stored = pair.count("SELECT count(*) FROM reservation WHERE state = 'confirmed'");
    assert_eq!(
        stored,
        accepted.len() as u64,
        "every accepted booking stands, and no other"
    );

    // Each server's listeners hear of all of them, once and in the same order.
    let mut heard = [Vec::new(), Vec::new()];
    for (stream, heard) in streams.iter_mut().zip(&mut heard) {
        while heard.len() < accepted.len() {
            let next = tokio::time::timeout(SOON, stream.next()).await;
            let event = next
                .expect("another event in time")
                .expect("a stream")
                .expect("an event");
            if event.kind.as_str() == "reservation.created" {
                heard.push(event.subject);
            }
        }
    }
    assert_eq!(heard[0], heard[1]);
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    let [first, _] = heard;
    assert_eq!(sorted(first), sorted(accepted));
    pair.expect_numbers_without_gaps().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_one_that_runs_the_controllers_dies_the_other_takes_over() {
    let mut pair = Pair::start().await;
    let (ada, root) = (pair.world.who("ada"), pair.world.who("root"));
    let holder = pair.holder().await;
    let survivor = 1 - holder;
    let mut stream = pair.listen(survivor).await;

    // Booked on the one that dies, to start when it is dead.
    let start = now() + SignedDuration::from_secs(2);
    let end = start + SignedDuration::from_hours(1);
    let booked = book(&pair.apis[holder], &ada, "gpu-01", start, end)
        .await
        .expect(201);
    let later = start + SignedDuration::from_hours(48);
    let waits = book(
        &pair.apis[holder],
        &ada,
        "gpu-02",
        later,
        later + SignedDuration::from_hours(1),
    );
    let waits = waits.await.expect(201);
    pair.servers[holder].kill9().expect("kill it");

    // Meanwhile the other answers, and does not forget what the dead one promised.
    let twice = book(&pair.apis[survivor], &ada, "gpu-01", start, end).await;
    assert_eq!(twice.code(), "reservation.conflict");

    let path = format!("/sites/torino/reservations/{}", id(&booked));
    let api = &pair.apis[survivor];
    wait::until("the reservation to start", TAKE_OVER, async || {
        api.get(&ada, &path).await.json()["state"] == "active"
    })
    .await;
    let started = api.get(&ada, &path).await.json();
    let history = api
        .get(&ada, &format!("{path}/history"))
        .await
        .expect(200)
        .json();
    let steps: Vec<&Value> = history["items"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| &step["to"])
        .collect();
    assert_eq!(
        sorted_states(&steps),
        ["active", "confirmed", "starting"],
        "each step once"
    );
    assert_eq!(started["start"], start_of(&booked), "its time did not move");
    let path = format!("/sites/torino/reservations/{}", id(&waits));
    assert_eq!(api.get(&ada, &path).await.json()["state"], "confirmed");

    // The listener of the survivor heard all of it, the start included, without a gap.
    let mut last = None;
    loop {
        let next = tokio::time::timeout(SOON, stream.next()).await;
        let event = next
            .expect("another event in time")
            .expect("a stream")
            .expect("an event");
        assert!(
            last.is_none_or(|last| event.number == last + 1),
            "{last:?} {event:?}"
        );
        last = Some(event.number);
        if event.kind.as_str() == "reservation.started" {
            break;
        }
    }

    // The dead one comes back, finds its work done, and does nothing twice.
    pair.servers[holder].restart().await.expect("start again");
    let api = &pair.apis[holder];
    let cancelled = api
        .post(&ada, &format!("{path}/cancel"), &json!({}))
        .await
        .expect(200);
    assert_eq!(cancelled.json()["state"], "cancelled");
    pair.expect_numbers_without_gaps().await;
    let verified = api.get(&root, "/audit/verify").await.expect(200).json();
    assert_eq!(verified["intact"], true, "{verified}");
}

fn sorted_states<'a>(steps: &[&'a Value]) -> Vec<&'a str> {
    let mut states: Vec<&str> = steps.iter().filter_map(|state| state.as_str()).collect();
    states.sort_unstable();
    states
}

fn start_of(answer: &Answer) -> Value {
    answer.json()["start"].clone()
}
