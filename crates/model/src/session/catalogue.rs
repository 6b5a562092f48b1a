//! What can be started as a session: the apps that come with Berth, and those that an admin adds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::name::{Name, Text};
use crate::workload::Serves;

/// In the value of an app's variable: stands for the token of the run, which Berth's proxy adds to each request.
pub const APP_TOKEN: &str = "{app_token}";

/// A web app, and how it is started and looked after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionApp)]
pub struct App {
    pub title: Text,
    /// The program and its arguments. `{base}` is the path below which it answers, with a slash at both ends; `{origin}` the
    /// address in the browser's bar before that; `{socket}` where it listens, if it does so on a socket.
    #[schema(min_items = 1, max_items = 100)]
    pub command: Vec<String>,
    pub serves: Serves,
    /// Below `{base}`: what answers once it can be used.
    #[serde(default)]
    pub health: String,
    /// Whether it is told below which path it answers, and does; otherwise it believes to be at the root.
    #[serde(default)]
    pub knows_its_base: bool,
    /// The managed environment it is found in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Text>,
    #[serde(default)]
    pub activity: Activity,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
}

/// How it is known whether somebody works with it. An open page is not work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = SessionActivity)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// By what visitors send, and by the processor time it takes.
    #[default]
    Traffic,
    /// By its kernels and terminals too, which Jupyter's servers tell of.
    Jupyter,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppError {
    #[error("say the program and its arguments, at most 100 of them and 8,000 signs in all")]
    Command,
    #[error(
        "the path that answers once it is ready has no slash at its beginning, and only signs of an address"
    )]
    Health,
}

impl App {
    pub fn check(self) -> Result<App, AppError> {
        let signs: usize = self.command.iter().map(String::len).sum();
        let has_program = self.command.first().is_some_and(|first| !first.is_empty());
        if !has_program || self.command.len() > 100 || signs > 8_000 {
            return Err(AppError::Command);
        }
        let is_path = |sign: char| sign.is_ascii_graphic() && sign != '#' && sign != '\\';
        if self.health.starts_with('/')
            || self.health.len() > 500
            || !self.health.chars().all(is_path)
        {
            return Err(AppError::Health);
        }
        Ok(self)
    }

    /// The command for a session at this address.
    pub fn command_at(&self, origin: &str, base: &str, socket: &str) -> Vec<String> {
        let fill = |word: &String| {
            word.replace("{origin}", origin)
                .replace("{base}", base)
                .replace("{socket}", socket)
        };
        self.command.iter().map(fill).collect()
    }
}

/// What comes with Berth, by name. A site's own app of the same name takes its place.
pub fn catalogue() -> BTreeMap<Name, App> {
    let known = [
        ("jupyterlab", jupyterlab()),
        ("jupyterhub-singleuser", jupyterhub_singleuser()),
        ("vscode", vscode()),
        ("tensorboard", tensorboard()),
        ("mlflow", mlflow()),
        ("desktop", desktop()),
    ];
    let named = |(name, app): (&str, App)| Some((name.parse().ok()?, app));
    known.into_iter().filter_map(named).collect()
}

fn app(title: &str, command: &[&str], serves: Serves) -> App {
    App {
        title: title
            .parse()
            .unwrap_or_else(|_| unreachable!("titles are texts")),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        serves,
        health: String::new(),
        knows_its_base: false,
        environment: None,
        activity: Activity::Traffic,
        variables: BTreeMap::new(),
    }
}

/// It also checks a token of its own, which Berth's proxy adds to each request.
fn jupyterlab() -> App {
    let command = [
        "jupyter-lab",
        "--no-browser",
        "--ServerApp.sock={socket}",
        "--ServerApp.base_url={base}",
        "--ServerApp.allow_remote_access=True",
        "--ServerApp.trust_xheaders=True",
        "--ServerApp.quit_button=False",
        // Nobody is asked about news, and nothing is told outside.
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ];
    App {
        health: "api/status".to_owned(),
        knows_its_base: true,
        environment: "jupyterlab".parse().ok(),
        activity: Activity::Jupyter,
        variables: [("JUPYTER_TOKEN".to_owned(), APP_TOKEN.to_owned())].into(),
        ..app("JupyterLab", &command, Serves::Socket)
    }
}

/// JupyterHub's own server, as it comes. It takes Berth for its hub, and asks there who its visitors are; what stands in
/// braces it is told when it begins, and the token is kept nowhere else.
fn jupyterhub_singleuser() -> App {
    let scopes = "[\"access:servers!server={person}/{server}\"]";
    let variables = [
        ("JUPYTERHUB_API_TOKEN", "{hub_token}"),
        ("JUPYTERHUB_API_URL", "{hub_url}"),
        (
            "JUPYTERHUB_ACTIVITY_URL",
            "{hub_url}/users/{person}/activity",
        ),
        ("JUPYTERHUB_BASE_URL", "{hub_base}"),
        ("JUPYTERHUB_HOST", "{hub_origin}"),
        ("JUPYTERHUB_CLIENT_ID", "{client}"),
        (
            "JUPYTERHUB_OAUTH_CALLBACK_URL",
            "{origin}{base}oauth_callback",
        ),
        ("JUPYTERHUB_OAUTH_SCOPES", scopes),
        ("JUPYTERHUB_OAUTH_ACCESS_SCOPES", scopes),
        ("JUPYTERHUB_USER", "{person}"),
        ("JUPYTERHUB_SERVER_NAME", "{server}"),
        ("JUPYTERHUB_SERVICE_PREFIX", "{base}"),
        ("JUPYTERHUB_SERVICE_URL", "http://127.0.0.1:8888{base}"),
    ];
    App {
        health: "api".to_owned(),
        knows_its_base: true,
        environment: "jupyterlab".parse().ok(),
        variables: variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..app(
            "JupyterHub's server",
            &["jupyterhub-singleuser"],
            Serves::Port(8888),
        )
    }
}

fn vscode() -> App {
    let command = [
        "code-server",
        "--socket={socket}",
        "--auth=none",
        "--disable-telemetry",
        "--disable-update-check",
        "--trusted-origins=*",
        // It opens with the home, which is its owner's own.
        "--disable-workspace-trust",
        ".",
    ];
    App {
        health: "healthz".to_owned(),
        environment: "vscode".parse().ok(),
        ..app("VS Code", &command, Serves::Socket)
    }
}

/// Shows what was logged below `runs` in the home, where PyTorch's writer puts it if nobody says otherwise. All of the home
/// would be walked through again every few seconds.
fn tensorboard() -> App {
    let command = [
        "tensorboard",
        "--logdir=runs",
        "--host=127.0.0.1",
        "--port=6006",
        "--path_prefix={base}",
    ];
    App {
        knows_its_base: true,
        environment: "tensorboard".parse().ok(),
        ..app("TensorBoard", &command, Serves::Port(6006))
    }
}

/// On the database and the folder that MLflow itself uses in the home, so that what is logged there without a word is seen.
/// Only Berth reaches it, and looks at the address itself; pages of other origins change nothing.
fn mlflow() -> App {
    let command = [
        "mlflow",
        "server",
        "--host=127.0.0.1",
        "--port=5000",
        "--workers=1",
        "--backend-store-uri=sqlite:///mlflow.db",
        "--default-artifact-root=./mlruns",
        "--allowed-hosts=*",
        "--cors-allowed-origins={origin}",
    ];
    let variables = [
        // Nothing is told outside.
        ("MLFLOW_DISABLE_TELEMETRY", "true"),
        // Each of its job runners is as large as itself.
        ("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false"),
    ];
    App {
        health: "health".to_owned(),
        environment: "mlflow".parse().ok(),
        variables: variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..app("MLflow", &command, Serves::Port(5000))
    }
}

/// What it needs is the machine's own, and in no environment.
fn desktop() -> App {
    let command = ["/bin/bash", "-c", include_str!("desktop.sh")];
    App {
        health: "vnc.html".to_owned(),
        ..app("Remote desktop", &command, Serves::Port(6080))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_berth_can_be_started() {
        let known = catalogue();
        assert_eq!(known.len(), 6);
        for (name, app) in known {
            assert_eq!(app.clone().check(), Ok(app), "{name}");
        }
    }

    #[test]
    fn a_command_is_told_where_it_stands() {
        let command =
            jupyterlab().command_at("http://x.localhost:8080", "/", "/run/berth/app.sock");
        assert!(command.contains(&"--ServerApp.sock=/run/berth/app.sock".to_owned()));
        assert!(command.contains(&"--ServerApp.base_url=/".to_owned()));
    }

    #[test]
    fn a_path_out_of_the_app_is_no_health_path() {
        for health in ["/etc", "a b", "a#b", "a\\b", "a\nb"] {
            let app = App {
                health: health.to_owned(),
                ..jupyterlab()
            };
            assert_eq!(app.check(), Err(AppError::Health), "{health}");
        }
    }
}
