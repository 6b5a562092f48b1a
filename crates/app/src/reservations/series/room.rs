//! Finds out before booking which of many instances would be refused, and by which claims.

use std::collections::{BTreeMap, HashMap};

use berth_engine::room::in_the_way;
use berth_engine::rule::is_firm;
use berth_model::{Claim, ClaimId, ResourceId, Span, Standing};
use berth_store::{Conn, claims};

use super::super::hold::{ALL, CLOCKS_APART};
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::seen::Conflict;

/// How many claims one skipped instance names.
const NAMED_MAX: usize = 3;
/// How many claims the refusal of a series names.
const EXPLAINED_MAX: usize = 20;

/// The claims in the way of one instance, each with the resource that was wanted.
pub(super) type InTheWay = Vec<(ResourceId, Claim)>;

impl App {
    /// The claims in the way of each of many bookings, given by their own claims. Yielding claims do not count.
    pub(super) async fn in_the_way_of_each(
        &self,
        conn: &mut Conn,
        directory: &Directory,
        wanted: &[&[Claim]],
    ) -> Result<Vec<InTheWay>> {
        let mut met: Vec<InTheWay> = vec![Vec::new(); wanted.len()];
        let mut by_resource: BTreeMap<ResourceId, Vec<(usize, &Claim)>> = BTreeMap::new();
        for (nth, claims) in wanted.iter().enumerate() {
            for claim in *claims {
                by_resource
                    .entry(claim.resource)
                    .or_default()
                    .push((nth, claim));
            }
        }
        for (resource, mut wishes) in by_resource {
            wishes.sort_by_key(|(_, claim)| claim.span.start());
            let spans: Vec<_> = wishes
                .iter()
                .map(|(_, claim)| (claim.span, claim.take))
                .collect();
            let standing = self.standing(conn, resource, &spans).await?;
            let known = directory.resources.get(&resource);
            let capacity = known.and_then(|known| known.capacity.as_ref());
            let capacity = capacity.map_or(0, |capacity| capacity.amount.get());
            let found = in_the_way(resource, capacity, &spans, standing);
            for ((nth, _), found) in wishes.iter().zip(found) {
                met[*nth].extend(found.into_iter().map(|claim| (resource, claim)));
            }
        }
        Ok(met)
    }

    /// The claims that hold during any of the spans, and past claims that had a part of such a span. Nobody gets a time
    /// that another booking had.
    async fn standing<T>(
        &self,
        conn: &mut Conn,
        resource: ResourceId,
        spans: &[(Span, T)],
    ) -> Result<Vec<Claim>> {
        let (Some((first, _)), Some((last, _))) = (spans.first(), spans.last()) else {
            return Ok(Vec::new());
        };
        let Ok(all) = Span::new(first.start(), last.end()) else {
            return Ok(Vec::new());
        };
        let mut standing = claims::overlapping(conn, resource, all, None, ALL).await?;
        standing.retain(is_firm);
        let soon = self.now() + CLOCKS_APART;
        for (span, _) in spans.iter().take_while(|(span, _)| span.start() < soon) {
            let over = claims::over_during(conn, resource, *span, ALL).await?;
            standing.retain(|claim| !over.iter().any(|past| past.id == claim.id));
            standing.extend(over.into_iter().map(|claim| Claim {
                standing: Standing::Holding,
                ..claim
            }));
        }
        Ok(standing)
    }

    /// The refusal that each of these bookings would get alone. None if no claim is in the way.
    pub(super) async fn refusal_of_each(
        &self,
        conn: &mut Conn,
        place: &Place,
        caller: &Caller,
        directory: &Directory,
        met: Vec<InTheWay>,
    ) -> Result<Vec<Option<Error>>> {
        // One claim may be in the way of many bookings; it is looked up once.
        let mut named: HashMap<(ResourceId, ClaimId), Claim> = HashMap::new();
        for (wanted, claim) in met.iter().flat_map(|met| met.iter().take(NAMED_MAX)) {
            named.insert((*wanted, claim.id), claim.clone());
        }
        let pairs = named
            .into_iter()
            .map(|((wanted, _), claim)| (wanted, claim));
        let mut directory = directory.clone();
        let conflicts = self
            .explain(conn, place, caller, pairs.collect(), &mut directory)
            .await?;
        let seen: HashMap<(ResourceId, ClaimId), Conflict> = conflicts
            .into_iter()
            .map(|conflict| ((conflict.wanted, conflict.claim.claim.id), conflict))
            .collect();
        let refusal = |met: InTheWay| {
            let seen = met
                .iter()
                .filter_map(|(wanted, claim)| seen.get(&(*wanted, claim.id)).cloned());
            let refusal = Error::Conflict {
                conflicts: seen.collect(),
                alternatives: Vec::new(),
                directory: Box::new(directory.clone()),
            };
            (!met.is_empty()).then_some(refusal)
        };
        Ok(met.into_iter().map(refusal).collect())
    }

    /// The refusal of a whole series, from a new read after the refusal.
    pub(super) async fn series_refusal(
        &self,
        place: &Place,
        caller: &Caller,
        directory: &Directory,
        wanted: &[Vec<Claim>],
    ) -> Result<Error> {
        let mut reader = self.store.read().await?;
        let claims: Vec<&[Claim]> = wanted.iter().map(Vec::as_slice).collect();
        let met = self
            .in_the_way_of_each(&mut reader, directory, &claims)
            .await?;
        drop(reader);
        let refused = wanted.iter().zip(&met).filter(|(_, met)| !met.is_empty());
        let refused: Vec<Claim> = refused
            .flat_map(|(claims, _)| claims.iter().cloned())
            .take(EXPLAINED_MAX)
            .collect();
        Ok(self.refusal(place, caller, &refused, &[]).await)
    }
}
