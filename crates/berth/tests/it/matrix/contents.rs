//! Not only whether something is answered, but how much: the same question, and less in the answer for those who may
//! see less.

use serde_json::{Value, json};

use super::arrange::Stage;
use super::callers::View;

const ADDRESS: &str = "10.9.8.7";
const TITLE: &str = "a title for those inside";

/// What there is to see: a machine with an address for provisioning, and two reservations of it, one of them private.
#[derive(Debug)]
pub struct Exhibit {
    resource: String,
    calendar: String,
}

impl Exhibit {
    pub async fn put_up(stage: &Stage) -> Self {
        let site = format!("/sites/{}", stage.world.torino);
        let body = json!({
            "name": stage.fresh.name(), "type": "server", "facts": {"provisioning_address": ADDRESS},
        });
        let made = stage
            .http
            .make(&stage.root, &format!("{site}/resources"), &body)
            .await;
        let resource = made["id"].as_str().expect("an id").to_owned();
        let mut times = Vec::new();
        for privacy in ["site", "private"] {
            let (start, end) = stage.fresh.slot();
            let body = json!({
                "title": TITLE, "start": start, "end": end, "privacy": privacy,
                "resources": [{"resource": resource}],
            });
            let ada = stage.world.who("ada");
            stage
                .http
                .make(&ada, &format!("{site}/reservations"), &body)
                .await;
            times.extend([start, end]);
        }
        let (from, to) = (&times[0], &times[3]);
        Self {
            calendar: format!("{site}/calendar?from={from}&to={to}&resource={resource}"),
            resource: format!("{site}/resources/{resource}"),
        }
    }

    /// What the outsider sees now that the site shows this much.
    pub async fn check_outsider(&self, stage: &Stage, view: View, wrong: &mut Vec<String>) {
        let listed = self.lists_the_site(stage, "otto").await;
        let (address, kinds) = (
            self.sees_the_address(stage, "otto").await,
            self.kinds(stage, "otto").await,
        );
        let expected: &[&str] = match view {
            View::FreeBusy => &["busy", "busy"],
            View::Nothing | View::Name | View::Catalogue => &[],
        };
        if (listed, address) != (view != View::Nothing, false) || kinds != expected {
            wrong.push(format!(
                "an outsider, {view:?}: listed {listed}, address {address}, {kinds:?}"
            ));
        }
    }

    /// What people inside see, and those of another site, who see nothing.
    pub async fn check_others(&self, stage: &Stage, wrong: &mut Vec<String>) {
        let (open, shut) = ("reservation, titled", "busy");
        for (who, listed, address, kinds) in [
            ("bea", false, false, vec![]),
            ("bruno", false, false, vec![]),
            ("bob", true, false, vec![open, shut]),
            ("ada", true, false, vec![open, open]),
            ("adele", true, true, vec![open, open]),
            ("root", true, true, vec![open, open]),
        ] {
            let seen = (
                self.lists_the_site(stage, who).await,
                self.sees_the_address(stage, who).await,
                self.kinds(stage, who).await,
            );
            if (seen.0, seen.1) != (listed, address) || seen.2 != kinds {
                wrong.push(format!("{who} sees {seen:?}"));
            }
        }
    }

    async fn lists_the_site(&self, stage: &Stage, who: &str) -> bool {
        let sites = stage
            .http
            .get(&stage.world.who(who), "/sites?limit=500")
            .await
            .expect(200);
        sites.text.contains(&stage.world.torino)
    }

    async fn sees_the_address(&self, stage: &Stage, who: &str) -> bool {
        let resource = stage.http.get(&stage.world.who(who), &self.resource).await;
        resource.text.contains(ADDRESS)
    }

    /// What each entry of the calendar tells this person, in its order.
    async fn kinds(&self, stage: &Stage, who: &str) -> Vec<&'static str> {
        let calendar = stage
            .http
            .get(&stage.world.who(who), &self.calendar)
            .await
            .json();
        let entries = calendar["items"].as_array().cloned().unwrap_or_default();
        entries.iter().map(kind).collect()
    }
}

fn kind(entry: &Value) -> &'static str {
    let tells = |key: &str| entry.get(key).is_some();
    let is_titled = entry["title"] == TITLE && tells("owner") && tells("reservation");
    let is_silent = !["title", "owner", "state", "reservation"]
        .into_iter()
        .any(tells);
    match entry["kind"].as_str() {
        Some("reservation") if is_titled => "reservation, titled",
        Some("busy") if is_silent => "busy",
        _ => "more or less than it should",
    }
}
