//! Quotas by hour and day, monthly budgets and urgent grants, in the planner's form.

use std::collections::HashMap;

use berth_engine::queue::Micros;
use berth_engine::queue::planner::Grant as Granted;
use berth_engine::queue::quota::{Allowance, Counted, Hours, LocalTime, Timetable, Volume};
use berth_engine::queue::share::Account;
use berth_model::PersonId;
use berth_model::queue::{Grant, Quota, QuotaAmounts, Whose};
use berth_store::workloads::Weighs;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::plan::{CORES, GPUS, Plan, moment};

/// All limits on people, apart from the physical capacity.
#[derive(Debug, Clone)]
pub(crate) struct Rations {
    pub zone: TimeZone,
    pub grants: Vec<Grant>,
    /// Usage of this month, and since each grant was given, in thousandths of a GPU times microseconds.
    pub spent_month: HashMap<Whose, Volume>,
    pub spent_of_grant: Vec<Volume>,
    /// When the month is over and all usage is counted anew.
    pub renewed_at: Timestamp,
    pub next_change: Option<Micros>,
    pub granted: u64,
}

/// A GPU-hour in the planner's units.
pub(super) const GPU_HOUR: Volume = 1000 * 3_600_000_000;

/// Start of this month and of the next one, in the site's time zone.
pub(crate) fn month(now: Timestamp, zone: &TimeZone) -> (Timestamp, Timestamp) {
    let local = now.to_zoned(zone.clone());
    let begins = local
        .first_of_month()
        .and_then(|first| first.start_of_day());
    let begins = begins.unwrap_or(local);
    let next = begins
        .checked_add(1.month())
        .and_then(|next| next.start_of_day());
    let next = next.map_or(Timestamp::MAX, |next| next.timestamp());
    (begins.timestamp(), next)
}

impl Plan {
    pub(super) fn ration(&mut self, now: Timestamp) {
        let mut whose: Vec<Whose> = self.policy.quotas.iter().map(|quota| quota.whose).collect();
        whose.sort_unstable();
        whose.dedup();
        for whose in whose {
            let account = match whose {
                Whose::Site => self.planner.shares.site(),
                Whose::Project(project) => self.project(Some(project)),
                // A person's accounts are created with their first request.
                Whose::Person(_) => continue,
            };
            self.allow(account, whose);
        }
        for (number, grant) in self.rations.grants.clone().iter().enumerate() {
            if let Whose::Project(project) = grant.whose {
                let account = self.project(Some(project));
                self.make_urgent(number, account, grant);
            }
        }
        self.turn_rations(now);
    }

    /// Applies a person's quotas and grants to a new account.
    pub(super) fn ration_person(&mut self, account: Account, person: PersonId) {
        let whose = Whose::Person(person);
        if self.policy.quotas.iter().any(|quota| quota.whose == whose) {
            self.allow(account, whose);
            // The limits apply from the next `turn_rations` on.
            self.rations.next_change = None;
        }
        let grants = self.rations.grants.clone();
        for (number, grant) in grants
            .iter()
            .enumerate()
            .filter(|(_, grant)| grant.whose == whose)
        {
            self.make_urgent(number, account, grant);
        }
    }

    fn allow(&mut self, account: Account, whose: Whose) {
        let quotas: Vec<&Quota> = self
            .policy
            .quotas
            .iter()
            .filter(|quota| quota.whose == whose)
            .collect();
        let budget = quotas
            .iter()
            .filter_map(|quota| quota.amounts.gpu_hours_month)
            .min();
        let budget = budget.map(|hours| {
            let spent = self.rations.spent_month.get(&whose).copied().unwrap_or(0);
            (Volume::from(hours) * GPU_HOUR, spent)
        });
        let rationed: [(Counted, Option<Timetable>); 2] =
            [(GPUS, gpus(&quotas)), (CORES, cores(&quotas))];
        for (counted, timetable) in rationed {
            if timetable.is_some() {
                self.planner.quotas.schedule(account, counted, timetable);
            }
        }
        if budget.is_some() {
            self.planner.quotas.budget(account, GPUS, budget);
        }
    }

    fn make_urgent(&mut self, number: usize, account: Account, grant: &Grant) {
        let all = Volume::from(grant.gpu_hours) * GPU_HOUR;
        let spent = self
            .rations
            .spent_of_grant
            .get(number)
            .copied()
            .unwrap_or(0);
        let granted = Granted {
            account,
            until: grant.until.as_microsecond(),
            counted: GPUS,
            volume: all.saturating_sub(spent),
        };
        // If a person has several projects, each of their accounts gets a grant of its own.
        self.rations.granted += 1;
        self.planner.grant(self.rations.granted, granted);
    }

    /// Updates the limits that depend on the hour.
    pub(super) fn turn_rations(&mut self, now: Timestamp) {
        let has_hours = self.policy.quotas.iter().any(|quota| quota.hours.is_some());
        if !has_hours && self.rations.next_change.is_some() {
            return;
        }
        let zone = self.rations.zone.clone();
        let local = |at: Micros| local_time(moment(at), &zone);
        let change = self.planner.quotas.turn(now.as_microsecond(), local);
        let renewed = self.rations.renewed_at.as_microsecond();
        self.rations.next_change = Some(change.map_or(renewed, |change| change.min(renewed)));
    }
}

/// Limits on held GPUs and cores at a moment.
pub(super) fn limits_at(quotas: &[Quota], whose: Whose, now: Timestamp, zone: &TimeZone) -> Weighs {
    let quotas: Vec<&Quota> = quotas.iter().filter(|quota| quota.whose == whose).collect();
    let local = local_time(now, zone);
    let limit = |table: Option<Timetable>| {
        let allowed = table.and_then(|table| table.at(local));
        allowed
            .and_then(|allowed| allowed.limit)
            .unwrap_or(u64::MAX)
    };
    Weighs {
        gpus_milli: limit(gpus(&quotas)),
        cores_milli: limit(cores(&quotas)),
    }
}

fn local_time(at: Timestamp, zone: &TimeZone) -> LocalTime {
    let local = at.to_zoned(zone.clone());
    LocalTime {
        weekday: local.weekday().to_monday_zero_offset().unsigned_abs(),
        minute: local.hour().unsigned_abs() as u16 * 60 + local.minute().unsigned_abs() as u16,
    }
}

fn gpus(quotas: &[&Quota]) -> Option<Timetable> {
    timetable(quotas, |amounts| {
        (amounts.gpus_milli, amounts.gpus_milli_guaranteed)
    })
}

fn cores(quotas: &[&Quota]) -> Option<Timetable> {
    timetable(quotas, |amounts| {
        (amounts.cores_milli, amounts.cores_milli_guaranteed)
    })
}

type Limits = (Option<u64>, Option<u64>);

/// The usual limits, and the limits of particular hours. `None` if the quotas set no limit.
fn timetable(quotas: &[&Quota], limits: impl Fn(&QuotaAmounts) -> Limits) -> Option<Timetable> {
    let allowance = |quota: &Quota| match limits(&quota.amounts) {
        (None, None) => None,
        (limit, guaranteed) => Some(Allowance {
            guaranteed: guaranteed.unwrap_or(0),
            limit,
        }),
    };
    let usual = quotas
        .iter()
        .filter(|quota| quota.hours.is_none())
        .find_map(|quota| allowance(quota));
    let hours: Vec<_> = quotas
        .iter()
        .filter_map(|quota| {
            let hours = quota.hours.as_ref()?;
            let days = hours
                .days
                .iter()
                .fold(0, |bits, day| bits | 1 << (day - 1).min(6));
            let hours = Hours {
                weekdays: if hours.days.is_empty() {
                    0b111_1111
                } else {
                    days
                },
                from: hours.from_minute,
                to: hours.to_minute,
            };
            Some((hours, Some(allowance(quota)?)))
        })
        .collect();
    (usual.is_some() || !hours.is_empty()).then_some(Timetable { usual, hours })
}
