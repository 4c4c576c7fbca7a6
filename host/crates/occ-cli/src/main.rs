//! The program `occ`; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    occ_cli::main()
}
