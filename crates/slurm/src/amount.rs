//! Counts with their units: memory, nodes, GPUs and other generic resources.

/// Memory in mebibytes, as Slurm counts it. Parts of one are rounded up.
pub fn memory_mib(text: &str) -> Result<u64, &'static str> {
    const FORM: &str = "write a number of megabytes, or a number with K, M, G or T";
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| FORM)?;
    let unit = unit.to_ascii_lowercase();
    let shift = match unit.strip_suffix('b').unwrap_or(&unit) {
        "k" => return Ok(number.div_ceil(1024)),
        "" | "m" if unit != "b" => 0,
        "g" => 10,
        "t" => 20,
        _ => return Err(FORM),
    };
    number.checked_mul(1 << shift).ok_or(FORM)
}

/// As Slurm prints memory: in the largest unit that needs no fraction.
pub fn print_mib(mib: u64) -> String {
    let (mut number, mut units) = (mib, "MGTPE".chars().peekable());
    if mib == 0 {
        return "0".to_owned();
    }
    while number.is_multiple_of(1024) && units.clone().nth(1).is_some() {
        number /= 1024;
        units.next();
    }
    format!("{number}{}", units.next().unwrap_or('M'))
}

/// A count that is one at least.
pub fn positive(text: &str) -> Result<u32, &'static str> {
    count(text)
        .filter(|count| *count > 0)
        .ok_or("write a whole number, one or more")
}

fn count(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let count = is_number.then(|| text.parse().ok()).flatten();
    count.filter(|count| *count <= i32::MAX as u32)
}

/// How many nodes a job can use: `4`, or `2-8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nodes {
    pub min: u32,
    pub max: u32,
}

pub fn nodes(text: &str) -> Result<Nodes, &'static str> {
    const FORM: &str = "write a number of nodes such as 4, or a range such as 2-8";
    let (min, max) = text.trim().split_once('-').unwrap_or((text, text));
    let read = |text: &str| positive(text.trim()).map_err(|_| FORM);
    let (min, max) = (read(min)?, read(max)?);
    if max < min {
        return Err("the most nodes are fewer than the least");
    }
    Ok(Nodes { min, max })
}

/// So many of a generic resource, perhaps of one kind: `gpu:a100:2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gres {
    pub name: String,
    /// The model, where one was named.
    pub model: Option<String>,
    pub count: u64,
}

const GRES_FORM: &str = "write [model:]number, as in 2 or a100:2";

/// What `--gpus`, `--gpus-per-node` and `--gpus-per-task` take: `2`, `a100:2`, `a100:1,h100:1`.
pub fn gpus(text: &str) -> Result<Vec<Gres>, &'static str> {
    let gpus = text.split(',').map(|part| one_of("gpu", part));
    checked(gpus.collect::<Result<_, _>>()?)
}

/// What `--gres` takes: `gpu`, `gpu:2`, `gpu:a100:2,shard:4`. `none` is nothing.
pub fn gres(text: &str) -> Result<Vec<Gres>, &'static str> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(Vec::new());
    }
    let gres = text.split(',').map(|part| {
        let part = part.strip_prefix("gres:").unwrap_or(part);
        let (name, rest) = part.split_once(':').unwrap_or((part, "1"));
        if !is_word(name) {
            return Err("write name[:model][:number], as in gpu:2 or gpu:a100:2");
        }
        one_of(name, rest)
    });
    checked(gres.collect::<Result<_, _>>()?)
}

fn is_word(text: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_good)
}

/// `2`, `2K`, `a100`, `a100:2`.
fn one_of(name: &str, text: &str) -> Result<Gres, &'static str> {
    let (model, number) = match text.split_once(':') {
        Some((model, number)) => (Some(model), number),
        None if text.starts_with(|first: char| first.is_ascii_digit()) => (None, text),
        None => (Some(text), "1"),
    };
    if model.is_some_and(|model| !is_model(model)) {
        return Err(GRES_FORM);
    }
    Ok(Gres {
        name: name.to_owned(),
        model: model.map(str::to_owned),
        count: with_unit(number).ok_or(GRES_FORM)?,
    })
}

fn is_model(text: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !text.is_empty() && text.bytes().all(is_good)
}

fn with_unit(text: &str) -> Option<u64> {
    let (number, factor) = match text.chars().last()?.to_ascii_lowercase() {
        'k' => (&text[..text.len() - 1], 1 << 10),
        'm' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    count(number).map(|count| u64::from(count) * factor)
}

/// Of one resource, either models are named or they are not.
fn checked(gres: Vec<Gres>) -> Result<Vec<Gres>, &'static str> {
    let mixed = |one: &Gres| {
        gres.iter()
            .any(|other| other.name == one.name && other.model.is_some() != one.model.is_some())
    };
    if gres.iter().any(mixed) {
        return Err("name a model for all of a kind, or for none of it");
    }
    Ok(gres)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_in_mebibytes() {
        for (text, wanted) in [
            ("0", 0),
            ("100", 100),
            ("100K", 1),
            ("1500k", 2),
            ("1M", 1),
            ("1GB", 1024),
            ("1g", 1024),
            ("2T", 2_097_152),
        ] {
            assert_eq!(memory_mib(text), Ok(wanted), "{text}");
        }
        for text in [
            "",
            "x",
            "1.5G",
            "1P",
            "-1",
            "1Gi",
            "1 G",
            "1B",
            "99999999999999T",
        ] {
            assert!(memory_mib(text).is_err(), "{text}");
        }
    }

    #[test]
    fn memory_is_printed_in_the_largest_whole_unit() {
        for (mib, wanted) in [
            (0, "0"),
            (100, "100M"),
            (1024, "1G"),
            (1500, "1500M"),
            (4 << 20, "4T"),
        ] {
            assert_eq!(print_mib(mib), wanted);
        }
    }

    #[test]
    fn nodes_are_a_number_or_a_range() {
        assert_eq!(nodes("4"), Ok(Nodes { min: 4, max: 4 }));
        assert_eq!(nodes("1-3 "), Ok(Nodes { min: 1, max: 3 }));
        for text in ["", "a", "0", "1-", "-1", "3-1", "1-2-3", "2,4", "=2", "1k"] {
            assert!(nodes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn gpus_are_asked_for_by_number_and_by_model() {
        let said = |gres: Result<Vec<Gres>, _>| {
            let each = gres.unwrap().into_iter().map(|gres| {
                let model = gres.model.unwrap_or_default();
                format!("{}/{model}/{}", gres.name, gres.count)
            });
            each.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(said(gpus("2")), "gpu//2");
        assert_eq!(said(gpus("a100:1,h100:2")), "gpu/a100/1 gpu/h100/2");
        assert_eq!(said(gpus("a100")), "gpu/a100/1");
        assert_eq!(said(gres("gpu")), "gpu//1");
        assert_eq!(said(gres("gpu:a100")), "gpu/a100/1");
        assert_eq!(
            said(gres("gres:gpu:a100:2,shard:2K")),
            "gpu/a100/2 shard//2048"
        );
        assert_eq!(said(gres("none")), "");
        for text in [
            "gpu=2",
            "gres/gpu:1",
            "gpu:a100:2,gpu:1",
            "gpu:",
            "gpu:a100:x",
            "",
        ] {
            assert!(gres(text).is_err(), "{text}");
        }
        assert!(gpus("a100:1,2").is_err());
    }
}
