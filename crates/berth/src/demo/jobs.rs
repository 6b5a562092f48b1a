//! What the demo's people submit to the queue: all day, and some of it at night.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::chance::Chance;
use super::people::{Character, bookers};
use super::script::{Act, Script, Season};

/// How long before the world was made its people began to submit: enough for a queue that is full, and quickly replayed.
pub const BEFORE: SignedDuration = SignedDuration::from_hours(14);

const SITE: &str = "torino";

/// A kind of work that people have.
struct Habit {
    titles: &'static [&'static str],
    /// How often, beside the others.
    often: i64,
    tasks: u32,
    cores: u32,
    memory_gib: u32,
    gpus: fn() -> Option<Value>,
    limits_min: &'static [i64],
    class: &'static str,
    array: Option<&'static str>,
}

const HABITS: &[Habit] = &[
    Habit {
        titles: &[
            "train segmentation",
            "fine-tune encoder",
            "night scenes, fold 3",
            "ablation without depth",
        ],
        often: 30,
        tasks: 1,
        cores: 8,
        memory_gib: 64,
        gpus: || Some(json!({ "count": 1 })),
        limits_min: &[60, 120, 240, 480],
        class: "guaranteed",
        array: None,
    },
    Habit {
        titles: &[
            "pretrain dialect model",
            "distil teacher",
            "contrastive run",
        ],
        often: 10,
        tasks: 1,
        cores: 32,
        memory_gib: 256,
        gpus: || Some(json!({ "count": 4 })),
        limits_min: &[240, 480, 720],
        class: "guaranteed",
        array: None,
    },
    Habit {
        titles: &["whole-server training", "large batch sweep"],
        often: 4,
        tasks: 1,
        cores: 64,
        memory_gib: 512,
        gpus: || Some(json!({ "count": 8, "where": ["gpu_model=A100"] })),
        limits_min: &[360, 720],
        class: "guaranteed",
        array: None,
    },
    Habit {
        titles: &["four-node pretraining", "gang of four"],
        often: 3,
        tasks: 4,
        cores: 16,
        memory_gib: 128,
        gpus: || Some(json!({ "count": 4, "where": ["gpu_model=L40S"] })),
        limits_min: &[120, 360],
        class: "guaranteed",
        array: None,
    },
    Habit {
        titles: &["grasp simulation", "parameter sweep"],
        often: 8,
        tasks: 1,
        cores: 2,
        memory_gib: 8,
        gpus: || None,
        limits_min: &[30, 60],
        class: "guaranteed",
        array: Some("0-39"),
    },
    Habit {
        titles: &["try the new loss", "debug loader", "small probe"],
        often: 20,
        tasks: 1,
        cores: 4,
        memory_gib: 16,
        gpus: || Some(json!({ "slice": "1g.10gb" })),
        limits_min: &[15, 30, 60],
        class: "guaranteed",
        array: None,
    },
    Habit {
        titles: &["notebook export", "serve a demo"],
        often: 8,
        tasks: 1,
        cores: 4,
        memory_gib: 24,
        gpus: || Some(json!({ "share": 250 })),
        limits_min: &[60, 120],
        class: "guaranteed",
        array: None,
    },
    Habit {
        titles: &[
            "hyperparameter search",
            "re-score the archive",
            "background evaluation",
        ],
        often: 14,
        tasks: 1,
        cores: 8,
        memory_gib: 48,
        gpus: || Some(json!({ "count": 1 })),
        limits_min: &[480, 1440],
        class: "opportunistic",
        array: None,
    },
];

/// Somebody comes with something every few minutes.
pub fn write(script: &mut Script, chance: &Chance, season: Season) {
    let mut chance = chance.fork("jobs");
    let mut at = season.from.max(season.until - BEFORE);
    while at < season.until {
        if let Some((who, act)) = something(&mut chance, 0) {
            script.scene(at, who.login, act);
        }
        at += SignedDuration::from_secs(chance.between(30..=240));
    }
}

/// What somebody of the site submits on a day.
pub fn something(chance: &mut Chance, day: i64) -> Option<(&'static Character, Act)> {
    let people = bookers(SITE, day);
    if people.is_empty() {
        return None;
    }
    let who = chance.pick(&people);
    let all: i64 = HABITS.iter().map(|habit| habit.often).sum();
    let mut drawn = chance.between(0..=all - 1);
    let habit = HABITS.iter().find(|habit| {
        drawn -= habit.often;
        drawn < 0
    })?;
    let act = Act::Submit {
        site: SITE,
        project: who.project_in(SITE),
        ask: ask(habit, chance),
    };
    Some((who, act))
}

fn ask(habit: &Habit, chance: &mut Chance) -> Value {
    let limit = chance.pick(habit.limits_min);
    let mut task =
        json!({ "cores_milli": habit.cores * 1000, "memory_mib": habit.memory_gib * 1024 });
    if let Some(gpus) = (habit.gpus)() {
        task["gpus"] = gpus;
    }
    json!({
        "title": chance.pick(habit.titles), "class": habit.class, "level": null, "seats": [], "inside": null,
        "not_before": null, "deadline": null, "after": [], "requeue": true,
        "array": habit.array.map(|tasks| json!({ "tasks": tasks, "at_once": 8 })),
        "program": { "command": ["python", "train.py"], "image": "pytorch-2.9" },
        "wishes": [{ "tasks": habit.tasks, "task": task, "limit": format!("PT{limit}M") }],
    })
}
