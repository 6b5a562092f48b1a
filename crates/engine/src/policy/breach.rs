//! Why a booking is refused: the rule, its value, the policies it comes from, the booking's own value, and an
//! accepted value.

use std::fmt;

use berth_model::policy::{Length, Rule, Scope};
use berth_model::site::Role;
use berth_model::{Name, Span, Text};
use jiff::civil::Date;
use jiff::{SignedDuration, Zoned};

use super::rules::Value;

/// One rule that a booking breaks. Its `Display` is a sentence for the person who made the request.
#[derive(Debug, Clone, PartialEq)]
pub struct Breach {
    pub rule: Rule,
    pub value: Value,
    pub from: Vec<Scope>,
    pub found: Found,
    pub accepts: Accepts,
}

/// The booking's own value where it breaks the rule. Moments are in the site's time zone.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    By {
        role: Role,
        project: Option<Name>,
    },
    /// Time from the request to the start; negative when the start is over.
    StartsIn(SignedDuration),
    StartsAt(Zoned),
    Lasts(SignedDuration),
    /// The number of active bookings that the person already has.
    Active(usize),
    Hours {
        /// The Monday of the week.
        week: Date,
        already: SignedDuration,
        adds: SignedDuration,
    },
    /// The first closed time that overlaps the booking.
    Closed {
        from: Zoned,
        to: Zoned,
    },
    Holiday {
        name: Text,
        from: Zoned,
        to: Zoned,
    },
    /// The distance to another booking; zero when they overlap.
    Near(SignedDuration),
}

/// An accepted value.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepts {
    /// No booking at all.
    Nothing,
    /// A booking by a person who has the permission.
    Others,
    /// One more booking, once another is over.
    Later,
    /// The nearest start that all rules accept, for the nearest length that they accept. None if there is none within
    /// [`LOOK_D`] days.
    Start(Option<Zoned>),
    AtLeast(SignedDuration),
    AtMost(SignedDuration),
    /// The nearest shorter and longer lengths.
    Lengths(Vec<SignedDuration>),
    /// The length left in that week, or another start.
    InWeek {
        left: SignedDuration,
        start: Option<Zoned>,
    },
}

impl Accepts {
    /// Whether another time would be accepted.
    pub fn is_about_time(&self) -> bool {
        !matches!(self, Accepts::Nothing | Accepts::Others | Accepts::Later)
    }
}

/// How far from the requested start the search looks for another one, in days each way.
pub const LOOK_D: i64 = 62;

/// A refused booking: every rule that it breaks, and the time to book instead.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", .breaches.iter().map(Breach::to_string).collect::<Vec<_>>().join(". "))]
pub struct Refusal {
    pub breaches: Vec<Breach>,
    /// The nearest accepted time in place of the requested one. None if the rules leave no time nearby, or if the
    /// refusal is not about time.
    pub instead: Option<Span>,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from: Vec<String> = self.from.iter().map(Scope::to_string).collect();
        let from = from.join(", ");
        write!(f, "{} ({from}); ", asks(self.rule, &self.value))?;
        write!(f, "{}; {}", self.found, self.accepts)
    }
}

/// The requirement of a rule, as the first part of a sentence.
pub(super) fn asks(rule: Rule, value: &Value) -> String {
    match (rule, value) {
        (Rule::WhoMayBook, _) => format!("{value} may book"),
        (Rule::Notice, _) => format!("bookings are made at least {value} before they start"),
        (Rule::Horizon, _) => format!("bookings start at most {value} ahead"),
        (Rule::LengthMin, _) => format!("bookings last at least {value}"),
        (Rule::LengthMax, _) => format!("bookings last at most {value}"),
        (Rule::LengthStep, _) => format!("bookings last a multiple of {value}"),
        (Rule::StartStep, _) => format!("bookings start a multiple of {value} after midnight"),
        (Rule::ActiveBookings, _) => {
            format!("a person has at most {value} booking(s) that are not over")
        }
        (Rule::PersonHoursPerWeek, _) => format!("a person books at most {value} a week"),
        (Rule::ProjectHoursPerWeek, _) => format!("a project books at most {value} a week"),
        (Rule::OpeningHours, _) => format!("bookings lie within opening hours, {value}"),
        (Rule::ClosedOnHolidays, Value::Flag(false)) => "holidays are like other days".to_owned(),
        (Rule::ClosedOnHolidays, _) => "holidays are closed".to_owned(),
        (Rule::Gap, _) => {
            format!("between a person's bookings of one resource lie at least {value}")
        }
        (Rule::BufferBefore, _) => format!("{value} before a booking are held to set up"),
        (Rule::BufferAfter, _) => format!("{value} after a booking are held to clean up"),
        (Rule::Approval, _) => value.to_string(),
        (Rule::CheckIn, _) => {
            format!("a booking is released {value} after its start without check-in")
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::By { role, project } => {
                let role = match role {
                    Role::Member => "a member",
                    Role::SiteAdmin => "a site admin",
                };
                match project {
                    Some(project) => write!(f, "this one is by {role} for project {project}"),
                    None => write!(f, "this one is by {role} for no project"),
                }
            }
            Found::StartsIn(time) if time.is_negative() => {
                write!(f, "this one started {} ago", lasting(time.abs()))
            }
            Found::StartsIn(time) => write!(f, "this one starts in {}", lasting(*time)),
            Found::StartsAt(at) => write!(f, "this one starts {}", moment(at)),
            Found::Lasts(length) => write!(f, "this one lasts {}", lasting(*length)),
            Found::Active(count) => write!(f, "{count} stand(s) already"),
            Found::Hours {
                week,
                already,
                adds,
            } => {
                let (already, adds) = (hours(*already), hours(*adds));
                write!(
                    f,
                    "the week of {week} has {already} already and this one adds {adds}"
                )
            }
            Found::Closed { from, to } => {
                write!(f, "it is closed from {} to {}", moment(from), moment(to))
            }
            Found::Holiday { name, from, to } => {
                write!(f, "{name} is from {} to {}", moment(from), moment(to))
            }
            Found::Near(SignedDuration::ZERO) => f.write_str("this one touches or meets another"),
            Found::Near(between) => write!(f, "this one is {} from another", lasting(*between)),
        }
    }
}

impl fmt::Display for Accepts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accepts::Nothing => f.write_str("no booking is accepted"),
            Accepts::Others => f.write_str("a booking by one of those is accepted"),
            Accepts::Later => f.write_str("another is accepted once one of those is over"),
            Accepts::Start(Some(start)) => {
                write!(f, "the nearest accepted start is {}", moment(start))
            }
            Accepts::Start(None) => write!(f, "no start within {LOOK_D} d of it is accepted"),
            Accepts::AtLeast(length) => write!(f, "{} or more is accepted", lasting(*length)),
            Accepts::AtMost(length) => write!(f, "up to {} is accepted", lasting(*length)),
            Accepts::Lengths(lengths) => {
                let lengths: Vec<String> = lengths.iter().map(|length| lasting(*length)).collect();
                write!(f, "{} is accepted", lengths.join(" or "))
            }
            Accepts::InWeek { left, start } => {
                match *left {
                    SignedDuration::ZERO => f.write_str("nothing more in that week is accepted"),
                    left => write!(f, "up to {} in that week is accepted", hours(left)),
                }?;
                match start {
                    Some(start) => write!(f, ", and so is the start {}", moment(start)),
                    None => Ok(()),
                }
            }
        }
    }
}

fn moment(at: &Zoned) -> String {
    at.strftime("%a %Y-%m-%d %H:%M %Z").to_string()
}

/// A length as [`Length`] prints it, and the rest in seconds.
fn lasting(time: SignedDuration) -> String {
    let minutes = Length::from_minutes(u32::try_from(time.as_mins()).unwrap_or(u32::MAX));
    match (minutes, time.as_secs() % 60) {
        (minutes, 0) => minutes.to_string(),
        (Length::ZERO, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} {seconds} s"),
    }
}

/// A sum of lengths of any size, in hours and minutes.
fn hours(time: SignedDuration) -> String {
    let minutes = u32::try_from(time.as_mins()).unwrap_or(u32::MAX);
    Value::Hours(Length::from_minutes(minutes)).to_string()
}
