//! Boots kernels in small guests, runs the tests inside and counts the results.

fn main() -> std::process::ExitCode {
    lab_tests::host::main()
}
