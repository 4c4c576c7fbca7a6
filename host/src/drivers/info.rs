//! The loaded plugins as the API and the metrics show them.

use std::sync::Arc;

use occ_driver::plugin::Plugin;

pub use occ_driver::plugin::PluginInfo;
pub use occ_driver::stats::{DURATION_BOUNDS_US, Totals, WINDOW_SECS};

use super::Drivers;

impl Drivers {
    /// Every loaded plugin, by id.
    #[must_use]
    pub fn plugins(&self) -> Vec<PluginInfo> {
        let mut infos: Vec<PluginInfo> = self.loaded().map(|plugin| plugin.info()).collect();
        infos.sort_by(|one, other| one.identity.id.cmp(&other.identity.id));
        infos
    }

    /// Id and counts of every loaded plugin, for metrics.
    #[must_use]
    pub fn totals(&self) -> Vec<(PluginInfo, Totals)> {
        self.loaded().map(|plugin| (plugin.info(), plugin.totals())).collect()
    }

    /// What clients read for a reason code that the selected compute declares.
    #[must_use]
    pub fn declared_text(&self, code: &str) -> Option<&str> {
        self.compute.plugin().declared_text(code)
    }

    fn loaded(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        std::iter::once(self.compute.plugin()).chain(self.harnesses.iter().map(|harness| harness.plugin()))
    }
}
