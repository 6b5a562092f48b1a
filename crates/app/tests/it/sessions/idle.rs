//! Sessions in which nothing is done: stopped after a warning, and only then.

use super::*;

on_both!(
    what_idles_is_stopped_after_a_warning,
    a_restart_of_the_server_does_not_begin_the_idle_time_anew,
    a_kernel_that_computes_is_not_idle,
    a_look_that_hangs_delays_nobody,
);

async fn what_idles_is_stopped_after_a_warning(lab: Lab) {
    let (lab, _scripted) = self::lab(lab).await;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    pass(&lab, 45).await;
    let idle = view(&lab, &lab.ada, &session).await.expect("hers").session;
    assert_eq!((idle.state, idle.warned_at), (State::Ready, None));
    pass(&lab, 10).await;
    let warned = view(&lab, &lab.ada, &session).await.expect("hers").session;
    assert!(warned.warned_at.is_some(), "she hears of it before");
    pass(&lab, 10).await;
    let over = view(&lab, &lab.ada, &session).await.expect("hers").session;
    assert_eq!(over.state, State::Stopped);
    let said = over.said.expect("it says why").to_string();
    assert!(
        said.contains("nothing was done in it for 60 minutes"),
        "{said}"
    );
}

async fn a_restart_of_the_server_does_not_begin_the_idle_time_anew(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let session = start(&lab, &lab.ada).await;
    settle(&lab).await;
    pass(&lab, 50).await;
    let lab = lab.succeeded_by(scripted.clone()).await;
    pass(&lab, 5).await;
    let warned = view(&lab, &lab.ada, &session).await.expect("hers").session;
    assert!(warned.warned_at.is_some(), "55 of 60 minutes are over");
    // It computes while no server looks: the first look after that cannot know, and does not stop it.
    lab.set_clock(lab.app.now() + SignedDuration::from_mins(30));
    let lab = lab.succeeded_by(scripted.clone()).await;
    settle(&lab).await;
    assert_eq!(state(&lab, &session).await, State::Ready);
    scripted.script().cpu_us += 60_000_000;
    pass(&lab, 1).await;
    let busy = view(&lab, &lab.ada, &session).await.expect("hers").session;
    assert_eq!((busy.state, busy.warned_at), (State::Ready, None));
    // Where it does nothing, the second look stops it.
    pass(&lab, 57).await;
    lab.set_clock(lab.app.now() + SignedDuration::from_mins(30));
    let lab = lab.succeeded_by(scripted.clone()).await;
    pass(&lab, 2).await;
    assert_eq!(state(&lab, &session).await, State::Stopped);
}

async fn a_kernel_that_computes_is_not_idle(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let session = start(&lab, &lab.ada).await;
    let kernel = r#"[{"execution_state": "busy", "last_activity": "2026-11-16T08:00:00Z"}]"#;
    scripted.script().kernels = kernel.to_owned();
    settle(&lab).await;
    pass(&lab, 150).await;
    assert_eq!(state(&lab, &session).await, State::Ready);
    // A kernel that sleeps does not keep it; a process that takes processor time does.
    scripted.script().kernels = kernel.replace("busy", "idle");
    for _ in 0..100 {
        scripted.script().cpu_us += 3_000_000;
        pass(&lab, 1).await;
    }
    assert_eq!(state(&lab, &session).await, State::Ready);
    // So do a GPU that computes, and files that change.
    scripted.script().life.computes = true;
    pass(&lab, 90).await;
    assert_eq!(state(&lab, &session).await, State::Ready);
    scripted.script().life.computes = false;
    scripted.script().life.written_at = Some(lab.app.now() + SignedDuration::from_mins(50));
    pass(&lab, 100).await;
    assert_eq!(state(&lab, &session).await, State::Ready);
    pass(&lab, 100).await;
    assert_eq!(state(&lab, &session).await, State::Stopped);
}

async fn a_look_that_hangs_delays_nobody(lab: Lab) {
    let (lab, scripted) = self::lab(lab).await;
    let hung = start(&lab, &lab.ada).await;
    settle(&lab).await;
    scripted.script().life_hangs = true;
    lab.set_clock(lab.app.now() + SignedDuration::from_mins(11));
    settle(&lab).await;
    let other = start(&lab, &lab.bob).await;
    settle(&lab).await;
    assert_eq!(state(&lab, &other).await, State::Ready);
    assert_eq!(
        state(&lab, &hung).await,
        State::Ready,
        "nothing is known of it"
    );
}
