//! What is asked for, in the words of people.

use berth_api::workloads::Ends;
use berth_model::workload::{EndsBy, Gpus, Wish};

use crate::times::Times;
use crate::when::duration;

/// "4 x (2 GPUs A100, 8 cores, 64 GiB) for up to 2 h, or …".
pub fn asks(wishes: &[Wish]) -> String {
    let wishes: Vec<String> = wishes.iter().map(ask).collect();
    wishes.join(", or ")
}

/// "Mon 16 Nov, 14:00 (in 2 h), its limit".
pub fn ends(ends: Ends, times: &Times) -> String {
    let at = times.moment_and_distance(ends.at);
    format!("{at}, {}", ends_by(ends.by))
}

/// Why something is over at the latest then.
pub fn ends_by(by: EndsBy) -> &'static str {
    match by {
        EndsBy::Limit => "its limit",
        EndsBy::Wall => "when somebody else has the place",
        EndsBy::Reservation => "when its reservation ends",
    }
}

fn ask(wish: &Wish) -> String {
    let one = format!("{}, up to {}", parts(wish), duration(wish.limit));
    match wish.tasks.get() {
        1 => one,
        many => format!("{many} x ({}), up to {}", parts(wish), duration(wish.limit)),
    }
}

fn parts(wish: &Wish) -> String {
    let task = &wish.task;
    let mut parts = Vec::new();
    if let Some(gpus) = &task.gpus {
        let conditions: Vec<String> = gpus.with().iter().map(condition).collect();
        let conditions = match conditions.as_slice() {
            [] => String::new(),
            some => format!(" {}", some.join(" ")),
        };
        parts.push(match gpus {
            Gpus::Whole { count, .. } if count.get() == 1 => format!("1 GPU{conditions}"),
            Gpus::Whole { count, .. } => format!("{count} GPUs{conditions}"),
            Gpus::Share { thousandths, .. } => format!(
                "{} % of a GPU{conditions}",
                f64::from(thousandths.get()) / 10.0
            ),
            Gpus::Slice { profile, .. } => format!("a slice {profile}{conditions}"),
        });
    }
    let cores = task.cores_milli.get() as f64 / 1000.0;
    parts.push(if cores == 1.0 {
        "1 core".to_owned()
    } else {
        format!("{cores} cores")
    });
    parts.push(memory(task.memory_mib.get()));
    parts.join(", ")
}

/// The model alone where that is what was asked for.
fn condition(requirement: &berth_model::attribute::Requirement) -> String {
    let text = requirement.to_string();
    text.strip_prefix("gpu_model=")
        .map_or(text.clone(), ToOwned::to_owned)
}

pub fn memory(mib: u64) -> String {
    match mib {
        0..1024 => format!("{mib} MiB"),
        _ => format!("{} GiB", (mib as f64 / 1024.0 * 10.0).round() / 10.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_reads_as_somebody_would_say_it() {
        let wish: Wish = serde_json::from_value(serde_json::json!({
            "tasks": 4, "limit": "PT90M",
            "task": {"cores_milli": 8000, "memory_mib": 65536, "gpus": {"count": 2, "where": ["gpu_model=A100"]}},
        }))
        .unwrap();
        assert_eq!(
            asks(&[wish]),
            "4 x (2 GPUs A100, 8 cores, 64 GiB), up to 1 h 30 min"
        );
    }
}
