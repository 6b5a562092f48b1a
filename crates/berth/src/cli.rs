//! The command line: what can be typed, and nothing about what it does.

#[cfg(test)]
mod tests;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use berth_api::reference::SiteReference;
use berth_model::person::TimeZone;

use crate::commands::{
    admin, apply, audit, book, calendar, closure, completion, config, database, doctor,
    environment, event, feed, free, login, maintenance, member, notification, person, policy,
    profile, project, queue, reservation, resource, series, serve, session, sim, site, submit,
    token, topics, types, usage, when,
};
use crate::demo;
use crate::output::Format;
use crate::slurm::link;

#[derive(Debug, Parser)]
#[command(
    name = "berth",
    version,
    about = "Berth: shared research compute, booked by everyone and promised to nobody twice",
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    help_template = "{about}\n\n{usage-heading} {usage}\n\n{after-help}\nOptions:\n{options}\n"
)]
pub struct Cli {
    #[command(flatten)]
    pub options: Options,
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command of the client takes, before or after its name.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Options {
    /// The server to talk to, instead of the one you signed in to
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "BERTH_SERVER",
        hide_env_values = true
    )]
    pub server: Option<String>,
    /// The site to work in, instead of the one chosen with `berth site use`
    #[arg(
        long,
        global = true,
        value_name = "SITE",
        env = "BERTH_SITE",
        hide_env_values = true
    )]
    pub site: Option<SiteReference>,
    /// How to print what was asked for
    #[arg(
        short,
        long,
        global = true,
        value_name = "FORMAT",
        default_value = "table"
    )]
    pub output: Format,
    /// The time zone to read and print times in, instead of that of your profile
    #[arg(long, global = true, value_name = "ZONE")]
    pub zone: Option<TimeZone>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(flatten)]
    Client(Client),
    #[command(flatten)]
    Local(Local),
}

/// Commands that talk to a server as someone who is signed in.
#[derive(Debug, Subcommand)]
pub enum Client {
    /// Say who you are, where, and what you may do
    Whoami,
    /// Book resources for a time
    Book(book::Book),
    /// Find out what is free, and when
    Free(free::Free),
    /// Find out when something of a kind can be had, over all your sites
    When(when::When),
    /// Show who has what, as a picture of the day and an agenda
    Calendar(calendar::Calendar),
    /// Reservations: list, show, extend, change, cancel, decide
    #[command(subcommand)]
    Reservation(reservation::Reservation),
    /// Series of bookings: list, show, change, cancel
    #[command(subcommand)]
    Series(series::Series),
    /// Submit work to the queue
    Submit(submit::Submit),
    /// What waits, runs and has run; nodes, settings and grants of urgency
    Queue(queue::Queue),
    /// Say why a workload waits, when it begins, or what became of it
    Why(queue::Why),
    /// Cancel workloads: what runs of them is told to come to its end
    Cancel(submit::Cancel),
    /// Give work that runs more time
    Extend(submit::Extend),
    /// Hold workloads that wait, until they are released
    Hold(submit::These),
    /// Release workloads that are held
    Release(submit::These),
    /// Print the last of what a workload said
    Log(session::Log),
    /// Sessions: web apps to work in, such as a notebook; start, share, keep, stop
    Session(session::Sessions),
    /// Environments that work and notebooks run in: list, make, extend
    #[command(subcommand)]
    Env(environment::Env),
    /// How you stand: your share, what you used of it, and how
    Share(queue::ShareOf),
    /// List what waits for your approval
    Approvals,
    /// What you were told: changes of your bookings and of what they stand on, requests, reminders
    #[command(subcommand)]
    Notification(notification::Notification),
    /// Sites: list, show, make, join
    #[command(subcommand)]
    Site(site::Site),
    /// The members of a site
    #[command(subcommand)]
    Member(member::Member),
    /// Projects inside a site
    #[command(subcommand)]
    Project(project::Project),
    /// Policies: what is asked of bookings
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Resource types and their booking forms
    #[command(subcommand)]
    Type(types::Type),
    /// Resources: the tree, its parts and their status
    #[command(subcommand)]
    Resource(resource::Resource),
    /// Make the site what a file declares, after showing what that changes
    Apply(apply::Apply),
    /// Show how the site differs from a file
    Diff(apply::Diff),
    /// Write the site as a file
    Export,
    /// Planned maintenance
    #[command(subcommand)]
    Maintenance(maintenance::Maintenance),
    /// Calendars of the site's holidays and blackouts
    #[command(subcommand)]
    Closure(closure::Closure),
    /// People with an account, for global admins
    #[command(subcommand)]
    Person(person::Person),
    /// API tokens for programs
    #[command(subcommand)]
    Token(token::Token),
    /// Feeds for calendar programs
    #[command(subcommand)]
    Feed(feed::Feed),
    /// How much of the site was used, by whom and when
    Usage(usage::Usage),
    /// The audit log: who changed what
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Events, read back or as they happen
    #[command(subcommand)]
    Event(event::Event),
}

/// Commands that need nobody signed in: signing in itself, the server, and what the program knows by itself.
#[derive(Debug, Subcommand)]
pub enum Local {
    /// Sign in, and remember it on this machine
    Login(login::Login),
    /// Forget the sign-in on this machine, and revoke its token
    Logout,
    /// Your own name, mail address, time zone and password
    #[command(subcommand)]
    Profile(profile::Profile),
    /// Replay what was asked of a queue under other policies, and draw what would have come of it
    Sim(sim::Sim),
    /// Serve a living demo on this machine: three sites, their people, two months of bookings
    Demo(demo::Args),
    /// Run the server
    Serve(serve::Serve),
    /// Check the server's configuration, or describe it
    #[command(subcommand)]
    Config(config::Config),
    /// Say what is wrong with this installation, and what to do
    Doctor(doctor::Doctor),
    /// Make administrators, on the server's own machine
    #[command(subcommand)]
    Admin(admin::Admin),
    /// Move the database
    #[command(subcommand)]
    Db(database::Db),
    /// Print the description of the API (OpenAPI 3.1)
    Openapi,
    /// Slurm's commands by links to this program
    #[command(subcommand)]
    Slurm(link::Slurm),
    /// Print a completion script for your shell
    Completion(completion::Completion),
    /// Print the version
    Version,
    /// What the exit codes mean
    #[command(hide = true, long_about = topics::exit_codes())]
    ExitCodes,
    /// How to write times
    #[command(hide = true, long_about = topics::TIMES)]
    Times,
    /// How to name sites, resources and reservations
    #[command(hide = true, long_about = topics::NAMES)]
    Names,
}

/// How the list of commands is parted for people. A test holds it to the commands that there are.
pub const GROUPS: &[(&str, &[&str])] = &[
    (
        "You",
        &["login", "logout", "whoami", "profile", "token", "feed"],
    ),
    (
        "Booking",
        &[
            "book",
            "free",
            "when",
            "calendar",
            "reservation",
            "series",
            "approvals",
            "notification",
        ],
    ),
    (
        "Work",
        &[
            "submit", "queue", "why", "log", "cancel", "extend", "hold", "release", "share",
            "session", "env", "sim",
        ],
    ),
    (
        "A site",
        &[
            "site",
            "member",
            "project",
            "policy",
            "type",
            "resource",
            "maintenance",
            "closure",
            "apply",
            "diff",
            "export",
        ],
    ),
    ("The record", &["usage", "audit", "event"]),
    ("All sites", &["person"]),
    (
        "The server",
        &["demo", "serve", "config", "doctor", "admin", "db"],
    ),
    (
        "Other",
        &["slurm", "openapi", "completion", "version", "help"],
    ),
];

/// The topics of `berth help`.
pub const TOPICS: &[&str] = &["exit-codes", "times", "names"];

/// The whole tree of commands, as it is parsed and as completion and documentation see it.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let list = list_of_commands(&command);
    command.after_help(list)
}

fn list_of_commands(command: &clap::Command) -> String {
    let about = |name: &str| match command.find_subcommand(name) {
        Some(found) => found
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default(),
        None => "Explain a command or a topic".to_owned(),
    };
    let mut list = String::new();
    for (group, names) in GROUPS {
        list += &format!("{group}:\n");
        for name in *names {
            list += &format!("  {name:<12} {}\n", about(name));
        }
        list.push('\n');
    }
    list += "Topics (berth help TOPIC):\n";
    for name in TOPICS {
        list += &format!("  {name:<12} {}\n", about(name));
    }
    list
}

/// Reads the command line; what it cannot read is told as clap does.
pub fn parse() -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}
