//! Logs that are followed, and Ctrl-C.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::fake::{Fake, Reply};
use super::run::{Person, Ran};
use super::{AGENT, NAMESPACE, REVISION};

const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a line, waits until the server was asked so often, sends SIGINT, and returns how it ended.
fn interrupted(person: &Person, fake: &Fake, line: &str, requests: usize) -> Ran {
    let line = format!("{line} --url {} --service-key-file {}", fake.url, person.path("key.json").display());
    let mut command = person.command(&line);
    let child: Child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while fake.asked().len() < requests {
        assert!(begun.elapsed() < PATIENCE, "only {} requests", fake.asked().len());
        std::thread::sleep(Duration::from_millis(20));
    }
    // The answer to the last request may still be on its way: an interruption is as good then.
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    Ran::of(&child.wait_with_output().unwrap())
}

#[test]
fn cli_logs_are_followed_until_ctrl_c_which_is_0() {
    let record = |message: &str| json!({"time": "t", "stream": "stdout", "kind": "openclaw", "level": "info", "message": message});
    let fake = Fake::start(move |asked, number| match number {
        0 => Reply::data(200, &json!({"records": [record("first")], "cursor": "c1", "truncated": false})),
        1 => Reply::error(504, "RUNTIME_LOGS_TIMEOUT", "Too slow."),
        2 => Reply::error(400, "RUNTIME_LOGS_CURSOR_INVALID", "Gone."),
        _ => {
            assert!(!asked.target.contains("cursor=c1"));
            let gap = json!({"kind": "gap", "reason": "stream_replaced", "remedy": "None."});
            Reply::data(200, &json!({"records": [gap, record("second")], "cursor": "c2", "truncated": false}))
        }
    });
    let line =
        format!("agent logs {AGENT} --revision {REVISION} --source gateway --tail 5 --follow -n {NAMESPACE}");
    let ran = interrupted(&Person::new(), &fake, &line, 5).exits(0);
    assert!(ran.stdout.starts_with("t info  first\nt info  second\n"), "{}", ran.stdout);
    assert!(ran.stderr.contains("notice: lines are missing (stream_replaced)"), "{}", ran.stderr);
    let targets: Vec<String> = fake.asked().iter().map(|asked| asked.target.clone()).collect();
    assert!(targets[0].ends_with("/logs?source=gateway&tailLines=5"), "{targets:?}");
    assert!(targets[1].ends_with("/logs?source=gateway&cursor=c1"), "{targets:?}");
}

#[test]
fn cli_logs_that_may_not_be_read_end_the_following() {
    let fake = Fake::start(|_, number| match number {
        0 => Reply::data(200, &json!({"records": [], "cursor": "c1"})),
        _ => Reply::error(403, "FORBIDDEN", "The request is forbidden."),
    });
    let line =
        format!("agent logs {AGENT} --revision {REVISION} --source gateway --follow -n {NAMESPACE} -o json");
    Person::new().at(&fake.url, &line).exits(3);
}

#[test]
fn cli_ctrl_c_otherwise_is_130() {
    let fake = Fake::always(Reply::data(200, &json!({})).held(PATIENCE));
    interrupted(&Person::new(), &fake, "installation get", 1).exits(130);
}
