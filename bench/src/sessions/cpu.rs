//! What processes have used of the processors, by the kernel's count of hundredths of a second.

use std::collections::HashMap;

use anyhow::{Context, Result};

const TICK_US: f64 = 10_000.0;

/// One process, with all its threads.
pub fn used_us(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    Ok(Stat::read(&stat).context("no times in stat")?.used_us)
}

/// A process and everything that it has started, and so on.
pub fn used_by_all_below_us(process: u32) -> Result<f64> {
    let all = everything()?;
    let mut sum = 0.0;
    let mut below = vec![process];
    while let Some(next) = below.pop() {
        sum += all.get(&next).map_or(0.0, |stat| stat.used_us);
        let children = all.iter().filter(|(_, stat)| stat.parent == next);
        below.extend(children.map(|(id, _)| *id));
    }
    Ok(sum)
}

struct Stat {
    parent: u32,
    used_us: f64,
}

impl Stat {
    fn read(text: &str) -> Option<Stat> {
        // The name, which may hold anything, stands in brackets before the rest.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
        Some(Stat {
            parent: fields.get(1)?.parse().ok()?,
            used_us: (ticks(11)? + ticks(12)?) * TICK_US,
        })
    }
}

fn everything() -> Result<HashMap<u32, Stat>> {
    let mut all = HashMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let id = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        // What has ended since it was listed has no times any more.
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok();
        let stat = stat.and_then(|text| Stat::read(&text));
        all.extend(id.zip(stat));
    }
    Ok(all)
}

/// The process with all of these in its command line.
pub fn find(words: &[&str]) -> Result<u32> {
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let id = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(id) = id.filter(|_| words.iter().all(|word| line.contains(word))) {
            return Ok(id);
        }
    }
    anyhow::bail!("no process has {words:?} in its command line")
}
