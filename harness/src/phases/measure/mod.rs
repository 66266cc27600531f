//! measure
pub mod disturb;
pub mod order;
pub mod slots;

#[cfg(test)]
pub(crate) mod tests {
    use crate::evidence::{Attempt, Exit};
    use protocol::*;

    /// A measured attempt of so many calls in so many nanoseconds, with nothing else remarkable.
    pub fn measured(calls: u64, nanoseconds: u64) -> Measured {
        Measured {
            calls,
            nanoseconds,
            cycles: None,
            ticks: None,
            instructions: None,
            time_enabled_ns: None,
            time_running_ns: None,
            batch: 1,
            samples_ns: vec![nanoseconds / calls; calls as usize],
            rest: Rest { calls: 0, value: 0 },
            source: SourceProbe {
                kind: SourceKind::None,
                source: None,
                reason: None,
            },
            overhead: Overhead {
                clock_read_ps: 0,
                empty_call_ps: 0,
                iterations: 0,
            },
            usage: Usage {
                user_ns: nanoseconds,
                ..Usage::default()
            },
            baseline_rss_bytes: 0,
            peak_rss_bytes: 0,
            cpu_before: 1,
            cpu_after: 1,
            messages: calls,
            keys: 1,
            seeds: Vec::new(),
            sizes: Sizes {
                pk: 0,
                sk: 0,
                sn: 0,
            },
            last_signature_bytes: 0,
            boottime_ns: nanoseconds,
            threads: 1,
        }
    }

    /// An attempt that ended so.
    pub fn attempt(exit: Exit) -> Attempt {
        Attempt {
            session: 0,
            started_utc: None,
            exit,
            detail: None,
            calls: 0,
            nanoseconds: 0,
            cycles: None,
            ticks: None,
            instructions: None,
            time_enabled: None,
            time_running: None,
            batch: None,
            samples: Vec::new(),
            rest: None,
            user_ns: None,
            system_ns: None,
            switches: None,
            faults: None,
            steal: None,
            baseline_rss_bytes: None,
            peak_rss_bytes: None,
            cpu_before: None,
            cpu_after: None,
            flags: Vec::new(),
            stdout: None,
            stderr: None,
            command: Vec::new(),
        }
    }
}
