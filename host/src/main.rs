//! `occ-host`: one binary for every process of the control plane.

use std::process::ExitCode;

fn main() -> ExitCode {
    occ_host::command::main()
}
