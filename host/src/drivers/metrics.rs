//! `occ_plugin_*`: counted where calls are made, collected at each scrape.
//!
//! Labels are closed sets: plugin ids of the Installation, operations of the contract,
//! outcomes of a call.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::{DURATION_BOUNDS_US, Drivers, PluginInfo, Totals};

/// Shows the counts of every loaded plugin.
#[derive(Debug)]
pub struct PluginMetrics(Arc<Drivers>);

impl PluginMetrics {
    /// Of these plugins.
    #[must_use]
    pub fn new(drivers: Arc<Drivers>) -> Self {
        Self(drivers)
    }
}

type All = [(PluginInfo, Totals)];

impl Collector for PluginMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.0.totals();
        calls(&mut encoder, &all)?;
        durations(&mut encoder, &all)?;
        host_calls(&mut encoder, &all)?;
        gauges(&mut encoder, &all)
    }
}

fn calls(encoder: &mut DescriptorEncoder<'_>, all: &All) -> fmt::Result {
    let help = "Calls of plugins";
    let mut family = encoder.encode_descriptor("occ_plugin_calls", help, None, MetricType::Counter)?;
    for (info, totals) in all {
        for ((operation, outcome), count) in &totals.calls {
            let labels =
                [("plugin", info.identity.id.as_str()), ("operation", *operation), ("outcome", *outcome)];
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, u64>(&count.calls, None)?;
        }
    }
    Ok(())
}

fn durations(encoder: &mut DescriptorEncoder<'_>, all: &All) -> fmt::Result {
    let (name, help) = ("occ_plugin_call_duration_seconds", "Time from a call to its answer");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (info, totals) in all {
        for ((operation, outcome), count) in &totals.calls {
            let bounds = DURATION_BOUNDS_US.iter().map(|us| seconds(*us)).chain([f64::MAX]);
            let buckets: Vec<(f64, u64)> = bounds.zip(count.durations).collect();
            let labels =
                [("plugin", info.identity.id.as_str()), ("operation", *operation), ("outcome", *outcome)];
            let sum = seconds(count.total_us);
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                sum,
                count.calls,
                &buckets,
                None,
            )?;
        }
    }
    Ok(())
}

fn host_calls(encoder: &mut DescriptorEncoder<'_>, all: &All) -> fmt::Result {
    let help = "Calls of plugins into the host";
    let mut family = encoder.encode_descriptor("occ_plugin_host_calls", help, None, MetricType::Counter)?;
    for (info, totals) in all {
        for ((capability, outcome), calls) in &totals.host_calls {
            let labels =
                [("plugin", info.identity.id.as_str()), ("capability", *capability), ("outcome", *outcome)];
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, u64>(calls, None)?;
        }
    }
    Ok(())
}

fn gauges(encoder: &mut DescriptorEncoder<'_>, all: &All) -> fmt::Result {
    let (name, help) = ("occ_plugin_memory_bytes_peak", "Most linear memory of one call");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (info, totals) in all {
        let labels = [("plugin", info.identity.id.as_str())];
        family.encode_family(&labels)?.encode_gauge(&totals.memory_bytes_peak)?;
    }
    let (name, help) = ("occ_plugin_loaded", "Loaded plugins");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (info, _) in all {
        let version = info.identity.version.to_string();
        let labels = [("plugin", info.identity.id.as_str()), ("version", version.as_str())];
        family.encode_family(&labels)?.encode_gauge(&1_u64)?;
    }
    Ok(())
}

/// Microseconds as seconds, exact far beyond any duration of a call.
fn seconds(us: u64) -> f64 {
    std::time::Duration::from_micros(us).as_secs_f64()
}
