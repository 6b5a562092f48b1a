//! Previews a submission: it checks everything, and writes nothing.
//!
//! The preview uses a copy of the site's plan, so it delays nobody, and the queue goes on meanwhile.

use std::collections::HashSet;

use berth_engine::queue::planner::{Ask, Decision, Forecast, Key, Planner, Start, Why, Wish};
use berth_engine::queue::share::Account;
use berth_model::reference::SiteReference;
use berth_model::workload::{Class, EndsBy, Workload};
use berth_model::{ResourceId, WorkloadId};
use berth_store::{Conn, workloads};
use jiff::Timestamp;

use super::look::{Ends, Reason};
use super::plan::{Plan, Stands, is_met, moment};
use super::submit::{NewWorkload, Prepared};
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::Result;

/// Result of a preview.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The workload as it would be submitted, without its number.
    pub workload: Workload,
    /// The number it would get, if nothing else were submitted first.
    pub number: u64,
    pub outlook: Outlook,
    pub directory: Directory,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outlook {
    /// When it would start, if known.
    pub begins: Option<Timestamp>,
    /// Why it would not start at once.
    pub reason: Option<Reason>,
    /// Index of the variant in `wishes` that it would get, if known.
    pub wish: Option<usize>,
    pub ends: Option<Ends>,
    /// The nodes it would run on, if it started at once.
    pub nodes: Vec<ResourceId>,
}

impl App {
    pub async fn try_to_submit(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: NewWorkload,
    ) -> Result<Trial> {
        let mut reader = self.store.read().await?;
        let Prepared {
            place,
            workload,
            mut directory,
            waiting_max,
        } = self.prepare(&mut reader, caller, site, new).await?;
        let whose = (place.id(), caller.id());
        let now = self.now();
        self.crowd
            .join(&mut reader, whose, waiting_max, now)
            .await?;
        let never = never_met(&mut reader, &workload).await?;
        let number = workloads::last_number(&mut reader, place.id()).await? + 1;
        drop(reader);
        let tried = self
            .with_own_plan(place.id(), |plan| plan.try_one(&workload, never, now))
            .await?;
        let outlook = match tried {
            Tried::NotInLine { stands, ends } => Outlook {
                reason: Some(self.reason_of(stands, None, false, &|_| false)),
                ends,
                ..Outlook::default()
            },
            Tried::InLine(trying) => self.outlook(*trying, &workload, now),
        };
        directory.add_person(&caller.person);
        let mut reader = self.store.read().await?;
        directory
            .learn_resources(&mut reader, outlook.nodes.clone())
            .await?;
        Ok(Trial {
            workload,
            number,
            outlook,
            directory,
        })
    }

    fn outlook(&self, trying: Trying, workload: &Workload, now: Timestamp) -> Outlook {
        let projects = trying.projects.clone();
        let is_soft = workload.ask.class == Class::Opportunistic;
        let reason = |why| {
            let is_project = |account| projects.contains(&account);
            self.reason_of(Stands::InLine, why, is_soft, &is_project)
        };
        if self.backend.is_none() {
            return Outlook {
                reason: Some(reason(None)),
                ..Outlook::default()
            };
        }
        let numbers = trying.numbers.clone();
        let nodes = trying.nodes.clone();
        let number = |usable: usize| numbers.get(usable).copied();
        let limit = |wish: Option<usize>| {
            let wishes = &workload.ask.wishes;
            let one = wish.and_then(|wish| wishes.get(wish));
            let longest = wishes.iter().map(|wish| wish.limit).max();
            one.map(|wish| wish.limit).or(longest).unwrap_or_default()
        };
        match trying.look(now) {
            Seen::AtOnce(start) => {
                let wish = number(start.wish);
                let at = moment(start.until);
                let is_cut = now.checked_add(limit(wish)).is_ok_and(|end| at < end);
                let mut stands: Vec<ResourceId> = start
                    .placement
                    .pieces
                    .iter()
                    .filter_map(|piece| nodes.get(piece.node.0 as usize).copied())
                    .collect();
                stands.sort_unstable();
                stands.dedup();
                Outlook {
                    begins: Some(now),
                    reason: None,
                    wish,
                    ends: Some(Ends {
                        at,
                        by: if is_cut { EndsBy::Wall } else { EndsBy::Limit },
                    }),
                    nodes: stands,
                }
            }
            Seen::Later { why, begins } => {
                let wish = begins.and_then(|(_, usable)| number(usable));
                let begins = begins.map(|(at, _)| moment(at));
                let reason = Reason {
                    forecast: begins,
                    ..reason(why)
                };
                let ends = begins.and_then(|begins| begins.checked_add(limit(wish)).ok());
                Outlook {
                    begins,
                    reason: Some(reason),
                    wish,
                    ends: ends.map(|at| Ends {
                        at,
                        by: EndsBy::Limit,
                    }),
                    nodes: Vec::new(),
                }
            }
        }
    }
}

/// A dependency that has ended and can never be met.
async fn never_met(conn: &mut Conn, workload: &Workload) -> Result<Option<WorkloadId>> {
    let after = &workload.ask.after;
    let ids = after.iter().map(|after| after.workload).collect();
    let others = workloads::some(conn, workload.site, ids).await?;
    let never = after.iter().find(|after| {
        let other = others.iter().find(|other| other.id == after.workload);
        other.is_some_and(|other| other.state.is_final() && !is_met(after.only_if, other))
    });
    Ok(never.map(|after| after.workload))
}

enum Tried {
    NotInLine { stands: Stands, ends: Option<Ends> },
    InLine(Box<Trying>),
}

/// A copy of the planner, and the request to add to it.
struct Trying {
    planner: Planner,
    key: Key,
    ask: Ask,
    /// Indices in `wishes` of the variants that some GPU matches.
    numbers: Vec<usize>,
    nodes: Vec<ResourceId>,
    projects: HashSet<Account>,
}

enum Seen {
    AtOnce(Start),
    /// The expected start, and the index of the variant.
    Later {
        why: Option<Why>,
        begins: Option<(i64, usize)>,
    },
}

impl Plan {
    fn try_one(&mut self, workload: &Workload, never: Option<WorkloadId>, now: Timestamp) -> Tried {
        let stands = match never {
            Some(other) => Stands::AfterNever(other),
            None => self.where_it_stands(workload),
        };
        let ask = match &stands {
            Stands::InLine => self.ask(workload),
            _ => None,
        };
        let Some(ask) = ask else {
            let ends = self.ends_of(workload, None, now);
            return Tried::NotInLine { stands, ends };
        };
        let usable = self.floor.usable(workload);
        Tried::InLine(Box::new(Trying {
            numbers: usable.into_iter().map(|(number, ..)| number).collect(),
            nodes: self.floor.node_ids(),
            projects: self.projects().map(|(_, account)| account).collect(),
            key: self.fresh_key(),
            planner: self.planner.clone(),
            ask,
        }))
    }
}

impl Trying {
    fn look(self, now: Timestamp) -> Seen {
        let Trying {
            mut planner,
            key,
            ask,
            ..
        } = self;
        let at = now.as_microsecond();
        planner.submit(key, ask.clone());
        for decision in planner.plan(at) {
            if let Decision::Start(start) = decision
                && start.key == key
            {
                return Seen::AtOnce(start);
            }
        }
        let why = planner.why(key);
        // Tries each variant on its own, to find the one that ends first.
        let mut best: Option<(i64, i64, usize)> = None;
        for (number, wish) in ask.wishes().enumerate() {
            planner.withdraw(key);
            planner.submit(key, only(&ask, wish));
            let begins = match planner.forecast(at).get(key) {
                Some(Forecast::At(begins) | Forecast::Beyond(begins)) => begins,
                Some(Forecast::Never) | None => continue,
            };
            let over = (begins.saturating_add(wish.expected), begins, number);
            best = best.into_iter().chain([over]).min();
        }
        Seen::Later {
            why,
            begins: best.map(|(_, begins, number)| (begins, number)),
        }
    }
}

fn only(ask: &Ask, wish: &Wish) -> Ask {
    Ask {
        wish: wish.clone(),
        or: Vec::new(),
        ..ask.clone()
    }
}
