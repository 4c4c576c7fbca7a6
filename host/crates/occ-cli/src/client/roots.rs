//! Trusted roots: the system's, and those of `--ca-bundle` beside them.

use std::path::Path;
use std::sync::Arc;

use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::failure::{Exit, Failure, Result};

/// Where systems keep their roots, as one file.
const SYSTEM_BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

/// TLS with these roots. Without a system bundle Mozilla's roots, which are built in, take its place unless
/// a bundle was given.
pub(super) fn tls(ca_bundle: Option<&Path>) -> Result<TlsConfig> {
    let mut roots: Vec<Certificate<'static>> = SYSTEM_BUNDLES
        .iter()
        .find_map(|path| std::fs::read(path).ok())
        .map(|pem| certificates(&pem))
        .unwrap_or_default();
    if let Some(path) = ca_bundle {
        let pem = std::fs::read(path).map_err(|error| Failure::file(path, &error))?;
        let own = certificates(&pem);
        if own.is_empty() {
            let why = format!("{} holds no certificate in PEM form", path.display());
            return Err(Failure::local(Exit::Usage, "CA_BUNDLE", why));
        }
        roots.extend(own);
    }
    let roots = if roots.is_empty() { RootCerts::WebPki } else { RootCerts::Specific(Arc::new(roots)) };
    Ok(TlsConfig::builder().root_certs(roots).build())
}

fn certificates(pem: &[u8]) -> Vec<Certificate<'static>> {
    parse_pem(pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect()
}
