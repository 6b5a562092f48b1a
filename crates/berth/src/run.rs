//! From a parsed command line to an exit code: which runtime a command gets, and who tells its failure.
//!
//! A command of the client makes a few calls and ends, so it runs on one thread and starts nothing it does not need;
//! it has 20 milliseconds for all of it. The commands of the server get threads.

use std::future::Future;

use jiff::tz::TimeZone;
use tokio::runtime::Builder;

use crate::cli::{Cli, Client, Command, Local, Options};
use crate::commands::{
    admin, apply, approvals, audit, book, calendar, closure, completion, config, database, doctor,
    environment, event, feed, free, login, logout, maintenance, member, notification, openapi,
    person, policy, profile, project, queue, reservation, resource, series, serve, session, sim,
    site, submit, token, topics, types, usage, version, when, whoami,
};
use crate::context::Context;
use crate::demo;
use crate::exit::Exit;
use crate::failure::{exit_of, tell, tell_plainly, usage};
use crate::output::{Format, Output, is_broken_pipe};
use crate::slurm::link;
use crate::times::Times;

pub fn run(cli: Cli) -> Exit {
    let writes_csv = matches!(
        cli.command,
        Command::Client(Client::Resource(resource::Resource::Export) | Client::Usage(_))
    );
    if cli.options.output == Format::Csv && !writes_csv {
        return plainly(Err(usage(
            "only `berth resource export` and `berth usage` write CSV",
        )));
    }
    match cli.command {
        // It needs no server, and so nobody who is signed in to one.
        Command::Client(Client::Env(environment::Env::Prepare(command))) => {
            plainly(on_threads(environment::prepare::run(&command)))
        }
        Command::Client(command) => as_client(command, &cli.options),
        Command::Local(command) => locally(command, &cli.options),
    }
}

fn locally(command: Local, options: &Options) -> Exit {
    match command {
        Local::Login(command) => unsigned(login::run(command, options), options),
        Local::Logout => unsigned(logout::run(options), options),
        Local::Profile(command) => unsigned(profile::run(command, options), options),
        Local::Sim(command) => plainly(on_one_thread(sim::run(command, options))),
        Local::Demo(command) => plainly(on_threads(demo::run(command))),
        Local::Serve(command) => plainly(on_threads(serve::run(&command))),
        Local::Doctor(command) => plainly(on_threads(doctor::run(&command, options))),
        Local::Admin(command) => plainly(on_threads(admin::run(command, options))),
        Local::Db(command) => plainly(on_threads(database::run(command, options))),
        Local::Config(command) => plainly(config::run(&command, options)),
        Local::Openapi => plainly(openapi::run()),
        Local::Slurm(command) => plainly(link::run(command)),
        Local::Completion(command) => plainly(completion::run(&command)),
        Local::Version => plainly(version::run(options)),
        Local::ExitCodes => plainly(topics::print(&topics::exit_codes())),
        Local::Times => plainly(topics::print(topics::TIMES)),
        Local::Names => plainly(topics::print(topics::NAMES)),
    }
}

async fn client(command: Client, context: &Context) -> anyhow::Result<()> {
    match command {
        Client::Whoami => whoami::run(context).await,
        Client::Book(command) => book::run(command, context).await,
        Client::Free(command) => free::run(command, context).await,
        Client::When(command) => when::run(command, context).await,
        Client::Calendar(command) => calendar::run(command, context).await,
        Client::Reservation(command) => reservation::run(command, context).await,
        Client::Series(command) => series::run(command, context).await,
        Client::Submit(command) => submit::run(command, context).await,
        Client::Queue(command) => queue::run(command, context).await,
        Client::Why(command) => queue::why(command, context).await,
        Client::Log(command) => session::log(command, context).await,
        Client::Session(command) => session::run(command, context).await,
        Client::Cancel(command) => submit::cancel(command, context).await,
        Client::Extend(command) => submit::extend(command, context).await,
        Client::Hold(command) => submit::hold(command, context).await,
        Client::Release(command) => submit::release(command, context).await,
        Client::Env(command) => environment::run(command, context).await,
        Client::Share(command) => queue::share(command, context).await,
        Client::Approvals => approvals::run(context).await,
        Client::Notification(command) => notification::run(command, context).await,
        Client::Site(command) => site::run(command, context).await,
        Client::Member(command) => member::run(command, context).await,
        Client::Project(command) => project::run(command, context).await,
        Client::Policy(command) => policy::run(command, context).await,
        Client::Type(command) => types::run(command, context).await,
        Client::Resource(command) => resource::run(command, context).await,
        Client::Apply(command) => apply::apply(command, context).await,
        Client::Diff(command) => apply::diff(command, context).await,
        Client::Export => apply::export(context).await,
        Client::Maintenance(command) => maintenance::run(command, context).await,
        Client::Person(command) => person::run(command, context).await,
        Client::Token(command) => token::run(command, context).await,
        Client::Feed(command) => feed::run(command, context).await,
        Client::Closure(command) => closure::run(command, context).await,
        Client::Usage(command) => usage::run(command, context).await,
        Client::Audit(command) => audit::run(command, context).await,
        Client::Event(command) => event::run(command, context).await,
    }
}

fn as_client(command: Client, options: &Options) -> Exit {
    let context = match Context::new(options) {
        Ok(context) => context,
        Err(error) => return plainly(Err(error)),
    };
    ended(on_one_thread(client(command, &context)), |error| {
        tell(
            error,
            &context.out,
            &context.times,
            context.client.base_url(),
        );
    })
}

/// Commands that call a server and cannot count on a sign-in there.
fn unsigned(work: impl Future<Output = anyhow::Result<()>>, options: &Options) -> Exit {
    ended(on_one_thread(work), |error| {
        let times = Times::new(TimeZone::system());
        tell(error, &Output::new(options.output), &times, "");
    })
}

fn plainly(result: anyhow::Result<()>) -> Exit {
    ended(result, tell_plainly)
}

fn ended(result: anyhow::Result<()>, tell: impl FnOnce(&anyhow::Error)) -> Exit {
    match result {
        Ok(()) => Exit::Done,
        Err(error) if is_broken_pipe(&error) => Exit::Done,
        Err(error) => {
            tell(&error);
            exit_of(&error)
        }
    }
}

pub fn on_one_thread<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

fn on_threads(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(work)
}
