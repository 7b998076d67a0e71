//! How much memory this process uses and may use, where the operating system says so.

/// What this process uses, in bytes.
#[cfg(target_os = "linux")]
pub(super) fn used() -> Option<u64> {
    kibibytes(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Memory that is not used any more goes back to the system. Our allocator keeps it for a second, and looks whether that is
/// over when something large is freed: where nobody asks for anything, or all are refused, that would be never.
pub(super) fn return_unused() {
    /// So much is not taken from what is held for small things. Nothing is written there, so it costs nothing.
    const LARGE: usize = 16 << 20;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE)));
}

/// What it may use: all that its container has, or the machine.
#[cfg(target_os = "linux")]
pub(super) fn limit() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| kibibytes(&text, "MemTotal:"));
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let files = groups.lines().flat_map(limit_files);
    let limits = files.filter_map(|file| read(&file)?.trim().parse::<u64>().ok());
    limits.chain(machine).min()
}

#[cfg(not(target_os = "linux"))]
pub(super) const fn used() -> Option<u64> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(super) const fn limit() -> Option<u64> {
    None
}

/// `NAME:   1234 kB`.
#[cfg(target_os = "linux")]
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The files that limit a group of `/proc/self/cgroup`, and those above it. `max` in one of them is no limit.
#[cfg(target_os = "linux")]
fn limit_files(line: &str) -> Vec<String> {
    const MOST: usize = 32;
    let mut parts = line.splitn(3, ':');
    let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
        return Vec::new();
    };
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return Vec::new(),
    };
    std::path::Path::new(path)
        .ancestors()
        .take(MOST)
        .map(|group| {
            let group = group.to_string_lossy();
            format!("{root}{}/{file}", group.trim_end_matches('/'))
        })
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_limited_by_all_above_it() {
        for (line, files) in [
            ("0::/", vec!["/sys/fs/cgroup/memory.max"]),
            (
                "0::/a/b",
                vec!["/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max", "/sys/fs/cgroup/memory.max"],
            ),
            (
                "5:cpu,memory:/a",
                vec!["/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"],
            ),
            ("4:cpu:/a", vec![]),
            ("", vec![]),
            ("0:", vec![]),
        ] {
            assert_eq!(limit_files(line), files, "{line}");
        }
    }

    #[test]
    fn this_process_uses_less_than_it_may() {
        let (used, limit) = (used().unwrap_or_default(), limit().unwrap_or_default());
        assert!(used > 1 << 20 && used < limit, "{used} of {limit}");
        assert_eq!(kibibytes("VmPeak:\t 9 kB\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12 << 10));
        assert_eq!(kibibytes("VmRSS: lots", "VmRSS:"), None);
    }
}
