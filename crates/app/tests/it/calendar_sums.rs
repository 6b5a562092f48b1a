//! A calendar with too much to list: what it sums agrees with a plain look at every entry, for every viewer.

use crate::support::policy::{minutes, must_set, of_type};
use crate::support::{Lab, name, on_both, site};
use berth_app::calendar::{CalendarRequest, CalendarView, Summary, SummaryCovers};
use berth_app::clock::random;
use berth_app::maintenance::NewWindow;
use berth_app::{Caller, SeenClaim};
use berth_engine::summary::{ClaimClass, ClaimKind, RowSum, StepPart, StepSum};
use berth_model::reservation::Privacy;
use berth_model::site::OutsiderView;
use berth_model::{
    Amount, Claim, ClaimId, Firmness, Holder, Reference, Resource, ResourceId, Span, Standing,
    Take, WorkloadId,
};
use berth_store::claims;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use uuid::Builder;

on_both!(
    sums_agree_with_the_entries_for_every_viewer,
    sums_tell_no_more_than_entries_do,
    an_array_of_thirty_thousand_tasks_leaves_the_bookings_to_see,
    free_time_is_the_same_however_much_is_booked,
);

/// A seed that failed once is worth keeping.
const SEED: u64 = 20_261_119;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Whole minutes, often on the hour, where steps begin.
    fn span(&mut self, from: Timestamp, within_min: u64) -> Span {
        let unit = [1, 10, 60][self.below(3) as usize];
        let start = self.below(within_min / unit) * unit;
        let length = (1 + self.below(8)) * unit.max(10);
        let at = |minutes: u64| from + SignedDuration::from_mins(minutes as i64);
        Span::new(at(start), at(start + length)).expect("a span")
    }
}

impl Lab {
    async fn named(&self, resource: &str) -> Resource {
        let reference = Reference::Name(name(resource));
        let view = self
            .app
            .get_resource(&self.admin, &site(), &reference)
            .await;
        view.expect("it is there").1.resource
    }

    /// A workload of somebody's, which waits.
    async fn waiting(&self, who: &Caller) -> WorkloadId {
        let number = self.submit(who, self.ask(1, 1, 50)).await;
        self.workload_view(number).await.workload.id
    }

    async fn lay(&self, claims: &[Claim]) {
        let mut tx = self.app.store.begin().await.expect("a transaction");
        for part in claims.chunks(5_000) {
            claims::insert(&mut tx, part).await.expect("they fit");
        }
        tx.commit().await.expect("committed");
    }

    async fn calendar(&self, who: &Caller, span: Span, entries_max: u64) -> CalendarView {
        let request = CalendarRequest {
            span,
            resources: Vec::new(),
            under: None,
            kind: None,
            entries_max,
        };
        let view = self.app.calendar(who, &site(), &request).await;
        view.expect("the calendar answers")
    }

    async fn open_to_outsiders(&self) {
        let change = berth_app::SiteChange {
            outsiders_see: Some(OutsiderView::FreeBusy),
            ..Default::default()
        };
        let changed = self
            .app
            .update_site(&self.admin, &site(), None, change)
            .await;
        changed.expect("an admin may");
    }
}

fn work(of: WorkloadId, on: &Resource, span: Span, take: Take) -> Claim {
    Claim {
        id: ClaimId(Builder::from_random_bytes(random()).into_uuid()),
        site: on.site,
        resource: on.id,
        span,
        take,
        firmness: Firmness::Firm,
        container: None,
        holder: Holder::Workload(of),
        standing: Standing::Holding,
    }
}

fn amount(of: u64) -> Take {
    Take::Amount(Amount::new(of).expect("an amount"))
}

/// Bookings of two people, some private, with buffers; a window; the work of both, yielding and inside a booking too.
async fn busy(lab: Lab) -> Lab {
    let lab = lab.with_queue().await;
    must_set(
        &lab,
        &of_type("server"),
        json!({"buffer_before": "30m", "buffer_after": "10m"}),
    )
    .await;
    let mut random = Random(SEED);
    let begin = lab.at(1);
    for turn in 0..90 {
        let resource = [
            "gpu-01.gpu0",
            "gpu-01.gpu1",
            "gpu-02",
            "gpu-01.cpu:9",
            "gpu-01.cpu:20",
            "vault-01",
        ][random.below(6) as usize];
        let mut wish = lab.wish(&[resource], 1, 2);
        wish.span = random.span(begin, 3 * 24 * 60);
        if random.below(3) == 0 {
            wish.privacy = Privacy::Private;
        }
        let who = [&lab.ada, &lab.bob][turn % 2];
        // Some of them meet others, and are refused.
        let _ = lab.app.book(who, &site(), &wish).await;
    }
    let window = NewWindow {
        title: "fans".parse().expect("text"),
        span: lab.span(5, 9),
        resources: vec![Reference::Name(name("n2.gpu0"))],
        decisions: Default::default(),
    };
    lab.app
        .plan_window(&lab.admin, &site(), &window)
        .await
        .expect("nothing is in its way");
    lay_work(&lab, &mut random).await;
    lab
}

async fn lay_work(lab: &Lab, random: &mut Random) {
    let (hers, his) = (lab.waiting(&lab.ada).await, lab.waiting(&lab.bob).await);
    let (cores, gpu) = (lab.named("n1.cpu").await, lab.named("n1.gpu0").await);
    let booked = lab.book(&lab.ada, &["n0"], 2, 9).await;
    let mut claims = Vec::new();
    // The last hours of March and October in which the clocks of Rome change, and the days of the bookings.
    for from in [
        "2026-11-16T09:00:00Z",
        "2026-10-25T00:00:00Z",
        "2027-03-28T00:00:00Z",
    ] {
        let from: Timestamp = from.parse().expect("a moment");
        for turn in 0..40 {
            let of = if turn % 3 == 0 { hers } else { his };
            let span = random.span(from, 24 * 60);
            claims.push(work(of, &cores, span, amount(1 + random.below(2))));
            let hour = SignedDuration::from_mins(20 * turn);
            let after = Span::new(from + hour, from + hour + SignedDuration::from_mins(20));
            claims.push(work(of, &gpu, after.expect("a span"), Take::Exclusive));
        }
    }
    let yielding = Claim {
        firmness: Firmness::Yielding {
            grace: SignedDuration::from_secs(30),
        },
        ..work(
            hers,
            &lab.named("n3.gpu1").await,
            lab.span(2, 30),
            Take::Exclusive,
        )
    };
    let inside = Claim {
        container: Some(booked.items[0].claim),
        ..work(
            hers,
            &lab.named("n0.gpu0").await,
            lab.span(3, 4),
            Take::Exclusive,
        )
    };
    claims.extend([yielding, inside]);
    lab.lay(&claims).await;
}

fn class_of(entry: &SeenClaim) -> ClaimClass {
    let Some(details) = &entry.details else {
        return ClaimClass {
            kind: ClaimKind::Busy,
            mine: false,
        };
    };
    let kind = match entry.claim.holder {
        Holder::Reservation(_) if details.is_buffer => ClaimKind::Buffer,
        Holder::Reservation(_) => ClaimKind::Reservation,
        Holder::Maintenance(_) => ClaimKind::Maintenance,
        Holder::Workload(_) => ClaimKind::Workload,
    };
    ClaimClass {
        kind,
        mine: details.mine,
    }
}

fn meets(span: Span, at: Timestamp) -> bool {
    span.start() <= at && at < span.end()
}

/// How much is taken at a moment: all of it is more than any amount.
fn level(entries: &[&SeenClaim], at: Timestamp, of: Option<ClaimClass>) -> u64 {
    let now = entries
        .iter()
        .filter(|entry| meets(entry.claim.span, at) && of.is_none_or(|of| class_of(entry) == of));
    now.map(|entry| {
        entry
            .claim
            .take
            .amount()
            .map_or(u64::MAX / 1_000, Amount::get)
    })
    .sum()
}

fn peak(entries: &[&SeenClaim], moments: &[Timestamp], of: Option<ClaimClass>) -> Take {
    let most = moments.iter().map(|at| level(entries, *at, of)).max();
    Amount::new(most.expect("a step has a beginning")).map_or(Take::Exclusive, Take::Amount)
}

/// What a step of one row holds, from its entries one by one.
fn plain_step(
    step: usize,
    span: Span,
    capacity: Option<Amount>,
    entries: &[&SeenClaim],
) -> Option<StepSum> {
    let touching: Vec<&SeenClaim> = entries
        .iter()
        .copied()
        .filter(|entry| entry.claim.span.overlaps(span))
        .collect();
    let ends = touching
        .iter()
        .flat_map(|entry| [entry.claim.span.start(), entry.claim.span.end()]);
    let moments: Vec<Timestamp> = ends
        .chain([span.start()])
        .filter(|at| meets(span, *at))
        .collect();
    let mut classes: Vec<ClaimClass> = touching.iter().map(|entry| class_of(entry)).collect();
    classes.sort();
    classes.dedup();
    let parts: Vec<StepPart> = classes
        .into_iter()
        .map(|class| StepPart {
            class,
            claims: touching
                .iter()
                .filter(|entry| class_of(entry) == class)
                .count() as u64,
            taken: peak(&touching, &moments, Some(class)),
        })
        .collect();
    let room = capacity.map_or(Amount::MAX + 1, Amount::get);
    (!parts.is_empty()).then(|| StepSum {
        step,
        taken: peak(&touching, &moments, None),
        is_full: moments.iter().all(|at| level(&touching, *at, None) >= room),
        parts,
    })
}

fn plain_sums(
    view: &CalendarView,
    summary: &Summary,
    counts: impl Fn(ClaimClass) -> bool,
) -> Vec<RowSum> {
    let mut ids: Vec<ResourceId> = view
        .entries
        .iter()
        .map(|entry| entry.claim.resource)
        .collect();
    ids.sort();
    ids.dedup();
    let grid = summary.grid;
    let row = |resource: ResourceId| {
        let entries: Vec<&SeenClaim> = view
            .entries
            .iter()
            .filter(|entry| entry.claim.resource == resource && counts(class_of(entry)))
            .collect();
        let capacity = view.directory.resources[&resource]
            .capacity
            .as_ref()
            .map(|all| all.amount);
        let step = |step: usize| {
            let start = grid.start_of(step);
            let span = Span::new(start, start + grid.step()).expect("a span");
            plain_step(step, span, capacity, &entries)
        };
        let steps: Vec<StepSum> = (0..grid.steps()).filter_map(step).collect();
        RowSum { resource, steps }
    };
    ids.into_iter()
        .map(row)
        .filter(|row| !row.steps.is_empty())
        .collect()
}

/// Days of the bookings, whole and from the middle of a step; days on which clocks change; nothing at all.
fn spans(lab: &Lab) -> Vec<Span> {
    let span = |from: &str, to: &str| {
        let at = |text: &str| text.parse().expect("a moment");
        Span::new(at(from), at(to)).expect("a span")
    };
    vec![
        lab.span(-24, 96),
        minutes(lab, 67, 1_003),
        minutes(lab, 120, 130),
        span("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
        span("2027-03-27T23:00:00Z", "2027-03-28T22:00:00Z"),
        span("2026-01-01T00:00:00Z", "2029-01-01T00:00:00Z"),
        span("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"),
    ]
}

async fn sums_agree_with_the_entries_for_every_viewer(lab: Lab) {
    let lab = busy(lab).await;
    lab.open_to_outsiders().await;
    let mut kinds = Vec::new();
    for who in [&lab.ada, &lab.bob, &lab.admin, &lab.root, &lab.outsider] {
        for span in spans(&lab) {
            let case = format!("{:?} {span:?}, seed {SEED}", who.person.login);
            let summed = lab.calendar(who, span, 0).await;
            let Some(summary) = &summed.summary else {
                let listed = lab.calendar(who, span, 50_000).await.entries;
                assert!(
                    listed.is_empty(),
                    "{case}: nothing is summed where something is"
                );
                continue;
            };
            let whole = Span::new(summary.grid.start_of(0), summary.grid.end()).expect("a span");
            let listed = lab.calendar(who, whole, 50_000).await;
            assert!(listed.summary.is_none());
            kinds.extend(listed.entries.iter().map(class_of));
            let counts = |class: ClaimClass| match summary.covers {
                SummaryCovers::All => true,
                SummaryCovers::Workloads => class.kind == ClaimKind::Workload,
            };
            assert_eq!(summary.rows, plain_sums(&listed, summary, counts), "{case}");
            // The other half: bookings stay entries where they fit, and only work is summed.
            let is_work = |entry: &&SeenClaim| class_of(entry).kind == ClaimKind::Workload;
            let in_span = lab.calendar(who, span, 50_000).await.entries;
            let people = in_span.iter().filter(|entry| !is_work(entry)).count();
            if people == in_span.len() {
                continue;
            }
            let half = lab.calendar(who, span, people as u64).await;
            let half_summary = half.summary.as_ref().expect("work is too much");
            assert_eq!(half_summary.covers, SummaryCovers::Workloads, "{case}");
            assert_eq!(
                (
                    half.entries.len(),
                    half.entries.iter().filter(is_work).count()
                ),
                (people, 0)
            );
            let work = |class: ClaimClass| class.kind == ClaimKind::Workload;
            assert_eq!(
                half_summary.rows,
                plain_sums(&listed, half_summary, work),
                "{case}"
            );
        }
    }
    // The look covered what it was made for.
    for kind in [
        ClaimKind::Reservation,
        ClaimKind::Buffer,
        ClaimKind::Maintenance,
        ClaimKind::Workload,
        ClaimKind::Busy,
    ] {
        assert!(kinds.iter().any(|class| class.kind == kind), "{kind:?}");
    }
}

async fn sums_tell_no_more_than_entries_do(lab: Lab) {
    let lab = busy(lab).await;
    lab.open_to_outsiders().await;
    let classes = |view: &CalendarView| -> Vec<ClaimClass> {
        let rows = view.summary.iter().flat_map(|summary| &summary.rows);
        let parts = rows.flat_map(|row| &row.steps).flat_map(|step| &step.parts);
        let mut classes: Vec<ClaimClass> = parts.map(|part| part.class).collect();
        classes.sort();
        classes.dedup();
        classes
    };
    let span = lab.span(-24, 96);
    let all = lab
        .calendar(&lab.outsider, span, 50_000)
        .await
        .entries
        .len() as u64;
    // Whether work or bookings are too much to list would tell one from the other.
    for entries_max in [0, all / 2, all - 1] {
        let outside = lab.calendar(&lab.outsider, span, entries_max).await;
        assert!(outside.entries.is_empty());
        let summary = outside.summary.as_ref().expect("too much to list");
        assert_eq!(summary.covers, SummaryCovers::All);
        let busy = ClaimClass {
            kind: ClaimKind::Busy,
            mine: false,
        };
        assert_eq!(classes(&outside), [busy], "{entries_max}");
        assert!(outside.directory.people.is_empty());
    }
    // A member's sums keep others' private bookings apart, as time that is taken; an admin's do not.
    let is_busy = |class: &ClaimClass| class.kind == ClaimKind::Busy;
    assert!(
        classes(&lab.calendar(&lab.bob, span, 0).await)
            .iter()
            .any(is_busy)
    );
    assert!(
        !classes(&lab.calendar(&lab.admin, span, 0).await)
            .iter()
            .any(is_busy)
    );
}

async fn an_array_of_thirty_thousand_tasks_leaves_the_bookings_to_see(lab: Lab) {
    let lab = lab.with_queue().await;
    let hers = lab.waiting(&lab.ada).await;
    lab.book(&lab.bob, &["gpu-01"], 1, 3).await;
    lab.book(&lab.ada, &["gpu-02"], 2, 4).await;
    let nodes = [lab.named("n0.cpu").await, lab.named("n1.cpu").await];
    let task = |number: i64| {
        let minute = lab.at(0) + SignedDuration::from_mins(number / 30 * 5);
        let span = Span::new(minute, minute + SignedDuration::from_mins(5)).expect("a span");
        work(hers, &nodes[number as usize % 2], span, amount(1))
    };
    let tasks: Vec<Claim> = (0..30_000).map(task).collect();
    lab.lay(&tasks).await;
    let seen = lab.calendar(&lab.bob, lab.span(0, 120), 10_000).await;
    let titles = seen.entries.iter().filter(|entry| entry.details.is_some());
    assert_eq!((seen.entries.len(), titles.count()), (2, 2));
    let summary = seen.summary.expect("the tasks are too many");
    assert_eq!(
        (summary.covers, summary.rows.len()),
        (SummaryCovers::Workloads, 2)
    );
    // Five minutes of fifteen tasks at a time, in half an hour six times over.
    assert_eq!(summary.grid.step().as_mins(), 30);
    for row in &summary.rows {
        assert!(row.steps.len() <= summary.grid.steps());
        let inner = &row.steps[1];
        assert_eq!(
            (inner.parts[0].claims, inner.taken, inner.is_full),
            (90, amount(15), false)
        );
    }
}

async fn free_time_is_the_same_however_much_is_booked(lab: Lab) {
    let lab = busy(lab).await;
    let window = lab.span(0, 96);
    let listed = lab.calendar(&lab.admin, window, 50_000).await;
    let request = berth_app::calendar::FreeRequest {
        filter: Default::default(),
        window,
        at_least: SignedDuration::ZERO,
    };
    let free = lab.app.free(&lab.ada, &site(), &request, "", 500).await;
    let (_, free, directory) = free.expect("an answer");
    let parents = directory.resources.values().map(|one| (one.id, one.parent));
    let tree = berth_engine::Tree::new(parents).expect("a tree");
    let standing: Vec<Claim> = listed
        .entries
        .into_iter()
        .map(|entry| entry.claim)
        .collect();
    for one in &free {
        let capacity = one.view.resource.capacity.as_ref().map(|all| all.amount);
        let id = one.view.resource.id;
        let free_for =
            |take| berth_engine::free::free_spans(&tree, id, take, capacity, &standing, window);
        let name = &one.view.resource.name;
        let Some(capacity) = capacity else {
            let spans: Vec<Span> = one.spans.iter().map(|(span, _)| *span).collect();
            assert_eq!(spans, free_for(Take::Exclusive), "{name}");
            continue;
        };
        // Each span says how much is left: that much is free for all of it, and one more at no time of it.
        for (span, left) in &one.spans {
            let left = left.expect("an amount");
            let has_room = free_for(Take::Amount(left));
            assert!(has_room.iter().any(|free| free.contains(*span)), "{name}");
            if left < capacity {
                let more = Amount::new(left.get() + 1).expect("an amount");
                let has_more = free_for(Take::Amount(more));
                assert!(!has_more.iter().any(|free| free.overlaps(*span)), "{name}");
            }
        }
        let one_unit = free_for(Take::Amount(Amount::new(1).expect("one")));
        let total = |spans: &mut dyn Iterator<Item = Span>| -> SignedDuration {
            spans.map(|span| span.duration()).sum()
        };
        assert_eq!(
            total(&mut one.spans.iter().map(|(span, _)| *span)),
            total(&mut one_unit.into_iter()),
            "{name}"
        );
    }
    assert!(
        free.iter().any(|one| one.spans.len() > 3),
        "something is booked"
    );
}
