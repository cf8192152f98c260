//! The commands: one module each.

mod amp;
mod blame;
mod campaigns;
mod capture;
mod check;
mod compare;
mod echo;
mod evl;
mod generate;
mod import;
mod judge;
mod lab;
mod latency;
mod loads;
mod machine;
mod measure;
mod pair;
mod pod;
mod profiles;
mod quick;
mod references;
mod restore;
mod rounds;
mod run;
mod setup;
mod show;
mod snapshot;
mod sound;
mod tune;
mod validate;

use sys::sched;

use crate::cli::{Cli, Command, Measure};

/// Runs the command and returns the exit status.
pub fn run(cli: Cli) -> anyhow::Result<u8> {
    restore::before(cli.command.as_ref());
    // The program of `measure process` inherits the policy of this thread.
    if !matches!(&cli.command, Some(Command::Measure(Measure::Process(_)))) {
        leave_realtime();
    }
    match cli.command {
        None => quick::run(&cli.quick),
        Some(Command::Measure(what)) => measure::run(&what),
        Some(Command::Echo(options)) => echo::run(&options),
        Some(Command::Mirror(options)) => echo::mirror(&options),
        Some(Command::Pair(options)) => pair::run(&options),
        Some(Command::Capture(options)) => capture::run(&options),
        Some(Command::Run(options)) => run::run(&options),
        Some(Command::Validate(options)) => validate::run(&options),
        Some(Command::Campaigns(options)) => campaigns::run(&options),
        Some(Command::Show(options)) => show::run(&options),
        Some(Command::Blame(options)) => blame::run(&options),
        Some(Command::Machine(options)) => machine::run(&options),
        Some(Command::Snapshot(options)) => snapshot::run(&options),
        Some(Command::Amp(what)) => amp::run(&what),
        Some(Command::Latency(what)) => latency::run(&what),
        Some(Command::Judge(what)) => judge::run(&what),
        Some(Command::Check(what)) => check::run(&what),
        Some(Command::Evl(what)) => evl::run(&what),
        Some(Command::Profiles(options)) => profiles::run(&options),
        Some(Command::Compare(options)) => compare::run(&options),
        Some(Command::Import(options)) => import::run(&options),
        Some(Command::References(options)) => references::run(&options),
        Some(Command::Loads(options)) => loads::list(&options),
        Some(Command::Setup(options)) => setup::run(&options),
        Some(Command::Tune(options)) => tune::run(&options),
        Some(Command::Restore(options)) => restore::run(&options),
        Some(Command::Lab(options)) => lab::run(&options),
        Some(Command::Pod(options)) => pod::run(&options),
        Some(Command::Generate(what)) => generate::run(&what),
        Some(Command::Load(options)) => loads::work(&options),
        Some(Command::Far(options)) => pair::serve(&options),
        Some(Command::Guest) => ::guest::init::run().map(|()| 1).map_err(Into::into),
    }
}

/// Gives this thread, and those that it creates, the ordinary policy. All threads would inherit that of `chrt -f`, and
/// disturb the measuring threads, which set their own.
fn leave_realtime() {
    match sched::leave_realtime() {
        Ok(None) => {}
        Ok(Some(policy)) => {
            say!("note: started with {policy}, which only the measuring threads may have: --policy sets theirs");
        }
        Err(error) => {
            say!("punctual cannot leave its real-time policy, which may delay its measuring threads: {error}");
        }
    }
}
