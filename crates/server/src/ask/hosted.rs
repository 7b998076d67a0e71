//! Tools that godex runs itself: the model's call is not the client's business, its result goes back to the model in
//! another round of the same response. There are none yet; the rounds are ready for them.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use bridge::{HostedCall, OfferedTool};

/// The tools that are run here for one request.
pub(crate) trait HostedTools: Debug + Send + Sync {
    /// Whether a tool that was offered to the model is one of them.
    fn runs(&self, tool: &OfferedTool) -> bool;

    /// Runs it. What goes wrong is for the model to read, too.
    fn call(&self, call: HostedCall) -> Pin<Box<dyn Future<Output = HostedOutput> + Send>>;
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct HostedOutput {
    /// The item that the response shows of it, when it begins and when it is done.
    pub(crate) item: Option<HostedItem>,
    /// What the model is told.
    pub(crate) output: String,
}

#[derive(Debug)]
pub(crate) struct HostedItem {
    pub(crate) added: Vec<u8>,
    pub(crate) done: Vec<u8>,
}
