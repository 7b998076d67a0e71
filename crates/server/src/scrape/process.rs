//! What the operating system says of this process, where it says so in files.

use prometheus_client::registry::Registry;

#[cfg(not(target_os = "linux"))]
pub(super) const fn register(_: &mut Registry) {}

#[cfg(target_os = "linux")]
pub(super) fn register(registry: &mut Registry) {
    use prometheus_client::metrics::counter::ConstCounter;
    use prometheus_client::metrics::gauge::ConstGauge;

    use crate::metrics::{live, register};

    let read = |file: &str| std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let mut gauge = |row, value: Option<u64>| {
        if let Some(value) = value {
            register(registry, row, ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)));
        }
    };
    let status = read("status");
    gauge(&live::RESIDENT, field(&status, "VmRSS:").map(|kibibytes| kibibytes << 10));
    gauge(&live::VIRTUAL, field(&status, "VmSize:").map(|kibibytes| kibibytes << 10));
    gauge(&live::THREADS, field(&status, "Threads:"));
    // The one that is open for the count is counted, too.
    let files = std::fs::read_dir("/proc/self/fd").map(|files| files.count().saturating_sub(1) as u64);
    gauge(&live::FILES, files.ok());
    gauge(&live::FILES_LIMIT, field(&read("limits"), "Max open files"));
    if let Some(seconds) = cpu(&read("stat")) {
        register(registry, &live::CPU, ConstCounter::new(seconds));
    }
}

/// The first number after a name.
#[cfg(target_os = "linux")]
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Time in the process and in the kernel for it, in seconds. The name before it may have anything in it.
#[cfg(target_os = "linux")]
fn cpu(stat: &str) -> Option<f64> {
    /// On all systems that Linux runs on.
    const TICKS: f64 = 100.0;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok().map(f64::from);
    Some((ticks()? + ticks()?) / TICKS)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_files_read_as_they_are() {
        let stat = "4242 (a) b (c) S 1 1 1 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 4 0 1 1 1";
        assert_eq!(cpu(stat), Some(3.0));
        assert_eq!(cpu("1 (x) S 1"), None);
        assert_eq!(field("VmRSS:\t  12 kB\nThreads:\t4\n", "Threads:"), Some(4));
        assert_eq!(
            field("Max open files            1024                 524288               files", "Max open files"),
            Some(1024)
        );
        assert_eq!(field("", "VmRSS:"), None);
        let mut registry = Registry::default();
        register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for name in
            ["process_resident_memory_bytes ", "process_open_fds ", "process_max_fds ", "process_cpu_seconds_total "]
        {
            assert!(text.contains(&format!("\n{name}")), "{text}");
        }
    }
}
