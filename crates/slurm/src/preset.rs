//! What the environment asks of `squeue`, `sinfo`, `scancel` and `sacct`, as the options it stands for.
//!
//! They are put before the command line, which so has the last word. (`sbatch` reads its variables itself, since a
//! script's lines come before them.)

/// Whose variables they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Squeue,
    Sinfo,
    Scancel,
    Sacct,
}

/// Variable, option, and whether its value is the option's.
type Preset = (&'static str, &'static str, bool);

const SQUEUE: &[Preset] = &[
    ("SQUEUE_ACCOUNT", "account", true),
    ("SQUEUE_ALL", "all", false),
    ("SQUEUE_ARRAY", "array", false),
    ("SQUEUE_ARRAY_UNIQUE", "array-unique", false),
    ("SQUEUE_FORMAT", "format", true),
    ("SQUEUE_FORMAT2", "Format", true),
    ("SQUEUE_LICENSES", "licenses", true),
    ("SQUEUE_NAMES", "name", true),
    ("SQUEUE_PARTITION", "partition", true),
    ("SQUEUE_PRIORITY", "priority", false),
    ("SQUEUE_QOS", "qos", true),
    ("SQUEUE_SORT", "sort", true),
    ("SQUEUE_STATES", "states", true),
    ("SQUEUE_USERS", "user", true),
    ("SLURM_CLUSTERS", "clusters", true),
];

const SINFO: &[Preset] = &[
    ("SINFO_ALL", "all", false),
    ("SINFO_FORMAT", "format", true),
    ("SINFO_PARTITION", "partition", true),
    ("SINFO_SORT", "sort", true),
    ("SLURM_CLUSTERS", "clusters", true),
];

const SCANCEL: &[Preset] = &[
    ("SCANCEL_ACCOUNT", "account", true),
    ("SCANCEL_BATCH", "batch", false),
    ("SCANCEL_FULL", "full", false),
    ("SCANCEL_INTERACTIVE", "interactive", false),
    ("SCANCEL_NAME", "name", true),
    ("SCANCEL_PARTITION", "partition", true),
    ("SCANCEL_QOS", "qos", true),
    ("SCANCEL_STATE", "state", true),
    ("SCANCEL_USER", "user", true),
    ("SCANCEL_VERBOSE", "verbose", false),
    ("SCANCEL_WCKEY", "wckey", true),
    ("SLURM_CLUSTERS", "clusters", true),
];

const SACCT: &[Preset] = &[
    ("SACCT_FORMAT", "format", true),
    ("SLURM_CLUSTERS", "clusters", true),
];

/// The arguments with what the environment asks for before them.
pub fn with_environment(
    program: Program,
    arguments: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let presets = match program {
        Program::Squeue => SQUEUE,
        Program::Sinfo => SINFO,
        Program::Scancel => SCANCEL,
        Program::Sacct => SACCT,
    };
    let preset = presets.iter().filter_map(|(name, option, has_value)| {
        let value = variable(name)?;
        Some(if *has_value {
            format!("--{option}={value}")
        } else {
            format!("--{option}")
        })
    });
    preset.chain(arguments.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_has_the_last_word() {
        let variable = |name: &str| (name == "SACCT_FORMAT").then(|| "JobID".to_owned());
        let given = ["-o".to_owned(), "State".to_owned()];
        assert_eq!(
            with_environment(Program::Sacct, &given, variable),
            ["--format=JobID", "-o", "State"]
        );
        assert_eq!(with_environment(Program::Squeue, &given, variable), given);
    }

    #[test]
    fn every_variable_stands_for_an_option_of_its_program() {
        let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
        for (presets, program) in [
            (SQUEUE, Program::Squeue),
            (SINFO, Program::Sinfo),
            (SCANCEL, Program::Scancel),
            (SACCT, Program::Sacct),
        ] {
            for (name, option, has_value) in presets {
                let variable = |asked: &str| (asked == *name).then(String::new);
                let line = with_environment(program, &[], variable);
                let said = match program {
                    Program::Squeue => format!("{:?}", crate::squeue::read(&line)),
                    Program::Sinfo => format!("{:?}", crate::sinfo::read(&line)),
                    Program::Scancel => format!("{:?}", crate::scancel::read(&line)),
                    Program::Sacct => format!("{:?}", crate::sacct::read(&line, &now)),
                };
                for wrong in ["Unknown {", "MissingValue", "UnexpectedValue"] {
                    assert!(
                        !said.contains(wrong),
                        "{name} --{option} {has_value}: {said}"
                    );
                }
            }
        }
    }
}
