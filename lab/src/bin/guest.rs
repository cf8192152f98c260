//! Runs the tests of one boot, inside its guest.

fn main() -> std::process::ExitCode {
    lab_tests::runner::main()
}
