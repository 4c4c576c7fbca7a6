//! The program `occ`: against a server that misbehaves on purpose, and against a live host.

mod answers;
mod contexts;
mod errors;
mod fake;
mod interrupts;
mod keys;
mod live;
mod output;
mod run;
mod waits;

/// Ids of the right form.
const NAMESPACE: &str = "ns_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b10";
const AGENT: &str = "agt_0b7e54c1-91d2-4c3f-8a60-5d2f7be1c904";
const REVISION: &str = "rev_7e2c5f10-1a7b-4d0a-9b64-2f8a1c3d5e60";
const OLDER: &str = "rev_1c2d3e4f-5a6b-4c7d-8e9f-0a1b2c3d4e5f";
const SECRET: &str = "sec_9a8b7c6d-5e4f-4a3b-8c1d-0e9f8a7b6c5d";
const PRINCIPAL: &str = "spn_5d6e7f80-9a1b-4c2d-8e3f-4a5b6c7d8e9f";
/// A key that must appear nowhere but in the header.
const KEY: &str = "occ_canary-0123456789-canary";
