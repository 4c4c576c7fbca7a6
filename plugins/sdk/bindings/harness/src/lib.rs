//! The world of harness resolvers, generated from `/wit/occ-plugin/v0.1`.

wit_bindgen::generate!({
    path: "../../../../wit/occ-plugin/v0.1",
    world: "harness-resolver",
    pub_export_macro: true,
    additional_derives: [PartialEq],
    with: {
        "occ:plugin/types@0.1.0": bindings_compute::occ::plugin::types,
        "occ:plugin/workload@0.1.0": bindings_compute::occ::plugin::workload,
        "occ:plugin/log@0.1.0": bindings_compute::occ::plugin::log,
        "occ:plugin/settings@0.1.0": bindings_compute::occ::plugin::settings,
        "occ:plugin/driver@0.1.0": generate,
        "occ:plugin/harness@0.1.0": generate,
    },
});
