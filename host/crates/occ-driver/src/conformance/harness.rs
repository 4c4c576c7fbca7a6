//! Rules for harness resolvers.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;

use super::subject::{Subject, World};
use super::{Finding, Named, fixture};
use crate::abi::{Answer, Call};
use crate::types::{EnvValue, HarnessRequest, Plan, Refusal};

pub(super) const CHECKS: &[Named] = &[
    ("configuration-resolves", configuration_resolves),
    ("resolution-is-deterministic", resolution_is_deterministic),
    ("environment-has-no-absolute-path", environment_has_no_absolute_path),
    ("broken-configuration-is-refused", broken_configuration_is_refused),
];

async fn resolve(world: &World, request: HarnessRequest) -> Result<Result<Plan, Refusal>, String> {
    match world.call(Call::Resolve(request)).await? {
        Answer::Resolved(resolved) => Ok(resolved),
        _ => Err("resolve: answers something else".to_owned()),
    }
}

async fn plan(subject: &Subject) -> Result<Plan, String> {
    let refused = |refusal: Refusal| {
        let (Refusal::Invalid(problems) | Refusal::Unsupported(problems)) = refusal;
        let at: Vec<String> = problems.into_iter().map(|problem| problem.path).collect();
        format!("resolve: refuses the suite's configuration at {}", at.join(", "))
    };
    resolve(&subject.world(), fixture::request()).await?.map_err(refused)
}

fn configuration_resolves(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move { plan(subject).await.map(|_| ()) }.boxed()
}

fn resolution_is_deterministic(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let (first, second) = (plan(subject).await?, plan(subject).await?);
        if first == second { Ok(()) } else { Err("resolve: another plan for the same request".to_owned()) }
    }
    .boxed()
}

fn environment_has_no_absolute_path(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let plan = plan(subject).await?;
        let absolute = |value: &EnvValue| matches!(value, EnvValue::Literal(text) if text.starts_with('/'));
        let mut env = plan.containers.iter().flat_map(|container| &container.env);
        match env.find(|var| absolute(&var.value)) {
            Some(var) => Err(format!("resolve: env {} is a literal absolute path", var.name)),
            None => Ok(()),
        }
    }
    .boxed()
}

fn broken_configuration_is_refused(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        for configuration in
            [json!([]), json!("text"), json!(null), json!({"agents": []}), json!({"agents": 7})]
        {
            let request = HarnessRequest { configuration, ..fixture::request() };
            match resolve(&subject.world(), request).await? {
                Ok(_) => return Err("resolve: makes a plan of a broken configuration".to_owned()),
                Err(Refusal::Invalid(problems) | Refusal::Unsupported(problems)) => {
                    if let Some(problem) =
                        problems.iter().find(|problem| !problem.path.starts_with("/configuration"))
                    {
                        return Err(format!(
                            "resolve: {} does not point into the configuration",
                            problem.path
                        ));
                    }
                }
            }
        }
        Ok(())
    }
    .boxed()
}
