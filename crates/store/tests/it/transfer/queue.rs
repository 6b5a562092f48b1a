//! Something in every table of the queue.

use anyhow::Result;
use berth_model::queue::{Grant, QueuePolicy, Role, Whose};
use berth_model::recut::{CutOutcome, Recut};
use berth_model::session::{Access, Pause, Session, Start, State as SessionState, Visit};
use berth_model::workload::{Counts, Run, RunState, State, Workload};
use berth_model::{ClaimId, GrantId, RecutId, RunId, SessionId, StartId, VisitId, WorkloadId};
use berth_store::submissions::{self, Submission};
use berth_store::variables::SealedVariables;
use berth_store::{Tx, queues, recuts, sessions, visits, workloads};
use serde_json::json;

use super::world::{World, entry, event, fresh, hour};

impl World {
    pub async fn insert_queue(&self, tx: &mut Tx) -> Result<()> {
        let ask = json!({
            "title": "Lernen \u{1f9e0}", "class": "opportunistic", "level": null, "seats": [], "inside": null,
            "not_before": null, "deadline": null, "after": [], "array": {"tasks": "0-9,12"}, "requeue": true,
            "program": {"script": "#!/bin/sh"},
            "wishes": [{"task": {"cores_milli": 1000, "memory_mib": 1}, "limit": "PT1H"}],
        });
        let number = workloads::next_numbers(tx, self.torino, 2).await?;
        let workload = Workload {
            id: WorkloadId(fresh()),
            site: self.torino,
            number,
            owner: self.ada,
            project: None,
            ask: serde_json::from_value(ask)?,
            state: State::Waiting,
            reason: None,
            waiting: "1-9,12".parse()?,
            counts: Counts::default(),
            since: hour(0),
            ended_at: None,
            version: 1,
        };
        let submission = Submission {
            workload: workload.clone(),
            variables: Some(SealedVariables {
                key_id: "0a1b2c3d".to_owned(),
                sealed: vec![0, 7, 255],
            }),
            entry: entry(self.torino, self.ada, 1_001),
            event: event(self.torino, self.ada, 10_001),
        };
        submissions::insert_all(tx, &[submission]).await?;
        let run = Run {
            id: RunId(fresh()),
            workload: workload.id,
            site: self.torino,
            task: 0,
            attempt: 1,
            wish: 0,
            inside: None,
            kept_from: None,
            lent_by: None,
            machine: None,
            pieces: Vec::new(),
            claims: Vec::new(),
            state: RunState::Running,
            began: hour(1),
            until: hour(2),
            supervisor_until: None,
            ended_at: None,
            said: None,
            version: 1,
        };
        workloads::insert_run(tx, &run, workloads::Weighs::default()).await?;
        let kept = Run {
            kept_from: Some(hour(1)),
            ..run
        };
        let guest = Run {
            id: RunId(fresh()),
            task: 1,
            lent_by: Some(kept.id),
            machine: Some("a machine".to_owned()),
            kept_from: None,
            ..kept.clone()
        };
        workloads::insert_run(tx, &guest, workloads::Weighs::default()).await?;
        workloads::keep_run(tx, &kept, workloads::Weighs::default(), 1).await?;
        workloads::insert_forecast(tx, self.torino, workload.id, hour(0), hour(1)).await?;
        let policy = QueuePolicy {
            roles: [(self.kind, Role::Node)].into(),
            ..QueuePolicy::default()
        };
        queues::set_policy(tx, self.torino, &policy, 0).await?;
        let grant = Grant {
            id: GrantId(fresh()),
            site: self.torino,
            whose: Whose::Person(self.ada),
            from: hour(0),
            until: hour(9),
            gpu_hours: 100,
            reason: "a thesis".parse()?,
            by: self.ada,
            revoked_at: None,
        };
        queues::insert_grant(tx, &grant).await?;
        for ended in [None, Some((hour(3), CutOutcome::Done))] {
            let recut = Recut {
                id: RecutId(fresh()),
                site: self.torino,
                workload: workload.id,
                gpu: self.resources["server-1"],
                slice: self.resources["server-1"],
                gone: vec![self.resources["server-1"]],
                profile: "3g.40gb".parse()?,
                at: 4,
                claims: vec![ClaimId(fresh())],
                began: hour(2),
                until: hour(3),
                ended,
            };
            recuts::insert(tx, &recut).await?;
        }
        self.insert_sessions(tx, workload.id).await
    }

    async fn insert_sessions(&self, tx: &mut Tx, workload: WorkloadId) -> Result<()> {
        let session = Session {
            id: SessionId(fresh()),
            site: self.torino,
            owner: self.ada,
            project: None,
            name: "thesis".parse()?,
            label: "k3v9xwbe8rv5w2n9".to_owned(),
            profile: "notebook".parse()?,
            environment: Some("torch@2".parse()?),
            inside: None,
            state: SessionState::Ready,
            workload: Some(workload),
            said: Some("tried again \u{1f9e0}".parse()?),
            shared: [(self.ada, Access::View)].into(),
            since: hour(1),
            active_at: hour(2),
            kept_until: Some(hour(4)),
            warned_at: Some(hour(2)),
            lends_since: Some(hour(3)),
            memory_kills: 2,
            created_at: hour(0),
            version: 1,
        };
        sessions::insert(tx, &session).await?;
        let start = Start {
            id: StartId(fresh()),
            session: session.id,
            site: self.torino,
            person: self.ada,
            profile: session.profile.clone(),
            workload,
            is_automatic: true,
            asked_at: hour(0),
            ready_at: Some(hour(1)),
            ended_at: None,
            has_failed: false,
            said: None,
        };
        sessions::insert_start(tx, &start).await?;
        let pause = Pause {
            site: self.torino,
            profile: session.profile.clone(),
            since: hour(1),
            said: "it failed for three people".parse()?,
        };
        sessions::pause(tx, &pause).await?;
        let visit = Visit {
            id: VisitId(fresh()),
            session: session.id,
            person: self.ada,
            token: Some(berth_model::TokenId(fresh())),
            sign_in: None,
            access: Access::Edit,
            reason: Some("she asked for help".parse()?),
            began: hour(1),
            expires_at: hour(9),
        };
        visits::insert(tx, &visit, &[7; 32], hour(2)).await?;
        Ok(())
    }
}
