//! A comparison as one self-contained HTML page: no network, no script, light and dark, for wide windows and phones.
//!
//! People with colour blindness can distinguish the colours. Lines also differ in their dashes, and every plot
//! describes itself in words.

mod chart;
mod plots;

use std::fmt::Write;

use crate::compare::{Comparison, Figure, Tried};
use crate::policy::{Candidate, Thing};
use crate::show::{amount, duration, percent, shortened};

const STYLE: &str = include_str!("page/style.css");
/// As many projects as a reader can take in. The rest are counted together, or left out.
const PROJECTS_MAX: usize = 10;

/// Escapes text for HTML.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

pub(crate) fn html(comparison: &Comparison) -> String {
    let title = escaped(&comparison.title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>Policies side by side: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<header>\n<h1>Policies side by side</h1>\n\
         <p><strong>{title}.</strong> {}</p>\n</header>\n",
        escaped(&comparison.facts)
    );
    section(&mut page, "What came of it", "", &in_words(comparison));
    section(
        &mut page,
        "Figures",
        "The best of each line is marked. All policies had the same workloads and the same fleet.",
        &figures(&comparison.figures(), &comparison.tried),
    );
    for plot in plots::all(comparison) {
        let body = format!("{}{}", legend(&comparison.tried), plot.figure);
        section(&mut page, plot.title, plot.meaning, &body);
    }
    section(
        &mut page,
        "Waiting by size",
        "How long half of the workloads waited at most, and after the stroke nine of ten.",
        &waits_table(comparison, "Size", &by_size(comparison)),
    );
    section(
        &mut page,
        "Waiting by project",
        "The same for the projects with the most workloads.",
        &waits_table(comparison, "Project", &by_project(comparison)),
    );
    section(
        &mut page,
        "The policies",
        "What each of them says; a policy's file says the same.",
        &settings(&comparison.tried),
    );
    page.push_str(
        "<footer>Replayed through the planner of Berth that runs live queues. The same trace and \
         policies always give the same page.</footer>\n</main>\n</body>\n</html>\n",
    );
    page
}

fn section(page: &mut String, title: &str, meaning: &str, body: &str) {
    let meaning = match meaning.is_empty() {
        true => String::new(),
        false => format!("<p class=\"soft\">{}</p>\n", escaped(meaning)),
    };
    let _ = write!(
        page,
        "<section>\n<h2>{}</h2>\n{meaning}{body}\n</section>\n",
        escaped(title)
    );
}

/// The best policies in the most important figures, in words.
fn in_words(comparison: &Comparison) -> String {
    let tried = &comparison.tried;
    let mut items = Vec::new();
    let name = |one: &Tried| format!("<strong>{}</strong>", escaped(&one.candidate.name));
    let least = |read: fn(&Tried) -> f64| tried.iter().min_by(|a, b| read(a).total_cmp(&read(b)));
    if let Some(best) = least(|one| one.outcome.wait_mean_s) {
        let others = tried.iter().filter(|one| *one != best).map(|one| {
            let waits = duration(one.outcome.wait_mean_s);
            format!("{waits} under {}", name(one))
        });
        let others: Vec<String> = others.collect();
        let against = match others.is_empty() {
            true => String::new(),
            false => format!(", against {}", listed(&others)),
        };
        items.push(format!(
            "People wait least under {}: {} in the mean{against}.",
            name(best),
            duration(best.outcome.wait_mean_s)
        ));
    }
    if let Some(best) = least(|one| one.outcome.astray).filter(|_| tried.len() > 1) {
        items.push(format!(
            "Projects come closest to their due under {}: only {} of what was used while somebody \
             waited was beyond what was due.",
            name(best),
            percent(best.outcome.astray)
        ));
    }
    let late: Vec<String> = tried
        .iter()
        .filter(|one| one.outcome.late_s > 0.0)
        .map(|one| format!("{} under {}", duration(one.outcome.late_s), name(one)))
        .collect();
    let has_walls = tried.iter().any(|one| one.outcome.reserved > 0.0);
    match (late.is_empty(), has_walls) {
        (true, true) => items.push("No reservation ever had to wait for a workload.".to_owned()),
        (true, false) => {}
        (false, _) => items.push(format!(
            "Reservations had to wait for workloads: {}.",
            listed(&late)
        )),
    }
    let items = items.iter().map(|item| format!("<li>{item}</li>\n"));
    format!("<ul>\n{}</ul>", items.collect::<String>())
}

fn listed(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A sample of a policy's line.
fn swatch(policy: usize) -> String {
    format!(
        "<svg viewBox=\"0 0 30 12\" aria-hidden=\"true\">\
         <path class=\"line p{policy}\" d=\"M0 6H30\"/></svg>"
    )
}

fn legend(tried: &[Tried]) -> String {
    let item = |(place, one): (usize, &Tried)| {
        let name = escaped(&one.candidate.name);
        format!("<li>{}<span>{name}</span></li>", swatch(place))
    };
    let items: String = tried.iter().enumerate().map(item).collect();
    format!("<ul class=\"legend\" aria-label=\"Policies\">{items}</ul>\n")
}

/// A table with one column per policy.
fn table(tried: &[Tried], first: &str, class: &str, rows: &str) -> String {
    let head = |(place, one): (usize, &Tried)| {
        let name = escaped(&shortened(&one.candidate.name, 40));
        let swatch = swatch(place);
        format!("<th scope=\"col\"><span class=\"name-of\">{swatch}{name}</span></th>")
    };
    let heads: String = tried.iter().enumerate().map(head).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{first} by policy\">\n\
         <table class=\"{class}\">\n<thead><tr><th scope=\"col\">{first}</th>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</div>"
    )
}

fn figures(figures: &[Figure], tried: &[Tried]) -> String {
    let mut rows = String::new();
    for figure in figures {
        let _ = write!(
            rows,
            "<tr><th scope=\"row\">{}<small>{}</small></th>",
            escaped(figure.name),
            escaped(figure.meaning)
        );
        for (shown, is_best) in figure.shown.iter().zip(&figure.best) {
            let class = if *is_best { " class=\"best\"" } else { "" };
            let _ = write!(rows, "<td{class}>{}</td>", escaped(shown));
        }
        rows.push_str("</tr>\n");
    }
    table(tried, "Figure", "figures", &rows)
}

/// A name, and for each policy the median and the 90th percentile of the wait.
type WaitRow = (String, Vec<Option<(f64, f64)>>);

fn by_size(comparison: &Comparison) -> Vec<WaitRow> {
    let mut names: Vec<&'static str> = Vec::new();
    for tried in &comparison.tried {
        for (name, _) in &tried.outcome.by_size {
            if !names.contains(name) {
                names.push(name);
            }
        }
    }
    let row = |name: &'static str| {
        let of = |tried: &Tried| {
            let mut all = tried.outcome.by_size.iter();
            let found = all.find(|(known, _)| *known == name);
            found.map(|(_, waits)| (waits.median_s, waits.p90_s))
        };
        (name.to_owned(), comparison.tried.iter().map(of).collect())
    };
    names.into_iter().map(row).collect()
}

fn by_project(comparison: &Comparison) -> Vec<WaitRow> {
    let Some(first) = comparison.tried.first() else {
        return Vec::new();
    };
    let mut most: Vec<_> = first.outcome.by_project.iter().collect();
    most.sort_by(|a, b| b.1.count.cmp(&a.1.count).then(a.0.cmp(&b.0)));
    let row = |name: &String| {
        let of = |tried: &Tried| {
            let mut all = tried.outcome.by_project.iter();
            let found = all.find(|(known, _)| known == name);
            found.map(|(_, waits)| (waits.median_s, waits.p90_s))
        };
        (name.clone(), comparison.tried.iter().map(of).collect())
    };
    let most = most.into_iter().take(PROJECTS_MAX);
    most.map(|(name, _)| row(name)).collect()
}

fn waits_table(comparison: &Comparison, first: &str, waits: &[WaitRow]) -> String {
    let mut rows = String::new();
    for (name, waits) in waits {
        let name = escaped(&shortened(name, 40));
        let _ = write!(rows, "<tr><th scope=\"row\">{name}</th>");
        for wait in waits {
            let shown = wait.map_or_else(
                || "-".to_owned(),
                |(half, most)| format!("{} / {}", duration(half), duration(most)),
            );
            let _ = write!(rows, "<td>{shown}</td>");
        }
        rows.push_str("</tr>\n");
    }
    table(&comparison.tried, first, "plain", &rows)
}

type Setting = (&'static str, fn(&Candidate) -> String);

const SETTINGS: &[Setting] = &[
    ("Order", |one| match one.policy.order {
        berth_engine::queue::planner::Order::Shares => "by shares".to_owned(),
        berth_engine::queue::planner::Order::Shortest => "shortest first".to_owned(),
    }),
    ("Half-life of use", |one| micros(one.half_life)),
    ("Grace", |one| micros(one.policy.grace)),
    ("Minimum run", |one| micros(one.policy.run_min)),
    ("Run times predicted", |one| yes(one.prediction)),
    ("The trace's reservations", |one| {
        let word = if one.keeps_reservations {
            "kept"
        } else {
            "dropped"
        };
        word.to_owned()
    }),
    ("Reservations laid over it", |one| {
        one.reserve.map_or_else(
            || "none".to_owned(),
            |reserve| {
                let ahead = micros(reserve.ahead);
                format!(
                    "{} of the nodes, known {ahead} ahead",
                    percent(reserve.part)
                )
            },
        )
    }),
    ("Weights", |one| {
        let weights = one.weights.iter();
        let all: Vec<String> = weights
            .map(|(project, weight)| format!("{} {}", shortened(project, 24), amount(*weight)))
            .collect();
        some(&all, "the trace's own")
    }),
    ("Quotas", |one| {
        let all: Vec<String> = one.quotas.iter().map(quota).collect();
        some(&all, "none")
    }),
];

fn quota(quota: &crate::policy::Quota) -> String {
    let unit = match quota.of {
        Thing::Gpus => "GPUs",
        Thing::Cores => "cores",
        Thing::MemoryGib => "GiB",
    };
    let in_units = |amount: u64| amount as f64 / quota.of.unit() as f64;
    let limit = match quota.allowance.limit {
        None => "no limit".to_owned(),
        Some(limit) => format!("at most {}", in_units(limit)),
    };
    format!(
        "{}: {} {unit} guaranteed, {limit}",
        shortened(&quota.project, 24),
        in_units(quota.allowance.guaranteed)
    )
}

fn some(all: &[String], none: &str) -> String {
    const SHOWN: usize = 8;
    match all.len() {
        0 => none.to_owned(),
        many if many > SHOWN => format!("{}; and {} more", all[..SHOWN].join("; "), many - SHOWN),
        _ => all.join("; "),
    }
}

fn yes(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}

fn micros(length: berth_engine::queue::Micros) -> String {
    duration(length as f64 / 1e6)
}

fn settings(tried: &[Tried]) -> String {
    let mut rows = String::new();
    for (name, show) in SETTINGS {
        let _ = write!(rows, "<tr><th scope=\"row\">{}</th>", escaped(name));
        for one in tried {
            let _ = write!(
                rows,
                "<td class=\"words\">{}</td>",
                escaped(&show(&one.candidate))
            );
        }
        rows.push_str("</tr>\n");
    }
    table(tried, "Setting", "plain", &rows)
}

#[cfg(test)]
mod tests;
