//! Options of `setup`.

use std::path::PathBuf;

use clap::Args;
use machine::setup::Account;

/// Options of `setup`.
#[derive(Debug, Args)]
pub struct Setup {
    /// For this user [default: user of sudo, or group audio].
    ///
    /// Several accounts can have them: each call adds one.
    #[arg(long, value_name = "USER|@GROUP", conflicts_with_all = ["capabilities", "undo"])]
    pub account: Option<Account>,
    /// Give the rights to this binary, for all users.
    ///
    /// Sets the file capabilities cap_sys_nice and cap_ipc_lock, as setcap does. They take effect at once.
    #[arg(long)]
    pub capabilities: bool,
    /// Change it without asking.
    #[arg(long, short)]
    pub yes: bool,
    /// Remove what setup wrote.
    ///
    /// With --capabilities, those of the binary.
    #[arg(long)]
    pub undo: bool,
    /// Write below this folder, e.g. of a system image.
    #[arg(long, value_name = "DIR", conflicts_with = "capabilities")]
    pub root: Option<PathBuf>,
}
