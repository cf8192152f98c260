//! Is this machine punctual enough for your work, what makes it late, and what should you change?

mod cli;
mod cmd;
mod exit;
mod output;

fn main() -> std::process::ExitCode {
    exit::code(cli::parse().and_then(cmd::run))
}
