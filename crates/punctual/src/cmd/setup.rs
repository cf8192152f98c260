//! `punctual setup`: gives ordinary users the rights for a real-time verdict.

use std::{env, io};

use anyhow::Context;
use machine::{
    Root,
    setup::{Account, Binary, Limits},
};
use record::visible::{self, Passes};

use crate::{cli::Setup, output};

/// Exit status if nothing was changed because the user did not agree.
const DECLINED: u8 = 1;

/// A change, and how it is made.
struct Change {
    /// The change as text, in one or more lines.
    shown: String,
    /// The next step of the user.
    then: String,
    make: Box<dyn FnOnce() -> Result<(), machine::setup::SetupError>>,
}

pub fn run(options: &Setup) -> anyhow::Result<u8> {
    let change = match (options.capabilities, options.undo) {
        (true, undo) => capabilities(!undo)?,
        (false, false) => limits(options)?,
        (false, true) => removal(options)?,
    };
    let Some(change) = change else {
        output::stdout(|out| writeln!(out, "nothing to change"))?;
        return Ok(0);
    };
    output::stdout(|out| writeln!(out, "{}", change.shown))?;
    let is_system = options.root.is_none();
    if is_system && !rustix::process::geteuid().is_root() {
        anyhow::bail!("nothing was changed, because this needs root: {}", with_sudo()?);
    }
    if !options.yes && !agrees()? {
        say!("nothing was changed");
        return Ok(DECLINED);
    }
    (change.make)()?;
    output::stdout(|out| writeln!(out, "{}", change.then))?;
    Ok(0)
}

fn root(options: &Setup) -> anyhow::Result<Root> {
    let Some(folder) = &options.root else { return Ok(Root::system()) };
    anyhow::ensure!(folder.is_dir(), "{} is not a folder: name the folder of a system", folder.display());
    Ok(Root::at(output::real_folder(folder)?))
}

/// The file of limits with one more account; `None` if it has that.
fn limits(options: &Setup) -> anyhow::Result<Option<Change>> {
    let root = root(options)?;
    let account = options.account.clone().map_or_else(default_account, Ok)?;
    let limits = Limits::open(&root)?;
    let Some(text) = limits.with(&account)? else { return Ok(None) };
    if !account.is_listed(&root) {
        let (file, name) = account.listed_in();
        say!("note: {} does not list {name}", root.path(file).display());
    }
    let lines: String = text.lines().map(|line| format!("\n  {line}")).collect();
    let shown = format!("write {}:{lines}", limits.path().display());
    let then = match account.to_string().strip_prefix('@') {
        Some(group) => format!(
            "written. It applies to the users of the group {group} after their next login; `sudo usermod -aG {group} USER` \
             adds one. `punctual check` checks it."
        ),
        None => format!("written. It applies after the next login of {account}. `punctual check` checks it."),
    };
    Ok(Some(Change { shown, then, make: Box::new(move || limits.write(&text)) }))
}

/// The user who called sudo, or the group of audio users.
fn default_account() -> anyhow::Result<Account> {
    let user = env::var("SUDO_USER").ok().filter(|user| user != "root");
    let name = user.unwrap_or_else(|| "@audio".to_owned());
    name.parse().map_err(|error| anyhow::anyhow!("the user `{name}` {error}: use --for"))
}

fn removal(options: &Setup) -> anyhow::Result<Option<Change>> {
    let limits = Limits::open(&root(options)?)?;
    let shown = format!("remove {}", limits.path().display());
    let then = "removed. The users keep their rights until they log out.".to_owned();
    Ok(limits.is_written()?.then(|| Change { shown, then, make: Box::new(move || limits.remove()) }))
}

/// The capabilities of this binary; `None` if they are as wanted.
fn capabilities(wanted: bool) -> anyhow::Result<Option<Change>> {
    let binary = Binary::open()?;
    if binary.is_capable()? == wanted {
        return Ok(None);
    }
    let path = binary.path().display();
    let (shown, then) = if wanted {
        let then = "done. Every user who may execute it has these rights from now on; a new version needs them again.";
        (format!("set the capabilities cap_sys_nice,cap_ipc_lock+ep of {path}"), then)
    } else {
        (format!("remove the capabilities cap_sys_nice,cap_ipc_lock+ep of {path}"), "removed")
    };
    Ok(Some(Change { shown, then: then.to_owned(), make: Box::new(move || binary.set(wanted)) }))
}

/// This command with sudo.
fn with_sudo() -> anyhow::Result<String> {
    let executable = output::executable()?;
    let executable = executable.to_string_lossy();
    let arguments: Vec<String> = output::command_line().into_iter().skip(1).collect();
    let words: Vec<&str> = ["sudo", &*executable].into_iter().chain(arguments.iter().map(String::as_str)).collect();
    Ok(record::shell::command(&words))
}

/// Asks on the terminal.
fn agrees() -> anyhow::Result<bool> {
    anyhow::ensure!(
        io::IsTerminal::is_terminal(&io::stdin()),
        "nothing was changed, because standard input is not a terminal: add --yes"
    );
    say_part!(Passes::Text, "Change it? [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(visible::one_line(answer.trim()).to_lowercase().as_str(), "y" | "yes"))
}
