//! Limits, capabilities and permissions of this process, as names and texts for the evidence.

use nix::sys::resource::{getrlimit, Resource, RLIM_INFINITY};

/// Lines of `/proc/self/status` that decide what a worker may do.
const STATUS: [&str; 9] = [
    "Threads",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
    "NoNewPrivs",
    "Seccomp",
    "Cpus_allowed_list",
];

/// Kernel settings that decide about counters, and where they are.
const SETTINGS: [(&str, &str); 4] = [
    (
        "perf_event_paranoid",
        "/proc/sys/kernel/perf_event_paranoid",
    ),
    ("perf_user_access", "/proc/sys/kernel/perf_user_access"),
    ("rdpmc", "/sys/bus/event_source/devices/cpu/rdpmc"),
    (
        "clocksource",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
];

const LIMITS: [(&str, Resource); 8] = [
    ("address_space", Resource::RLIMIT_AS),
    ("cpu", Resource::RLIMIT_CPU),
    ("core", Resource::RLIMIT_CORE),
    ("file_size", Resource::RLIMIT_FSIZE),
    ("open_files", Resource::RLIMIT_NOFILE),
    ("processes", Resource::RLIMIT_NPROC),
    ("locked_memory", Resource::RLIMIT_MEMLOCK),
    ("stack", Resource::RLIMIT_STACK),
];

/// Value of `name` in the text of a `status` file.
pub fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let line = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim);
    status.lines().find_map(line)
}

/// Everything, as name and value; what cannot be read is left out.
pub fn collect() -> Vec<(String, String)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of_status = STATUS.iter().filter_map(|&name| {
        let value = status_field(&status, name)?;
        Some((name.to_owned(), value.to_owned()))
    });
    let of_limits = LIMITS.iter().filter_map(|&(name, resource)| {
        let (soft, hard) = getrlimit(resource).ok()?;
        Some((
            format!("limit_{name}"),
            format!("{}/{}", limit(soft), limit(hard)),
        ))
    });
    let of_settings = SETTINGS.iter().filter_map(|&(name, path)| {
        let value = std::fs::read_to_string(path).ok()?;
        Some((name.to_owned(), value.trim().to_owned()))
    });
    of_status.chain(of_limits).chain(of_settings).collect()
}

fn limit(value: u64) -> String {
    match value {
        RLIM_INFINITY => "unlimited".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "CapEffX:\t1\nCapEff:\t00ff\nSeccomp_filters:\t3\nSeccomp:\t2\n";
        assert_eq!(status_field(status, "CapEff"), Some("00ff"));
        assert_eq!(status_field(status, "Seccomp"), Some("2"));
        assert_eq!(status_field(status, "Cap"), None);
    }

    #[test]
    fn this_process_has_limits_and_capabilities() {
        let facts = collect();
        let names: Vec<&str> = facts.iter().map(|(name, _)| name.as_str()).collect();
        for name in [
            "CapEff",
            "Cpus_allowed_list",
            "limit_address_space",
            "limit_processes",
        ] {
            assert!(names.contains(&name), "{name} is missing in {names:?}");
        }
    }
}
