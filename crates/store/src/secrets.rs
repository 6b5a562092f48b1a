//! Sealed secrets. The store keeps them; only `app` has the key.

use berth_model::{Name, ReservationId, SecretId, SiteId};

use crate::error::Result;
use crate::sql::{Conn, Row, query};

#[derive(Debug, Clone)]
pub struct SealedSecret {
    pub id: SecretId,
    pub site: SiteId,
    pub reservation: ReservationId,
    pub type_name: Name,
    pub parameter: Name,
    pub key_id: String,
    pub sealed: Vec<u8>,
}

fn sealed(row: &Row) -> Result<SealedSecret> {
    Ok(SealedSecret {
        id: SecretId(row.get("id")?),
        site: SiteId(row.get("site")?),
        reservation: ReservationId(row.get("reservation")?),
        type_name: row.parsed("type_name")?,
        parameter: row.parsed("parameter")?,
        key_id: row.get("key_id")?,
        sealed: row.get("sealed")?,
    })
}

pub async fn put(conn: &mut Conn, secret: &SealedSecret) -> Result<()> {
    query(
        "INSERT INTO secret (id, site, reservation, type_name, parameter, key_id, sealed) VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (reservation, type_name, parameter)
         DO UPDATE SET id = excluded.id, key_id = excluded.key_id, sealed = excluded.sealed",
    )
    .bind(secret.id.0)
    .bind(secret.site.0)
    .bind(secret.reservation.0)
    .bind(secret.type_name.as_str())
    .bind(secret.parameter.as_str())
    .bind(secret.key_id.as_str())
    .bind(secret.sealed.as_slice())
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn of_reservation(conn: &mut Conn, id: ReservationId) -> Result<Vec<SealedSecret>> {
    query("SELECT * FROM secret WHERE reservation = $1 ORDER BY type_name, parameter")
        .bind(id.0)
        .map(conn, sealed)
        .await
}

/// Deletes the secrets of a reservation, which a finished one no longer needs.
pub async fn forget(conn: &mut Conn, id: ReservationId) -> Result<()> {
    query("DELETE FROM secret WHERE reservation = $1")
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(())
}
