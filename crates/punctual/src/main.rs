//! Is this machine punctual enough for your work, what makes it late, and what should you change?

/// Prints a line on standard error, ignoring write errors.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let text = crate::output::for_this_user(record::visible::continued(&format!($($text)*)));
        let _ = writeln!(record::visible::stderr(record::visible::Passes::Text), "{text}");
    }};
}

/// Prints text on standard error without a newline, ignoring write errors. Escape sequences of `passes` take effect.
macro_rules! say_part {
    ($passes:expr, $($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(record::visible::stderr($passes), $($text)*);
    }};
}

/// That of musl maps and unmaps memory for most of the allocations of a start.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: OrExit<dlmalloc::GlobalDlmalloc> = OrExit(dlmalloc::GlobalDlmalloc);

#[cfg(not(target_env = "musl"))]
#[global_allocator]
static ALLOCATOR: OrExit<std::alloc::System> = OrExit(std::alloc::System);

mod cli;
mod cmd;
mod exit;
mod last;
mod output;

use sys::allocator::OrExit;

fn run() -> anyhow::Result<u8> {
    sys::signal::return_file_size_errors()?;
    cmd::run(cli::parse()?)
}

/// The message of a panic may contain a name of outside origin.
fn show_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let thread = std::thread::current();
    say!("thread '{}' {panic}", thread.name().unwrap_or("unnamed"));
    let backtrace = std::backtrace::Backtrace::capture();
    if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
        say!("{backtrace}");
    }
}

fn main() -> std::process::ExitCode {
    if let Err(kib) = sys::stack::raise_limit() {
        say!("error: the stack is limited to {kib} KiB: raise the limit with `ulimit -s 8192`");
        return std::process::ExitCode::FAILURE;
    }
    std::panic::set_hook(Box::new(show_panic));
    exit::code(run())
}
