//! The environment variables of workloads: for what runs and for its owner, and for nobody else.

use std::collections::BTreeMap;

use crate::support::scripted::Scripted;
use crate::support::{Lab, on_both, site};
use berth_app::Caller;
use berth_app::queue::Act;
use berth_model::Reference;
use berth_model::workload::{Outcome, Run, RunState, State};
use berth_store::workloads;
use serde_json::{Value, json};

on_both!(
    what_runs_gets_its_variables_and_its_owner_alone_reads_them,
    what_the_queue_reads_has_no_variables,
    what_does_not_open_is_not_started_and_says_why,
);

type Variables = BTreeMap<String, String>;

fn variables() -> Variables {
    [("TOKEN".to_owned(), "canary".to_owned())].into()
}

fn with_variables(mut ask: Value) -> Value {
    ask["program"]["environment"] = json!(variables());
    ask
}

async fn read(lab: &Lab, who: &Caller, number: u64) -> Variables {
    let reference = Reference::Name(number);
    let view = lab.app.get_workload(who, &site(), &reference).await;
    let view = view.expect("it is there");
    view.workload.ask.program.environment
}

async fn what_runs_gets_its_variables_and_its_owner_alone_reads_them(lab: Lab) {
    let scripted = Scripted::new();
    let lab = lab.with_queue().await.with_backend(scripted.clone());
    let mut ask = with_variables(lab.ask(1, 1, 10));
    ask["array"] = json!({"tasks": "0-2"});
    let submitted = lab.try_submit(&lab.ada, None, ask).await;
    let workload = submitted.expect("it is taken").workload;
    assert_eq!(workload.ask.program.environment, Variables::new());
    let number = workload.number;
    lab.round().await;
    assert_eq!(scripted.script().variables, vec![variables(); 3]);
    assert_eq!(read(&lab, &lab.ada, number).await, variables());
    for other in [&lab.bob, &lab.admin] {
        assert_eq!(read(&lab, other, number).await, Variables::new());
    }
    let act = Act::Cancel {
        tasks: None,
        reason: None,
    };
    let cancelled = lab.act(&lab.admin, number, act).await.expect("cancelled");
    let program = cancelled.workload.ask.program;
    assert_eq!(program.environment, Variables::new());
}

async fn what_the_queue_reads_has_no_variables(lab: Lab) {
    let lab = lab.with_queue().await;
    let ask = with_variables(lab.ask(1, 1, 10));
    let number = lab.submit(&lab.ada, ask).await;
    let site = lab.workload_view(number).await.workload.site;
    let mut reader = lab.app.store.read().await.expect("it is there");
    let live = workloads::live(&mut reader, site).await.expect("workloads");
    assert_eq!(live.len(), 1);
    assert_eq!(live[0].ask.program.environment, Variables::new());
    assert_eq!(live[0].ask.program.command, ["sleep", "10m"]);
}

async fn what_does_not_open_is_not_started_and_says_why(lab: Lab) {
    let lab = lab.with_queue().await;
    let sealed = lab
        .submit(&lab.ada, with_variables(lab.ask(1, 1, 10)))
        .await;
    let plain = lab.submit(&lab.ada, lab.ask(1, 1, 10)).await;
    let scripted = Scripted::new();
    let lab = lab.with_another_key(scripted.clone());
    lab.round().await;
    assert_eq!(scripted.script().variables, [Variables::new()]);
    assert_eq!(lab.state(plain).await, State::Running);
    assert_eq!(lab.state(sealed).await, State::Failed);
    let Run { state, said, .. } = lab.workload_view(sealed).await.runs.remove(0);
    let outcome = Outcome::CouldNotStart;
    assert_eq!(state, RunState::Ended { outcome });
    let said = said.expect("it says why").to_string();
    assert!(said.contains("was the key file replaced"), "{said}");
}
