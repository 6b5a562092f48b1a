//! Queries on the queue: waiting workloads with the reasons, running workloads, fair shares and nodes.

use std::collections::HashMap;
use std::time::Duration;

use berth_engine::queue::planner::Why;
use berth_engine::queue::quota::Verdict;
use berth_engine::queue::share::{Account, Standing};
use berth_engine::rights::Action;
use berth_model::reference::{PersonReference, ProjectReference, SiteReference, WorkloadReference};
use berth_model::workload::{Class, EndsBy, Run, State, Workload};
use berth_model::{PersonId, ProjectId, Recut, Reference, ResourceId, SiteId, WorkloadId};
use berth_store::{Conn, workloads};
use jiff::{SignedDuration, Timestamp};
use tokio::time::timeout;

use super::For;
use super::plan::{CORES, GPUS, Plan, Stands, moment};
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;

/// Limit on the runs shown for one workload.
const RUNS_MAX: u64 = 200;
/// How long a query waits for the plan that this server executes.
const PLAN_PATIENCE: Duration = Duration::from_secs(1);
/// How long a server that does not lead the queue answers from its last plan, because reading a plan is slow.
const ANSWERS: SignedDuration = SignedDuration::from_secs(2);

#[derive(Debug, Clone)]
pub struct WorkloadView {
    pub place: Place,
    pub workload: Workload,
    /// The newest first.
    pub runs: Vec<Run>,
    /// Why the workload waits, if it does.
    pub reason: Option<Reason>,
    pub directory: Directory,
}

/// Why a workload waits: a code for programs and a sentence for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    pub code: &'static str,
    pub words: String,
    /// How to change it.
    pub remedy: Option<String>,
    /// Latest start, guaranteed by a reservation ahead. It is not a forecast.
    pub promised: Option<Timestamp>,
    /// The expected start.
    pub forecast: Option<Timestamp>,
    /// When it ends at the latest, if it starts then.
    pub ends: Option<Ends>,
}

/// Latest end of a workload, and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    pub at: Timestamp,
    pub by: EndsBy,
}

impl Reason {
    pub(super) fn new(code: &'static str, words: impl Into<String>) -> Reason {
        Reason {
            code,
            words: words.into(),
            remedy: None,
            promised: None,
            forecast: None,
            ends: None,
        }
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Reason {
        self.remedy = Some(remedy.into());
        self
    }

    fn promised(mut self, at: Timestamp) -> Reason {
        self.promised = Some(at);
        self
    }
}

#[derive(Debug, Clone)]
pub struct QueueView {
    pub place: Place,
    /// Newest first, each with the reason why it waits, if it does.
    pub workloads: Vec<(Workload, Option<Reason>)>,
    /// The newest run and the live runs, by workload.
    pub runs: HashMap<WorkloadId, Vec<Run>>,
    pub directory: Directory,
}

#[derive(Debug, Clone, Default)]
pub struct WorkloadFilter {
    pub owner: Option<PersonReference>,
    pub project: Option<ProjectReference>,
    pub class: Option<Class>,
    /// Matches the title, the number, the owner's name, or the name of a node that the workload runs on.
    pub text: Option<String>,
    pub states: Vec<State>,
    pub since: Option<Timestamp>,
    pub before: Option<u64>,
    pub limit: u64,
}

/// Fair share of a project, or of a person in it.
#[derive(Debug, Clone)]
pub struct ShareView {
    pub project: Option<ProjectId>,
    pub person: Option<PersonId>,
    pub weight: u32,
    pub standing: Standing,
    /// Resources held at this moment, in thousandths of GPUs and cores.
    pub gpus_milli: u64,
    pub cores_milli: u64,
}

#[derive(Debug, Clone)]
pub struct Shares {
    pub place: Place,
    pub shares: Vec<ShareView>,
    pub directory: Directory,
}

/// A node as the queue sees it now.
#[derive(Debug, Clone)]
pub struct NodeView {
    pub node: ResourceId,
    pub is_in_service: bool,
    /// By its status, or because a maintenance window covers a part of it now.
    pub is_in_maintenance: bool,
    pub cores_milli: u64,
    pub cores_milli_free: u64,
    pub memory_mib: u64,
    pub memory_mib_free: u64,
    pub gpus: Vec<GpuView>,
    /// Whether any of it is reserved now.
    pub is_reserved: bool,
}

/// A GPU or a slice of one.
#[derive(Debug, Clone)]
pub struct GpuView {
    pub gpu: ResourceId,
    pub model: Option<String>,
    /// In thousandths.
    pub free: u16,
}

impl App {
    pub(crate) async fn workload(
        &self,
        conn: &mut Conn,
        place: &Place,
        workload: &WorkloadReference,
    ) -> Result<Workload> {
        let found = match workload {
            Reference::Id(id) => workloads::get(conn, place.id(), *id).await?,
            Reference::Name(number) => workloads::by_number(conn, place.id(), *number).await?,
        };
        found.ok_or(Error::NotFound("workload"))
    }

    /// A view of the workload without its environment variables.
    pub(super) async fn view(
        &self,
        conn: &mut Conn,
        place: Place,
        mut workload: Workload,
    ) -> Result<WorkloadView> {
        workload.ask.program.environment.clear();
        let mut directory = Directory::with_site(&place.site);
        let runs = match workload.counts == Default::default() && workload.version == 1 {
            true => Vec::new(),
            false => workloads::runs_of(conn, workload.id, RUNS_MAX).await?,
        };
        learn(conn, &mut directory, std::slice::from_ref(&workload), &runs).await?;
        Ok(WorkloadView {
            place,
            workload,
            runs,
            reason: None,
            directory,
        })
    }

    /// One workload. Only its owner gets the environment variables.
    pub async fn get_workload(
        &self,
        caller: &Caller,
        site: &SiteReference,
        workload: &WorkloadReference,
    ) -> Result<WorkloadView> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeQueue)
            .await?;
        let workload = self.workload(&mut reader, &place, workload).await?;
        let variables = match workload.owner == caller.id() {
            true => self.variables(&mut reader, &workload).await?,
            false => Ok(Default::default()),
        };
        let mut view = self.view(&mut reader, place, workload).await?;
        drop(reader);
        match variables {
            Ok(variables) => view.workload.ask.program.environment = variables,
            Err(error) => {
                tracing::warn!(%error, workload = %view.workload.id, "its environment variables are not shown");
            }
        }
        if matches!(view.workload.state, State::Waiting | State::Held) {
            view.reason = self.why_waits(view.place.id(), view.workload.id).await?;
        }
        Ok(view)
    }

    pub(crate) async fn why_waits(
        &self,
        site: SiteId,
        workload: WorkloadId,
    ) -> Result<Option<Reason>> {
        self.with_plan(site, |plan| self.reason(plan, workload))
            .await
    }

    pub async fn list_workloads(
        &self,
        caller: &Caller,
        site: &SiteReference,
        filter: WorkloadFilter,
    ) -> Result<QueueView> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeQueue)
            .await?;
        let owner = match &filter.owner {
            None => None,
            Some(owner) => Some(self.narrowed_to(&mut reader, owner).await?),
        };
        let project = match &filter.project {
            None => None,
            Some(project) => Some(self.project(&mut reader, place.id(), project).await?.id),
        };
        // The text may be the name of a node.
        let node = filter
            .text
            .as_deref()
            .and_then(|text| text.trim().parse().ok());
        let node = match node.map(Reference::Name) {
            None => None,
            Some(name) => match self.resource(&mut reader, place.id(), &name).await {
                Ok(node) => Some(node.id),
                Err(Error::NotFound(_)) => None,
                Err(error) => return Err(error),
            },
        };
        let wanted = workloads::Filter {
            site: place.id(),
            owner,
            project,
            class: filter.class,
            text: filter.text,
            node,
            states: filter.states,
            since: filter.since,
            before: filter.before,
            limit: filter.limit,
        };
        let found = workloads::list(&mut reader, &wanted).await?;
        let mut directory = Directory::with_site(&place.site);
        let mut runs: HashMap<WorkloadId, Vec<Run>> = HashMap::new();
        let ids = found.iter().map(|one| one.id).collect();
        for run in workloads::newest_runs(&mut reader, ids).await? {
            let of = runs.entry(run.workload).or_default();
            if of.is_empty() || run.ended_at.is_none() {
                of.push(run);
            }
        }
        let all: Vec<Run> = runs.values().flatten().cloned().collect();
        learn(&mut reader, &mut directory, &found, &all).await?;
        drop(reader);
        let waits = |state: State| matches!(state, State::Waiting | State::Held);
        let reasons: HashMap<WorkloadId, Reason> = match found.iter().any(|one| waits(one.state)) {
            false => HashMap::new(),
            true => {
                let reasons = |plan: &Plan| {
                    let waiting = found.iter().filter(|one| waits(one.state));
                    waiting
                        .filter_map(|one| Some((one.id, self.reason(plan, one.id)?)))
                        .collect()
                };
                self.with_plan(place.id(), reasons).await?
            }
        };
        let workloads = found.into_iter().map(|one| {
            let reason = reasons.get(&one.id).cloned();
            (one, reason)
        });
        Ok(QueueView {
            place,
            workloads: workloads.collect(),
            runs,
            directory,
        })
    }

    /// Fair shares of all projects and of the people in them.
    pub async fn shares(&self, caller: &Caller, site: &SiteReference) -> Result<Shares> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeQueue)
            .await?;
        drop(reader);
        let shares = self.with_plan(place.id(), Plan::standings).await?;
        let mut reader = self.store.read().await?;
        let mut directory = Directory::with_site(&place.site);
        directory
            .learn_people(
                &mut reader,
                shares
                    .iter()
                    .filter_map(|one| one.person)
                    .collect::<Vec<_>>(),
            )
            .await?;
        directory
            .learn_projects(
                &mut reader,
                shares
                    .iter()
                    .filter_map(|one| one.project)
                    .collect::<Vec<_>>(),
            )
            .await?;
        Ok(Shares {
            place,
            shares,
            directory,
        })
    }

    pub async fn queue_nodes(
        &self,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<(Place, Vec<NodeView>, Directory)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeQueue)
            .await?;
        drop(reader);
        let now = self.now();
        let nodes = self.with_plan(place.id(), |plan| plan.nodes(now)).await?;
        let mut directory = Directory::with_site(&place.site);
        let mut reader = self.store.read().await?;
        let named = nodes
            .iter()
            .flat_map(|node| node.gpus.iter().map(|one| one.gpu).chain([node.node]));
        directory
            .learn_resources(&mut reader, named.collect::<Vec<_>>())
            .await?;
        Ok((place, nodes, directory))
    }

    /// Runs a query on the plan of a site. If this server does not execute the plan, it reads one for this query, and
    /// for others that follow closely.
    pub(super) async fn with_plan<T>(
        &self,
        site: SiteId,
        ask: impl FnOnce(&Plan) -> T,
    ) -> Result<T> {
        self.with_own_plan(site, |plan| ask(plan)).await
    }

    /// The same for a query that has to add an account to the plan.
    pub(super) async fn with_own_plan<T>(
        &self,
        site: SiteId,
        ask: impl FnOnce(&mut Plan) -> T,
    ) -> Result<T> {
        let queue = self.queues.of(site);
        let now = self.now();
        let Ok(mut kept) = timeout(PLAN_PATIENCE, queue.plan.lock()).await else {
            // The plan is locked by a slow operation, so the query reads a plan of its own from the database.
            let mut plan = Box::pin(self.plan_now(site, false)).await?;
            plan.decide(now);
            return Ok(ask(&mut plan));
        };
        match kept.as_mut() {
            Some((For::Carrying(_), plan)) => return Ok(ask(plan)),
            Some((For::Answers(until), plan)) if now < *until => return Ok(ask(plan)),
            _ => {}
        }
        let mut plan = Box::pin(self.plan_now(site, false)).await?;
        plan.decide(now);
        let until = now.checked_add(ANSWERS).unwrap_or(now);
        let (_, plan) = kept.insert((For::Answers(until), plan));
        Ok(ask(plan))
    }

    fn reason(&self, plan: &Plan, workload: WorkloadId) -> Option<Reason> {
        let (stands, why) = plan.why(workload)?;
        let entry = plan.workloads.get(&workload)?;
        let is_soft = entry.workload.ask.class == Class::Opportunistic;
        let is_project = |account| plan.is_project(account);
        let reason = self.reason_of(stands, why, is_soft, &is_project);
        let forecast = plan.forecast(workload);
        let begins = reason.promised.or(forecast);
        let ends = plan.ends_of(&entry.workload, begins, self.now());
        let reason = match plan.cutting.made_for(workload) {
            Some(recut) => reason_cutting(plan, recut),
            None => Reason { forecast, ..reason },
        };
        Some(Reason { ends, ..reason })
    }

    pub(super) fn reason_of(
        &self,
        stands: Stands,
        why: Option<Why>,
        is_soft: bool,
        is_project: &dyn Fn(Account) -> bool,
    ) -> Reason {
        match stands {
            Stands::Held => Reason::new("held", "it is held").remedy("release it"),
            Stands::After(others) => {
                let count = others.len();
                Reason::new(
                    "dependency",
                    format!("it waits for {count} other workload(s) to be over"),
                )
            }
            Stands::AfterNever(_) => Reason::new(
                "dependency_never",
                "what it waits for has ended otherwise than it had to, so it never begins",
            )
            .remedy("cancel it and submit it again"),
            Stands::Inside(_) => Reason::new(
                "inside",
                "it waits for its reservation to begin, or for room inside it",
            ),
            Stands::NoSuchGpu => {
                Reason::new("no_such_gpu", "no GPU of this site is what it asks for")
                    .remedy("ask for another model, memory or profile")
            }
            Stands::InLine => self.reason_in_line(why, is_soft, is_project),
        }
    }

    fn reason_in_line(
        &self,
        why: Option<Why>,
        is_soft: bool,
        is_project: &dyn Fn(Account) -> bool,
    ) -> Reason {
        if self.backend.is_none() {
            return Reason::new(
                "no_backend",
                "nothing runs work here: this server has no backend",
            )
            .remedy("an admin has to choose one in the server's configuration");
        }
        match why {
            None => Reason::new(
                "planning",
                "it was just submitted, and is looked at in a moment",
            ),
            Some(Why::NoRoom) => {
                let reason = Reason::new(
                    "no_room",
                    "there is no room now: others run, are ahead of it, or have reserved the time",
                );
                match is_soft {
                    true => reason.remedy("ask for less, or for a shorter limit"),
                    false => reason.remedy(
                        "ask for less, for a shorter limit, or take what is idle as opportunistic work",
                    ),
                }
            }
            Some(Why::NotBefore(at)) => {
                let at = moment(at);
                Reason::new(
                    "not_before",
                    format!("it was asked not to begin before {at}"),
                )
            }
            Some(Why::NoSeats(_)) => {
                Reason::new("no_seats", "all seats that it asks for are taken")
            }
            Some(Why::Promised(at)) => {
                Reason::new("promised", "it has waited long, so a place is kept for it")
                    .promised(moment(at))
            }
            Some(Why::MakingRoom(at)) => {
                Reason::new("making_room", "others are making room for it").promised(moment(at))
            }
            Some(Why::Quota(Verdict::OverLimit { account, counted })) => {
                let what = counted_words(counted);
                let whose = if is_project(account) {
                    "its project"
                } else {
                    "its owner"
                };
                Reason::new(
                    "quota",
                    format!("{whose} holds as many {what} as it may at a time"),
                )
                .remedy("it begins when something of theirs ends; an admin can raise the quota")
            }
            Some(Why::Quota(Verdict::NothingIdle { counted })) => {
                let what = counted_words(counted);
                Reason::new(
                    "quota_idle",
                    format!("all {what} are in use, and what is left is guaranteed to others"),
                )
            }
            Some(Why::Quota(Verdict::Lent { counted, .. })) => {
                let what = counted_words(counted);
                Reason::new(
                    "quota_lent",
                    format!("its {what} are lent to others, who have been told to give them back"),
                )
            }
            Some(Why::Quota(Verdict::OverBudget { account, .. })) => {
                let whose = if is_project(account) {
                    "its project"
                } else {
                    "its owner"
                };
                Reason::new(
                    "budget",
                    format!("{whose} has used up its GPU-hours of this month"),
                )
                .remedy("it begins when the month is over; an admin can raise the budget")
            }
            Some(Why::Quota(_)) => Reason::new("quota", "its quota does not allow it now"),
            Some(Why::Never) => Reason::new(
                "never",
                "it could not begin even if everything were free: it asks for more than there is",
            )
            .remedy("ask for less"),
        }
    }
}

fn reason_cutting(plan: &Plan, recut: &Recut) -> Reason {
    let ready = recut.until.to_zoned(plan.rations.zone.clone());
    let ready = ready.strftime("%H:%M");
    let words = format!("a GPU is being cut for it, ready about {ready}");
    Reason {
        forecast: Some(recut.until),
        ..Reason::new("cutting", words)
    }
}

fn counted_words(counted: berth_engine::queue::quota::Counted) -> &'static str {
    match counted {
        GPUS => "GPUs",
        CORES => "cores",
        _ => "of the counted things",
    }
}

async fn learn(
    conn: &mut Conn,
    directory: &mut Directory,
    workloads: &[Workload],
    runs: &[Run],
) -> Result<()> {
    directory
        .learn_people(
            conn,
            workloads.iter().map(|one| one.owner).collect::<Vec<_>>(),
        )
        .await?;
    directory
        .learn_projects(
            conn,
            workloads
                .iter()
                .filter_map(|one| one.project)
                .collect::<Vec<_>>(),
        )
        .await?;
    let pieces = runs.iter().flat_map(|run| &run.pieces);
    let parts = pieces.flat_map(|piece| piece.gpus.iter().map(|gpu| gpu.gpu).chain([piece.node]));
    let seats = workloads
        .iter()
        .flat_map(|one| &one.ask.seats)
        .filter_map(|seats| match &seats.resource {
            Reference::Id(id) => Some(*id),
            Reference::Name(_) => None,
        });
    directory
        .learn_resources(conn, parts.chain(seats).collect::<Vec<_>>())
        .await
}

impl Plan {
    /// When a workload that starts at `begins` ends at the latest: by its longest limit, or with its reservation.
    pub(super) fn ends_of(
        &self,
        workload: &Workload,
        begins: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Ends> {
        let limit = workload.ask.wishes.iter().map(|wish| wish.limit).max()?;
        let by_limit = |begins: Timestamp| begins.checked_add(limit).ok();
        let Some(reservation) = workload.ask.inside else {
            let by = EndsBy::Limit;
            return by_limit(begins?).map(|at| Ends { at, by });
        };
        let (from, to) = self.reserved_span(reservation)?;
        let at = by_limit(from.max(now))?;
        Some(match to < at {
            true => Ends {
                at: to,
                by: EndsBy::Reservation,
            },
            false => Ends {
                at,
                by: EndsBy::Limit,
            },
        })
    }

    fn is_project(&self, account: Account) -> bool {
        self.projects().any(|(_, project)| project == account)
    }

    fn standings(&self) -> Vec<ShareView> {
        let quotas = &self.planner.quotas;
        let mut all: Vec<ShareView> = Vec::new();
        for (whose, account) in self.accounts() {
            all.push(ShareView {
                project: whose.0,
                person: whose.1,
                weight: whose
                    .0
                    .and_then(|id| self.policy.shares.get(&id))
                    .copied()
                    .unwrap_or_default()
                    .get(),
                standing: self.planner.shares.standing(account, |_| true),
                gpus_milli: quotas.used(account, GPUS),
                cores_milli: quotas.used(account, CORES),
            });
        }
        all.sort_by_key(|one| (one.project, one.person));
        all
    }
}
