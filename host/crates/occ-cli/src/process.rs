//! Other programs: `occ-host`, found beside `occ` and then on the path, and the editor.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use crate::environment::Environment;
use crate::failure::{Exit, Failure, Result};
use crate::interrupt;

/// Runs `occ-host` with these arguments and passes its exit code on.
///
/// # Errors
/// It was not found or cannot be started.
pub(crate) fn host(environment: &Environment, arguments: &[OsString]) -> Result<ExitStatus> {
    let program = find(environment, "occ-host").ok_or_else(|| {
        Failure::local(Exit::Failed, "NO_OCC_HOST", "occ-host was found neither beside occ nor on the path")
            .hint("in a checkout: cargo build --release -p occ-host")
    })?;
    let mut command = Command::new(&program);
    command.args(arguments);
    run(&mut command, &program)
}

/// Opens a file in the user's editor.
///
/// # Errors
/// No editor is set, or it fails.
pub(crate) fn edit(environment: &Environment, file: &Path) -> Result<()> {
    let none = || Failure::usage("no editor: set EDITOR or VISUAL");
    let editor = environment.editor.as_ref().ok_or_else(none)?;
    let words: Vec<String> = editor.to_string_lossy().split_whitespace().map(str::to_owned).collect();
    let (program, arguments) = words.split_first().ok_or_else(none)?;
    let mut command = Command::new(program);
    command.args(arguments).arg(file);
    let status = run(&mut command, Path::new(program))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::local(Exit::Failed, "EDITOR", format!("the editor ended with {status}")))
}

/// The exit code of a child as our own.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(Exit::Failed.code()))
}

fn run(command: &mut Command, program: &Path) -> Result<ExitStatus> {
    interrupt::left_to_child(|| command.status())
        .map_err(|error| Failure::local(Exit::Failed, "PROGRAM", format!("{}: {error}", program.display())))
}

fn find(environment: &Environment, name: &str) -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(name)));
    let on_path = environment.path.as_deref().map(OsStr::to_owned).unwrap_or_default();
    let mut places =
        beside.into_iter().chain(std::env::split_paths(&on_path).map(|folder| folder.join(name)));
    places.find(|place| place.is_file())
}
