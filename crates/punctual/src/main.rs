//! Is this machine punctual enough for your work, what makes it late, and what should you change?

/// Says a line on standard error. That nobody can hear it ends nothing.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// The same without an end of the line.
macro_rules! hint {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}

mod cli;
mod cmd;
mod exit;
mod output;

fn main() -> std::process::ExitCode {
    exit::code(cli::parse().and_then(cmd::run))
}
