//! The last outage notice that each booking's owner received about resources out of service.

use std::collections::HashMap;

use berth_model::{ReservationId, SiteId};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::sql::{Conn, query};

pub async fn of_site(conn: &mut Conn, site: SiteId) -> Result<HashMap<ReservationId, Value>> {
    let notices = query("SELECT reservation, fate FROM outage_notice WHERE site = $1")
        .bind(site.0)
        .map(conn, |row| {
            let fate: String = row.get("fate")?;
            let fate =
                serde_json::from_str(&fate).map_err(|error| Error::Corrupt(error.to_string()))?;
            Ok((ReservationId(row.get("reservation")?), fate))
        })
        .await?;
    Ok(notices.into_iter().collect())
}

pub async fn put(
    conn: &mut Conn,
    site: SiteId,
    reservation: ReservationId,
    fate: &Value,
) -> Result<()> {
    query(
        "INSERT INTO outage_notice (reservation, site, fate) VALUES ($1, $2, $3)
         ON CONFLICT (reservation) DO UPDATE SET fate = excluded.fate",
    )
    .bind(reservation.0)
    .bind(site.0)
    .bind(fate.to_string())
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes a notice, so that the next outage of the same booking sends a new one.
pub async fn remove(conn: &mut Conn, reservation: ReservationId) -> Result<()> {
    query("DELETE FROM outage_notice WHERE reservation = $1")
        .bind(reservation.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// The sites that have notices.
pub async fn sites(conn: &mut Conn) -> Result<Vec<SiteId>> {
    query("SELECT DISTINCT site FROM outage_notice")
        .map(conn, |row| Ok(SiteId(row.get("site")?)))
        .await
}
