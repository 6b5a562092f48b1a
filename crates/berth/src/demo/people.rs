//! Who appears in the demo: people in every role, all of them invented.

use berth_model::site::Role;

/// One password for everybody. It is printed on every start, and the demo answers on this machine only.
pub const PASSWORD: &str = "demo-berth-2026";

/// The one who may do everything, everywhere.
pub const GLOBAL_ADMIN: &str = "ines";

#[derive(Debug)]
pub struct Character {
    pub login: &'static str,
    pub name: &'static str,
    pub seats: &'static [Seat],
    pub stay: Stay,
    /// What to try as this person; those who have one are listed on start.
    pub try_as: Option<&'static str>,
}

/// A place in a site, and the project the person books for there.
#[derive(Debug, Clone, Copy)]
pub struct Seat {
    pub site: &'static str,
    pub role: Role,
    pub project: Option<&'static str>,
}

/// From when to when someone books, in days from the day the world was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    Always,
    /// Asked to join, and was let in on this day.
    From(i64),
    /// Left, or was suspended, on this day.
    Until(i64),
}

const fn seat(site: &'static str, project: &'static str) -> Seat {
    Seat {
        site,
        role: Role::Member,
        project: Some(project),
    }
}

const fn admin(site: &'static str) -> Seat {
    Seat {
        site,
        role: Role::SiteAdmin,
        project: None,
    }
}

const fn member(login: &'static str, name: &'static str, seats: &'static [Seat]) -> Character {
    Character {
        login,
        name,
        seats,
        stay: Stay::Always,
        try_as: None,
    }
}

impl Character {
    const fn stays(self, stay: Stay) -> Self {
        Self { stay, ..self }
    }

    const fn try_as(self, what: &'static str) -> Self {
        Self {
            try_as: Some(what),
            ..self
        }
    }

    /// Whether this person books in the site on that day.
    pub fn books_in(&self, site: &str, day: i64) -> bool {
        let here = match self.stay {
            Stay::Always => true,
            Stay::From(first) => day > first,
            Stay::Until(last) => day < last,
        };
        let has_seat = |seat: &Seat| seat.site == site && seat.role == Role::Member;
        here && self.seats.iter().any(has_seat)
    }

    pub fn project_in(&self, site: &str) -> Option<&'static str> {
        let seat = self.seats.iter().find(|seat| seat.site == site)?;
        seat.project
    }
}

/// Who books in a site on that day.
pub fn bookers(site: &str, day: i64) -> Vec<&'static Character> {
    CAST.iter()
        .filter(|person| person.books_in(site, day))
        .collect()
}

pub fn admins_of(site: &str) -> Vec<&'static str> {
    let runs = |person: &&Character| {
        let mut seats = person.seats.iter();
        seats.any(|seat| seat.site == site && seat.role == Role::SiteAdmin)
    };
    CAST.iter()
        .filter(runs)
        .map(|person| person.login)
        .collect()
}

pub static CAST: &[Character] = &[
    member(GLOBAL_ADMIN, "Ines Valente", &[])
        .try_as("global admin: every site, people, the audit log"),
    member("marco", "Marco Ferraris", &[admin("torino")])
        .try_as("admin of torino: approvals, maintenance, join requests"),
    member("yuki", "Yuki Tanabe", &[admin("torino")]),
    member("chiara", "Chiara Bentivogli", &[admin("bologna")]).try_as("admin of bologna"),
    member("gennaro", "Gennaro Cacace", &[admin("napoli")]).try_as("admin of napoli"),
    member(
        "priya",
        "Priya Raghavan",
        &[seat("torino", "vision"), seat("bologna", "climate")],
    )
    .try_as("member of torino and bologna: books and extends"),
    member("amara", "Amara Okafor", &[seat("torino", "vision")]),
    member("lukas", "Lukas Brandt", &[seat("torino", "robotics")]),
    member("sofia", "Sofia Lindqvist", &[seat("torino", "language")]),
    member("mehmet", "Mehmet Yildiz", &[seat("torino", "language")]),
    member("elena", "Elena Popescu", &[seat("torino", "robotics")]),
    member("diego", "Diego Fuentes", &[seat("torino", "vision")]),
    member("victor", "Victor Dumas", &[seat("torino", "robotics")]).stays(Stay::Until(-20)),
    member("hanna", "Hanna Kowalska", &[seat("bologna", "climate")]),
    member("tomas", "Tomáš Novák", &[seat("bologna", "genomics")]),
    member(
        "fatima",
        "Fatima El Idrissi",
        &[seat("bologna", "genomics")],
    ),
    member("jonas", "Jonas Petersen", &[seat("bologna", "climate")]),
    member("bruno", "Bruno Tavares", &[seat("bologna", "genomics")]).stays(Stay::Until(-15)),
    member("nadia", "Nadia Rahmani", &[seat("napoli", "microscopy")]).try_as("member of napoli"),
    member("wei", "Wei Zhang", &[seat("napoli", "edge-ai")]),
    member("kwame", "Kwame Mensah", &[seat("napoli", "edge-ai")]).stays(Stay::From(-40)),
    member("ravi", "Ravi Menon", &[]),
    member("olga", "Olga Marchenko", &[]).try_as("in no site: sees what each site shows outsiders"),
];

#[derive(Debug)]
pub struct Project {
    pub site: &'static str,
    pub name: &'static str,
    pub title: &'static str,
}

const fn project(site: &'static str, name: &'static str, title: &'static str) -> Project {
    Project { site, name, title }
}

pub static PROJECTS: &[Project] = &[
    project("torino", "vision", "Street scenes at night"),
    project("torino", "robotics", "Hands that learn"),
    project("torino", "language", "Dialects of the Alps"),
    project("bologna", "climate", "Po valley at one kilometre"),
    project("bologna", "genomics", "Wheat pangenome"),
    project("napoli", "microscopy", "Living cells in three dimensions"),
    project("napoli", "edge-ai", "Models for small devices"),
];
