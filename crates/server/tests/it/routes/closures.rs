//! Closure calendars: brought in, read again, and what a blackout refuses.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::{HeaderMap, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::support::Lab;

const CLOSURES: &str = "/sites/torino/closures";
const RESERVATIONS: &str = "/sites/torino/reservations";

/// A calendar that closes from one moment to another.
fn calendar(title: &str, start: &str, end: &str) -> String {
    let stamp = |at: &str| {
        let at: Timestamp = at.parse().unwrap();
        at.strftime("%Y%m%dT%H%M%SZ").to_string()
    };
    format!(
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART:{}\r\nDTEND:{}\r\nSUMMARY:{title}\r\nEND:VEVENT\r\n\
         END:VCALENDAR\r\n",
        stamp(start),
        stamp(end)
    )
}

fn new(name: &str, kind: &str, file: &str) -> Value {
    json!({"name": name, "kind": kind, "file": file})
}

#[tokio::test]
async fn a_blackout_refuses_members_and_lets_admins_book() {
    let lab = Lab::new().await;
    let (ada, adele) = (lab.hand("ada"), lab.hand("adele"));
    let before = ada
        .post(RESERVATIONS, lab.booking(&["gpu-01"], 4..6))
        .await
        .is(201);
    let shut = calendar("Power cut, all halls", &lab.at(5), &lab.at(8));
    let made = adele
        .post(CLOSURES, new("campus", "blackouts", &shut))
        .await
        .is(201);
    assert_eq!(
        made["closed"][0],
        json!({"start": lab.at(5), "end": lab.at(8), "title": "Power cut, all halls"})
    );
    let holiday = calendar("Liberation day", &lab.at(8), &lab.at(20));
    adele
        .post(CLOSURES, new("days-off", "holidays", &holiday))
        .await
        .is(201);
    ada.post(CLOSURES, new("mine", "blackouts", &shut))
        .await
        .refuses(403, "auth.not_allowed");

    let refused = ada
        .post(RESERVATIONS, lab.booking(&["gpu-02"], 7..9))
        .await
        .refuses(409, "reservation.blackout");
    let detail = refused["detail"].as_str().unwrap();
    assert!(
        detail.contains("Power cut, all halls") && detail.contains("`campus`"),
        "{detail}"
    );
    assert!(detail.contains(&lab.at(8)), "{detail}");
    let dry = format!("{RESERVATIONS}?dry_run=true");
    let tried = ada.post(&dry, lab.booking(&["gpu-02"], 7..9)).await.is(200);
    assert_eq!(tried["accepted"], false);
    ada.post(RESERVATIONS, lab.booking(&["gpu-02"], 8..9))
        .await
        .is(201);
    adele
        .post(RESERVATIONS, lab.booking(&["gpu-02"], 6..7))
        .await
        .is(201);

    // What was booked before stays and may shrink; it may not take more of the closed time.
    let path = format!("{RESERVATIONS}/{}", before.id());
    ada.post(&format!("{path}/extend"), json!({"by": "PT30M"}))
        .await
        .refuses(409, "reservation.blackout");
    ada.knowing(&before)
        .patch(&path, json!({"title": "still mine"}))
        .await
        .is(200);
    let earlier = json!({"start": lab.at(3)});
    ada.with("if-match", "*")
        .patch(&path, earlier)
        .await
        .is(200);

    adele.delete(&format!("{CLOSURES}/campus")).await.is(204);
    ada.post(&format!("{path}/extend"), json!({"by": "PT30M"}))
        .await
        .is(200);
    let left = ada.get(CLOSURES).await.is(200);
    assert_eq!(left.each("name"), ["days-off"]);
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_in_words() {
    let lab = Lab::new().await;
    let adele = lab.hand("adele");
    let refused = |answer: super::support::Answer| {
        let refused = answer.refuses(422, "closure.unreadable");
        refused["detail"].as_str().unwrap().to_owned()
    };
    let html = adele.post(CLOSURES, new("x", "holidays", "<html>")).await;
    assert!(refused(html).contains("BEGIN:VCALENDAR"));
    let daily = |hour: u8| {
        format!(
            "BEGIN:VEVENT\nDTSTART:20260101T{hour:02}0000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY\nEND:VEVENT\n"
        )
    };
    let many: String = [0, 2, 4].map(daily).concat();
    let many = format!("BEGIN:VCALENDAR\n{many}END:VCALENDAR");
    let many = adele.post(CLOSURES, new("x", "holidays", &many)).await;
    assert!(refused(many).contains("more than 2000 times"));
    let inside =
        json!({"name": "x", "kind": "holidays", "address": "https://169.254.169.254/latest"});
    assert!(refused(adele.post(CLOSURES, inside).await).contains("private network"));
    for wrong in [
        json!({"name": "x", "kind": "holidays"}),
        json!({"name": "x", "kind": "holidays", "address": "file:///etc/hostname"}),
        json!({"name": "x", "kind": "sundays", "file": ""}),
    ] {
        adele
            .post(CLOSURES, wrong)
            .await
            .refuses(422, "request.invalid");
    }
    let good = calendar("x", &lab.at(1), &lab.at(2));
    adele
        .post(CLOSURES, new("x", "holidays", &good))
        .await
        .is(201);
    adele
        .post(CLOSURES, new("x", "holidays", &good))
        .await
        .refuses(409, "object.name_taken");
}

/// An institution's web server, whose answer a test can change.
#[derive(Clone, Default)]
struct Institution(Arc<Mutex<Said>>);

#[derive(Default)]
struct Said {
    status: u16,
    text: String,
    /// The tags that came with the requests so far.
    asked: Vec<Option<String>>,
}

impl Institution {
    async fn open() -> (Self, String) {
        let institution = Self::default();
        let router = Router::new()
            .route("/days.ics", get(Self::answer))
            .with_state(institution.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/days.ics", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (institution, address)
    }

    fn says(&self, status: u16, text: &str) {
        let mut said = self.0.lock().unwrap();
        (said.status, said.text) = (status, text.to_owned());
    }

    fn asked(&self) -> Vec<Option<String>> {
        self.0.lock().unwrap().asked.clone()
    }

    async fn answer(
        State(Self(said)): State<Self>,
        headers: HeaderMap,
    ) -> (StatusCode, [(&'static str, String); 1], String) {
        let mut said = said.lock().unwrap();
        let known = headers
            .get("if-none-match")
            .map(|tag| tag.to_str().unwrap().to_owned());
        let tag = format!("\"{}\"", said.text.len());
        said.asked.push(known.clone());
        let is_same = known.as_ref() == Some(&tag);
        let (status, body) = if is_same {
            (304, String::new())
        } else {
            (said.status, said.text.clone())
        };
        (StatusCode::from_u16(status).unwrap(), [("etag", tag)], body)
    }
}

#[tokio::test]
async fn an_address_is_read_again_and_trouble_keeps_the_last_good_times() {
    let lab = Lab::with("calendar_networks = ['127.0.0.0/8']").await;
    let (ada, adele) = (lab.hand("ada"), lab.hand("adele"));
    let (institution, address) = Institution::open().await;
    institution.says(404, "");
    let new = json!({"name": "campus", "kind": "blackouts", "address": address});
    adele
        .post(CLOSURES, new.clone())
        .await
        .refuses(422, "closure.unreadable");
    institution.says(200, &calendar("Shut", &lab.at(5), &lab.at(8)));
    let made = adele.post(CLOSURES, new).await.is(201);
    assert_eq!(
        (&made["address"], &made["trouble"]),
        (&json!(address), &Value::Null)
    );
    let path = format!("{CLOSURES}/campus");
    let seen = ada.get(&path).await.is(200);
    assert!(seen["address"].is_null(), "an address may be a secret");
    assert_eq!(seen["closed"], made["closed"]);

    // The same version is not read twice.
    let refresh = format!("{path}/refresh");
    let same = adele.post(&refresh, json!({})).await.is(200);
    assert_eq!(
        (&same["closed"], &same["version"]),
        (&made["closed"], &made["version"])
    );
    assert!(
        institution.asked().last().unwrap().is_some(),
        "If-None-Match was sent"
    );
    // Trouble is told, with the age of what is still there.
    for (status, text, trouble) in [
        (500, "oh", "answered 500"),
        (200, "<html>", "no iCalendar file"),
    ] {
        institution.says(status, text);
        let failed = adele.post(&refresh, json!({})).await.is(200);
        assert!(
            failed["trouble"].as_str().unwrap().contains(trouble),
            "{}",
            failed.body
        );
        assert_eq!(failed["closed"], made["closed"]);
        assert_eq!(failed["read_at"], same["read_at"]);
    }
    ada.post(RESERVATIONS, lab.booking(&["gpu-01"], 6..7))
        .await
        .refuses(409, "reservation.blackout");
    institution.says(200, &calendar("Shut, later", &lab.at(15), &lab.at(18)));
    let moved = adele.post(&refresh, json!({})).await.is(200);
    assert_eq!(
        (&moved["trouble"], &moved["closed"][0]["title"]),
        (&Value::Null, &json!("Shut, later"))
    );
    ada.post(RESERVATIONS, lab.booking(&["gpu-01"], 6..7))
        .await
        .is(201);
    ada.post(&refresh, json!({}))
        .await
        .refuses(403, "auth.not_allowed");
}

#[tokio::test]
async fn days_are_the_site_s_and_rules_reach_two_years_ahead() {
    let lab = Lab::new().await;
    let adele = lab.hand("adele");
    let yearly = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Ferragosto\nDTSTART;VALUE=DATE:19700815\n\
        RRULE:FREQ=YEARLY\nEND:VEVENT\nEND:VCALENDAR\n";
    let made = adele
        .post(CLOSURES, new("days-off", "holidays", yearly))
        .await
        .is(201);
    let closed = made["closed"].as_array().unwrap();
    assert!((2..=3).contains(&closed.len()), "{closed:?}");
    for day in closed {
        let start = day["start"].as_str().unwrap();
        assert!(
            start.ends_with("-08-14T22:00:00Z"),
            "midnight in Rome: {start}"
        );
    }
    let far: Timestamp = closed.last().unwrap()["start"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(
        far > lab.app.now() + SignedDuration::from_hours(366 * 24),
        "{far}"
    );
}
