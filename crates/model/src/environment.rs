//! Managed environments: Python with packages, made once, never changed, and seen by whatever runs in them.
//!
//! Each row is one *version*. A version that is ready stays as it is for as long as it is there, so that what ran in it
//! can run in it again; to change an environment is to make its next version. One that extends another holds only what
//! it adds: the other, its *base*, stands beside it.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{EnvironmentId, PersonId, SiteId, WorkloadId};
use crate::name::{LoginName, Name, NameError};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    pub id: EnvironmentId,
    pub site: SiteId,
    /// Whose it is; none for one that the site's admins curate.
    pub owner: Option<PersonId>,
    pub name: Name,
    /// 1, 2, ...
    pub version: u32,
    /// What it extends.
    pub base: Option<EnvironmentId>,
    /// What it has beside that, as it was asked for.
    pub packages: Vec<Package>,
    /// Where it stands below [`INSIDE`], for good: programs in it know themselves by that path.
    pub path: String,
    /// What it is called among those that were prepared before there was a server; none for one that was made here.
    pub prepared: Option<Name>,
    /// What makes it.
    pub workload: Option<WorkloadId>,
    pub state: EnvironmentState,
    /// Why it could not be made, for its owner.
    pub trouble: Option<String>,
    /// Its interpreter, once it is ready.
    pub python: Option<String>,
    pub bytes: Option<u64>,
    /// Whether there may be something of it on the disk.
    pub is_on_disk: bool,
    pub created_by: Option<PersonId>,
    pub created_at: Timestamp,
    /// When it became ready, or it was clear that it never will.
    pub settled_at: Option<Timestamp>,
}

/// Where environments stand for those who run in them.
pub const INSIDE: &str = "/opt/berth/environments";

impl Environment {
    pub const PACKAGES_MAX: usize = 200;

    /// Where whoever runs in it finds it.
    pub fn inside(&self) -> String {
        format!("{INSIDE}/{}", self.path)
    }

    pub fn is_ready(&self) -> bool {
        self.state == EnvironmentState::Ready
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentState {
    /// It is being made, or waits for room to be made in.
    Building,
    /// It can be used, and changes no more.
    Ready,
    Failed,
    /// Nothing new begins in it.
    Retired,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    #[error(
        "`{0}` is not a package: write a name, perhaps extras and versions, such as `numpy`, `dask[array]` or `torch>=2.1,<3`; addresses, files and options are not taken"
    )]
    Form(String),
}

/// One line of what an environment has: a package's name, perhaps with extras and versions, and nothing else. It reaches
/// an installer's command line, so neither an option nor an address may look like one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Package(String);

const PACKAGE_MAX: usize = 200;

impl Package {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its name as the index knows it: `Typing_Extensions` and `typing-extensions` are one.
    pub fn name(&self) -> String {
        let end = self.0.find(|c: char| !is_name_char(c));
        let name = &self.0[..end.unwrap_or(self.0.len())];
        let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c)
}

/// A package's or an extra's name: it begins and ends with a letter or a digit.
fn is_name(text: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    is_edge(text.chars().next()) && is_edge(text.chars().last()) && text.chars().all(is_name_char)
}

fn is_version(clause: &str) -> bool {
    let operators = ["===", "==", ">=", "<=", "~=", "!=", "<", ">"];
    let version = operators
        .iter()
        .find_map(|operator| clause.strip_prefix(operator));
    version.is_some_and(|version| {
        let is_good = |c: char| c.is_ascii_alphanumeric() || ".*+!-_".contains(c);
        version.starts_with(|c: char| c.is_ascii_alphanumeric()) && version.chars().all(is_good)
    })
}

impl FromStr for Package {
    type Err = PackageError;
    fn from_str(text: &str) -> Result<Self, PackageError> {
        let wrong = || PackageError::Form(text.chars().take(64).collect());
        let line: String = text.chars().filter(|c| *c != ' ').collect();
        if line.len() > PACKAGE_MAX {
            return Err(wrong());
        }
        let end = line.find(|c: char| !is_name_char(c)).unwrap_or(line.len());
        let (name, mut rest) = line.split_at(end);
        let mut is_good = is_name(name);
        if let Some(inner) = rest.strip_prefix('[') {
            let (extras, after) = inner.split_once(']').ok_or_else(wrong)?;
            is_good &= extras.split(',').all(is_name);
            rest = after;
        }
        is_good &= rest.is_empty() || rest.split(',').all(is_version);
        if is_good {
            Ok(Package(line))
        } else {
            Err(wrong())
        }
    }
}

impl TryFrom<String> for Package {
    type Error = PackageError;
    fn try_from(text: String) -> Result<Self, PackageError> {
        text.parse()
    }
}

impl From<Package> for String {
    fn from(package: Package) -> String {
        package.0
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl utoipa::PartialSchema for Package {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .min_length(Some(1))
            .max_length(Some(PACKAGE_MAX))
            .examples(["torch>=2.1"])
            .into()
    }
}
impl utoipa::ToSchema for Package {}

/// How people write an environment: `torch` is a curated one, or else one's own; `torch@2` one version of it, without
/// which the newest that is ready is meant; `~ada/torch` is Ada's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnvironmentName {
    pub owner: Option<LoginName>,
    pub name: Name,
    pub version: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentNameError {
    #[error(
        "`{0}` is not an environment: write its name, such as `torch`, `torch@2` or `~ada/torch`"
    )]
    Form(String),
    #[error(transparent)]
    Name(#[from] NameError),
}

impl FromStr for EnvironmentName {
    type Err = EnvironmentNameError;
    fn from_str(text: &str) -> Result<Self, EnvironmentNameError> {
        let wrong = || EnvironmentNameError::Form(text.chars().take(64).collect());
        let (owner, rest) = match text.strip_prefix('~') {
            None => (None, text),
            Some(whose) => {
                let (login, rest) = whose.split_once('/').ok_or_else(wrong)?;
                (Some(login.parse()?), rest)
            }
        };
        let (name, version) = match rest.split_once('@') {
            None => (rest, None),
            Some((name, version)) => {
                let number: u32 = version.parse().map_err(|_| wrong())?;
                (name, Some(number).filter(|number| *number > 0))
            }
        };
        if rest.contains('@') && version.is_none() {
            return Err(wrong());
        }
        Ok(EnvironmentName {
            owner,
            name: name.parse()?,
            version,
        })
    }
}

impl fmt::Display for EnvironmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(owner) = &self.owner {
            write!(f, "~{owner}/")?;
        }
        self.name.fmt(f)?;
        match self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}

impl utoipa::PartialSchema for EnvironmentName {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .min_length(Some(1))
            .max_length(Some(140))
            .examples(["torch", "torch@2", "~ada/torch"])
            .into()
    }
}
impl utoipa::ToSchema for EnvironmentName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_a_name_with_extras_and_versions_and_nothing_else() {
        for good in [
            "numpy",
            "dask[array,dataframe]",
            "torch>=2.1,<3",
            "a==1.*",
            "x ~= 1.0.post1",
        ] {
            assert!(good.parse::<Package>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "-r/etc/passwd",
            "--index-url=http://evil.example",
            "evil @ https://evil.example/x.whl",
            "https://evil.example/x.whl",
            "./here",
            "../up",
            "/etc",
            "git+https://x",
            "a;python_version<'3'",
            "a==1 --hash=x",
            "a[",
            "a[]",
            "a==",
            "a==-r",
            "a=1",
            "a\n-r x",
            "-",
            "a-",
            &"x".repeat(201),
        ] {
            assert!(bad.parse::<Package>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn two_spellings_of_a_package_are_one() {
        let name = |text: &str| text.parse::<Package>().unwrap().name();
        assert_eq!(name("Typing_Extensions[x]>=4"), "typing-extensions");
        assert_eq!(name("typing.extensions"), "typing-extensions");
    }

    #[test]
    fn environments_are_written_as_they_are_read() {
        for text in [
            "torch",
            "torch@2",
            "~ada/torch",
            "~ada@lab.example/torch@12",
        ] {
            assert_eq!(text.parse::<EnvironmentName>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "~ada",
            "~/torch",
            "torch@",
            "torch@0",
            "torch@x",
            "a/b",
            "~ada/../x",
        ] {
            assert!(bad.parse::<EnvironmentName>().is_err(), "{bad:?}");
        }
    }
}
