//! Visits to sessions: what is over is swept, in batches that others do not wait long for.

use berth_model::person::{Person, PersonState};
use berth_model::session::{Access, Session, State, Visit};
use berth_model::{PersonId, SessionId, SignInId, TokenId, VisitId};
use berth_store::{Store, idempotency, people, sessions, visits};
use jiff::Timestamp;

use crate::support::lab::Lab;
use crate::support::{Home, fresh_id, hour, on_both, transact};

on_both!(
    visits_that_ended_long_ago_are_deleted_in_batches,
    a_code_that_nobody_used_is_deleted_and_the_key_of_an_ended_visit_is_forgotten,
    visits_that_would_outlive_their_token_end_with_the_upgrade,
);

struct Visited {
    person: PersonId,
    session: SessionId,
}

async fn visited(home: &Home) -> Visited {
    let site = Lab::new(&home.store).await.site;
    let person = Person {
        id: PersonId(fresh_id()),
        login: "ada".parse().expect("a login"),
        display_name: "Ada".parse().expect("a text"),
        email: None,
        time_zone: "Europe/Rome".parse().expect("a time zone"),
        global_admin: false,
        state: PersonState::Active,
        version: 1,
        created_at: hour(0),
    };
    let session = Session {
        id: SessionId(fresh_id()),
        site,
        owner: person.id,
        project: None,
        name: "thesis".parse().expect("a name"),
        label: "k3v9xwbe8rv5w2n9".to_owned(),
        profile: "notebook".parse().expect("a name"),
        environment: None,
        inside: None,
        state: State::Ready,
        workload: None,
        said: None,
        shared: Default::default(),
        since: hour(0),
        active_at: hour(0),
        kept_until: None,
        warned_at: None,
        lends_since: None,
        memory_kills: 0,
        created_at: hour(0),
        version: 1,
    };
    transact(&home.store, async |tx| {
        people::insert(tx, &person).await?;
        sessions::insert(tx, &session).await
    })
    .await
    .expect("a session");
    Visited {
        person: person.id,
        session: session.id,
    }
}

impl Visited {
    /// A visit that began with a code; `number` makes its hashes.
    async fn invite(&self, home: &Home, number: u8, expires_at: Timestamp) {
        self.insert(home, number, expires_at, None, None).await;
    }

    async fn insert(
        &self,
        home: &Home,
        number: u8,
        expires_at: Timestamp,
        sign_in: Option<SignInId>,
        token: Option<TokenId>,
    ) {
        let visit = Visit {
            id: VisitId(fresh_id()),
            session: self.session,
            person: self.person,
            sign_in,
            token,
            access: Access::Edit,
            reason: None,
            began: hour(0),
            expires_at,
        };
        transact(&home.store, async |tx| {
            visits::insert(tx, &visit, &[number], hour(1)).await
        })
        .await
        .expect("a visit");
    }

    async fn enter(&self, home: &Home, number: u8, expires_at: Timestamp) {
        self.invite(home, number, expires_at).await;
        self.redeem(home, number).await;
    }

    async fn redeem(&self, home: &Home, number: u8) {
        let entered = transact(&home.store, async |tx| {
            visits::redeem(tx, self.session, &[number], &[number, 1], hour(0)).await
        });
        assert!(entered.await.expect("an answer").is_some());
    }

    async fn known(&self, home: &Home) -> Vec<Timestamp> {
        let mut conn = home.read().await;
        let known = visits::of_session(&mut conn, self.session, 100).await;
        let mut ends: Vec<_> = known
            .expect("visits")
            .iter()
            .map(|visit| visit.expires_at)
            .collect();
        ends.sort();
        ends
    }
}

async fn sweep(home: &Home, now: Timestamp, before: Timestamp, limit: u64) -> u64 {
    transact(&home.store, async |tx| {
        visits::sweep(tx, now, before, limit).await
    })
    .await
    .expect("a sweep")
}

async fn visits_that_ended_long_ago_are_deleted_in_batches(home: &Home) {
    let visited = visited(home).await;
    for number in 0..7 {
        visited
            .enter(home, number, hour(10 + i64::from(number)))
            .await;
    }
    // The keys of all seven are forgotten first.
    assert_eq!(sweep(home, hour(100), hour(0), 10).await, 7);
    assert_eq!(sweep(home, hour(100), hour(15), 2).await, 2);
    let left: Vec<_> = (12..17).map(hour).collect();
    assert_eq!(visited.known(home).await, left, "the oldest go first");
    assert_eq!(sweep(home, hour(100), hour(15), 2).await, 2);
    assert_eq!(sweep(home, hour(100), hour(15), 2).await, 1);
    assert_eq!(sweep(home, hour(100), hour(15), 2).await, 0);
    assert_eq!(visited.known(home).await, [hour(15), hour(16)]);
    let ahead = transact(&home.store, async |tx| {
        visits::sweep(tx, hour(1), hour(2), 2).await
    });
    assert!(ahead.await.is_err(), "no sweep deletes what is not over");
}

async fn a_code_that_nobody_used_is_deleted_and_the_key_of_an_ended_visit_is_forgotten(
    home: &Home,
) {
    let visited = visited(home).await;
    visited.invite(home, 1, hour(50)).await;
    visited.enter(home, 2, hour(10)).await;
    visited.enter(home, 3, hour(50)).await;
    let codes = format!(
        "UPDATE visit SET reason = 'x' WHERE code_hash IS NOT NULL AND session = {}",
        match home.store.engine() {
            berth_store::Engine::Sqlite => format!("x'{}'", visited.session.0.simple()),
            berth_store::Engine::Postgres => format!("'{}'", visited.session.0),
        }
    );
    assert_eq!(home.raw(&codes).await.expect("an answer"), 1);
    assert_eq!(sweep(home, hour(20), hour(0), 10).await, 1);
    assert_eq!(home.raw(&codes).await.expect("an answer"), 0);
    assert_eq!(visited.known(home).await, [hour(10), hour(50)]);
    let mut conn = home.read().await;
    let of_key = async |conn: &mut berth_store::Conn, number: u8| {
        let keys = vec![vec![9, 9], vec![number, 1]];
        let found = visits::find(conn, visited.session, keys, hour(0)).await;
        let found = found.expect("an answer").pop();
        found.map(|(_, visit)| visit.expires_at)
    };
    assert_eq!(of_key(&mut conn, 2).await, None);
    assert_eq!(of_key(&mut conn, 3).await, Some(hour(50)));
}

/// What the migration is called.
const END_OF_OLDER_SECRETS: u32 = 45;

/// Before visits knew their token, those that a token had opened named nothing that they end with.
async fn visits_that_would_outlive_their_token_end_with_the_upgrade(home: &Home) {
    let visited = visited(home).await;
    let far = hour(1_000_000);
    let (sign_in, token) = (Some(SignInId(fresh_id())), Some(TokenId(fresh_id())));
    for (number, sign_in, token) in [(1, sign_in, None), (2, None, token), (3, None, None)] {
        visited.insert(home, number, far, sign_in, token).await;
        visited.redeem(home, number).await;
    }
    transact(&home.store, async |tx| {
        idempotency::claim(tx, visited.person, "key", &[7; 32], "x", hour(0)).await
    })
    .await
    .expect("a key");
    let undo = format!("DELETE FROM _sqlx_migrations WHERE version = {END_OF_OLDER_SECRETS}");
    assert_eq!(home.raw(&undo).await.expect("an answer"), 1);
    let upgraded = Store::open(&home.url, 2).await.expect("it upgrades");
    let mut conn = upgraded.read().await.expect("a connection");
    for (number, stands) in [(1, true), (2, true), (3, false)] {
        let keys = vec![vec![number, 1]];
        let found = visits::find(&mut conn, visited.session, keys, hour(0)).await;
        assert_eq!(
            found.expect("an answer").len(),
            usize::from(stands),
            "{number}"
        );
    }
    let ends = visited.known(home).await;
    assert_eq!(ends[1..], [far, far]);
    assert!(ends[0] < far, "it has ended");
    let earlier = idempotency::get(&mut conn, visited.person, "key").await;
    let earlier = earlier
        .expect("an answer")
        .expect("the key is still claimed");
    assert_eq!(earlier.fingerprint, [0; 32]);
}
