//! Creates the first admin, from a command on the server's own machine.

use berth_model::event::{Audience, EventKind};
use berth_model::person::{Person, PersonState, TimeZone};
use berth_model::{LoginName, PersonId, Text};
use berth_store::people;
use secrecy::SecretString;

use crate::App;
use crate::accounts::ResetLink;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::record::{By, Change};
use crate::transact::transact;

impl App {
    /// Creates a global admin. Without a password, returns a one-time link to set one.
    pub async fn create_admin(
        &self,
        login: LoginName,
        display_name: Text,
        password: Option<&SecretString>,
    ) -> Result<(Person, Option<ResetLink>)> {
        let hash = match password {
            Some(password) => Some(self.hash_password("password", password).await?),
            None => None,
        };
        let now = self.now();
        let person = Person {
            id: PersonId(fresh(now)),
            login,
            display_name,
            email: None,
            time_zone: TimeZone::utc(),
            global_admin: true,
            state: PersonState::Active,
            version: 1,
            created_at: now,
        };
        transact!(self, tx => {
            people::insert(&mut tx, &person).await?;
            let link = match &hash {
                Some(hash) => {
                    self.put_password(&mut tx, person.id, hash).await?;
                    None
                }
                None => Some(self.new_link(&mut tx, person.id).await?),
            };
            let change = Change::new("person.create", None, person.id).after(&person);
            self.record(&mut tx, By::SYSTEM, change.tell(EventKind::PersonCreated, Audience::Admins)).await?;
            Ok((person.clone(), link))
        })
        .map_err(|error: Error| error.taken(&person.login))
    }
}
