//! Harness resolution: a configuration becomes a workload plan.

use std::marker::PhantomData;

use crate::bindings::harness::{Refusal, Request};
use crate::bindings::workload::Plan;
use crate::{Host, Plugin};

/// A harness resolver. Pure: the same request always gives the same plan.
pub trait Harness: Plugin {
    /// The plan that serves this request.
    ///
    /// # Errors
    /// `invalid` when the configuration is at fault, `unsupported` when no approved
    /// harness serves it; the paths point into the request.
    fn resolve(host: &dyn Host, request: &Request) -> Result<Plan, Refusal>;
}

/// Adapts a [`Harness`] to the contract; [`crate::export!`] names it.
#[derive(Debug)]
pub struct Exported<T>(PhantomData<T>);

#[cfg(target_family = "wasm")]
mod adapter {
    use serde_json::Value;

    use super::*;
    use crate::bindings::harness_resolver::exports::occ::plugin::{driver, harness};
    use crate::bindings::types::{Failure, Reason, SettingProblem};
    use crate::host::Component;

    impl<T: Harness> driver::Guest for Exported<T> {
        fn describe() -> driver::Description {
            driver::Description {
                name: T::NAME.to_owned(),
                version: T::VERSION.to_owned(),
                settings_schema: T::SETTINGS_SCHEMA.to_owned(),
            }
        }

        fn check_settings(settings: String) -> Vec<SettingProblem> {
            T::check_settings(&serde_json::from_str(&settings).unwrap_or(Value::Null))
        }

        fn preflight() -> Result<Vec<Reason>, Failure> {
            T::preflight(&Component)
        }
    }

    impl<T: Harness> harness::Guest for Exported<T> {
        fn resolve(request: Request) -> Result<Plan, Refusal> {
            T::resolve(&Component, &request)
        }
    }
}
