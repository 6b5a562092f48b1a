//! Softer claims yield to bookings, and what stands inside a reservation is settled with it.

use crate::support::{Lab, name, on_both, site};
use berth_app::clock::random;
use berth_app::reservations::ReservationChange;
use berth_model::event::EventKind;
use berth_model::{Claim, ClaimId, Firmness, Holder, Reference, Span, Standing, Take, WorkloadId};
use berth_store::claims;
use jiff::SignedDuration;
use uuid::Builder;

on_both!(
    a_softer_claim_gives_way_to_a_booking,
    a_firm_workload_does_not,
    work_inside_a_reservation_ends_with_it,
    maintenance_goes_around_or_over_as_decided,
);

impl Lab {
    /// A claim of the queue, which does not exist yet: written to the store directly.
    async fn workload(
        &self,
        resource: &str,
        span: Span,
        firmness: Firmness,
        container: Option<ClaimId>,
    ) -> ClaimId {
        let reference = Reference::Name(name(resource));
        let view = self
            .app
            .get_resource(&self.admin, &site(), &reference)
            .await
            .expect("it is there")
            .1;
        let id = ClaimId(Builder::from_random_bytes(random()).into_uuid());
        let claim = Claim {
            id,
            site: view.resource.site,
            resource: view.resource.id,
            span,
            take: Take::Exclusive,
            firmness,
            container,
            holder: Holder::Workload(WorkloadId(id.0)),
            standing: Standing::Holding,
        };
        let mut tx = self.app.store.begin().await.expect("a transaction");
        claims::insert(&mut tx, &[claim])
            .await
            .expect("the claim fits");
        tx.commit().await.expect("committed");
        id
    }

    async fn claim(&self, id: ClaimId) -> Claim {
        let mut reader = self.app.store.read().await.expect("a reader");
        claims::get(&mut reader, id)
            .await
            .expect("it reads")
            .expect("it is there")
    }
}

fn yielding() -> Firmness {
    Firmness::Yielding {
        grace: SignedDuration::from_secs(30),
    }
}

async fn a_softer_claim_gives_way_to_a_booking(lab: Lab) {
    let runs = lab
        .workload("gpu-01.gpu0", lab.span(0, 10), yielding(), None)
        .await;
    let later = lab
        .workload("gpu-01.gpu1", lab.span(6, 10), yielding(), None)
        .await;
    lab.book(&lab.ada, &["gpu-01"], 4, 8).await;
    assert_eq!(
        lab.claim(runs).await.span,
        lab.span(0, 4),
        "shortened to end before the booking"
    );
    assert_eq!(
        lab.claim(later).await.standing,
        Standing::Void,
        "it would have begun in the middle of it"
    );
    lab.wait_until(0).await;
    let heard = lab
        .app
        .events_after(&lab.ada, Some(&site()), 0, 500)
        .await
        .expect("events")
        .events;
    let yields = heard
        .iter()
        .filter(|event| event.event.kind == EventKind::ClaimYielded)
        .count();
    assert_eq!(yields, 2);
}

async fn a_firm_workload_does_not(lab: Lab) {
    let runs = lab
        .workload("gpu-01.gpu0", lab.span(0, 10), Firmness::Firm, None)
        .await;
    let soft = lab
        .workload("gpu-01.gpu1", lab.span(0, 10), yielding(), None)
        .await;
    lab.try_book(&lab.ada, &["gpu-01"], 4, 8)
        .await
        .expect_err("a firm claim stands");
    assert_eq!(lab.claim(runs).await.span, lab.span(0, 10));
    assert_eq!(
        lab.claim(soft).await.span,
        lab.span(0, 10),
        "and nothing gave way for nothing"
    );
}

async fn work_inside_a_reservation_ends_with_it(lab: Lab) {
    let mine = lab.book(&lab.ada, &["gpu-01"], 1, 9).await;
    let container = mine.items[0].claim;
    let early = lab
        .workload(
            "gpu-01.gpu0",
            lab.span(1, 4),
            Firmness::Firm,
            Some(container),
        )
        .await;
    let long = lab
        .workload(
            "gpu-01.gpu1",
            lab.span(2, 9),
            Firmness::Firm,
            Some(container),
        )
        .await;
    let late = lab
        .workload(
            "gpu-01.gpu0",
            lab.span(7, 9),
            Firmness::Firm,
            Some(container),
        )
        .await;
    let shorter = ReservationChange {
        end: Some(lab.at(6)),
        ..Default::default()
    };
    lab.app
        .change_reservation(&lab.ada, &site(), mine.id, None, &shorter)
        .await
        .expect("shortened");
    assert_eq!(lab.claim(early).await.span, lab.span(1, 4));
    assert_eq!(lab.claim(long).await.span, lab.span(2, 6));
    assert_eq!(lab.claim(late).await.standing, Standing::Void);
    lab.app
        .cancel_reservation(&lab.ada, &site(), mine.id, None, None)
        .await
        .expect("cancelled");
    assert_eq!(lab.claim(early).await.standing, Standing::Void);
    assert_eq!(lab.claim(long).await.standing, Standing::Void);
    lab.book(&lab.bob, &["rack-a"], 1, 9).await;
}

async fn maintenance_goes_around_or_over_as_decided(lab: Lab) {
    use berth_app::Error;
    use berth_app::maintenance::{NewWindow, WindowChoice};
    let keep = lab.book(&lab.ada, &["gpu-01"], 2, 4).await;
    let cancel = lab.book(&lab.bob, &["gpu-02"], 3, 5).await;
    let soft = lab
        .workload("gpu-01.gpu0", lab.span(4, 10), yielding(), None)
        .await;
    let mut window = NewWindow {
        title: "new power supply".parse().expect("text"),
        span: lab.span(1, 8),
        resources: vec![
            Reference::Name(name("gpu-01")),
            Reference::Name(name("gpu-02")),
        ],
        decisions: [(keep.id, WindowChoice::Keep)].into(),
    };
    let told = lab
        .app
        .preview_window(&lab.admin, &site(), &window)
        .await
        .expect("told");
    assert_eq!(told.in_the_way.len(), 2);
    match lab.app.plan_window(&lab.admin, &site(), &window).await {
        Err(Error::InTheWay { undecided, .. }) => assert_eq!(undecided, [cancel.id]),
        other => panic!("it must ask about the other booking: {other:?}"),
    }
    window.decisions.insert(cancel.id, WindowChoice::Cancel);
    let laid = lab
        .app
        .plan_window(&lab.admin, &site(), &window)
        .await
        .expect("laid")
        .value;
    let spans: Vec<Span> = laid.parts.iter().map(|(_, span)| *span).collect();
    assert_eq!(
        spans.len(),
        3,
        "around the kept booking on gpu-01, over the other on gpu-02: {spans:?}"
    );
    assert!(
        spans.contains(&lab.span(1, 2))
            && spans.contains(&lab.span(4, 8))
            && spans.contains(&lab.span(1, 8))
    );
    assert_eq!(
        lab.read(cancel.id).await.state,
        berth_model::reservation::State::Cancelled
    );
    assert_eq!(lab.claim(soft).await.standing, Standing::Void);
    lab.try_book(&lab.bob, &["gpu-02"], 6, 7)
        .await
        .expect_err("the window occupies the timeline");
    lab.app
        .cancel_window(&lab.admin, &site(), laid.window.id, None)
        .await
        .expect("cancelled");
    lab.book(&lab.bob, &["gpu-02"], 6, 7).await;
}
