//! Every command of resources in every form, against a live host.

use anyhow::{Context, Result, ensure};
use occ_tests::dev::{Dev, Ran};
use serde_json::{Value, json};

/// Runs a line that must succeed.
fn done(dev: &Dev, line: &str) -> Result<Ran> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ran = dev.occ(&words)?;
    ensure!(ran.code == 0, "occ {line} ended with {}: {}", ran.code, ran.stderr);
    Ok(ran)
}

/// Creates from a document and returns the id.
fn created(dev: &Dev, line: &str, document: &Value) -> Result<String> {
    let file = dev.file("document.json", &document.to_string())?;
    let ran = done(dev, &format!("{line} -f {file} -o name"))?;
    Ok(ran.stdout.trim().to_owned())
}

/// A list and a get of one kind: the same resource in each form, and names that can be fed back.
fn every_form(dev: &Dev, list: &str, get: &str, id: &str) -> Result<()> {
    let names = done(dev, &format!("{list} -o name"))?.stdout;
    ensure!(names.lines().any(|name| name == id), "{list}: {id} is not in {names}");
    for name in names.lines() {
        done(dev, &format!("{get} {name} -o name"))?;
    }
    let listed: Value = serde_json::from_str(&done(dev, &format!("{list} -o json"))?.stdout)?;
    let count = listed.as_array().context("a list is an array")?.len();
    ensure!(count == names.lines().count(), "{list}");
    let table = done(dev, list)?.stdout;
    ensure!(table.lines().count() == count + 1, "{list}: {table}");
    let one: Value = serde_json::from_str(&done(dev, &format!("{get} {id} -o json"))?.stdout)?;
    ensure!(one.is_object() && one.get("data").is_none(), "{get}: {one}");
    let yaml = done(dev, &format!("{get} {id} -o yaml"))?.stdout;
    ensure!(yaml.contains(id), "{get}: {yaml}");
    let table = done(dev, &format!("{get} {id}"))?.stdout;
    ensure!(table.lines().count() == 2 && table.contains(id), "{get}: {table}");
    Ok(())
}

#[test]
fn cli_live_every_command_in_every_form() -> Result<()> {
    let dev = Dev::new()?;
    dev.up(&["--no-demo"])?;
    let installation = done(&dev, "installation get -o name")?.stdout;
    ensure!(installation.starts_with("ins_"), "{installation}");
    let namespace = done(&dev, "namespace create acme --wait -o name")?.stdout.trim().to_owned();
    every_form(&dev, "namespace list", "namespace get", &namespace)?;
    done(&dev, &format!("context set dev -n {namespace}"))?;

    let value = dev.file("value", "canary\n")?;
    let secret = done(&dev, &format!("secret create --name openai --value-file {value} -o name"))?
        .stdout
        .trim()
        .to_owned();
    every_form(&dev, "secret list", "secret get", &secret)?;
    done(&dev, &format!("secret update openai --value-file {value}"))?;

    let values = json!({"agents": {"defaults": {"skipBootstrap": true}}});
    let configuration = created(&dev, "configuration create", &json!({"kind": "agent", "values": values}))?;
    every_form(&dev, "configuration list", "configuration get", &configuration)?;
    let agent =
        created(&dev, "agent create", &json!({"name": "concierge", "configurationId": configuration}))?;
    every_form(&dev, "agent list", "agent get", &agent)?;
    conditions(&dev, &configuration)?;

    let permissions = json!([{"action": "operate", "resourceKind": "secret"}]);
    let role = created(&dev, "iam role create", &json!({"name": "Secret user", "permissions": permissions}))?;
    every_form(&dev, "iam role list", "iam role get", &role)?;
    let principal = done(&dev, "iam service-principal create -o name")?.stdout.trim().to_owned();
    every_form(&dev, "iam service-principal list", "iam service-principal get", &principal)?;
    let binding = json!({"subjectKind": "identity", "subjectId": principal, "roleId": role, "resourceKind": "secret", "resourceId": secret});
    let binding = created(&dev, "iam access-binding create", &binding)?;
    every_form(&dev, "iam access-binding list", "iam access-binding get", &binding)?;
    questions(&dev, &principal, &secret)?;
    administration(&dev)?;
    key_of_its_own(&dev, &namespace, &principal)?;

    for line in [
        format!("iam access-binding delete {binding}"),
        format!("iam role delete {role}"),
        format!("iam service-principal delete {principal}"),
        "agent delete concierge --wait".to_owned(),
        format!("configuration delete {configuration}"),
        "secret delete openai".to_owned(),
        format!("namespace delete {namespace} --wait"),
    ] {
        ensure!(done(&dev, &line)?.stdout.starts_with("Deleted "), "{line}");
    }
    Ok(())
}

/// A stale tag is 412, a fresh one is not.
fn conditions(dev: &Dev, configuration: &str) -> Result<()> {
    let file = dev.file("c.yaml", "values: {agents: {defaults: {skipBootstrap: false}}}\n")?;
    done(dev, &format!("configuration update {configuration} -f {file} --if-match v1"))?;
    let stale = dev.occ(&["configuration", "update", configuration, "-f", &file, "--if-match", "v1"])?;
    ensure!(stale.code == 5 && stale.stderr.contains("412 PRECONDITION_FAILED"), "{}", stale.stderr);
    Ok(())
}

fn questions(dev: &Dev, principal: &str, secret: &str) -> Result<()> {
    done(dev, &format!("auth can-i operate secret {secret} --as {principal}"))?;
    let denied = dev.occ(&["auth", "can-i", "read", "secret", secret, "--as", principal])?;
    ensure!(denied.code == 3, "{}", denied.stderr);
    let explained = done(dev, &format!("auth explain operate secret {secret} --as {principal} -o json"))?;
    let explained: Value = serde_json::from_str(&explained.stdout)?;
    ensure!(explained.pointer("/evidence/bindingIds/0").is_some(), "{explained}");
    ensure!(done(dev, "auth can-i --list")?.stdout.lines().count() > 30);
    let status = done(dev, "auth status -o json")?.stdout;
    ensure!(status.contains("\"keyPrefix\": \"occ_") && !status.contains("\"key\""), "{status}");
    Ok(())
}

fn administration(dev: &Dev) -> Result<()> {
    let plugins = done(dev, "plugin list -o name")?.stdout;
    for plugin in plugins.lines() {
        done(dev, &format!("plugin get {plugin}"))?;
    }
    let events = done(dev, "audit list --limit 3 -o name")?.stdout;
    ensure!(events.lines().count() == 3, "{events}");
    for event in events.lines() {
        done(dev, &format!("audit get {event}"))?;
    }
    for key in done(dev, "work list -o name --limit 5")?.stdout.lines() {
        done(dev, &format!("work get {key}"))?;
    }
    let doctor = done(dev, "doctor -o json")?.stdout;
    ensure!(doctor.contains("\"result\": \"ok\"") && !doctor.contains("\"fail\""), "{doctor}");
    ensure!(done(dev, "version --server")?.stdout.contains("server 0.1."));
    Ok(())
}

/// A key of a Namespace is issued, used, confined and revoked.
fn key_of_its_own(dev: &Dev, namespace: &str, principal: &str) -> Result<()> {
    let out = dev.scratch().join("issued.json").display().to_string();
    let line = format!(
        "service-key create --service-principal {principal} --name ci --out {out} -n {namespace} -o name"
    );
    let id = done(dev, &line)?.stdout.trim().to_owned();
    let listed = done(dev, "service-key list -o json")?.stdout;
    ensure!(listed.contains(&id), "{listed}");
    let confined = dev.occ(&["namespace", "list", "--service-key-file", &out])?;
    ensure!(confined.code == 3 && confined.stderr.contains("403 FORBIDDEN"), "{}", confined.stderr);
    done(dev, &format!("service-key revoke {id}"))?;
    let revoked = dev.occ(&["agent", "list", "--service-key-file", &out])?;
    ensure!(revoked.code == 3 && revoked.stderr.contains("401 UNAUTHENTICATED"), "{}", revoked.stderr);
    Ok(())
}
