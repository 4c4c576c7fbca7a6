//! The world of compute drivers and the types that all worlds share, generated from
//! `/wit/occ-plugin/v0.1`. A world is a crate, since each defines macros at its root.

wit_bindgen::generate!({
    path: "../../../../wit/occ-plugin/v0.1",
    world: "compute-driver",
    pub_export_macro: true,
    additional_derives: [PartialEq],
    generate_all,
});
