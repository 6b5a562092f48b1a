//! The logos of sites. A logo's digest is in the site's row, so no query reads an image to learn whether there is one.

use berth_model::SiteId;
use berth_model::branding::{Logo, LogoKind};

use crate::error::{Error, Result};
use crate::sql::{Conn, query};
use crate::words::Word;

/// Sets a site's logo, if nobody changed the site since `version`. Returns whether it did.
pub async fn set(
    conn: &mut Conn,
    site: SiteId,
    version: u64,
    logo: &Logo,
    digest: &str,
) -> Result<bool> {
    if !set_digest(conn, site, version, Some(digest)).await? {
        return Ok(false);
    }
    query(
        "INSERT INTO site_logo (site, kind, content) VALUES ($1, $2, $3)
         ON CONFLICT (site) DO UPDATE SET kind = excluded.kind, content = excluded.content",
    )
    .bind(site.0)
    .bind(logo.kind().word())
    .bind(logo.content())
    .execute(conn)
    .await?;
    Ok(true)
}

/// Removes a site's logo, if nobody changed the site since `version`. Returns whether it did.
pub async fn remove(conn: &mut Conn, site: SiteId, version: u64) -> Result<bool> {
    if !set_digest(conn, site, version, None).await? {
        return Ok(false);
    }
    query("DELETE FROM site_logo WHERE site = $1")
        .bind(site.0)
        .execute(conn)
        .await?;
    Ok(true)
}

async fn set_digest(
    conn: &mut Conn,
    site: SiteId,
    version: u64,
    digest: Option<&str>,
) -> Result<bool> {
    let changed =
        query("UPDATE site SET logo = $1, version = version + 1 WHERE id = $2 AND version = $3")
            .bind(digest)
            .bind(site.0)
            .bind(version)
            .execute(conn)
            .await?;
    Ok(changed == 1)
}

pub async fn of_site(conn: &mut Conn, site: SiteId) -> Result<Option<Logo>> {
    let row = query("SELECT kind, content FROM site_logo WHERE site = $1")
        .bind(site.0)
        .optional(conn)
        .await?;
    row.map(|row| {
        let kind: LogoKind = row.word("kind")?;
        let logo = Logo::read(row.get("content")?);
        logo.ok()
            .filter(|logo| logo.kind() == kind)
            .ok_or_else(|| Error::Corrupt("a logo that is no image".into()))
    })
    .transpose()
}
