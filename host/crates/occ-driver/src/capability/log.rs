//! The `log` capability: a plugin's lines among the host's own.

use crate::call::CallContext;

/// How important a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// For the plugin's author.
    Debug,
    /// Worth knowing.
    Info,
    /// Worth a look.
    Warn,
    /// Worth a fix.
    Error,
}

/// Writes one line. Fields go out as one JSON object, so that no plugin can shadow a
/// field of the host's.
pub(crate) fn write(cx: &CallContext, level: Level, message: &str, fields: &[(String, String)]) {
    let fields: serde_json::Map<String, serde_json::Value> =
        fields.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    let fields = serde_json::Value::Object(fields);
    macro_rules! emit {
        ($macro:ident) => {
            tracing::$macro!(
                event = "plugin.log",
                plugin = %cx.plugin,
                operation = cx.operation,
                namespace_id = cx.tenant.as_deref(),
                agent_id = cx.agent.as_deref(),
                fields = %fields,
                "{}",
                one_line(message),
            )
        };
    }
    match level {
        Level::Debug => emit!(debug),
        Level::Info => emit!(info),
        Level::Warn => emit!(warn),
        Level::Error => emit!(error),
    }
}

/// No control character of a plugin reaches a terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
