//! Boots real-time kernels in small guests, runs the tests inside, and counts.

fn main() -> std::process::ExitCode {
    lab_tests::host::main()
}
