//! The machine that the demo runs on: a site of its own, in which work is really run. What stands in it is found out
//! when the demo serves.

use berth_drivers::local::machine::Machine;
use berth_model::site::OutsiderView;
use serde_json::{Value, json};

use super::Site;

pub const NAME: &str = "this-machine";

pub fn site() -> Site {
    Site {
        name: NAME,
        title: "This machine",
        outsiders_see: OutsiderView::Catalogue,
        kinds: Vec::new(),
        things: Vec::new(),
        queue: Some(queue(&Machine::look())),
    }
}

/// What fits a session, in sizes that this machine has.
fn queue(machine: &Machine) -> Value {
    let size = |title: &str, cores: u64, gib: u64| {
        let cores_milli = 1000 * cores.min(machine.cores).max(1);
        let memory_mib = (1024 * gib).min(machine.memory_mib / 2).max(1);
        let task = json!({ "cores_milli": cores_milli, "memory_mib": memory_mib });
        (title.to_owned(), task)
    };
    let profile = |(title, task): (String, Value)| {
        json!({
            "title": title,
            "class": "guaranteed",
            "wishes": [{ "task": task, "limit": "PT8H" }],
            "session": { "app": "jupyterlab" },
        })
    };
    let mut profiles = json!({
        "notebook": profile(size("A notebook, on one core", 1, 2)),
        "notebook-large": profile(size("A notebook with room for data, on two cores", 2, 4)),
    });
    if !machine.gpus.is_empty() {
        let (title, mut task) = size("A notebook with a GPU", 2, 8);
        task["gpus"] = json!({ "count": 1 });
        profiles["gpu"] = profile((title, task));
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
        let settings: Settings = serde_json::from_value(queue(&small)).unwrap();
        assert_eq!(settings.profiles.len(), 2);
        for profile in settings.profiles.values() {
            let task = &profile.wishes[0].task;
            assert_eq!(task.cores_milli.get(), 1000);
            assert_eq!(task.memory_mib.get(), 1500);
        }
    }
}
