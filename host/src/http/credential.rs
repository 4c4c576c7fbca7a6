//! Row 7: exactly one credential. Service keys only: sessions come later, so a cookie is no credential yet.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName};

use crate::error::Result;
use crate::iam::authn::unauthenticated;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const CLI_SESSION: HeaderName = HeaderName::from_static("x-occ-cli-session");
const SESSION_KEY: HeaderName = HeaderName::from_static("x-occ-session-key");

/// The service key of a request that carries no other credential. A blank key is a supplied key.
///
/// # Errors
/// `UNAUTHENTICATED`, without a hint.
pub(super) fn service_key(headers: &HeaderMap) -> Result<&str> {
    if [AUTHORIZATION, CLI_SESSION, SESSION_KEY].iter().any(|other| headers.contains_key(other)) {
        return Err(unauthenticated());
    }
    let mut values = headers.get_all(API_KEY).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().map_err(|_| unauthenticated()),
        _ => Err(unauthenticated()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use occ_api::error::ErrorCode;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn exactly_one_credential_is_taken() {
        assert_eq!(service_key(&headers(&[("x-api-key", "k")])).unwrap(), "k");
        assert_eq!(service_key(&headers(&[("x-api-key", ""), ("cookie", "a=b")])).unwrap(), "");
        let refused: &[&[(&'static str, &'static str)]] = &[
            &[],
            &[("x-api-key", "k"), ("x-api-key", "k")],
            &[("x-api-key", "k"), ("authorization", "Bearer x")],
            &[("authorization", "Bearer x")],
            &[("x-api-key", "k"), ("x-occ-cli-session", "occcli_x")],
            &[("x-api-key", "k"), ("x-occ-session-key", "x")],
            &[("cookie", "openclaw_occ.session_token=x")],
        ];
        for pairs in refused {
            assert_eq!(
                service_key(&headers(pairs)).unwrap_err().api_code(),
                ErrorCode::Unauthenticated,
                "{pairs:?}"
            );
        }
    }
}
