//! Tests a hypothetical booking against every rule.

use berth_engine::policy::{Accepted, Finding, Refusal};
use berth_engine::rights::Action;
use berth_model::reference::{PersonReference, ProjectReference, SiteReference};
use berth_model::reservation::{Privacy, State, Terms};
use berth_model::{ReservationId, Span};

use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::reservations::Item;

/// A hypothetical booking. The test does not check whether there is room.
#[derive(Debug, Clone)]
pub struct PolicyTest {
    pub span: Span,
    pub items: Vec<Item>,
    pub project: Option<ProjectReference>,
    /// None means the caller.
    pub owner: Option<PersonReference>,
}

/// Every rule that was checked, and the verdict.
#[derive(Debug, Clone)]
pub struct Tested {
    pub findings: Vec<Finding>,
    pub verdict: Result<Accepted, Refusal>,
    pub directory: Directory,
}

impl App {
    pub async fn test_policies(
        &self,
        caller: &Caller,
        site: &SiteReference,
        test: &PolicyTest,
    ) -> Result<Tested> {
        // A transaction, because counting locks the person and the project. It is rolled back at the end.
        let mut tx = self.store.begin().await?;
        let tested = self.test_inside(&mut tx, caller, site, test).await;
        tx.withdraw().await?;
        tested
    }

    async fn test_inside(
        &self,
        conn: &mut berth_store::Conn,
        caller: &Caller,
        site: &SiteReference,
        test: &PolicyTest,
    ) -> Result<Tested> {
        let place = self.place(conn, caller, site, Action::SeePolicies).await?;
        let mut directory = Directory::with_site(&place.site);
        let owner = self
            .booking_owner(conn, caller, &place, test.owner.as_ref(), &mut directory)
            .await?;
        let project = self
            .booking_project(
                conn,
                caller,
                &place,
                owner,
                test.project.as_ref(),
                &mut directory,
            )
            .await?;
        let items = self
            .looked_up(conn, &place, &test.items, &mut directory)
            .await?;
        let now = self.now();
        let title = "a test"
            .parse()
            .map_err(|_| Error::Internal("a title".into()))?;
        let wish = berth_model::reservation::Reservation {
            id: ReservationId(fresh(now)),
            site: place.id(),
            owner,
            project,
            title,
            privacy: Privacy::Private,
            state: State::Confirmed,
            state_reason: None,
            span: test.span,
            items,
            parameters: Default::default(),
            terms: Terms::default(),
            occurrence: None,
            version: 1,
            created_at: now,
            updated_at: now,
        };
        let (findings, verdict) = self
            .examine(conn, caller, &place, &directory, &wish)
            .await?;
        Ok(Tested {
            findings,
            verdict,
            directory,
        })
    }
}
