//! The GPUs of a session in which nothing is done are lent to opportunistic work, and given back when its owner returns
//! (Z5); the claim rule holds all the while.

use std::collections::HashMap;
use std::sync::Arc;

use crate::support::queue::cut;
use crate::support::scripted::Scripted;
use crate::support::{Lab, name, on_both, site};
use berth_app::queue::Act;
use berth_app::sessions::{NewSession, SessionChange};
use berth_model::event::{EventKind, NumberedEvent};
use berth_model::queue::Settings;
use berth_model::reference::SessionReference;
use berth_model::session::{Session, State as SessionState};
use berth_model::workload::{Outcome, Run, RunState, State};
use berth_model::{Claim, ClaimId, Holder, RunId, Standing, Take};
use berth_store::claims;
use jiff::SignedDuration;
use serde_json::json;

on_both!(
    what_idles_is_lent_and_given_back_when_its_owner_returns,
    a_visitor_who_sends_something_has_returned,
    only_what_can_be_sent_away_borrows_and_only_where_the_site_lends,
    a_session_that_is_stopped_takes_what_it_lent_with_it,
    a_session_that_ends_by_itself_leaves_what_it_lent_to_its_borrower,
    cores_and_memory_are_the_borrowers_own,
    another_server_goes_on_with_what_is_lent,
    killed_anywhere_nothing_is_lent_twice_and_all_is_given_back,
    killed_while_the_session_ends_its_borrower_never_stands_on_nothing,
    what_is_not_to_be_lent_is_not,
    a_look_that_hangs_before_something_is_lent_delays_nobody,
    a_program_that_works_by_itself_has_its_gpus_back,
    no_event_tells_a_colleague_the_id_of_a_run,
);

const GRACE: SignedDuration = SignedDuration::from_secs(30);

async fn settings(lab: &Lab, change: impl FnOnce(&mut Settings)) {
    let before = lab.app.queue_settings(&lab.admin, &site()).await;
    let mut settings = before.expect("settings").settings;
    change(&mut settings);
    lab.app
        .set_queue_settings(&lab.admin, &site(), None, settings)
        .await
        .expect("settings");
}

/// A lab that lends, whose sessions have all four GPUs of a node and are run by a script.
async fn lab(lab: Lab) -> (Lab, Arc<Scripted>) {
    let scripted = Scripted::new();
    let lab = lab.with_queue().await.with_backend(scripted.clone());
    let profiles = json!({
        "lab": {
            "title": "Notebook",
            "wishes": [{"task": {"cores_milli": 4000, "memory_mib": 8192, "gpus": {"count": 4}}, "limit": "PT12H"}],
            "session": {"app": "jupyterlab", "idle": "PT8H", "lend_after": "PT15M"},
        },
    });
    settings(&lab, |settings| {
        settings.profiles = serde_json::from_value(profiles).expect("profiles");
        settings.lends = true;
    })
    .await;
    (lab, scripted)
}

/// Ada's session on one node, and somebody's work on the three others for longer than any of this takes.
async fn full(lab: &Lab) -> Session {
    let new = NewSession {
        name: None,
        profile: name("lab"),
        environment: None,
        project: None,
        inside: None,
    };
    let made = lab.app.start_session(&lab.ada, &site(), new).await;
    let session = made.expect("it may be started").value.session;
    let mut others = lab.ask(3, 4, 600);
    others["wishes"][0]["limit"] = json!("PT11H");
    lab.submit(&lab.bob, others).await;
    settle(lab).await;
    assert_eq!(read(lab, &session).await.state, SessionState::Ready);
    session
}

/// Opportunistic work for so many GPUs.
async fn borrower(lab: &Lab, gpus: u16) -> u64 {
    let mut ask = lab.ask(1, gpus, 300);
    ask["class"] = json!("opportunistic");
    ask["wishes"][0]["limit"] = json!("PT6H");
    lab.submit(&lab.bob, ask).await
}

async fn read(lab: &Lab, session: &Session) -> Session {
    let reference = SessionReference::Id(session.id);
    let view = lab.app.get_session(&lab.ada, &site(), &reference).await;
    view.expect("it is hers").session
}

async fn run_of(lab: &Lab, number: u64) -> Run {
    let runs = lab.workload_view(number).await.runs;
    let newest = runs.into_iter().max_by_key(|run| run.attempt);
    newest.expect("it ran")
}

async fn host(lab: &Lab, session: &Session) -> Run {
    let reference = SessionReference::Id(session.id);
    let view = lab.app.get_session(&lab.ada, &site(), &reference).await;
    view.expect("it is hers").run.expect("it runs")
}

async fn settle(lab: &Lab) {
    for _ in 0..4 {
        lab.wait_until_moment(lab.app.now()).await;
        lab.round().await;
        lab.follow_sessions().await;
    }
    check(lab).await;
}

/// Lets so much time pass, step by step.
async fn pass(lab: &Lab, steps: i64, each: SignedDuration) {
    for _ in 0..steps {
        lab.set_clock(lab.app.now() + each);
        settle(lab).await;
    }
}

async fn idle(lab: &Lab, minutes: i64) {
    pass(lab, minutes, SignedDuration::from_mins(1)).await;
}

/// No two claims that do not stand inside each other have the same GPU at the same time, and whatever stands inside another
/// lies within it.
async fn check(lab: &Lab) {
    let mut reader = lab.app.store.read().await.expect("a reader");
    let all = claims::all(&mut reader).await.expect("claims");
    drop(reader);
    let by_id: HashMap<ClaimId, &Claim> = all.iter().map(|claim| (claim.id, claim)).collect();
    let taken: Vec<&Claim> = all
        .iter()
        .filter(|claim| claim.standing != Standing::Void && claim.take == Take::Exclusive)
        .collect();
    for (nth, one) in taken.iter().enumerate() {
        for other in &taken[nth + 1..] {
            let same = one.resource == other.resource && one.container == other.container;
            let both = one.span.intersection(other.span);
            assert!(!same || both.is_none(), "{one:?} beside {other:?}");
        }
        if let Some(around) = one.container.map(|id| by_id[&id]) {
            assert_eq!(around.resource, one.resource);
            assert_eq!(one.span.intersection(around.span), Some(one.span));
            let outlives =
                around.standing != Standing::Holding && one.standing == Standing::Holding;
            assert!(!outlives, "{one:?} stands on a claim that is gone");
        }
    }
}

async fn claims_of(lab: &Lab, run: &Run) -> Vec<Claim> {
    let mut reader = lab.app.store.read().await.expect("a reader");
    let held = claims::held_by(&mut reader, Holder::Workload(run.workload)).await;
    held.expect("claims")
}

async fn what_idles_is_lent_and_given_back_when_its_owner_returns(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let session = full(&lab).await;
    let number = borrower(&lab, 2).await;
    idle(&lab, 10).await;
    assert_eq!(
        lab.state(number).await,
        State::Waiting,
        "she was there a moment ago"
    );
    assert_eq!(read(&lab, &session).await.lends_since, None);
    idle(&lab, 25).await;
    assert!(read(&lab, &session).await.lends_since.is_some());
    assert_eq!(lab.state(number).await, State::Running);
    let run = run_of(&lab, number).await;
    let hers = host(&lab, &session).await;
    assert_eq!(run.lent_by, Some(hers.id));
    assert_eq!(run.pieces[0].node, hers.pieces[0].node);
    let more = borrower(&lab, 2).await;
    let too_many = borrower(&lab, 1).await;
    idle(&lab, 30).await;
    assert_eq!(
        [lab.state(more).await, lab.state(too_many).await],
        [State::Running, State::Waiting],
        "each GPU is lent once"
    );
    // Her GPUs compute, but not for her; a server of hers that says nothing else is still idle.
    scripted.script().life.computes = true;
    idle(&lab, 5).await;
    assert!(read(&lab, &session).await.lends_since.is_some());
    scripted.script().life.computes = false;
    // A kernel of hers begins to compute, and who borrowed goes at the last moment.
    scripted.script().lingers = true;
    let kernel = r#"[{"execution_state": "busy", "last_activity": "2026-11-16T08:00:00Z"}]"#;
    scripted.script().kernels = kernel.to_owned();
    let returned = lab.app.now();
    pass(&lab, 6, SignedDuration::from_secs(1)).await;
    assert_eq!(read(&lab, &session).await.lends_since, None);
    pass(&lab, 35, SignedDuration::from_secs(1)).await;
    for number in [number, more] {
        let run = run_of(&lab, number).await;
        let outcome = Outcome::Preempted;
        assert_eq!(run.state, RunState::Ended { outcome });
        let within = GRACE + SignedDuration::from_secs(5);
        assert!(run.ended_at.expect("it ended") <= returned + within);
        assert_eq!(lab.state(number).await, State::Waiting, "it waits again");
    }
    let hers_now = host(&lab, &session).await;
    assert_eq!((hers_now.id, hers_now.state), (hers.id, RunState::Running));
    idle(&lab, 60).await;
    assert_eq!(lab.state(number).await, State::Waiting, "she is at work");
}

async fn a_visitor_who_sends_something_has_returned(lab: Lab) {
    let (lab, _scripted) = self::lab(lab).await;
    let session = full(&lab).await;
    let number = borrower(&lab, 4).await;
    idle(&lab, 35).await;
    assert_eq!(lab.state(number).await, State::Running);
    let acted = [(session.id, lab.app.now())];
    lab.app.note_returned(&acted).await.expect("noted");
    assert_eq!(read(&lab, &session).await.lends_since, None);
    settle(&lab).await;
    let run = run_of(&lab, number).await;
    assert!(run.until <= lab.app.now() + GRACE);
    assert!(
        !matches!(run.state, RunState::Running),
        "it was told at once"
    );
    // What the culler notes of visitors does the same.
    idle(&lab, 40).await;
    assert!(read(&lab, &session).await.lends_since.is_some());
    let acted = [(session.id, lab.app.now())];
    lab.app.note_visitors(&acted).await.expect("noted");
    let after = read(&lab, &session).await;
    assert_eq!((after.lends_since, after.active_at), (None, lab.app.now()));
}

async fn only_what_can_be_sent_away_borrows_and_only_where_the_site_lends(lab: Lab) {
    let (lab, _scripted) = self::lab(lab).await;
    let session = full(&lab).await;
    let firm = lab.submit(&lab.bob, lab.ask(1, 1, 10)).await;
    idle(&lab, 35).await;
    assert!(read(&lab, &session).await.lends_since.is_some());
    assert_eq!(lab.state(firm).await, State::Waiting);
    let soft = borrower(&lab, 1).await;
    settle(&lab).await;
    assert_eq!(lab.state(soft).await, State::Running);
    settings(&lab, |settings| settings.lends = false).await;
    pass(&lab, 4, SignedDuration::from_secs(1)).await;
    assert_eq!(read(&lab, &session).await.lends_since, None);
    assert_eq!(lab.state(soft).await, State::Waiting);
    idle(&lab, 60).await;
    assert_eq!(lab.state(soft).await, State::Waiting);
}

async fn a_session_that_is_stopped_takes_what_it_lent_with_it(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    scripted.script().lingers = true;
    let session = full(&lab).await;
    let number = borrower(&lab, 4).await;
    idle(&lab, 35).await;
    let first = run_of(&lab, number).await;
    assert_eq!(first.state, RunState::Running);
    let reference = SessionReference::Id(session.id);
    let stop = SessionChange::Stop { reason: None };
    let stopped = lab.app.now();
    lab.app
        .change_session(&lab.ada, &site(), &reference, stop)
        .await
        .expect("it is hers");
    check(&lab).await;
    settle(&lab).await;
    let told = run_of(&lab, number).await;
    assert!(matches!(told.state, RunState::Stopping { .. }), "both go");
    assert_eq!(told.until, host(&lab, &session).await.until);
    pass(&lab, 40, SignedDuration::from_secs(1)).await;
    assert_eq!(read(&lab, &session).await.state, SessionState::Stopped);
    // What borrowed was sent away in time, and has the GPUs now by itself.
    let runs = lab.workload_view(number).await.runs;
    let sent_away = runs.iter().find(|run| run.id == first.id).expect("kept");
    let within = GRACE + SignedDuration::from_secs(5);
    assert!(sent_away.ended_at.expect("it ended") <= stopped + within);
    let again = run_of(&lab, number).await;
    assert_eq!((again.state, again.lent_by), (RunState::Running, None));
    assert!(
        claims_of(&lab, &again)
            .await
            .iter()
            .all(|claim| claim.container.is_none())
    );
}

async fn a_session_that_ends_by_itself_leaves_what_it_lent_to_its_borrower(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let session = full(&lab).await;
    let number = borrower(&lab, 2).await;
    idle(&lab, 35).await;
    let before = run_of(&lab, number).await;
    let hers = host(&lab, &session).await;
    assert_eq!(before.lent_by, Some(hers.id));
    let ended = (hers.id, Outcome::Failed { exit_code: 1 });
    scripted.script().ended.insert(ended.0, ended.1);
    settle(&lab).await;
    let after = run_of(&lab, number).await;
    assert_eq!((after.id, after.state), (before.id, RunState::Running));
    assert_eq!((after.lent_by, after.until), (None, before.until));
    let held = claims_of(&lab, &after).await;
    let gpus: Vec<&Claim> = held
        .iter()
        .filter(|claim| claim.take == Take::Exclusive)
        .collect();
    assert_eq!(gpus.len(), 2, "they are its own");
    for claim in gpus {
        assert_eq!((claim.container, claim.span.end()), (None, after.until));
    }
    // The others are free, and these are not.
    let rest = lab.submit(&lab.bob, lab.ask(1, 2, 10)).await;
    let too_many = borrower(&lab, 1).await;
    settle(&lab).await;
    assert_eq!(
        [lab.state(rest).await, lab.state(too_many).await],
        [State::Running, State::Waiting]
    );
    lab.act(
        &lab.bob,
        number,
        Act::Cancel {
            tasks: None,
            reason: None,
        },
    )
    .await
    .expect("it is his");
    settle(&lab).await;
    assert_eq!(lab.state(too_many).await, State::Running);
}

async fn cores_and_memory_are_the_borrowers_own(lab: Lab) {
    let (lab, _scripted) = self::lab(lab).await;
    let session = full(&lab).await;
    // Of 16 cores the session has four; what would need more than the rest does not fit.
    let mut greedy = lab.ask(1, 1, 300);
    greedy["class"] = json!("opportunistic");
    greedy["wishes"][0]["task"]["cores_milli"] = json!(13_000);
    let greedy = lab.submit(&lab.bob, greedy).await;
    let mut fits = lab.ask(1, 1, 300);
    fits["class"] = json!("opportunistic");
    fits["wishes"][0]["task"]["cores_milli"] = json!(10_000);
    let fits = lab.submit(&lab.bob, fits).await;
    idle(&lab, 35).await;
    assert_eq!(
        [lab.state(greedy).await, lab.state(fits).await],
        [State::Waiting, State::Running]
    );
    let run = run_of(&lab, fits).await;
    assert_eq!(run.lent_by, Some(host(&lab, &session).await.id));
    let held = claims_of(&lab, &run).await;
    let (inside, own): (Vec<&Claim>, Vec<&Claim>) =
        held.iter().partition(|claim| claim.container.is_some());
    assert_eq!((inside.len(), own.len()), (1, 2), "a GPU; cores and memory");
    assert_eq!(inside[0].take, Take::Exclusive);
    // What is firm and wants those cores gets them: what borrows makes room.
    let mut firm = lab.ask(1, 0, 10);
    firm["wishes"][0]["task"] = json!({"cores_milli": 12_000, "memory_mib": 1024});
    let firm = lab.submit(&lab.ada, firm).await;
    let other = |lab: &Lab| {
        let mut ask = lab.ask(3, 0, 600);
        ask["wishes"][0]["task"] = json!({"cores_milli": 15_000, "memory_mib": 1024});
        ask["wishes"][0]["limit"] = json!("PT11H");
        ask
    };
    lab.submit(&lab.ada, other(&lab)).await;
    idle(&lab, 10).await;
    assert_eq!(lab.state(firm).await, State::Running);
    assert!(read(&lab, &session).await.lends_since.is_some());
}

async fn another_server_goes_on_with_what_is_lent(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let session = full(&lab).await;
    let number = borrower(&lab, 2).await;
    idle(&lab, 35).await;
    let before = run_of(&lab, number).await;
    assert_eq!(before.state, RunState::Running);
    let lab = lab.succeeded_by(scripted.clone()).await;
    pass(&lab, 10, SignedDuration::from_secs(1)).await;
    let after = run_of(&lab, number).await;
    assert_eq!((after.id, after.state), (before.id, RunState::Running));
    assert!(
        read(&lab, &session).await.lends_since.is_some(),
        "nobody came back"
    );
    let acted = [(session.id, lab.app.now())];
    lab.app.note_returned(&acted).await.expect("noted");
    let lab = lab.succeeded_by(scripted.clone()).await;
    pass(&lab, 40, SignedDuration::from_secs(1)).await;
    assert_eq!(lab.state(number).await, State::Waiting);
    assert!(scripted.script().started.values().all(|count| *count == 1));
}

/// The server is killed at every step of lending and giving back; whoever takes over comes to the same end.
async fn killed_anywhere_nothing_is_lent_twice_and_all_is_given_back(lab: Lab) {
    let (mut lab, scripted) = self::lab(lab).await;
    let session = full(&lab).await;
    let number = borrower(&lab, 4).await;
    idle(&lab, 14).await;
    let mut killed = 0;
    let mut polls = 1;
    loop {
        // It idles for long enough, and the server is killed on its way to lend.
        lab.set_clock(lab.app.now() + SignedDuration::from_mins(16));
        let mut left = polls;
        let lends = async {
            lab.try_follow_sessions().await.ok();
            lab.round().await;
            lab.round().await;
        };
        let was_whole = cut(lends, &mut left).await.is_some();
        lab = lab.succeeded_by(scripted.clone()).await;
        idle(&lab, 20).await;
        let run = run_of(&lab, number).await;
        assert_eq!(run.state, RunState::Running, "killed after {polls} polls");
        assert!(run.lent_by.is_some());
        // She comes back, and the server is killed on its way to take back.
        let acted = [(session.id, lab.app.now())];
        lab.app.note_returned(&acted).await.expect("noted");
        let mut left = polls;
        let given_back = async {
            lab.round().await;
            lab.round().await;
        };
        cut(given_back, &mut left).await;
        lab = lab.succeeded_by(scripted.clone()).await;
        pass(&lab, 36, SignedDuration::from_secs(1)).await;
        let over = run_of(&lab, number).await;
        assert_eq!(over.id, run.id);
        assert!(over.state.is_over(), "killed after {polls} polls: {over:?}");
        assert_eq!(lab.state(number).await, State::Waiting);
        assert_eq!(read(&lab, &session).await.state, SessionState::Ready);
        if was_whole {
            break;
        }
        killed += 1;
        polls += 1 + polls / 3;
    }
    assert!(killed > 3, "it was killed on its way {killed} times");
    // Each time it borrowed once, and no more: a start that may not have been heard is told again, by the same run's id.
    let runs = lab.workload_view(number).await.runs;
    assert_eq!(runs.len(), killed + 1);
    let twice = scripted.script().started.clone();
    let twice: Vec<_> = twice.into_iter().filter(|(_, count)| *count > 1).collect();
    let hers = host(&lab, &session).await.id;
    assert!(
        twice.iter().all(|(run, count)| *count == 2 && *run != hers),
        "{twice:?}"
    );
    assert!(twice.len() <= killed, "{twice:?}");
}

/// A session that lends ends by itself, and the server is killed meanwhile.
async fn killed_while_the_session_ends_its_borrower_never_stands_on_nothing(lab: Lab) {
    let (mut lab, scripted) = self::lab(lab).await;
    let session = full(&lab).await;
    let reference = SessionReference::Id(session.id);
    let number = borrower(&lab, 4).await;
    let mut killed = 0;
    let mut polls = 1;
    loop {
        idle(&lab, 35).await;
        let before = run_of(&lab, number).await;
        let hers = host(&lab, &session).await;
        assert_eq!(before.lent_by, Some(hers.id));
        let failed = Outcome::Failed { exit_code: 1 };
        scripted.script().ended.insert(hers.id, failed);
        let mut left = polls;
        let was_whole = cut(lab.round(), &mut left).await.is_some();
        check(&lab).await;
        lab = lab.succeeded_by(scripted.clone()).await;
        settle(&lab).await;
        let after = run_of(&lab, number).await;
        assert_eq!(
            (after.id, after.lent_by),
            (before.id, None),
            "{polls} polls"
        );
        assert_eq!(
            (after.state, after.until),
            (RunState::Running, before.until)
        );
        let held = claims_of(&lab, &after).await;
        let gpus = held.iter().filter(|claim| claim.take == Take::Exclusive);
        let own = gpus.filter(|claim| claim.container.is_none());
        assert_eq!(own.count(), 4);
        assert_eq!(read(&lab, &session).await.state, SessionState::Failed);
        if was_whole {
            break;
        }
        killed += 1;
        polls += 1 + polls / 3;
        // She starts it again: it is firmer than what has the GPUs now, which waits until it idles.
        lab.app
            .restart_session(&lab.ada, &site(), &reference, None, None, None)
            .await
            .expect("it is over");
        idle(&lab, 6).await;
        assert_eq!(read(&lab, &session).await.state, SessionState::Ready);
        assert_eq!(lab.state(number).await, State::Waiting);
    }
    assert!(killed > 3, "it was killed on its way {killed} times");
}

async fn what_is_not_to_be_lent_is_not(lab: Lab) {
    let (lab, _scripted) = self::lab(lab).await;
    settings(&lab, |settings| {
        let profile = settings.profiles.values_mut().next().expect("a profile");
        profile.session.as_mut().expect("for sessions").lend_after = None;
    })
    .await;
    let session = full(&lab).await;
    let number = borrower(&lab, 1).await;
    idle(&lab, 60).await;
    assert_eq!(read(&lab, &session).await.lends_since, None);
    assert_eq!(lab.state(number).await, State::Waiting);
    // And who looks away for a moment has not left.
    let before = lab.app.queue_settings(&lab.admin, &site()).await;
    let mut hasty = before.expect("settings").settings;
    let profile = hasty.profiles.values_mut().next().expect("a profile");
    let at_once = Some(SignedDuration::from_secs(1));
    profile.session.as_mut().expect("for sessions").lend_after = at_once;
    let refused = lab
        .app
        .set_queue_settings(&lab.admin, &site(), None, hasty)
        .await;
    assert!(refused.is_err());
}

/// No visitor and no kernel: a script of hers begins to compute.
async fn a_program_that_works_by_itself_has_its_gpus_back(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let session = full(&lab).await;
    let number = borrower(&lab, 4).await;
    idle(&lab, 35).await;
    assert_eq!(lab.state(number).await, State::Running);
    // An open page hums: a hundredth of a core, and now and then a little more.
    for second in 0..90 {
        let hum = if second % 30 == 0 { 150_000 } else { 10_000 };
        scripted.script().cpu_us += hum;
        pass(&lab, 1, SignedDuration::from_secs(1)).await;
    }
    assert!(read(&lab, &session).await.lends_since.is_some());
    let began = lab.app.now();
    for _ in 0..5 {
        scripted.script().cpu_us += 900_000;
        pass(&lab, 1, SignedDuration::from_secs(1)).await;
    }
    assert_eq!(read(&lab, &session).await.lends_since, None);
    let run = run_of(&lab, number).await;
    assert!(!matches!(run.state, RunState::Running));
    assert!(run.until <= began + GRACE + SignedDuration::from_secs(5));
}

/// Over the life of a session and of jobs, borrowed GPUs included.
async fn no_event_tells_a_colleague_the_id_of_a_run(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let session = full(&lab).await;
    let [stays, cancelled] = [borrower(&lab, 2).await, borrower(&lab, 1).await];
    idle(&lab, 35).await;
    // Its owner comes back, and those who borrowed are sent away until she is gone again.
    let returned = [(session.id, lab.app.now())];
    lab.app.note_returned(&returned).await.expect("noted");
    settle(&lab).await;
    assert_eq!(lab.state(stays).await, State::Waiting);
    idle(&lab, 40).await;
    let cancel = Act::Cancel {
        tasks: None,
        reason: None,
    };
    let done = lab.act(&lab.bob, cancelled, cancel).await;
    done.expect("it is his");
    settle(&lab).await;
    // The session ends by itself, and the borrower has claims of its own from then on.
    let hers = host(&lab, &session).await;
    let failed = Outcome::Failed { exit_code: 1 };
    scripted.script().ended.insert(hers.id, failed);
    settle(&lab).await;
    let stays = run_of(&lab, stays).await;
    assert_eq!((stays.state, stays.lent_by), (RunState::Running, None));
    scripted.script().ended.insert(stays.id, Outcome::Completed);
    settle(&lab).await;
    lab.wait_until_moment(lab.app.now()).await;

    let runs: Vec<RunId> = scripted.script().started.keys().copied().collect();
    assert!(runs.len() >= 4, "{runs:?}");
    for colleague in [&lab.ada, &lab.bob] {
        let page = lab.app.events_after(colleague, None, 0, 1000).await;
        let page = page.expect("events");
        assert!(!page.more, "these are all");
        for kind in [
            EventKind::WorkloadStopping,
            EventKind::WorkloadChanged,
            EventKind::WorkloadEnded,
        ] {
            let is_it = |one: &NumberedEvent| one.event.kind == kind;
            assert!(page.events.iter().any(|one| is_it(one)), "no {kind:?}");
        }
        for event in &page.events {
            let shown = format!("{event:?}");
            for run in &runs {
                let (plain, simple) = (run.0.to_string(), run.0.simple().to_string());
                for id in [run.to_string(), plain, simple] {
                    assert!(!shown.contains(&id), "{shown}");
                }
            }
        }
    }
}

async fn a_look_that_hangs_before_something_is_lent_delays_nobody(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let session = full(&lab).await;
    scripted.script().life_hangs = true;
    lab.set_clock(lab.app.now() + SignedDuration::from_mins(16));
    for _ in 0..2 {
        lab.follow_sessions().await;
        // The round is over before they are. One is to see whether it idles, and neither begins twice.
        let hung = scripted.script().looks_hung;
        assert_eq!(hung, 2);
    }
    let lends_since = read(&lab, &session).await.lends_since;
    assert_eq!(lends_since, None, "nothing is known of it");
}
