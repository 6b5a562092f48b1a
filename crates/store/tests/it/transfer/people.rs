//! Who is in the world: people and how they sign in, sites and who belongs to them.

use anyhow::Result;
use berth_model::person::{Person, PersonState, Scope, TimeZone, Token};
use berth_model::site::{JoinRequest, JoinState, Membership, OutsiderView, Role, Site};
use berth_model::{JoinRequestId, PersonId, ResourceType, SignInId, SiteId, TokenId, TypeId};
use berth_store::{Tx, inventory, people, sign_ins, sites};

use super::world::{fresh, hour};

/// A person with every way to sign in, and one who left.
pub async fn insert_people(tx: &mut Tx) -> Result<PersonId> {
    let ada = Person {
        id: PersonId(fresh()),
        login: "ada".parse()?,
        display_name: "Ada L.".parse()?,
        email: Some("ada@example.org".into()),
        time_zone: TimeZone::utc(),
        global_admin: true,
        state: PersonState::Active,
        version: 1,
        created_at: hour(0),
    };
    let gone = Person {
        id: PersonId(fresh()),
        login: "bob".parse()?,
        email: None,
        global_admin: false,
        state: PersonState::Removed,
        ..ada.clone()
    };
    for person in [&ada, &gone] {
        people::insert(tx, person).await?;
    }
    people::set_password(tx, ada.id, "$argon2id$…", hour(0)).await?;
    let session = sign_ins::SignIn {
        id: SignInId(fresh()),
        person: ada.id,
        created_at: hour(0),
        last_seen_at: hour(0),
        expires_at: hour(100),
    };
    sign_ins::insert(tx, &session, &[7; 32]).await?;
    let token = Token {
        id: TokenId(fresh()),
        person: ada.id,
        label: "laptop".parse()?,
        scopes: Scope::ALL.into(),
        created_at: hour(0),
        expires_at: hour(100),
        last_used_at: None,
        revoked_at: None,
    };
    sign_ins::insert_token(tx, &token, &[0, 1, 255]).await?;
    sign_ins::insert_link(tx, ada.id, &[9; 32], hour(0), hour(1)).await?;
    sign_ins::know_network(tx, ada.id, "192.0.2.7", hour(0)).await?;
    // The one table without a key, with two rows alike.
    for subject in ["ada", "192.0.2.7", "ada"] {
        sign_ins::note_failure(tx, subject, hour(0)).await?;
    }
    Ok(ada.id)
}

pub async fn insert_site(tx: &mut Tx, name: &str) -> Result<SiteId> {
    let site = Site {
        id: SiteId(fresh()),
        name: name.parse()?,
        title: name.parse()?,
        time_zone: "Europe/Rome".parse()?,
        outsiders_see: OutsiderView::FreeBusy,
        version: 1,
        accent: None,
        logo: None,
        policy_version: 1,
        created_at: hour(0),
    };
    sites::insert(tx, &site).await?;
    Ok(site.id)
}

pub async fn insert_type(tx: &mut Tx, site: SiteId, name: &str) -> Result<TypeId> {
    let kind = ResourceType {
        id: TypeId(fresh()),
        site,
        name: name.parse()?,
        title: name.parse()?,
        colour: "#1f77b4".parse()?,
        form: Default::default(),
        needs_approval: true,
        version: 1,
    };
    inventory::insert_type(tx, &kind).await?;
    Ok(kind.id)
}

pub async fn insert_membership(tx: &mut Tx, site: SiteId, person: PersonId) -> Result<()> {
    let membership = Membership {
        site,
        person,
        role: Role::SiteAdmin,
        since: hour(0),
    };
    sites::set_member(tx, &membership).await?;
    let request = JoinRequest {
        id: JoinRequestId(fresh()),
        site,
        person,
        message: Some("please".parse()?),
        state: JoinState::Waiting,
        created_at: hour(0),
    };
    sites::insert_join_request(tx, &request).await?;
    Ok(())
}
