//! Namespaces: made ready, failed, removed, kept.

use uuid::Uuid;

use super::compute::Answer;
use super::world::World;

async fn status(world: &World, namespace: &str) -> (String, bool) {
    let row = sqlx::query!(
        r#"select status, deleted_at is not null as "deleted!" from occ.namespaces where id = $1"#,
        namespace
    )
    .fetch_one(&world.pool)
    .await
    .unwrap();
    (row.status, row.deleted)
}

async fn provisioning(world: &World) -> String {
    let namespace = format!("ns_{}", Uuid::new_v4());
    world.namespace_insert(&namespace, "provisioning").await;
    namespace
}

#[tokio::test]
async fn a_namespace_becomes_ready_and_is_looked_after() {
    let world = World::new().await;
    let namespace = provisioning(&world).await;
    world.compute.script("ensure-tenant", &namespace, &[Answer::Waiting("NAMESPACE_INCOMPLETE")]);
    let worker = world.worker();
    let key = world.namespace_work(&namespace, "ensure", "namespace.ensure").await;
    assert_eq!(world.ended(&key).await.ended(), ("succeeded", "NAMESPACE_RECONCILED"));
    assert_eq!(status(&world, &namespace).await, ("ready".to_owned(), false));
    assert!(world.compute.has_tenant(&namespace));
    assert_eq!(world.audited(&namespace, "openclaw.namespaces.lifecycle.ensure").await, 1);
    assert_eq!(world.row(&format!("namespace:{namespace}:observe")).await.unwrap().state, "queued");
    worker.stop().await;
}

#[tokio::test]
async fn used_up_attempts_fail_the_namespace_with_its_row() {
    let world = World::new().await;
    let namespace = provisioning(&world).await;
    world.compute.fail_always("ensure-tenant", &namespace, Answer::Trap);
    let worker = world.worker();
    let key = world.namespace_work(&namespace, "ensure", "namespace.ensure").await;
    assert_eq!(world.ended(&key).await.ended(), ("failed_permanent", "MAX_ATTEMPTS_EXHAUSTED"));
    assert_eq!(status(&world, &namespace).await, ("failed".to_owned(), false));
    worker.stop().await;
}

#[tokio::test]
async fn a_permanent_failure_fails_the_namespace_with_its_row() {
    let world = World::new().await;
    let namespace = provisioning(&world).await;
    world.compute.fail_always("ensure-tenant", &namespace, Answer::Permanent("OWNERSHIP_CONFLICT"));
    let worker = world.worker();
    let key = world.namespace_work(&namespace, "ensure", "namespace.ensure").await;
    assert_eq!(world.ended(&key).await.ended(), ("failed_permanent", "OWNERSHIP_CONFLICT"));
    assert_eq!(status(&world, &namespace).await, ("failed".to_owned(), false));
    worker.stop().await;
}

#[tokio::test]
async fn an_empty_namespace_is_removed_and_leaves_a_tombstone() {
    let world = World::new().await;
    let namespace = provisioning(&world).await;
    sqlx::query!("update occ.namespaces set status = 'deleting' where id = $1", namespace)
        .execute(&world.pool)
        .await
        .unwrap();
    sqlx::query!(
        "insert into occ.iam_groups (id, namespace_id, name) values ($1, $2, 'g')",
        format!("grp_{}", Uuid::new_v4()),
        namespace
    )
    .execute(&world.pool)
    .await
    .unwrap();
    world.compute.script(
        "delete-tenant",
        &namespace,
        &[Answer::Waiting("DELETION_INCOMPLETE"), Answer::Trap],
    );
    let worker = world.worker();
    let key = world.namespace_work(&namespace, "delete", "namespace.delete").await;
    assert_eq!(world.ended(&key).await.ended(), ("succeeded", "NAMESPACE_RECONCILED"));
    assert_eq!(status(&world, &namespace).await, ("deleting".to_owned(), true));
    let groups = sqlx::query_scalar!(
        r#"select count(*) as "n!" from occ.iam_groups where namespace_id = $1"#,
        namespace
    )
    .fetch_one(&world.pool)
    .await
    .unwrap();
    assert_eq!(groups, 0);
    worker.stop().await;
}
