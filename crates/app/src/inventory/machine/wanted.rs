//! Converts a machine's figures into the inventory's terms. Pure.

use std::collections::BTreeSet;

use berth_model::attribute::VALUE_MAX_CHARS;
use berth_model::{Amount, Name};

use super::named;
use crate::error::{Error, Result};

/// The attributes of a node that name the functions its machine lacks.
pub const LACKS: [&str; 4] = ["no_sandbox", "no_network", "no_limits", "no_users"];

/// Leaves room for the names of the resources below it.
const HOST_MAX: usize = 48;

/// A host name in the form of a resource name.
pub fn host_name(host: &str) -> Result<Name> {
    let letter = |letter: char| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9' | '-' | '_' | '.') => letter,
        _ => '-',
    };
    let name: String = host.chars().map(letter).take(HOST_MAX).collect();
    match name.trim_start_matches(['-', '_', '.']) {
        "" => named("this-machine"),
        name => named(name),
    }
}

/// The name itself, or the first free name with a number appended.
pub fn free_name(wanted: &str, taken: &BTreeSet<Name>) -> Result<Name> {
    let numbered = (2..=taken.len() + 2).map(|number| format!("{wanted}-{number}"));
    for name in std::iter::once(wanted.to_owned()).chain(numbered) {
        let name = named(&name)?;
        if !taken.contains(&name) {
            return Ok(name);
        }
    }
    Err(Error::Internal(format!(
        "every name like `{wanted}` is taken"
    )))
}

/// The smallest amount is one, even if everything is reserved for the machine itself: an amount cannot be zero.
fn at_least_one(amount: u64) -> Result<Amount> {
    Amount::new(amount.max(1)).map_err(|error| Error::Internal(error.to_string()))
}

pub fn amount_of_cores(cores: u64, unit: &str) -> Result<Amount> {
    match unit {
        "millicores" => at_least_one(cores * 1000),
        _ => at_least_one(cores),
    }
}

pub fn amount_of_memory(mib: u64, unit: &str) -> Result<Amount> {
    match unit {
        "mib" => at_least_one(mib),
        _ => at_least_one(mib / 1024),
    }
}

/// `A100` for `NVIDIA A100-SXM4-80GB`: the name that people write in a request.
pub fn model_name(full: &str) -> String {
    let own = full.trim();
    let own = own.strip_prefix("NVIDIA ").unwrap_or(own);
    let own = own.strip_prefix("Tesla ").unwrap_or(own);
    let own = own.split('-').next().unwrap_or(own).trim();
    match own {
        "" => "unknown".to_owned(),
        own => shortened(own),
    }
}

/// The part of a text that fits into an attribute.
pub fn shortened(text: &str) -> String {
    let good = text.chars().filter(|letter| !letter.is_control());
    good.take(VALUE_MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_any_name_get_a_name() {
        let name = |host: &str| host_name(host).unwrap().to_string();
        assert_eq!(
            name("Node-7.cluster.example.org"),
            "node-7.cluster.example.org"
        );
        assert_eq!(name("_büro pc"), "b-ro-pc");
        assert_eq!(name("---"), "this-machine");
        assert_eq!(name(""), "this-machine");
        assert_eq!(name(&"x".repeat(200)).len(), HOST_MAX);
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let taken = ["node", "node-2"].map(|name| name.parse().unwrap()).into();
        assert_eq!(free_name("node", &taken).unwrap().as_str(), "node-3");
        assert_eq!(free_name("cpu", &taken).unwrap().as_str(), "cpu");
    }

    #[test]
    fn amounts_are_in_the_unit_that_the_inventory_counts_in() {
        let cores = |unit| amount_of_cores(8, unit).unwrap().get();
        assert_eq!((cores("millicores"), cores("cores")), (8000, 8));
        let memory = |unit| amount_of_memory(3000, unit).unwrap().get();
        assert_eq!((memory("mib"), memory("gib")), (3000, 2));
        assert_eq!(amount_of_cores(0, "cores").unwrap().get(), 1);
    }

    #[test]
    fn models_are_called_what_people_call_them() {
        for (full, short) in [
            ("NVIDIA H200", "H200"),
            ("NVIDIA A100-SXM4-80GB", "A100"),
            ("Tesla V100-SXM2-16GB", "V100"),
            ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
            ("", "unknown"),
        ] {
            assert_eq!(model_name(full), short);
        }
    }
}
