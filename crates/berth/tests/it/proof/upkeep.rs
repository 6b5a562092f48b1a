//! What a client does to the lab itself, where it is an admin: moving subtrees and setting their status.

use anyhow::{Result, bail, ensure};
use berth_api::headers::IfMatch;
use berth_api::resources::{MoveResource, StatusPatch};
use berth_model::{ResourceId, Status};

use super::client::Asker;

impl Asker {
    pub async fn move_subtree(&mut self, what: ResourceId, under: ResourceId) -> Result<()> {
        let site = self.world.site.clone();
        let to = MoveResource {
            parent: Some(under.into()),
        };
        let answer = self
            .ask(async |client| client.move_resource(&site, &what.into(), &to).await)
            .await?;
        self.ledger.moves.unsure += answer.lost;
        match answer.said {
            Ok(outcome) => {
                ensure!(outcome.moved, "{what} was to move and did not");
                self.ledger.moves.acknowledged.push((what, Some(under)));
                self.ledger.accept("move");
                Ok(())
            }
            Err(problem) => self.refused("move", &problem, 0),
        }
    }

    pub async fn flip(&mut self, what: ResourceId, to: Status) -> Result<()> {
        let site = self.world.site.clone();
        let resource = what.into();
        let answer = self
            .ask(async |client| client.resource(&site, &resource).await)
            .await?;
        let version = match answer.said {
            Ok(resource) => IfMatch::Version(resource.version),
            Err(problem) => bail!("{what} could not be read: {problem}"),
        };
        let status = StatusPatch {
            status: to,
            reason: Some("it is that time again".parse()?),
        };
        let answer = self
            .ask(async |client| client.set_status(&site, &resource, version, &status).await)
            .await?;
        self.ledger.statuses.unsure += answer.lost;
        match answer.said {
            Ok(resource) => {
                ensure!(resource.status == to, "{what} is not {to} but said so");
                self.ledger.statuses.acknowledged.push((what, to));
                self.ledger.accept("status");
                Ok(())
            }
            Err(problem) => self.refused("status", &problem, 0),
        }
    }
}
