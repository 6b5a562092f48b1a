//! Accounts, for global admins and for their owners.

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::person::{Person, PersonState, TimeZone};
use berth_model::reference::PersonReference;
use berth_model::{LoginName, PersonId, Reference, SiteId, Text};
use berth_store::{Conn, people, sign_ins, sites};
use secrecy::SecretString;

use crate::App;
use crate::accounts::ResetLink;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::record::Change;
use crate::transact::transact;
use crate::version;

#[derive(Debug, Clone)]
pub struct NewPerson {
    pub login: LoginName,
    pub display_name: Text,
    pub email: Option<String>,
    pub time_zone: Option<TimeZone>,
    /// Without a password, a one-time link is made, with which they choose their own.
    pub password: Option<SecretString>,
}

/// The fields of a person that may change. An absent field stays unchanged.
#[derive(Debug, Clone, Default)]
pub struct PersonChange {
    pub display_name: Option<Text>,
    pub email: Option<Option<String>>,
    pub time_zone: Option<TimeZone>,
    pub global_admin: Option<bool>,
    pub suspended: Option<bool>,
}

/// An id that no person has.
const NOBODY: PersonId = PersonId(uuid::Uuid::nil());

impl App {
    pub(crate) async fn person(&self, conn: &mut Conn, person: &PersonReference) -> Result<Person> {
        let found = match person {
            Reference::Id(id) => people::get(conn, *id).await?,
            Reference::Name(login) => people::by_login(conn, login).await?,
        };
        found
            .filter(|person| person.state != PersonState::Removed)
            .ok_or(Error::NotFound("person"))
    }

    /// A member whom a caller names in a site. A person who is not a member gives the same error as an unknown person:
    /// `what` not found.
    pub(crate) async fn member_named(
        &self,
        conn: &mut Conn,
        site: SiteId,
        person: &PersonReference,
        what: &'static str,
    ) -> Result<Person> {
        let found = self.person(conn, person).await;
        let found = found.map_err(|error| match error {
            Error::NotFound(_) => Error::NotFound(what),
            other => other,
        })?;
        // Locked until the transaction ends, so that it cannot overlap with the removal of this member.
        let role = sites::role_locked(conn, site, found.id).await?;
        role.map(|_| found).ok_or(Error::NotFound(what))
    }

    /// The person to whom a list is narrowed. An unknown login narrows it to nothing, as the login of a stranger does.
    pub(crate) async fn narrowed_to(
        &self,
        conn: &mut Conn,
        person: &PersonReference,
    ) -> Result<PersonId> {
        match (self.person(conn, person).await, person) {
            (Ok(person), _) => Ok(person.id),
            (Err(Error::NotFound(_)), Reference::Id(id)) => Ok(*id),
            (Err(Error::NotFound(_)), Reference::Name(_)) => Ok(NOBODY),
            (Err(error), _) => Err(error),
        }
    }

    pub async fn create_person(
        &self,
        caller: &Caller,
        new: NewPerson,
    ) -> Result<Made<(Person, Option<ResetLink>)>> {
        caller.may(Action::ManagePeople, false, "person")?;
        let hash = match &new.password {
            Some(password) => Some(self.hash_password("password", password).await?),
            None => None,
        };
        let now = self.now();
        let person = Person {
            id: PersonId(fresh(now)),
            login: new.login,
            display_name: new.display_name,
            email: new.email,
            time_zone: new.time_zone.unwrap_or_else(TimeZone::utc),
            global_admin: false,
            state: PersonState::Active,
            version: 1,
            created_at: now,
        };
        transact!(self, tx => {
            if let Some(earlier) = self.first_time(&mut tx, caller, person.id).await? {
                let person = people::get(&mut tx, earlier).await?.ok_or(Error::NotFound("person"))?;
                return Ok(Made::before((person, None)));
            }
            people::insert(&mut tx, &person).await?;
            let link = match &hash {
                Some(hash) => {
                    self.put_password(&mut tx, person.id, hash).await?;
                    None
                }
                None => Some(self.new_link(&mut tx, person.id).await?),
            };
            let change = Change::new("person.create", None, person.id).after(&person);
            self.record(&mut tx, caller, change.tell(EventKind::PersonCreated, Audience::Admins)).await?;
            Ok(Made::now((person.clone(), link)))
        })
        .map_err(|error: Error| error.taken(&person.login))
    }

    pub async fn get_person(&self, caller: &Caller, person: &PersonReference) -> Result<Person> {
        let mut reader = self.store.read().await?;
        let is_own = match person {
            Reference::Id(id) => *id == caller.id(),
            Reference::Name(login) => *login == caller.person.login,
        };
        caller.may(Action::SeePerson, is_own, "person")?;
        self.person(&mut reader, person).await
    }

    pub async fn list_people(
        &self,
        caller: &Caller,
        after: &str,
        limit: u64,
    ) -> Result<Vec<Person>> {
        caller.may(Action::SeePeople, false, "person")?;
        let mut reader = self.store.read().await?;
        Ok(people::list(&mut reader, after, limit).await?)
    }

    /// Changes the caller's own profile. The version is optional, because hardly anyone else changes it.
    pub async fn update_me(
        &self,
        caller: &Caller,
        version: Option<u64>,
        change: PersonChange,
    ) -> Result<Person> {
        caller.may(Action::ChangeOwnAccount, true, "account")?;
        let change = PersonChange {
            global_admin: None,
            suspended: None,
            ..change
        };
        self.change_person(caller, &Reference::Id(caller.id()), version, change)
            .await
    }

    /// Whether there is any account.
    pub async fn is_set_up(&self) -> Result<bool> {
        let mut reader = self.store.read().await?;
        Ok(!people::list(&mut reader, "", 1).await?.is_empty())
    }

    pub async fn update_person(
        &self,
        caller: &Caller,
        person: &PersonReference,
        version: Option<u64>,
        change: PersonChange,
    ) -> Result<Person> {
        caller.may(Action::ManagePeople, false, "person")?;
        self.change_person(caller, person, version, change).await
    }

    async fn change_person(
        &self,
        caller: &Caller,
        person: &PersonReference,
        version: Option<u64>,
        change: PersonChange,
    ) -> Result<Person> {
        transact!(self, tx => {
            let before = self.person(&mut tx, person).await?;
            version::expect(version, before.version)?;
            let mut after = Person { version: before.version + 1, ..before.clone() };
            after.display_name = change.display_name.clone().unwrap_or(after.display_name);
            after.email = change.email.clone().unwrap_or(after.email);
            after.time_zone = change.time_zone.clone().unwrap_or(after.time_zone);
            after.global_admin = change.global_admin.unwrap_or(after.global_admin);
            after.state = match change.suspended {
                Some(true) => PersonState::Suspended,
                Some(false) => PersonState::Active,
                None => after.state,
            };
            let steps_down = before.global_admin && !(after.global_admin && after.state == PersonState::Active);
            if steps_down && people::other_global_admins(&mut tx, before.id).await? == 0 {
                return Err(Error::LastAdmin(before.login.to_string()));
            }
            if !people::update(&mut tx, &after, before.version).await? {
                return Err(version::overtaken(before.version));
            }
            if after.state == PersonState::Suspended {
                sign_ins::end_all(&mut tx, after.id).await?;
            }
            let record = Change::new("person.change", None, after.id).before(&before).after(&after);
            self.record(&mut tx, caller, record.tell(EventKind::PersonChanged, Audience::Person(after.id))).await?;
            Ok(after)
        })
    }
}
