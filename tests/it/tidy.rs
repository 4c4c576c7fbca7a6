//! What the compiler does not check: layout, direction of imports, sizes, words, paths in documents,
//! and that every step of the flows has a test that names it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Lines that a file may have at most, tests included.
const FILE_LINES_MAX: usize = 800;
/// Lines of `host/ARCHITECTURE.md`.
const ARCHITECTURE_LINES_MAX: usize = 200;
/// What the top level holds beside dot-files.
const TOP_LEVEL: [&str; 14] = [
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "LICENSE",
    "CHANGELOG.md",
    "SECURITY.md",
    "README.md",
    "host",
    "wit",
    "plugins",
    "migrations",
    "deploy",
    "tests",
    "target",
];
/// Slices: folders of `host/src` with the same files.
const SLICES: [&str; 9] = [
    "installation",
    "namespaces",
    "configurations",
    "secrets",
    "agents",
    "revisions",
    "deployments",
    "runtime",
    "work",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_owned()
}

/// Every file that is ours, as paths relative to the root.
fn files() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("readable folder") {
            let path = entry.expect("readable entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | ".git" | ".sqlx" | "node_modules") {
                    walk(&path, found);
                }
            } else if !matches!(name.as_str(), "Cargo.lock" | ".git") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), &mut found);
    let root = root();
    found.into_iter().map(|path| path.strip_prefix(&root).expect("below the root").to_owned()).collect()
}

fn sources() -> Vec<(String, String)> {
    files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            (
                path.to_string_lossy().into_owned(),
                std::fs::read_to_string(root().join(&path)).expect("UTF-8 source"),
            )
        })
        .collect()
}

fn assert_none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn tidy_top_level_is_the_list() {
    let unexpected: Vec<String> = std::fs::read_dir(root())
        .expect("readable root")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.') && !TOP_LEVEL.contains(&name.as_str()))
        .collect();
    assert_none("not in the list of the top level", &unexpected);
}

#[test]
fn tidy_files_are_short() {
    let long: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| text.lines().count() > FILE_LINES_MAX)
        .map(|(path, text)| format!("{path}: {} lines", text.lines().count()))
        .collect();
    assert_none("longer than a file may be", &long);
    let architecture =
        std::fs::read_to_string(root().join("host/ARCHITECTURE.md")).expect("host/ARCHITECTURE.md");
    assert!(architecture.lines().count() <= ARCHITECTURE_LINES_MAX, "host/ARCHITECTURE.md is too long");
}

#[test]
fn tidy_every_module_says_what_it_is() {
    let silent: Vec<String> = sources()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("/tests.rs") && !path.contains("/tests/"))
        .filter(|(_, text)| {
            !text.lines().find(|line| !line.starts_with("#![")).is_some_and(|line| line.starts_with("//!"))
        })
        .map(|(path, _)| path)
        .collect();
    assert_none("modules without `//!` at the head", &silent);
}

/// Imports follow the direction of `host/ARCHITECTURE.md`: each heavy crate has its places.
#[test]
fn tidy_imports_follow_the_direction() {
    let rules: [(&str, &[&str]); 4] = [
        ("axum", &["host/src/http/", "/routes.rs", "host/src/dev/"]),
        (
            "sqlx",
            &[
                "host/src/db/",
                "/store.rs",
                "/store/",
                "host/src/migrate/",
                "host/src/bootstrap/",
                "host/src/app.rs",
                "host/src/error.rs",
            ],
        ),
        ("occ_driver", &["host/src/drivers/", "host/src/plugins/command.rs", "host/src/dev/"]),
        ("kube", &["host/crates/occ-driver/"]),
    ];
    let mut wrong = Vec::new();
    for (path, text) in
        sources().into_iter().filter(|(path, _)| path.starts_with("host/src/") && !path.ends_with("tests.rs"))
    {
        for (crate_name, places) in rules {
            let uses = text.lines().any(|line| {
                let line = line.trim_start();
                !line.starts_with("//")
                    && (line.contains(&format!("use {crate_name}::"))
                        || line.contains(&format!("{crate_name}::query")))
            });
            if uses && !places.iter().any(|place| path.contains(place)) {
                wrong.push(format!("{path} uses {crate_name}"));
            }
        }
    }
    assert_none("imports against the direction", &wrong);
}

/// A slice calls another slice's functions, never its statements.
#[test]
fn tidy_no_slice_reaches_into_the_store_of_another() {
    let mut wrong = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| path.starts_with("host/src/")) {
        for slice in SLICES {
            if !path.starts_with(&format!("host/src/{slice}/"))
                && text.contains(&format!("crate::{slice}::store"))
            {
                wrong.push(format!("{path} uses {slice}::store"));
            }
        }
    }
    assert_none("statements of another slice", &wrong);
}

#[test]
fn tidy_words() {
    // Written apart so that this file does not name what it looks for.
    let forbidden = [
        ["/work", "/shared"].concat(),
        ["/work", "/main"].concat(),
        ["/root", "/.cargo"].concat(),
        ["crates", ".io/api"].concat(),
        ["registry.", "npmjs"].concat(),
        ["index.", "crates"].concat(),
        ["todo", "!("].concat(),
        ["unimpl", "emented!("].concat(),
    ];
    let mut found = Vec::new();
    for path in files() {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else {
            continue;
        };
        for word in &forbidden {
            if text.contains(word.as_str()) {
                found.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert_none("words that must not be here", &found);
}

/// Paths in back quotes that look like ours must exist.
#[test]
fn tidy_paths_in_documents_exist() {
    let mut missing = Vec::new();
    for path in files().into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "md"))
    {
        let text = std::fs::read_to_string(root().join(&path)).expect("UTF-8 document");
        for candidate in text.split('`').skip(1).step_by(2) {
            let ours = ["host/", "wit/", "plugins/", "migrations/", "deploy/", "tests/"]
                .iter()
                .any(|start| candidate.starts_with(start));
            let plain = candidate
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || "/._-".contains(character));
            if ours && plain && !root().join(candidate).exists() {
                missing.push(format!("{}: {candidate}", path.display()));
            }
        }
    }
    assert_none("paths that do not exist", &missing);
}

/// Every step of the flows, with the test that shows it or the word `later`.
#[test]
fn tidy_every_step_has_its_test() {
    let list = include_str!("flows/steps.txt");
    let mut steps = BTreeMap::new();
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (step, shown) = line.split_once(' ').expect("a step and a test");
        assert!(steps.insert(step.to_owned(), shown.trim().to_owned()).is_none(), "{step} is listed twice");
    }
    let expected: BTreeSet<String> = [("S", 28), ("P", 20), ("T", 20)]
        .iter()
        .flat_map(|(letter, last)| (1..=*last).map(move |number| format!("{letter}{number}")))
        .collect();
    assert_eq!(steps.keys().cloned().collect::<BTreeSet<_>>(), expected);
    let all: String = sources()
        .into_iter()
        .filter(|(path, _)| path.starts_with("tests/it/"))
        .map(|(_, text)| text)
        .collect();
    let absent: Vec<String> = steps
        .iter()
        .filter(|(_, shown)| *shown != "later" && !all.contains(&format!("fn {shown}(")))
        .map(|(step, shown)| format!("{step}: {shown}"))
        .collect();
    assert_none("steps whose test does not exist", &absent);
}
