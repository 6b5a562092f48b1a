//! The machine that the demo runs on: a site of its own, in which work is really run. What stands in it is found out
//! when the demo serves.

use std::path::Path;

use berth_drivers::local::machine::Machine;
use berth_drivers::local::shelf;
use berth_model::site::OutsiderView;
use serde_json::{Value, json};

use super::Site;
use crate::commands::environment::prepare;

pub const NAME: &str = "this-machine";

pub fn site() -> Site {
    Site {
        name: NAME,
        title: "This machine",
        outsiders_see: OutsiderView::Catalogue,
        kinds: Vec::new(),
        things: Vec::new(),
        queue: Some(queue(&Machine::look(), &apps_here())),
    }
}

/// What can be offered besides notebooks, if what it needs is here: an environment of the app's name, or the machine's own
/// programs. Pages list profiles by their names, and notebooks are to come first.
const MORE: [(&str, &str, &str); 4] = [
    ("remote-desktop", DESKTOP, "A desktop for graphical tools"),
    (
        "tensorboard",
        "tensorboard",
        "TensorBoard, on what was logged in runs",
    ),
    (
        "tracking",
        "mlflow",
        "MLflow, on what was logged in the home",
    ),
    ("vscode", "vscode", "VS Code"),
];
const DESKTOP: &str = "desktop";

/// Which of the apps would start.
fn apps_here() -> Vec<String> {
    let folder = prepare::usual_folder().ok();
    let lying = folder.map(|folder| shelf::prepared_in(&folder));
    let mut apps: Vec<String> = lying
        .into_iter()
        .flatten()
        .map(|(_, prepared)| prepared.name.to_string())
        .collect();
    let has = |file: &str| Path::new(file).exists();
    if has("/usr/bin/Xvnc") && has("/usr/share/novnc") && has("/usr/bin/x-session-manager") {
        apps.push(DESKTOP.to_owned());
    }
    apps
}

/// What fits a session, in sizes that this machine has.
fn queue(machine: &Machine, apps: &[String]) -> Value {
    let size = |title: &str, cores: u64, gib: u64| {
        let cores_milli = 1000 * cores.min(machine.cores).max(1);
        let memory_mib = (1024 * gib).min(machine.memory_mib / 2).max(1);
        let task = json!({ "cores_milli": cores_milli, "memory_mib": memory_mib });
        (title.to_owned(), task)
    };
    let profile = |app: &str, (title, task): (String, Value)| {
        json!({
            "title": title,
            "class": "guaranteed",
            "wishes": [{ "task": task, "limit": "PT8H" }],
            "session": { "app": app },
        })
    };
    let mut profiles = json!({
        "notebook": profile("jupyterlab", size("A notebook, on one core", 1, 2)),
        "notebook-large": profile("jupyterlab", size("A notebook with room for data, on two cores", 2, 4)),
    });
    if !machine.gpus.is_empty() {
        let (title, mut task) = size("A notebook with a GPU", 2, 8);
        task["gpus"] = json!({ "count": 1 });
        profiles["gpu"] = profile("jupyterlab", (title, task));
    }
    for (name, app, title) in MORE {
        if apps.iter().any(|here| here == app) {
            profiles[name] = profile(app, size(title, 1, 2));
        }
    }
    json!({ "limit_max": "PT24H", "profiles": profiles })
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::queue::Settings;

    #[test]
    fn what_is_offered_fits_the_machine() {
        let small = Machine {
            name: "small".to_owned(),
            cores: 1,
            memory_mib: 3000,
            gpus: Vec::new(),
        };
        let settings: Settings = serde_json::from_value(queue(&small, &[])).unwrap();
        assert_eq!(settings.profiles.len(), 2);
        for profile in settings.profiles.values() {
            let task = &profile.wishes[0].task;
            assert_eq!(task.cores_milli.get(), 1000);
            assert_eq!(task.memory_mib.get(), 1500);
        }
    }
    #[test]
    fn apps_are_offered_whose_environments_are_here() {
        let here = ["mlflow".to_owned(), "torch".to_owned()];
        let settings: Settings = serde_json::from_value(queue(&Machine::look(), &here)).unwrap();
        let offered = |name: &str| settings.profiles.contains_key(&name.parse().unwrap());
        assert!(offered("tracking"));
        assert!(!offered("tensorboard") && !offered("torch"));
    }
}
