//! Generated from `/wit/occ-plugin/v0.1`. One world with everything that this host calls
//! and offers; each component is bound interface by interface, so it need not export all.

wasmtime::component::bindgen!({
    path: "../../../wit/occ-plugin/v0.1",
    inline: "
        package occ:host;

        world contract {
            import occ:plugin/log@0.1.0;
            import occ:plugin/settings@0.1.0;
            import occ:plugin/kubernetes@0.1.0;
            import occ:plugin/process@0.1.0;
            export occ:plugin/driver@0.1.0;
            export occ:plugin/compute@0.1.0;
            export occ:plugin/harness@0.1.0;
        }
    ",
    world: "occ:host/contract",
    imports: {
        "occ:plugin/process": async | trappable,
        default: trappable,
    },
    exports: { default: async },
});
