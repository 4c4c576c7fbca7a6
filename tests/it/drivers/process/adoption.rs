//! What the next host finds: living processes, dead ones, a reboot, another host.

use super::*;

#[tokio::test]
async fn the_next_host_adopts_a_living_process() {
    let rig = Rig::new().await;
    let before = rig.ready(&double("one", &[])).await;
    let pid = rig.pid("one");
    let rig = rig.next_host(|_| assert!(is_alive(pid))).await;
    let after = rig.until_ready("one").await;
    assert_eq!((&after.start_id, after.restarts, rig.pid("one")), (&before.start_id, 0, pid));
    // The adopted one is nobody's child here; its end is still seen.
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    let again = rig.until("one", "restarted", |status| status.ready && status.restarts == 1).await;
    assert_ne!(again.start_id, before.start_id);
    let exit = again.last_exit.unwrap();
    assert_eq!((exit.code, exit.signal), (None, None));
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn a_host_that_is_killed_leaves_its_process_to_the_next() {
    let root = Arc::new(tempfile::tempdir().unwrap());
    let folder = root.path().join("processes");
    let spec_file = root.path().join("spec.json");
    std::fs::write(&spec_file, serde_json::to_vec(&double("one", &[])).unwrap()).unwrap();
    let mut host =
        std::process::Command::new(DOUBLE).arg("supervise").args([&folder, &spec_file]).spawn().unwrap();
    eventually("ready under the first host", || async {
        let text = std::fs::read_to_string(folder.join("one/process.json")).unwrap_or_default();
        if text.contains("\"ready\":true") { Ok(()) } else { Err(text) }
    })
    .await;
    host.kill().unwrap();
    host.wait().unwrap();
    let rig = Rig::on(root, Arc::new(FakeAuthority::default())).await;
    let pid = rig.pid("one");
    let status = rig.until_ready("one").await;
    assert!(status.running && is_alive(pid));
    rig.stop_and_remove("one").await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_host_that_died_between_spawn_and_record_is_made_up_for() {
    let rig = Rig::new().await;
    rig.ready(&double("one", &[])).await;
    let pid = rig.pid("one");
    let rig = rig
        .next_host(|folder| {
            change_record(folder, "one", |record| record["launch"]["process"] = serde_json::Value::Null)
        })
        .await;
    assert_eq!(rig.pid("one"), pid);
    rig.until_ready("one").await;
    rig.stop_and_remove("one").await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn after_a_reboot_nothing_is_adopted_and_a_start_goes_on_with_the_state() {
    let rig = Rig::new().await;
    let spec = double("one", &[]);
    rig.ready(&spec).await;
    let pid = rig.pid("one");
    std::fs::write(rig.folder.join("one/state/home/kept"), "x").unwrap();
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    let rig = rig
        .next_host(|folder| {
            change_record(folder, "one", |record| record["launch"]["bootId"] = "another-boot".into());
        })
        .await;
    let lost = rig.status("one").await;
    assert_eq!((lost.running, lost.held, lost.stopped), (false, false, false));
    assert!(matches!(lost.last_exit, Some(ProcessExit { code: None, signal: None, .. })));
    // A pid of another boot is a stranger's and is left alone.
    assert!(is_alive(pid));
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    eventually("gone", || async { if is_alive(pid) { Err("alive".to_owned()) } else { Ok(()) } }).await;
    rig.ready(&spec).await;
    assert!(rig.folder.join("one/state/home/kept").exists());
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn what_ended_while_no_host_looked_is_announced_and_not_started_by_itself() {
    let rig = Rig::new().await;
    let spec = double("one", &[]);
    rig.ready(&spec).await;
    let pid = rig.pid("one");
    let mut rig = rig
        .next_host(|_| {
            kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
            while is_alive(pid) {
                std::thread::yield_now();
            }
        })
        .await;
    rig.stop_host().await;
    let config = config(&rig.folder, ProcessMode::Supervise);
    let host = ProcessHost::open(config, Arc::clone(&rig.authority) as _).await.unwrap();
    let mut changes = host.changes();
    let shutdown = CancellationToken::new();
    let (runner, token) = (host.clone(), shutdown.clone());
    let running = tokio::task::spawn(async move { runner.run(token).await });
    assert_eq!(changes.recv().await.unwrap().kind, ChangeKind::Exited);
    let all = host.list(&call(TENANT, 1), &[]).await.unwrap();
    assert_eq!((all[0].running, all[0].restarting), (false, false));
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn two_hosts_have_one_supervisor_and_the_second_takes_over() {
    let mut first = Rig::new().await;
    let spec = double("one", &[]);
    let started = first.ready(&spec).await;
    let second = Rig::on(Arc::clone(&first.root), Arc::clone(&first.authority)).await;
    let seen = second.status("one").await;
    assert_eq!((seen.running, &seen.start_id), (true, &started.start_id));
    let error = second.host.stop(&call(TENANT, 2), "one").await.unwrap_err();
    assert!(matches!(error, ProcessError::Failed(_)), "{error:?}");
    assert!(first.status("one").await.running);
    first.stop_host().await;
    eventually("taken over", || async {
        second.host.stop(&call(TENANT, 2), "one").await.map_err(|error| error.to_string())
    })
    .await;
    second.until("one", "stopped", |status| !status.running && !status.stopping).await;
    second.host.remove_state(&call(TENANT, 2), "one").await.unwrap();
}

#[tokio::test]
async fn an_observer_sees_and_reads_but_changes_nothing() {
    let rig = Rig::new().await;
    let spec = double("one", &[("FLOOD_MIB", "1")]);
    let started = rig.ready(&spec).await;
    let config = config(&rig.folder, ProcessMode::Observe);
    let observer = ProcessHost::open(config, Arc::clone(&rig.authority) as _).await.unwrap();
    let cx = call(TENANT, 1);
    let seen = eventually("ready on disk", || async {
        let seen = observer.list(&cx, &[("agent".to_owned(), "one".to_owned())]).await.unwrap();
        if seen.iter().any(|status| status.ready) { Ok(seen) } else { Err(format!("{seen:?}")) }
    })
    .await;
    assert_eq!((seen.len(), &seen[0].start_id, seen[0].ready), (1, &started.start_id, true));
    assert_eq!(observer.logs(&cx, "one", false, 3, None).await.unwrap().len(), 3);
    let nobody = observer.list(&cx, &[("agent".to_owned(), "two".to_owned())]).await.unwrap();
    assert_eq!(nobody, []);
    let not_granted = refused(ProcessRefusal::NotGranted);
    assert_eq!(observer.stop(&cx, "one").await.unwrap_err(), not_granted);
    assert_eq!(observer.start(&cx, &grant(&spec.command), spec).await.unwrap_err(), not_granted);
    rig.stop_and_remove("one").await;
    assert_eq!(observer.list(&cx, &[]).await.unwrap(), []);
}
