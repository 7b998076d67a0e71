//! Programs that are run for somebody, with all that they start.

use tokio::process::Child;

/// A process that leads a group of its own, with all that it has started; killed when this is dropped before it has ended.
#[derive(Debug)]
pub(crate) struct Group(pub(crate) Child);

impl Drop for Group {
    fn drop(&mut self) {
        // Until it has been waited for, the number is nobody else's.
        #[cfg(unix)]
        if let Some(pid) = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
        let _ = self.0.start_kill();
    }
}
