//! Sessions from the queue to their page and back: what fails is tried again, what idles is stopped, and nobody comes in
//! who may not.

mod idle;

use std::sync::Arc;

use crate::support::queue::cut;
use crate::support::scripted::Scripted;
use crate::support::{Lab, name, on_both, site};
use berth_app::accounts::NewToken;
use berth_app::sessions::{FoundDoor, Key, NewSession, SessionChange, SessionFilter, SessionView};
use berth_app::{Caller, Error};
use berth_drivers::backend::DiskSpace;
use berth_model::person::Scope;
use berth_model::queue::Settings;
use berth_model::reference::SessionReference;
use berth_model::session::{Access, Session, State};
use berth_model::workload::{Outcome, RunState};
use berth_model::{Reference, Standing};
use jiff::SignedDuration;
use secrecy::ExposeSecret;
use serde_json::json;

on_both!(
    a_session_goes_from_the_queue_to_its_page_and_back,
    what_is_about_to_begin_is_looked_at_again_soon,
    what_does_not_answer_in_five_minutes_has_failed,
    one_that_hangs_holds_nobody_else_up,
    what_fails_is_tried_again_and_given_up_after_five_times,
    a_profile_that_fails_for_three_people_is_paused,
    a_full_disk_pauses_no_profile_and_nothing_is_tried_again,
    what_cannot_be_seen_goes_on_until_its_time_is_over,
    what_runs_on_another_servers_machine_is_not_judged,
    what_runs_out_of_memory_inside_is_told_once_and_the_session_goes_on,
    what_its_owner_keeps_is_left_alone,
    nobody_sees_or_opens_what_is_not_theirs,
    a_colleague_comes_in_for_as_long_as_they_may,
    a_visit_by_a_token_ends_with_the_token,
    an_admin_says_why_they_come_and_the_owner_sees_it,
    one_person_whose_apps_never_answer_holds_up_nobody_else,
    killed_anywhere_it_comes_to_the_same_end,
    a_code_is_good_once_and_for_one_session,
    a_visit_is_forgotten_ninety_days_after_it_ended,
);

/// A lab whose sessions are run by a script.
async fn lab(lab: Lab) -> (Lab, Arc<Scripted>) {
    let scripted = Scripted::new();
    let lab = lab.with_queue().await.with_backend(scripted.clone());
    let before = lab.app.queue_settings(&lab.admin, &site()).await;
    let profiles = json!({
        "lab": {
            "title": "Notebook",
            "wishes": [{"task": {"cores_milli": 500, "memory_mib": 512}, "limit": "PT8H"}],
            "session": {"app": "jupyterlab"},
        },
    });
    let settings = Settings {
        profiles: serde_json::from_value(profiles).expect("profiles"),
        ..before.expect("settings").settings
    };
    lab.app
        .set_queue_settings(&lab.admin, &site(), None, settings)
        .await
        .expect("settings");
    (lab, scripted)
}

fn new() -> NewSession {
    NewSession {
        name: None,
        profile: name("lab"),
        environment: None,
        project: None,
        inside: None,
    }
}

async fn start(lab: &Lab, who: &Caller) -> Session {
    let made = lab.app.start_session(who, &site(), new()).await;
    made.expect("it may be started").value.session
}

async fn view(lab: &Lab, who: &Caller, session: &Session) -> Result<SessionView, Error> {
    let reference = SessionReference::Id(session.id);
    lab.app.get_session(who, &site(), &reference).await
}

async fn state(lab: &Lab, session: &Session) -> State {
    let owner = [&lab.ada, &lab.bob, &lab.admin]
        .into_iter()
        .find(|caller| caller.id() == session.owner)
        .expect("one of these");
    view(lab, owner, session)
        .await
        .expect("it is there")
        .session
        .state
}

/// Lets the queue and the sessions go on until nothing more happens by itself at this moment.
async fn settle(lab: &Lab) {
    for _ in 0..6 {
        lab.wait_until_moment(lab.app.now()).await;
        lab.round().await;
        lab.follow_sessions().await;
    }
}

async fn pass(lab: &Lab, minutes: i64) {
    for _ in 0..minutes {
        lab.set_clock(lab.app.now() + SignedDuration::from_mins(1));
        settle(lab).await;
    }
}

async fn change(lab: &Lab, who: &Caller, session: &Session, change: SessionChange) -> Session {
    let reference = SessionReference::Id(session.id);
    let changed = lab
        .app
        .change_session(who, &site(), &reference, change)
        .await;
    changed.expect("they may").session
}

async fn again(lab: &Lab, session: &SessionReference) -> Session {
    let started = lab
        .app
        .restart_session(&lab.ada, &site(), session, None, None, None)
        .await;
    started.expect("it is over, and hers").session
}

async fn a_session_goes_from_the_queue_to_its_page_and_back(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    scripted.script().answers = false;
    let session = start(&lab, &lab.ada).await;
    assert_eq!(session.state, State::Waiting);
    assert_eq!(session.name, name("lab"));
    settle(&lab).await;
    assert_eq!(state(&lab, &session).await, State::Starting);
    assert!(lab.app.open_doors().await.expect("doors").is_empty());
    scripted.script().answers = true;
    settle(&lab).await;
    let ready = view(&lab, &lab.ada, &session).await.expect("it is hers");
    assert_eq!(ready.session.state, State::Ready);
    assert!(ready.starts[0].ready_at.is_some());
    assert!(ready.run.is_some(), "it holds claims");
    let doors = lab.app.open_doors().await.expect("doors");
    let [FoundDoor::Open(door)] = &doors[..] else {
        panic!("one door: {doors:?}");
    };
    assert_eq!(door.label, session.label);

    let stop = SessionChange::Stop { reason: None };
    change(&lab, &lab.ada, &session, stop).await;
    assert!(lab.app.open_doors().await.expect("doors").is_empty());
    settle(&lab).await;
    assert_eq!(state(&lab, &session).await, State::Stopped);
    let again = again(&lab, &Reference::Name(name("lab"))).await;
    assert_eq!((again.id, &again.label), (session.id, &session.label));
    settle(&lab).await;
    assert_eq!(state(&lab, &session).await, State::Ready);
    let started: Vec<u32> = scripted.script().started.values().copied().collect();
    assert_eq!(started, [1, 1], "each run was started once");
}

/// No event says that a run has begun; a session that waited for one would be late by seconds.
async fn what_is_about_to_begin_is_looked_at_again_soon(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    scripted.script().is_deaf = true;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    let now = lab.app.now();
    let again = lab.follow_sessions().await.expect("a moment");
    assert!(again <= now + SignedDuration::from_secs(1), "{again}");
    assert_eq!(state(&lab, &session).await, State::Waiting);
    scripted.script().is_deaf = false;
    settle(&lab).await;
    assert_eq!(state(&lab, &session).await, State::Ready);
}

async fn one_that_hangs_holds_nobody_else_up(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    scripted.script().ignores = 1;
    let hangs = start(&lab, &lab.ada).await;
    settle(&lab).await;
    assert_eq!(scripted.script().ignores, 0, "it was asked");
    let other = start(&lab, &lab.bob).await;
    settle(&lab).await;
    assert_eq!(state(&lab, &other).await, State::Ready);
    // In the end it is asked again, and answers.
    while state(&lab, &hangs).await == State::Starting {
        settle(&lab).await;
    }
    assert_eq!(state(&lab, &hangs).await, State::Ready);
}

async fn what_does_not_answer_in_five_minutes_has_failed(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    scripted.script().answers = false;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    pass(&lab, 4).await;
    assert_eq!(state(&lab, &session).await, State::Starting);
    let first = view(&lab, &lab.ada, &session).await.expect("hers");
    pass(&lab, 2).await;
    let tried = view(&lab, &lab.ada, &session).await.expect("hers");
    let over = tried.starts.last().expect("the first start");
    assert!(over.has_failed);
    let said = over.said.as_ref().expect("it says why").to_string();
    assert!(said.contains("did not answer within 300 s"), "{said}");
    let run = first.run.expect("it ran").id;
    assert!(
        scripted.script().stopped.contains(&run),
        "what ran is told to go"
    );
    assert!(tried.starts[0].is_automatic, "it is tried again");
}

async fn what_fails_is_tried_again_and_given_up_after_five_times(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    scripted.script().answers = false;
    scripted.script().comes_to = Some((Outcome::CouldNotStart, "`jupyter-lab` is not there"));
    let session = start(&lab, &lab.ada).await;
    pass(&lab, 10).await;
    let over = view(&lab, &lab.ada, &session).await.expect("hers");
    assert_eq!(over.session.state, State::Failed);
    assert_eq!(over.starts.len(), 5);
    assert!(over.is_given_up());
    let said = over.session.said.as_ref().expect("it says why").to_string();
    assert_eq!(said, "`jupyter-lab` is not there");
    let variables = scripted.script().variables.clone();
    assert_eq!(variables.len(), 5);
    assert_eq!(
        variables[0]["JUPYTER_TOKEN"],
        berth_model::session::APP_TOKEN
    );
    assert!(variables.iter().all(|again| *again == variables[0]));
    // Whoever asks for it gets another try, and one only.
    let reference = SessionReference::Id(session.id);
    again(&lab, &reference).await;
    pass(&lab, 3).await;
    let over = view(&lab, &lab.ada, &session).await.expect("hers");
    assert_eq!((over.session.state, over.starts.len()), (State::Failed, 6));
    scripted.script().comes_to = None;
    scripted.script().answers = true;
    again(&lab, &reference).await;
    settle(&lab).await;
    assert_eq!(state(&lab, &session).await, State::Ready);
}

async fn a_profile_that_fails_for_three_people_is_paused(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    scripted.script().answers = false;
    scripted.script().comes_to = Some((Outcome::CouldNotStart, "the disk is full"));
    for who in [&lab.ada, &lab.bob, &lab.admin] {
        start(&lab, who).await;
    }
    pass(&lab, 2).await;
    let profiles = lab.app.session_profiles(&lab.ada, &site()).await;
    let pause = profiles.expect("profiles").remove(0).pause.expect("paused");
    assert!(pause.said.as_str().contains("the disk is full"));
    let refused = lab.app.start_session(&lab.ada, &site(), new()).await;
    assert!(matches!(refused, Err(Error::ProfilePaused { .. })));
    let starts_before = scripted.script().started.len();
    pass(&lab, 3).await;
    assert_eq!(
        scripted.script().started.len(),
        starts_before,
        "nothing is tried again"
    );
    let resumed = lab
        .app
        .resume_profile(&lab.ada, &site(), &name("lab"))
        .await;
    assert!(matches!(resumed, Err(Error::NotAllowed { .. })));
    scripted.script().comes_to = None;
    scripted.script().answers = true;
    lab.app
        .resume_profile(&lab.admin, &site(), &name("lab"))
        .await
        .expect("an admin may");
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    assert_eq!(state(&lab, &session).await, State::Ready);
}

async fn a_full_disk_pauses_no_profile_and_nothing_is_tried_again(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let mut sessions = Vec::new();
    for who in [&lab.ada, &lab.bob, &lab.admin] {
        sessions.push(start(&lab, who).await);
    }
    let full = "your home takes 3 GiB and its limit is 2 GiB";
    let space = DiskSpace {
        disk: None,
        home: Some(full.to_owned()),
    };
    scripted.script().space = space;
    scripted.script().comes_to = Some((Outcome::CouldNotStart, full));
    pass(&lab, 3).await;
    for (session, who) in sessions.iter().zip([&lab.ada, &lab.bob, &lab.admin]) {
        let over = view(&lab, who, session).await.expect("theirs");
        assert_eq!(over.session.state, State::Failed);
        assert_eq!(over.starts.len(), 1, "another try would not mend it");
        assert_eq!(over.session.said.as_ref().expect("why").as_str(), full);
    }
    let profiles = lab.app.session_profiles(&lab.ada, &site()).await;
    assert!(profiles.expect("profiles").remove(0).pause.is_none());
    let refused = lab.app.start_session(&lab.ada, &site(), new()).await;
    assert!(matches!(refused, Err(Error::DiskFull(said)) if said == full));
    scripted.script().space = DiskSpace::default();
    scripted.script().comes_to = None;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    assert_eq!(state(&lab, &session).await, State::Ready);
}

async fn what_cannot_be_seen_goes_on_until_its_time_is_over(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    let busy = r#"[{"execution_state": "busy", "last_activity": "2026-11-16T08:00:00Z"}]"#;
    scripted.script().kernels = busy.to_owned();
    scripted.script().is_unreachable = true;
    let run = async || {
        let shown = view(&lab, &lab.ada, &session).await.expect("hers");
        let workload = shown.session.workload.expect("it runs");
        let mut reader = lab.app.store.read().await.expect("a reader");
        let runs = berth_store::workloads::runs_of(&mut reader, workload, 1).await;
        runs.expect("runs").remove(0)
    };
    let before = run().await;
    lab.set_clock(before.until + SignedDuration::from_mins(4));
    settle(&lab).await;
    assert!(!run().await.state.is_over(), "clocks differ");
    lab.set_clock(before.until + SignedDuration::from_mins(6));
    settle(&lab).await;
    let after = run().await;
    let outcome = Outcome::TimedOut;
    assert_eq!(after.state, RunState::Ended { outcome });
    assert_eq!(after.ended_at, Some(before.until), "no more is counted");
}

/// The other server is cut off, or not there: this one holds all leases, and knows nothing of the session.
async fn what_runs_on_another_servers_machine_is_not_judged(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    scripted.script().machine = Some("another");
    scripted.script().answers = false;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    assert_eq!(state(&lab, &session).await, State::Starting);
    scripted.script().is_unreachable = true;
    pass(&lab, 7).await;
    let shown = view(&lab, &lab.ada, &session).await.expect("hers").session;
    assert_eq!(
        shown.state,
        State::Starting,
        "nobody asked whether it answers"
    );
    let said = shown.said.expect("it says so").to_string();
    assert!(said.contains("cannot be reached"), "{said}");
    scripted.script().is_unreachable = false;
    scripted.script().answers = true;
    settle(&lab).await;
    let shown = view(&lab, &lab.ada, &session).await.expect("hers").session;
    assert_eq!((shown.state, shown.said), (State::Ready, None), "in time");
    scripted.script().is_unreachable = true;
    pass(&lab, 100).await;
    let shown = view(&lab, &lab.ada, &session).await.expect("hers").session;
    assert_eq!((shown.state, shown.warned_at), (State::Ready, None));
    let starts = view(&lab, &lab.ada, &session).await.expect("hers").starts;
    assert_eq!(starts.len(), 1, "it was never started again");
}

async fn what_runs_out_of_memory_inside_is_told_once_and_the_session_goes_on(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    scripted.script().out_of_memory = 1;
    pass(&lab, 1).await;
    let told = view(&lab, &lab.ada, &session).await.expect("hers").session;
    assert_eq!((told.state, told.memory_kills), (State::Ready, 1));
    let said = told.said.expect("it says why").to_string();
    assert!(said.contains("of memory"), "{said}");
    pass(&lab, 1).await;
    let same = view(&lab, &lab.ada, &session).await.expect("hers").session;
    assert_eq!(same.version, told.version, "once");
    scripted.script().out_of_memory = 3;
    pass(&lab, 1).await;
    let more = view(&lab, &lab.ada, &session).await.expect("hers").session;
    assert_eq!(more.memory_kills, 3);
    // What runs after that has not run out of anything yet.
    let stopped = change(
        &lab,
        &lab.ada,
        &session,
        SessionChange::Stop { reason: None },
    )
    .await;
    settle(&lab).await;
    scripted.script().out_of_memory = 0;
    let anew = self::again(&lab, &SessionReference::Id(stopped.id)).await;
    assert_eq!((anew.memory_kills, anew.said), (0, None));
}

async fn what_its_owner_keeps_is_left_alone(lab: Lab) {
    let (lab, _scripted) = self::lab(lab).await;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    let kept = SessionChange::Keep(SignedDuration::from_hours(3));
    change(&lab, &lab.ada, &session, kept).await;
    pass(&lab, 170).await;
    assert_eq!(state(&lab, &session).await, State::Ready);
    pass(&lab, 40).await;
    assert_eq!(state(&lab, &session).await, State::Stopped);
}

async fn nobody_sees_or_opens_what_is_not_theirs(lab: Lab) {
    let (lab, _scripted) = self::lab(lab).await;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    for other in [&lab.bob, &lab.outsider] {
        let seen = view(&lab, other, &session).await;
        assert!(matches!(seen, Err(Error::NotFound(_))), "{seen:?}");
        let invited = lab.app.invite(other, &session.label, None).await;
        assert!(matches!(invited, Err(Error::NotFound(_))), "{invited:?}");
        let reason = "let me see".parse().ok();
        let invited = lab.app.invite(other, &session.label, reason).await;
        assert!(matches!(invited, Err(Error::NotFound(_))), "{invited:?}");
        let reference = SessionReference::Id(session.id);
        let stop = SessionChange::Stop { reason: None };
        let stopped = lab
            .app
            .change_session(other, &site(), &reference, stop)
            .await;
        assert!(matches!(stopped, Err(Error::NotFound(_))));
    }
    let own = SessionFilter::default();
    let of_bob = lab.app.list_sessions(&lab.bob, &site(), own).await;
    assert!(of_bob.expect("his").is_empty());
    let everybody = SessionFilter {
        is_everybodys: true,
        ..SessionFilter::default()
    };
    let refused = lab
        .app
        .list_sessions(&lab.bob, &site(), everybody.clone())
        .await;
    assert!(matches!(refused, Err(Error::NotAllowed { .. })));
    let all = lab.app.list_sessions(&lab.admin, &site(), everybody).await;
    assert_eq!(all.expect("she is an admin").len(), 1);
}

async fn a_colleague_comes_in_for_as_long_as_they_may(lab: Lab) {
    let (lab, _scripted) = self::lab(lab).await;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    let share = |access| SessionChange::Share {
        with: lab.bob.id().into(),
        access,
    };
    change(&lab, &lab.ada, &session, share(Some(Access::View))).await;
    let invited = lab.app.invite(&lab.bob, &session.label, None).await;
    let code = invited.expect("it is shared with him").code;
    let entered = lab
        .app
        .enter(&session.label, &code)
        .await
        .expect("it works");
    let (key, entered) = entered.expect("the code is good");
    assert_eq!(entered.access, Access::View);
    let label = &session.label;
    let come = async || lab.app.visitor(label, &key).await.expect("it works");
    assert!(come().await.is_some());
    change(&lab, &lab.ada, &session, share(None)).await;
    assert!(come().await.is_none(), "he may no more");
    let again = lab.app.invite(&lab.bob, &session.label, None).await;
    assert!(matches!(again, Err(Error::NotFound(_))));
}

async fn a_visit_by_a_token_ends_with_the_token(lab: Lab) {
    let (lab, _scripted) = self::lab(lab).await;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    let label = &session.label;
    let come_in = async |hours: i64| {
        let expires_at = lab.app.now() + SignedDuration::from_hours(hours);
        let new = NewToken {
            label: "a script".parse().expect("a label"),
            scopes: Scope::ALL.into(),
            expires_at,
        };
        let (token, secret) = lab
            .app
            .create_token(&lab.ada, new)
            .await
            .expect("made")
            .value;
        let secret = secret.expect("it is new");
        let caller = lab
            .app
            .caller_by_token(secret.expose_secret(), "a test")
            .await;
        let caller = caller.expect("it is good");
        let code = lab
            .app
            .invite(&caller, label, None)
            .await
            .expect("it is hers")
            .code;
        let entered = lab.app.enter(label, &code).await.expect("it works");
        let (key, entered) = entered.expect("the code is good");
        (token, key, entered.expires_at)
    };
    let come = async |key: &Key| lab.app.visitor(label, key).await.expect("it works");
    let (token, key, until) = come_in(1).await;
    assert_eq!(until, token.expires_at, "and not after twelve hours");
    assert!(come(&key).await.is_some());
    lab.wait_until_moment(until).await;
    assert!(come(&key).await.is_none(), "the token has run out");
    let (token, key, _) = come_in(24).await;
    assert!(come(&key).await.is_some());
    let revoked = lab.app.revoke_token(&lab.ada, None, token.id).await;
    revoked.expect("revoked");
    assert!(come(&key).await.is_none(), "the token is revoked");
}

async fn an_admin_says_why_they_come_and_the_owner_sees_it(lab: Lab) {
    let (lab, _scripted) = self::lab(lab).await;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    let silent = lab.app.invite(&lab.admin, &session.label, None).await;
    assert!(matches!(silent, Err(Error::ReasonMissing)));
    let reason = "she asked for help".parse().ok();
    let invited = lab.app.invite(&lab.admin, &session.label, reason).await;
    let code = invited.expect("with a reason").code;
    let entered = lab
        .app
        .enter(&session.label, &code)
        .await
        .expect("it works");
    assert!(entered.is_some());
    let reference = SessionReference::Id(session.id);
    let visits = lab.app.session_visits(&lab.ada, &site(), &reference).await;
    let visits = visits.expect("she sees who came").visits;
    assert_eq!(visits.len(), 1);
    assert_eq!(visits[0].visit.person, lab.admin.id());
    assert_eq!(
        visits[0].visit.reason.as_ref().map(ToString::to_string),
        Some("she asked for help".to_owned())
    );
}

async fn one_person_whose_apps_never_answer_holds_up_nobody_else(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    scripted.script().answers = false;
    let mut all = Vec::new();
    for _ in 0..20 {
        all.push(start(&lab, &lab.ada).await);
    }
    settle(&lab).await;
    assert_eq!(scripted.script().started.len(), 8, "as many as one may");
    all.push(start(&lab, &lab.bob).await);
    settle(&lab).await;
    assert_eq!(state(&lab, &all[20]).await, State::Starting);
    scripted.script().answers = true;
    for _ in 0..4 {
        settle(&lab).await;
    }
    for session in &all {
        assert_eq!(state(&lab, session).await, State::Ready, "{}", session.name);
    }
    assert!(scripted.script().started.values().all(|count| *count == 1));
}

/// The server is killed at every step of a session's life; whoever takes over brings it to the same end.
async fn killed_anywhere_it_comes_to_the_same_end(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let mut killed = 0;
    for polls in 1.. {
        let session = start(&lab, &lab.ada).await;
        lab.round().await;
        lab.round().await;
        let mut left = polls;
        let whole = cut(lab.try_follow_sessions(), &mut left).await.is_some();
        settle(&lab).await;
        assert_eq!(state(&lab, &session).await, State::Ready);
        let stop = SessionChange::Stop { reason: None };
        change(&lab, &lab.ada, &session, stop).await;
        lab.round().await;
        let mut left = polls;
        cut(lab.try_follow_sessions(), &mut left).await;
        settle(&lab).await;
        let over = view(&lab, &lab.ada, &session).await.expect("hers");
        assert_eq!(over.session.state, State::Stopped);
        let start = over.starts.first().expect("its start");
        assert!(start.ready_at.is_some() && start.ended_at.is_some() && !start.has_failed);
        let holder = berth_model::Holder::Workload(over.workload.expect("it ran").id);
        let mut reader = lab.app.store.read().await.expect("a reader");
        let held = berth_store::claims::all_of(&mut reader, holder).await;
        let held = held.expect("claims");
        assert!(held.iter().all(|claim| claim.standing != Standing::Holding));
        drop(reader);
        let reference = SessionReference::Id(session.id);
        lab.app
            .remove_session(&lab.ada, &site(), &reference)
            .await
            .expect("it is over");
        if whole {
            break;
        }
        killed += 1;
    }
    assert!(killed > 3, "it was killed on its way {killed} times");
    assert!(scripted.script().started.values().all(|count| *count == 1));
}

async fn a_code_is_good_once_and_for_one_session(lab: Lab) {
    let (lab, _scripted) = self::lab(lab).await;
    let one = start(&lab, &lab.ada).await;
    let other = start(&lab, &lab.ada).await;
    settle(&lab).await;
    let code = lab.app.invite(&lab.ada, &one.label, None).await;
    let code = code.expect("hers").code;
    let elsewhere = lab.app.enter(&other.label, &code).await;
    assert!(elsewhere.expect("it works").is_none());
    let first = lab.app.enter(&one.label, &code).await.expect("it works");
    let (key, _) = first.expect("it is good");
    let second = lab.app.enter(&one.label, &code).await.expect("it works");
    assert!(second.is_none());
    let label = &other.label;
    assert!(
        lab.app
            .visitor(label, &key)
            .await
            .expect("it works")
            .is_none()
    );
    let late = lab.app.invite(&lab.ada, &one.label, None).await;
    let late = late.expect("hers").code;
    lab.set_clock(lab.app.now() + SignedDuration::from_mins(2));
    let entered = lab.app.enter(&one.label, &late).await;
    assert!(entered.expect("it works").is_none(), "a minute is enough");
}

async fn a_visit_is_forgotten_ninety_days_after_it_ended(lab: Lab) {
    let (lab, _scripted) = self::lab(lab).await;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    let code = lab.app.invite(&lab.ada, &session.label, None).await;
    let code = code.expect("hers").code;
    let entered = lab.app.enter(&session.label, &code).await;
    assert!(entered.expect("it works").is_some());
    let reference = SessionReference::Id(session.id);
    let visits = async || {
        let visits = lab.app.session_visits(&lab.ada, &site(), &reference).await;
        visits.expect("hers").visits.len()
    };
    let day = SignedDuration::from_hours(24);
    lab.set_clock(lab.app.now() + day * 90);
    lab.sweep().await;
    assert_eq!(visits().await, 1, "it lasted half a day");
    lab.set_clock(lab.app.now() + day);
    lab.sweep().await;
    assert_eq!(visits().await, 0);
}
