//! A deploy that is refused because the Agent's own principal lacks a grant: the exact next commands.

use occ_api::ids::{IdentityId, SecretId};
use serde_json::{Value, json};

use crate::client::Call;
use crate::failure::Failure;
use crate::session::Session;

/// Adds the missing binding as the next command, when that is what the failure is about.
pub(super) fn explain(session: &Session, failure: Failure) -> Failure {
    if failure.code() != "FORBIDDEN" {
        return failure;
    }
    match missing(failure.message()) {
        Some((principal, secret)) => {
            let hint =
                next_commands(&principal, &secret, role(session).as_deref(), &session.namespace_flag());
            failure.hint(hint)
        }
        None => failure,
    }
}

/// `The Agent's principal spn_… lacks operate on Secret sec_….`
fn missing(message: &str) -> Option<(IdentityId, SecretId)> {
    if !message.contains("lacks operate on Secret") {
        return None;
    }
    let mut words =
        message.split(|character: char| character.is_whitespace() || matches!(character, '.' | ','));
    let principal = words.find_map(|word| IdentityId::parse(word).ok())?;
    let secret = words.find_map(|word| SecretId::parse(word).ok())?;
    Some((principal, secret))
}

/// A Role of the Namespace that grants exactly this, if the credential may look.
fn role(session: &Session) -> Option<String> {
    let roles = session.api().ok()?.list(&Call::get(session.in_namespace("iam/roles").ok()?), None).ok()?;
    let grants_operate = |role: &&Value| {
        let permissions = role.get("permissions").and_then(Value::as_array);
        matches!(permissions.map(Vec::as_slice), Some([only])
            if only.get("action").and_then(Value::as_str) == Some("operate")
                && only.get("resourceKind").and_then(Value::as_str) == Some("secret"))
    };
    roles.iter().find(grants_operate)?.get("id")?.as_str().map(str::to_owned)
}

/// Single lines, so that they can be pasted as they are.
fn next_commands(principal: &IdentityId, secret: &SecretId, role: Option<&str>, flag: &str) -> String {
    let mut text = "let the Agent's principal use the Secret, then deploy again:".to_owned();
    let mut variable = "";
    if role.is_none() {
        let document =
            json!({"name": "Secret user", "permissions": [{"action": "operate", "resourceKind": "secret"}]});
        text.push_str(&format!("\n  ROLE=$(echo '{document}' | occ iam role create{flag} -f - -o name)"));
        variable = "'\"$ROLE\"'";
    }
    let document = json!({
        "subjectKind": "identity",
        "subjectId": principal,
        "roleId": role.unwrap_or(variable),
        "resourceKind": "secret",
        "resourceId": secret,
    });
    // The shell's variable stands outside of the quotes, and unescaped.
    let document = document.to_string().replace("'\\\"$ROLE\\\"'", variable);
    text.push_str(&format!("\n  echo '{document}' | occ iam access-binding create{flag} -f -"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPN: &str = "spn_0b7e54c1-91d2-4c3f-8a60-5d2f7be1c904";
    const SEC: &str = "sec_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b10";

    #[test]
    fn the_ids_are_read_from_the_sentence() {
        let message = format!("The Agent's principal {SPN} lacks operate on Secret {SEC}.");
        let (principal, secret) = missing(&message).unwrap();
        assert_eq!((principal.as_str(), secret.as_str()), (SPN, SEC));
        assert!(missing("The request is forbidden.").is_none());
        assert!(missing(&format!("The Agent's principal x lacks operate on Secret {SEC}.")).is_none());
    }

    #[test]
    fn with_a_role_the_binding_is_the_only_command() {
        let (principal, secret) = (IdentityId::parse(SPN).unwrap(), SecretId::parse(SEC).unwrap());
        let hint = next_commands(&principal, &secret, Some("role_1"), " --namespace ns_1");
        assert!(!hint.contains("role create"), "{hint}");
        assert!(hint.contains(&format!(r#""subjectId":"{SPN}","roleId":"role_1""#)), "{hint}");
        assert!(
            hint.ends_with(&format!(
                r#""resourceId":"{SEC}"}}' | occ iam access-binding create --namespace ns_1 -f -"#
            )),
            "{hint}"
        );
    }

    #[test]
    fn without_a_role_the_shell_carries_its_id() {
        let (principal, secret) = (IdentityId::parse(SPN).unwrap(), SecretId::parse(SEC).unwrap());
        let hint = next_commands(&principal, &secret, None, "");
        assert!(hint.contains(r#"| occ iam role create -f - -o name)"#), "{hint}");
        assert!(hint.contains(r#""roleId":"'"$ROLE"'","#), "{hint}");
        assert_eq!(hint.lines().count(), 3, "{hint}");
    }
}
