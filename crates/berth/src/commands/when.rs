//! `berth when`: the earliest times at which something can be had, over all my sites.

use berth_api::attributes::Where;
use berth_api::desk::{self, Choice, Variant, WhenRequest, Wish};
use berth_api::moment::Moment;
use berth_api::reference::SiteReference;
use berth_model::{Amount, Count, Selection};
use clap::Args;

use crate::context::Context;
use crate::failure::usage;
use crate::table::{Column, Table};
use crate::times::Times;

#[derive(Debug, Args)]
pub struct When {
    /// What is wanted, as in `4 x A100` or `gpu-node`: a type's name, or what an attribute says
    #[arg(value_name = "WISH")]
    what: Selection,
    /// How long it is needed, as in `6h`
    #[arg(long = "for", value_name = "DURATION")]
    lasting: String,
    /// It starts no earlier
    #[arg(long, value_name = "WHEN", default_value = "now")]
    from: String,
    /// It is over by then; eight weeks later, if left out
    #[arg(long, value_name = "WHEN")]
    before: Option<String>,
    #[command(flatten)]
    wish: WishArguments,
    /// Only in this site; repeat it for several (all of yours, if left out)
    #[arg(long = "in", value_name = "SITE")]
    sites: Vec<SiteReference>,
    /// How many choices to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    limit: u8,
}

/// What a wish says besides its kind and its time.
#[derive(Debug, Args)]
pub struct WishArguments {
    /// Only what meets this, as in `memory_gb>=40` or `nvlink=true`; repeat it for several
    #[arg(long = "where", value_name = "REQUIREMENT")]
    requirements: Vec<Where>,
    /// How much of each, where they are divisible
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    amount: Option<Amount>,
    /// What would do as well, as in `2 for 4h`; repeat it for several
    #[arg(long = "or", value_name = "N for DURATION")]
    or: Vec<String>,
}

fn amount(text: &str) -> Result<Amount, String> {
    let number: u64 = text.parse().map_err(|_| "a whole number".to_owned())?;
    Amount::new(number).map_err(|error| error.to_string())
}

impl WishArguments {
    /// The wish for this kind and time.
    pub fn wish(
        self,
        what: &Selection,
        lasting: &str,
        earliest: Moment,
        before: Option<Moment>,
        times: &Times,
    ) -> anyhow::Result<Wish> {
        let start = earliest.get().to_zoned(times.zone().clone());
        let mut variants = vec![Variant {
            count: what.count,
            lasting: times.read_period(lasting, &start)?,
        }];
        for or in &self.or {
            let (count, lasting) = or
                .split_once(" for ")
                .and_then(|(count, lasting)| Some((count.trim().parse::<u16>().ok()?, lasting)))
                .ok_or_else(|| {
                    usage(format!(
                        "`--or {or}` does not say how many for how long: `2 for 4h`"
                    ))
                })?;
            variants.push(Variant {
                count: Count::try_from(count).map_err(|error| usage(error.to_string()))?,
                lasting: times.read_period(lasting.trim(), &start)?,
            });
        }
        Ok(Wish {
            what: what.what.clone(),
            with: self.requirements.try_into()?,
            amount: self.amount,
            variants: variants.try_into()?,
            earliest: Some(earliest),
            before,
        })
    }
}

pub async fn run(when: When, context: &Context) -> anyhow::Result<()> {
    let typed = format!("\"{}\" --for {}", when.what, when.lasting);
    let request = request(when, &context.times)?;
    let answer = context.client.when(&request).await?;
    context
        .out
        .show(&answer, |screen| show(&answer, &context.times, screen))?;
    if let Some(first) = answer.choices.first() {
        let at = first.start.to_zoned(context.times.zone().clone());
        context.out.note(format!(
            "Book the first: berth book --any {typed} --from {} --site {}",
            at.strftime("%Y-%m-%dT%H:%M"),
            first.site.name
        ));
    }
    Ok(())
}

fn request(when: When, times: &Times) -> anyhow::Result<WhenRequest> {
    let earliest = times.read_moment(&when.from)?;
    let before = when
        .before
        .map(|text| times.read_moment(&text))
        .transpose()?;
    let wish = when
        .wish
        .wish(&when.what, &when.lasting, earliest, before, times)?;
    let limit = desk::Choices::try_from(when.limit).map_err(usage)?;
    Ok(WhenRequest {
        wish,
        sites: when.sites.try_into()?,
        limit,
    })
}

fn show(answer: &desk::When, times: &Times, screen: crate::table::Screen) -> String {
    let nothing = match (answer.sites, answer.candidates) {
        (0, _) => "You belong to no site in which to look; ask to join one.",
        (_, 0) => {
            "Nothing of that kind is in service in your sites; `berth type list` shows what there is."
        }
        _ => "At no time before then are so many free for so long.",
    };
    let columns = [
        Column::left("WHEN"),
        Column::left("SITE"),
        Column::left("WHAT"),
        Column::left("RESOURCES").shrinks(1),
        Column::left("APPROVAL"),
    ];
    let mut table = Table::new(columns, nothing);
    for choice in &answer.choices {
        table.row([
            times.span(choice.start, choice.end),
            choice.site.name.clone(),
            kinds(choice),
            names(choice),
            choice
                .decide_by
                .map(|by| format!("needed by {}", times.moment(by)))
                .unwrap_or_default(),
        ]);
    }
    times.render(&table, screen)
}

/// `4 x gpu`, or where they are of several types, each.
fn kinds(choice: &Choice) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for resource in &choice.resources {
        match kinds
            .iter_mut()
            .find(|(name, _)| *name == resource.type_name)
        {
            Some((_, count)) => *count += 1,
            None => kinds.push((&resource.type_name, 1)),
        }
    }
    let kinds: Vec<String> = kinds
        .into_iter()
        .map(|(name, count)| format!("{count} x {name}"))
        .collect();
    kinds.join(", ")
}

fn names(choice: &Choice) -> String {
    let names: Vec<&str> = choice
        .resources
        .iter()
        .map(|resource| resource.name.as_str())
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Client, Command};
    use clap::Parser;
    use serde_json::json;

    fn asked(line: &str) -> anyhow::Result<serde_json::Value> {
        let words = std::iter::once("berth").chain(line.split('|'));
        match Cli::try_parse_from(words)?.command {
            Command::Client(Client::When(when)) => {
                Ok(serde_json::to_value(request(when, &Times::fixed())?)?)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_typed_becomes_a_question() {
        let line = "when|4 x A100|--for|6h|--before|fri 18:00|--or|2 for 12h|--where|nvlink=true";
        assert_eq!(
            asked(line).unwrap(),
            json!({
                "wish": {
                    "what": "A100",
                    "where": ["nvlink=true"],
                    "variants": [{"count": 4, "for": "PT6H"}, {"count": 2, "for": "PT12H"}],
                    "earliest": "2026-11-15T09:28:00Z",
                    "before": "2026-11-20T17:00:00Z",
                },
                "sites": [],
                "limit": 5,
            })
        );
        for wrong in [
            "when|A100",
            "when|A100|--for|6h|--or|two for 4h",
            "when|0 x A100|--for|1h",
        ] {
            assert!(asked(wrong).is_err(), "{wrong}");
        }
    }
}
