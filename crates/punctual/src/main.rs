//! Is this machine punctual enough for your work, what makes it late, and what should you change?

/// Prints a line on standard error, ignoring write errors.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// Prints text on standard error without a newline, ignoring write errors.
macro_rules! say_part {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}

mod cli;
mod cmd;
mod exit;
mod output;

fn run() -> anyhow::Result<u8> {
    sys::signal::return_file_size_errors()?;
    cmd::run(cli::parse()?)
}

fn main() -> std::process::ExitCode {
    exit::code(run())
}
