//! The echo model: a stand-in for a model provider when there is no key for a real one.
//!
//! Speaks the two dialects that OpenClaw uses against an OpenAI-compatible provider
//! (Responses and Chat Completions, streamed or whole) and answers the newest
//! `Reply exactly: WORD` with WORD, everything else with the prompt itself. Only `dev` starts it.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{BoxError, Router};
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};

/// The one model it serves.
pub(super) const MODEL: &str = "echo";
/// What begins an instruction.
const INSTRUCTION: &str = "Reply exactly: ";
/// Characters of a prompt that are sent back.
const ECHO_CHARS_MAX: usize = 200;
/// A fixed moment: the echo has no clock.
const CREATED: u32 = 1;

/// The routes of the provider.
pub(super) fn router() -> Router {
    Router::new()
        .route("/v1/models", get(models))
        .route("/v1/responses", post(responses))
        .route("/v1/chat/completions", post(chat))
}

async fn models(headers: HeaderMap) -> Response {
    if !has_key(&headers) {
        return no_key();
    }
    let model = json!({"id": MODEL, "object": "model", "created": CREATED, "owned_by": "occ-host dev"});
    Json(json!({"object": "list", "data": [model]})).into_response()
}

async fn responses(headers: HeaderMap, Json(body): Json<Value>) -> Response {
    if !has_key(&headers) {
        return no_key();
    }
    let input = match body.get("input") {
        Some(Value::String(text)) => vec![json!({"role": "user", "content": text})],
        Some(Value::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    let text = reply(&input);
    let part = json!({"type": "output_text", "text": text, "annotations": []});
    let item = json!({"id": "msg_echo", "type": "message", "role": "assistant", "status": "completed", "content": [part]});
    let whole = json!({
        "id": "resp_echo", "object": "response", "created_at": CREATED, "model": MODEL, "status": "completed", "output": [item],
        "usage": {
            "input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}
        }
    });
    if !wants_stream(&body) {
        return Json(whole).into_response();
    }
    let begun = with(&with(&whole, "status", json!("in_progress")), "output", json!([]));
    let opened = with(&with(&item, "status", json!("in_progress")), "content", json!([]));
    let place = json!({"item_id": "msg_echo", "output_index": 0, "content_index": 0});
    let empty = json!({"type": "output_text", "text": "", "annotations": []});
    let frames = [
        ("response.created", json!({"response": begun})),
        ("response.output_item.added", json!({"output_index": 0, "item": opened})),
        ("response.content_part.added", with(&place, "part", empty)),
        ("response.output_text.delta", with(&place, "delta", json!(text))),
        ("response.output_text.done", with(&place, "text", json!(text))),
        ("response.content_part.done", with(&place, "part", part)),
        ("response.output_item.done", json!({"output_index": 0, "item": item})),
        ("response.completed", json!({"response": whole})),
    ];
    let events = frames.into_iter().enumerate().map(|(number, (kind, data))| {
        let data = with(&with(&data, "type", json!(kind)), "sequence_number", json!(number));
        format!("event: {kind}\ndata: {data}\n\n")
    });
    event_stream(events.collect())
}

async fn chat(headers: HeaderMap, Json(body): Json<Value>) -> Response {
    if !has_key(&headers) {
        return no_key();
    }
    let messages = body.get("messages").and_then(Value::as_array).cloned().unwrap_or_default();
    let text = reply(&messages);
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    let base = json!({"id": "chat_echo", "created": CREATED, "model": MODEL});
    if !wants_stream(&body) {
        let choice =
            json!({"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"});
        let whole = with(&with(&base, "object", json!("chat.completion")), "choices", json!([choice]));
        return Json(with(&whole, "usage", usage)).into_response();
    }
    let chunk = with(&base, "object", json!("chat.completion.chunk"));
    let first = json!({"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": null});
    let last = json!({"index": 0, "delta": {}, "finish_reason": "stop"});
    event_stream(vec![
        format!("data: {}\n\n", with(&chunk, "choices", json!([first]))),
        format!("data: {}\n\n", with(&with(&chunk, "choices", json!([last])), "usage", usage)),
        "data: [DONE]\n\n".to_owned(),
    ])
}

/// WORD of the newest instruction of the user, else the end of what the user said.
fn reply(messages: &[Value]) -> String {
    let said: Vec<String> = messages
        .iter()
        .filter(|message| message.get("role").and_then(Value::as_str) == Some("user"))
        .map(content)
        .collect();
    let said = said.join("\n");
    let word = said.rsplit_once(INSTRUCTION).and_then(|(_, rest)| rest.split_whitespace().next());
    match word {
        Some(word) => word.to_owned(),
        None => {
            let skip = said.chars().count().saturating_sub(ECHO_CHARS_MAX);
            format!("echo: {}", said.chars().skip(skip).collect::<String>())
        }
    }
}

/// Text of a message: a string, or the texts of its parts.
fn content(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn wants_stream(body: &Value) -> bool {
    body.get("stream").and_then(Value::as_bool).unwrap_or(false)
}

fn has_key(headers: &HeaderMap) -> bool {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    bearer.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|key| !key.trim().is_empty())
}

fn no_key() -> Response {
    let error =
        json!({"error": {"message": "no key", "type": "invalid_request_error", "code": "invalid_api_key"}});
    (StatusCode::UNAUTHORIZED, Json(error)).into_response()
}

fn with(object: &Value, key: &str, value: Value) -> Value {
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        members.insert(key.to_owned(), value);
    }
    object
}

fn event_stream(frames: Vec<String>) -> Response {
    let frames = frames.into_iter().map(|frame| Ok::<Bytes, Infallible>(Bytes::from(frame)));
    let body = Body::from_stream(stream::iter(frames.map(|frame| frame.map_err(BoxError::from))));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_instruction_wins() {
        let messages = [
            json!({"role": "user", "content": "Reply exactly: N1"}),
            json!({"role": "assistant", "content": "N1"}),
            json!({"role": "user", "content": [{"type": "input_text", "text": "Reply exactly: N2 please"}]}),
        ];
        assert_eq!(reply(&messages), "N2");
        assert_eq!(reply(&[json!({"role": "user", "content": "hello"})]), "echo: hello");
    }
}
