//! The inventory as a table: one resource in each line, for spreadsheets.
//!
//! A column that a file does not have leaves that part of each resource as it is in the site. What a spreadsheet would
//! take for a formula is written with an apostrophe before it, which reading takes away again.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::attribute::{self, Attributes};
use berth_model::declared::{Declared, DeclaredResource, Document, read_attribute, written};
use berth_model::inventory::{Capacity, Facts};
use berth_model::{Amount, Name, Text};

use super::{BYTES_MAX, Resources, goes_round, with_parents};

const ATTRIBUTE: &str = "attr:";
/// As many complaints as fit a screen; more help nobody.
const ERRORS_MAX: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Name,
    Type,
    Parent,
    Title,
    Capacity,
    Unit,
    Location,
    Contact,
    MonitoringUrl,
    ProvisioningAddress,
    Attribute(Name),
}

const FIXED: [(&str, Column); 10] = [
    ("name", Column::Name),
    ("type", Column::Type),
    ("parent", Column::Parent),
    ("title", Column::Title),
    ("capacity", Column::Capacity),
    ("unit", Column::Unit),
    ("location", Column::Location),
    ("contact", Column::Contact),
    ("monitoring_url", Column::MonitoringUrl),
    ("provisioning_address", Column::ProvisioningAddress),
];

/// The resources of a site, by name.
pub fn write(site: &Declared) -> Result<String, csv::Error> {
    let resources = site.resources.iter().flatten();
    let attributes: BTreeSet<&Name> = resources
        .clone()
        .flat_map(|(_, resource)| resource.attributes.keys())
        .collect();
    let mut out = csv::Writer::from_writer(Vec::new());
    let fixed = FIXED.iter().map(|(title, _)| (*title).to_owned());
    out.write_record(fixed.chain(attributes.iter().map(|name| format!("{ATTRIBUTE}{name}"))))?;
    for (name, resource) in resources {
        let text = |text: &Option<Text>| text.as_ref().map(ToString::to_string).unwrap_or_default();
        let capacity = resource.capacity.as_ref();
        let facts = &resource.facts;
        let cells = FIXED.iter().map(|(_, column)| match column {
            Column::Name => name.to_string(),
            Column::Type => resource.kind.to_string(),
            Column::Parent => resource
                .parent
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            Column::Title => text(&resource.title),
            Column::Capacity => capacity
                .map(|it| it.amount.get().to_string())
                .unwrap_or_default(),
            Column::Unit => capacity.map(|it| it.unit.to_string()).unwrap_or_default(),
            Column::Location => text(&facts.location),
            Column::Contact => text(&facts.contact),
            Column::MonitoringUrl => text(&facts.monitoring_url),
            Column::ProvisioningAddress => text(&facts.provisioning_address),
            Column::Attribute(_) => String::new(),
        });
        let described = attributes.iter().map(|name| {
            resource
                .attributes
                .get(*name)
                .map(written)
                .unwrap_or_default()
        });
        out.write_record(cells.chain(described).map(|cell| guarded(&cell)))?;
    }
    let bytes = out.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What makes a spreadsheet reckon instead of read.
fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r'])
}

fn is_guarded(text: &str) -> bool {
    text.strip_prefix('\'')
        .is_some_and(|rest| is_formula(rest) || rest.starts_with('\''))
}

fn guarded(cell: &str) -> String {
    if is_formula(cell) || is_guarded(cell) {
        format!("'{cell}")
    } else {
        cell.to_owned()
    }
}

fn unguarded(cell: &str) -> &str {
    if is_guarded(cell) { &cell[1..] } else { cell }
}

/// The document that makes `site` what the table says. Everything that is wrong is told by line and column.
pub fn read(text: &str, name: &str, site: &Declared) -> Result<Document, String> {
    if text.len() > BYTES_MAX {
        return Err(format!("{name}: the file is larger than {BYTES_MAX} bytes"));
    }
    let mut reading = Reading {
        file: name,
        site,
        errors: Vec::new(),
        resources: Resources::new(),
    };
    let mut rows = csv::ReaderBuilder::new()
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.trim_start_matches('\u{feff}').as_bytes());
    let columns = match rows.headers() {
        Ok(titles) => reading.columns(titles),
        Err(error) => return Err(format!("{name}: {error}")),
    };
    let Some(columns) = columns else {
        return Err(reading.errors.join("\n"));
    };
    let mut lines = BTreeMap::new();
    for row in rows.records() {
        let row = row.map_err(|error| format!("{name}: {error}"))?;
        let line = row.position().map_or(0, |position| position.line());
        if let Some(resource) = reading.row(line, &columns, &row) {
            lines.insert(resource, line);
        }
        if reading.errors.len() >= ERRORS_MAX {
            break;
        }
    }
    reading.check_places(&lines, &columns);
    reading.end()
}

struct Reading<'r> {
    file: &'r str,
    site: &'r Declared,
    errors: Vec<String>,
    resources: Resources,
}

impl Reading<'_> {
    /// Lines and columns are counted from 1, and a column is named as its title is.
    fn wrong(&mut self, line: u64, column: usize, title: &str, message: impl std::fmt::Display) {
        let Self { file, errors, .. } = self;
        errors.push(format!(
            "{file}:{line}: column {} ({title}): {message}",
            column + 1
        ));
    }

    fn columns(&mut self, titles: &csv::StringRecord) -> Option<Vec<(String, Column)>> {
        let mut columns: Vec<(String, Column)> = Vec::new();
        for (place, title) in titles.iter().enumerate() {
            let known = FIXED
                .iter()
                .find(|(known, _)| *known == title)
                .map(|(_, column)| column.clone());
            let named = title.strip_prefix(ATTRIBUTE).map(str::parse::<Name>);
            let column = match (known, named) {
                (Some(column), _) => column,
                (None, Some(Ok(name))) => Column::Attribute(name),
                (None, Some(Err(error))) => {
                    self.wrong(1, place, title, error);
                    continue;
                }
                (None, None) => {
                    let known: Vec<&str> = FIXED.iter().map(|(title, _)| *title).collect();
                    let known = known.join(", ");
                    self.wrong(1, place, title, format!("there is no such column; there are {known}, and attr:KEY for attributes"));
                    continue;
                }
            };
            if columns.iter().any(|(_, other)| *other == column) {
                self.wrong(1, place, title, "this column stands here twice");
            }
            columns.push((title.to_owned(), column));
        }
        if !columns.iter().any(|(_, column)| *column == Column::Name) {
            self.errors
                .push(format!("{}:1: there is no column `name`", self.file));
        }
        self.errors.is_empty().then_some(columns)
    }

    fn row(
        &mut self,
        line: u64,
        columns: &[(String, Column)],
        row: &csv::StringRecord,
    ) -> Option<Name> {
        if row.len() != columns.len() {
            let (is, should) = (row.len(), columns.len());
            self.errors.push(format!(
                "{}:{line}: this line has {is} cells, and the first line has {should}",
                self.file
            ));
            return None;
        }
        let cells = || {
            columns
                .iter()
                .zip(row)
                .map(|((title, column), cell)| (title, column, unguarded(cell)))
        };
        let (place, (title, _, name)) = cells()
            .enumerate()
            .find(|(_, (_, column, _))| **column == Column::Name)?;
        let name: Name = match name.parse() {
            Ok(name) => name,
            Err(error) => {
                self.wrong(line, place, title, error);
                return None;
            }
        };
        if self.resources.contains_key(&name) {
            self.wrong(
                line,
                place,
                title,
                format!("`{name}` stands in an earlier line already"),
            );
            return None;
        }
        let known = self
            .site
            .resources
            .as_ref()
            .and_then(|all| all.get(&name))
            .cloned();
        let is_new = known.is_none();
        let mut draft = Draft::of(known);
        for (place, (title, column, cell)) in cells().enumerate() {
            if let Err(error) = draft.set(column, cell) {
                self.wrong(line, place, title, error);
            }
        }
        let finished = draft.finish();
        match finished {
            Ok(resource) => {
                self.resources.insert(name.clone(), resource);
                Some(name)
            }
            Err((column, error)) => {
                let place = columns.iter().position(|(_, known)| *known == column);
                match place {
                    Some(place) => self.wrong(line, place, &columns[place].0, error),
                    None if is_new => self.errors.push(format!(
                        "{}:{line}: `{name}` is new, and there is no column that says its {error}",
                        self.file
                    )),
                    None => self.errors.push(format!("{}:{line}: {error}", self.file)),
                }
                None
            }
        }
    }

    fn check_places(&mut self, lines: &BTreeMap<Name, u64>, columns: &[(String, Column)]) {
        let Some(place) = columns
            .iter()
            .position(|(_, column)| *column == Column::Parent)
        else {
            return;
        };
        let known = self.site.resources.as_ref();
        let mut wrong = Vec::new();
        for (name, line) in lines {
            let parent = self.resources.get(name).and_then(|it| it.parent.clone());
            let Some(parent) = parent else { continue };
            let exists = self.resources.contains_key(&parent)
                || known.is_some_and(|all| all.contains_key(&parent));
            if !exists {
                wrong.push((
                    *line,
                    format!("there is no resource `{parent}` in the file or in the site"),
                ));
            } else if goes_round(&self.resources, name) {
                wrong.push((*line, format!("`{name}` would stand below itself")));
            }
        }
        for (line, message) in wrong.into_iter().take(ERRORS_MAX) {
            self.wrong(line, place, "parent", message);
        }
    }

    fn end(self) -> Result<Document, String> {
        if !self.errors.is_empty() {
            return Err(self.errors.join("\n"));
        }
        let declared = Declared {
            resources: Some(with_parents(self.resources, self.site)),
            ..Declared::default()
        };
        Ok(declared.nested())
    }
}

/// A resource on its way from a line to a declaration.
struct Draft {
    parent: Option<Name>,
    kind: Option<Name>,
    title: Option<Text>,
    amount: Option<Amount>,
    unit: Option<Name>,
    attributes: Attributes,
    facts: Facts,
}

impl Draft {
    fn of(known: Option<DeclaredResource>) -> Self {
        match known {
            Some(known) => Self {
                parent: known.parent,
                kind: Some(known.kind),
                title: known.title,
                amount: known.capacity.as_ref().map(|capacity| capacity.amount),
                unit: known.capacity.map(|capacity| capacity.unit),
                attributes: known.attributes,
                facts: known.facts,
            },
            None => Self {
                parent: None,
                kind: None,
                title: None,
                amount: None,
                unit: None,
                attributes: Attributes::new(),
                facts: Facts::default(),
            },
        }
    }

    /// An empty cell says: none.
    fn set(&mut self, column: &Column, cell: &str) -> Result<(), String> {
        fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
            cell: &str,
        ) -> Result<Option<T>, String> {
            if cell.is_empty() {
                return Ok(None);
            }
            cell.parse()
                .map(Some)
                .map_err(|error: T::Err| error.to_string())
        }
        match column {
            Column::Name => {}
            Column::Type => self.kind = parsed(cell)?,
            Column::Parent => self.parent = parsed(cell)?,
            Column::Title => self.title = parsed(cell)?,
            Column::Unit => self.unit = parsed(cell)?,
            Column::Capacity => {
                let amount = cell
                    .parse::<u64>()
                    .ok()
                    .and_then(|amount| Amount::new(amount).ok());
                if amount.is_none() && !cell.is_empty() {
                    return Err(format!(
                        "`{cell}` is not a capacity: write a whole number from 1"
                    ));
                }
                self.amount = amount;
            }
            Column::Location => self.facts.location = parsed(cell)?,
            Column::Contact => self.facts.contact = parsed(cell)?,
            Column::MonitoringUrl => self.facts.monitoring_url = parsed(cell)?,
            Column::ProvisioningAddress => self.facts.provisioning_address = parsed(cell)?,
            Column::Attribute(name) if cell.is_empty() => {
                self.attributes.remove(name);
            }
            Column::Attribute(name) => {
                let value = read_attribute(cell);
                let alone = Attributes::from([(name.clone(), value.clone())]);
                attribute::check(&alone).map_err(|error| error.to_string())?;
                self.attributes.insert(name.clone(), value);
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<DeclaredResource, (Column, String)> {
        let capacity = match (self.amount, self.unit) {
            (Some(amount), Some(unit)) => Some(Capacity { amount, unit }),
            (None, None) => None,
            (Some(_), None) => return Err((Column::Unit, "a capacity needs its unit".to_owned())),
            (None, Some(_)) => {
                return Err((Column::Capacity, "a unit needs its capacity".to_owned()));
            }
        };
        if let Err(error) = attribute::check(&self.attributes) {
            return Err((Column::Name, error.to_string()));
        }
        Ok(DeclaredResource {
            parent: self.parent,
            kind: self.kind.ok_or_else(|| (Column::Type, "type".to_owned()))?,
            title: self.title,
            attributes: self.attributes,
            facts: self.facts,
            capacity,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn site(resources: serde_json::Value) -> Declared {
        let document = json!({"version": 1, "resources": resources});
        serde_json::from_value::<Document>(document)
            .unwrap()
            .flat()
            .unwrap()
    }

    fn lab() -> Declared {
        site(json!({"rack-a": {"type": "rack", "children": {
            "gpu-01": {"type": "gpu", "title": "=cmd()", "attributes": {"gpus": 8, "model": "-A100", "odd": "8"},
                "facts": {"location": "B 12, left"}},
            "cpu-01": {"type": "cpu", "capacity": {"amount": 64, "unit": "cores"}}}}}))
    }

    fn read_back(text: &str, site: &Declared) -> Declared {
        read(text, "lab.csv", site).unwrap().flat().unwrap()
    }

    #[test]
    fn a_table_has_a_line_for_each_resource_and_no_formulas() {
        assert_eq!(
            write(&lab()).unwrap(),
            "name,type,parent,title,capacity,unit,location,contact,monitoring_url,provisioning_address,attr:gpus,attr:model,attr:odd\n\
             cpu-01,cpu,rack-a,,64,cores,,,,,,,\n\
             gpu-01,gpu,rack-a,'=cmd(),,,\"B 12, left\",,,,8,'-A100,\"\"\"8\"\"\"\n\
             rack-a,rack,,,,,,,,,,,\n"
        );
    }

    #[test]
    fn a_table_read_back_changes_nothing() {
        let text = write(&lab()).unwrap();
        assert_eq!(read_back(&text, &lab()), lab());
        assert_eq!(
            read_back(&text, &Declared::default()),
            lab(),
            "nor needs it a site to be read"
        );
    }

    #[test]
    fn missing_columns_leave_things_alone_and_parents_come_along() {
        let changed = read_back("name,attr:gpus\ngpu-01,4\n", &lab());
        let resources = changed.resources.unwrap();
        let names: Vec<&str> = resources.keys().map(Name::as_str).collect();
        assert_eq!(names, ["gpu-01", "rack-a"]);
        let gpu = &resources[&"gpu-01".parse::<Name>().unwrap()];
        assert_eq!(gpu.title.as_ref().unwrap().as_str(), "=cmd()");
        assert_eq!(
            gpu.attributes[&"gpus".parse::<Name>().unwrap()],
            attribute::AttributeValue::Number(4.0)
        );
        assert_eq!(gpu.attributes.len(), 3);
        let emptied = read_back("name,title,attr:gpus\ngpu-01,,\n", &lab())
            .resources
            .unwrap();
        let gpu = &emptied[&"gpu-01".parse::<Name>().unwrap()];
        assert_eq!(
            (gpu.title.as_ref(), gpu.attributes.len()),
            (None, 2),
            "an empty cell says none"
        );
    }

    #[test]
    fn everything_wrong_is_told_by_line_and_column() {
        for (text, wanted) in [
            ("", "lab.csv:1: there is no column `name`"),
            (
                "name,colour\n",
                "lab.csv:1: column 2 (colour): there is no such column",
            ),
            (
                "name,name\n",
                "lab.csv:1: column 2 (name): this column stands here twice",
            ),
            (
                "name,attr:GPU\n",
                "lab.csv:1: column 2 (attr:GPU): `GPU` is not a name",
            ),
            (
                "name,type\nx\n",
                "lab.csv:2: this line has 1 cells, and the first line has 2",
            ),
            (
                "name,type\nX y,t\n",
                "lab.csv:2: column 1 (name): `X y` is not a name",
            ),
            (
                "name,type\nx,t\nx,t\n",
                "lab.csv:3: column 1 (name): `x` stands in an earlier line already",
            ),
            ("name,type\nx,\n", "lab.csv:2: column 2 (type): type"),
            (
                "name\nx\n",
                "lab.csv:2: `x` is new, and there is no column that says its type",
            ),
            (
                "name,type,parent\nx,t,nowhere\n",
                "lab.csv:2: column 3 (parent): there is no resource `nowhere`",
            ),
            (
                "name,type,parent\nx,t,y\ny,t,x\n",
                "lab.csv:2: column 3 (parent): `x` would stand below itself",
            ),
            (
                "name,type,capacity,unit\nx,t,many,cores\n",
                "lab.csv:2: column 3 (capacity): `many` is not a capacity",
            ),
            (
                "name,type,capacity,unit\nx,t,4,\n",
                "lab.csv:2: column 4 (unit): a capacity needs its unit",
            ),
            (
                "name,type,attr:a\nx,t,\"a\u{7}\"\n",
                "lab.csv:2: column 3 (attr:a): `a` must be a text",
            ),
        ] {
            let said = read(text, "lab.csv", &lab()).expect_err(text);
            assert!(said.starts_with(wanted), "{text:?}: {said}");
        }
        let many = format!("name,type\n{}", "?,t\n".repeat(1000));
        assert!(read(&many, "lab.csv", &lab()).unwrap_err().lines().count() <= 2 * ERRORS_MAX);
    }

    proptest! {
        #[test]
        fn a_guard_is_taken_away_again(cell in "['=+@\t-]{0,3}\\PC{0,5}") {
            let written = guarded(&cell);
            prop_assert_eq!(unguarded(&written), cell.as_str());
            prop_assert!(!is_formula(&written));
        }
    }
}
