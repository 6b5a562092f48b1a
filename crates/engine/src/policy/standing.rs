//! The existing bookings that a policy would break. The caller lists them; they are kept.

use berth_model::ReservationId;
use jiff::Timestamp;

use super::breach::Breach;
use super::calendar::Calendar;
use super::judge::{Desk, Finding};
use super::ledger::{Booking, Ledger, RulesOf};
use super::rules::Policies;

/// The existing bookings that break `policies`, each with the rules that it breaks. Bookings are judged in the order
/// of their starts, as if made one after the other. If there are too many, the later ones break, and the remaining
/// bookings comply together. The notice rule does not apply to existing bookings.
pub fn breaking(
    policies: &Policies,
    calendar: &Calendar,
    standing: &[Booking],
    now: Timestamp,
) -> Vec<(ReservationId, Vec<Breach>)> {
    let mut in_order: Vec<&Booking> = standing.iter().collect();
    in_order.sort_by_key(|booking| (booking.span, booking.id));
    let mut rules = RulesOf::new(policies);
    let mut ledger = Ledger::default();
    let mut broken = Vec::new();
    for booking in in_order {
        let rules = rules.get(booking);
        let desk = Desk {
            rules,
            calendar,
            ledger: &ledger,
            now,
        };
        let as_it_stands = Booking {
            stands_from: Some(booking.span.start()),
            ..booking.clone()
        };
        let findings: Vec<Finding> = desk.explain(&as_it_stands);
        let breaches: Vec<Breach> = findings
            .into_iter()
            .flat_map(|found| found.breaches)
            .collect();
        match booking.id {
            Some(id) if !breaches.is_empty() => broken.push((id, breaches)),
            _ => ledger.add(booking, rules, calendar),
        }
    }
    broken
}
