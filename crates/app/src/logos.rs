//! A site's logo: its admins set and remove it, and everybody who may see the site may see it.

use berth_engine::rights::Action;
use berth_model::FieldErrors;
use berth_model::branding::Logo;
use berth_model::event::{Audience, EventKind};
use berth_model::reference::SiteReference;
use berth_model::site::Site;
use berth_store::logos;
use sha2::{Digest, Sha256};

use crate::App;
use crate::caller::Caller;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::record::Change;
use crate::transact::transact;
use crate::version;

impl App {
    /// Sets or replaces the site's logo.
    pub async fn set_logo(
        &self,
        caller: &Caller,
        site: &SiteReference,
        content: &[u8],
    ) -> Result<Place> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeSite).await?;
            place.may(caller, Action::ManageSite, false, "site")?;
            caller.expects(place.site.version)?;
            let logo = Logo::read(content.to_vec())
                .map_err(|error| FieldErrors::one("logo", error.to_string()))?;
            let before = place.site;
            let digest = digest(&logo);
            if before.logo.as_ref() == Some(&digest) {
                return Ok(Place { site: before, ..place });
            }
            if !logos::set(&mut tx, before.id, before.version, &logo, &digest).await? {
                return Err(version::overtaken(before.version));
            }
            let after = Site { logo: Some(digest), version: before.version + 1, ..before.clone() };
            let change = Change::new("site.logo", Some(after.id), after.id).before(&before).after(&after);
            self.record(&mut tx, caller, change.tell(EventKind::SiteChanged, Audience::Members)).await?;
            Ok(Place { site: after, ..place })
        })
    }

    /// Removes the site's logo. Succeeds if there is none.
    pub async fn remove_logo(&self, caller: &Caller, site: &SiteReference) -> Result<()> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeSite).await?;
            place.may(caller, Action::ManageSite, false, "site")?;
            caller.expects(place.site.version)?;
            let before = place.site;
            if before.logo.is_none() {
                return Ok(());
            }
            if !logos::remove(&mut tx, before.id, before.version).await? {
                return Err(version::overtaken(before.version));
            }
            let after = Site { logo: None, version: before.version + 1, ..before.clone() };
            let change = Change::new("site.logo", Some(after.id), after.id).before(&before).after(&after);
            self.record(&mut tx, caller, change.tell(EventKind::SiteChanged, Audience::Members)).await?;
            Ok(())
        })
    }

    /// The site's logo and its digest.
    pub async fn logo(&self, caller: &Caller, site: &SiteReference) -> Result<(Logo, String)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeSite)
            .await?;
        let logo = logos::of_site(&mut reader, place.id()).await?;
        let logo = logo.ok_or(Error::NotFound("logo"))?;
        let digest = digest(&logo);
        Ok((logo, digest))
    }
}

/// A short digest that identifies the image.
fn digest(logo: &Logo) -> String {
    let hash = Sha256::digest(logo.content());
    hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
