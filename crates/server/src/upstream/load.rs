//! How many requests are open somewhere: from when they are sent to when their answer has been read or given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Default, Clone)]
pub(super) struct Load(Arc<AtomicUsize>);

/// One of those that are counted; it leaves when it is dropped.
#[derive(Debug)]
pub(crate) struct OpenRequest(Arc<AtomicUsize>);

impl Load {
    pub(super) fn enter(&self) -> OpenRequest {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenRequest(Arc::clone(&self.0))
    }

    pub(super) fn open(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
