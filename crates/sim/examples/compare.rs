//! Policies side by side, without the big binary: `compare [--fleet PART] TRACE[,SECOND FILE] POLICY… OUT.html`.
//!
//! The trace is Berth's own history, a log in the Standard Workload Format, or an openb list of nodes and one of pods.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use berth_sim::compare;
use berth_sim::policy::Candidate;
use berth_sim::trace;

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut part = 1.0;
    if arguments.len() > 2 && arguments[0] == "--fleet" {
        part = arguments[1].parse()?;
        arguments.drain(..2);
    }
    let [trace, policies @ .., out] = arguments.as_slice() else {
        return Err("give a trace, policies, and where to write the page".into());
    };
    let texts: Result<Vec<String>, Failed> = trace.split(',').map(read).collect();
    let texts = texts?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let trace = trace::read(&texts)?.on_part_of_the_fleet(part);
    let candidates: Result<Vec<Candidate>, Failed> = policies.iter().map(candidate).collect();
    let started = Instant::now();
    let mut shown = -1;
    let comparison = compare(&trace, &candidates?, &mut |done| {
        let percent = (100.0 * done) as i32;
        if percent > std::mem::replace(&mut shown, percent) {
            eprint!("\r{percent:3} %");
        }
    })?;
    eprintln!("\rreplayed in {:.1} s", started.elapsed().as_secs_f64());
    std::fs::write(out, comparison.html())?;
    write!(std::io::stdout(), "{}", comparison.table())?;
    Ok(())
}

fn read(path: &str) -> Result<String, Failed> {
    std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}").into())
}

fn candidate(path: &String) -> Result<Candidate, Failed> {
    let stem = Path::new(path).file_stem().unwrap_or_default();
    let candidate = Candidate::parse(&read(path)?, &stem.to_string_lossy());
    candidate.map_err(|error| format!("{path}: {error}").into())
}
