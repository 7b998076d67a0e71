//! How much memory this process uses and may use, where the operating system says so.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// What this process uses, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Used {
    /// What the system cannot take back.
    pub(super) own: u64,
    /// With pages of files, of which most are the program itself: the system takes them back when it has to.
    pub(super) resident: u64,
}

#[cfg(target_os = "linux")]
pub(super) fn used() -> Option<Used> {
    used_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Kernels before 4.5 say only the sum.
#[cfg(target_os = "linux")]
fn used_in(status: &str) -> Option<Used> {
    let resident = kibibytes(status, "VmRSS:")?;
    let shared = kibibytes(status, "RssShmem:").unwrap_or(0);
    let own = kibibytes(status, "RssAnon:").map_or(resident, |own| own.saturating_add(shared));
    Some(Used { own, resident })
}

/// Memory that is not used any more goes back to the system. Our allocator keeps it for a second, and looks whether that is
/// over when something large is freed: where nobody asks for anything, or all are refused, that would be never.
pub(super) fn return_unused() {
    /// So much is not taken from what is held for small things. Nothing is written there, so it costs nothing.
    const LARGE: usize = 16 << 20;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE)));
}

/// How often the threads were asked to give back what they keep.
static ASKED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// What this thread has heard of it.
    static HEARD: Cell<u64> = const { Cell::new(0) };
}

/// Asks each thread for what it keeps: it gives it before it rests.
pub(super) fn ask_threads() {
    ASKED.fetch_add(1, Ordering::Relaxed);
}

/// Gives back what this thread keeps, if that is wanted. Each thread of the runtime runs it before it rests: what others
/// have freed of a thread's memory only that thread finds, and one that has nothing to do would never look.
pub fn tidy_thread() {
    let asked = ASKED.load(Ordering::Relaxed);
    if HEARD.replace(asked) != asked {
        look_through();
    }
}

/// Our allocator looks through a thread's memory at every ten thousandth piece that is too large for its quick way, and has
/// no other word for it that is safe. It takes a fraction of a millisecond.
fn look_through() {
    const PIECES: usize = 10_000;
    const PIECE: usize = 2 << 10;
    for _ in 0..PIECES {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(PIECE)));
    }
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
pub(super) const fn used() -> Option<Used> {
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
        let (used, limit) = (used().unwrap(), limit().unwrap_or_default());
        assert!(used.own > 1 << 20 && used.own <= used.resident && used.resident < limit, "{used:?} of {limit}");
        assert_eq!(kibibytes("VmPeak:\t 9 kB\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12 << 10));
        assert_eq!(kibibytes("VmRSS: lots", "VmRSS:"), None);
    }

    #[test]
    fn pages_of_files_are_not_its_own() {
        for (status, own, resident) in [
            ("VmRSS: 90 kB\nRssAnon: 50 kB\nRssFile: 30 kB\nRssShmem: 10 kB\n", 60, 90),
            ("VmRSS: 90 kB\nRssAnon: 50 kB\n", 50, 90),
            ("VmRSS: 90 kB\n", 90, 90),
        ] {
            assert_eq!(used_in(status), Some(Used { own: own << 10, resident: resident << 10 }), "{status}");
        }
        assert_eq!(used_in("RssAnon: 50 kB\n"), None);
    }

    /// Those that only rest as well: they are woken for it.
    #[test]
    fn each_thread_hears_that_it_is_asked() {
        const THREADS: usize = 3;
        static HEARD_BY: std::sync::Mutex<Vec<std::thread::ThreadId>> = std::sync::Mutex::new(Vec::new());
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(THREADS).on_thread_park(|| {
            let before = HEARD.get();
            tidy_thread();
            let mut heard = HEARD_BY.lock().unwrap();
            let this = std::thread::current().id();
            if HEARD.get() != before && !heard.contains(&this) {
                heard.push(this);
            }
        });
        runtime.build().unwrap().block_on(async {
            while HEARD_BY.lock().unwrap().len() < THREADS {
                super::super::load::tidy_threads();
                tokio::task::yield_now().await;
            }
        });
    }
}
