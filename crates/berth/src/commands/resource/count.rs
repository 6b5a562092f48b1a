//! How many resources a site has, and how many of them are free now.

use berth_api::resource_counts::{ResourceCount, Tally};
use berth_model::queue::Role;

use crate::context::Context;
use crate::table::{Column, Table};

pub async fn run(context: &Context) -> anyhow::Result<()> {
    let counts = context.client.resource_counts(context.site()?).await?;
    context
        .out
        .show(&counts, |screen| table(&counts.items).render(screen))
}

fn table(counts: &[ResourceCount]) -> Table<9> {
    let columns = [
        Column::left("TYPE"),
        Column::left("MODEL"),
        Column::left("WHERE"),
        Column::right("TOTAL"),
        Column::right("IDLE"),
        Column::right("RUNNING"),
        Column::right("RESERVED"),
        Column::right("CUT"),
        Column::right("OUT OF SERVICE"),
    ];
    let mut table = Table::new(
        columns,
        "This site has no resources. `berth resource add NAME --type TYPE` adds one.",
    );
    for count in counts {
        let (unit, tally) = match &count.capacity {
            // A shared GPU is still counted as a GPU; cores and memory are counted in their unit.
            Some(capacity) if count.role != Some(Role::Gpu) => {
                (format!(", {}", capacity.unit), capacity.amounts)
            }
            _ => (String::new(), count.resources),
        };
        let model = [&count.model, &count.profile];
        let model: Vec<&str> = model.into_iter().flatten().map(String::as_str).collect();
        let [total, free, running, reserved, cut, out] = numbers(tally);
        table.row([
            format!("{}{unit}", count.kind.name),
            model.join(" "),
            if count.in_node { "in nodes" } else { "" }.to_owned(),
            total,
            free,
            running,
            reserved,
            cut,
            out,
        ]);
    }
    table
}

fn numbers(tally: Tally) -> [String; 6] {
    let Tally {
        total,
        free,
        running,
        reserved,
        cut,
        out_of_service,
    } = tally;
    [total, free, running, reserved, cut, out_of_service].map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::{Format, Output};

    #[test]
    fn gpus_are_counted_whole_and_cores_in_their_unit() {
        let tally = |total: u64, free: u64| json!({"total": total, "free": free, "running": total - free, "reserved": 0, "cut": 0, "out_of_service": 0});
        let capacity = |unit: &str, total: u64, free: u64| {
            let mut capacity = tally(total, free);
            capacity["unit"] = json!(unit);
            capacity
        };
        let kind = |name: &str| json!({"id": "typ_01kc3v9xwbe8rv5w2n9q3m7t4h", "name": name, "title": name});
        let counts = json!([
            {"type": kind("cpu"), "role": "cores", "in_node": true, "resources": tally(2, 0),
             "capacity": capacity("cores", 128, 60)},
            {"type": kind("gpu"), "role": "gpu", "in_node": true, "model": "L40S", "resources": tally(4, 1),
             "capacity": capacity("thousandths", 4000, 1500)},
        ]);
        let counts: Vec<ResourceCount> = serde_json::from_value(counts).unwrap();
        let table = table(&counts).render(Output::new(Format::Table).screen);
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            rows[1],
            [
                "cpu,", "cores", "in", "nodes", "128", "60", "68", "0", "0", "0"
            ]
        );
        assert_eq!(
            rows[2],
            ["gpu", "L40S", "in", "nodes", "4", "1", "3", "0", "0", "0"]
        );
    }
}
