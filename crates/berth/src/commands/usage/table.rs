//! The figures as tables for spreadsheets.

use berth_api::usage::{AllUsage, Usage, UsageFigures, UsageSeconds};

/// A row for each bucket of each type, and of everything together, whose type is empty.
pub fn as_csv(usage: &Usage) -> anyhow::Result<String> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record([
        "start",
        "end",
        "type",
        "available_s",
        "used_s",
        "utilisation",
    ])?;
    let all = [("", &usage.all)];
    let types = usage.types.iter();
    let types = types.map(|one| (one.kind.name.as_str(), &one.figures));
    for (name, figures) in all.into_iter().chain(types) {
        write_rows(&mut out, usage, name, figures)?;
    }
    finished(out)
}

fn write_rows(
    out: &mut csv::Writer<Vec<u8>>,
    usage: &Usage,
    name: &str,
    figures: &UsageFigures,
) -> anyhow::Result<()> {
    for (bucket, seconds) in usage.buckets.iter().zip(&figures.by_bucket) {
        out.write_record([
            bucket.start.to_string(),
            bucket.end.to_string(),
            name.to_owned(),
            seconds.available_s.to_string(),
            seconds.used_s.to_string(),
            share(*seconds),
        ])?;
    }
    Ok(())
}

/// A row for each site.
pub fn sites_as_csv(usage: &AllUsage) -> anyhow::Result<String> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record([
        "site",
        "resources",
        "available_s",
        "used_s",
        "utilisation",
        "people",
        "bookings",
        "no_shows",
        "cancelled",
        "rejected",
        "refusals",
    ])?;
    for site in &usage.sites {
        let seconds = UsageSeconds {
            available_s: site.available_s,
            used_s: site.used_s,
        };
        out.write_record([
            site.site.name.clone(),
            site.resources.to_string(),
            site.available_s.to_string(),
            site.used_s.to_string(),
            share(seconds),
            site.people.to_string(),
            site.outcomes.bookings.to_string(),
            site.outcomes.no_shows.to_string(),
            site.outcomes.cancelled.to_string(),
            site.outcomes.rejected.to_string(),
            site.refusals.to_string(),
        ])?;
    }
    finished(out)
}

fn share(seconds: UsageSeconds) -> String {
    let share = seconds.utilisation();
    share.map_or_else(String::new, |share| format!("{share:.4}"))
}

fn finished(out: csv::Writer<Vec<u8>>) -> anyhow::Result<String> {
    let bytes = out.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
