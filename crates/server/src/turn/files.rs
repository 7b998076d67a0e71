//! The files of a turn, for whom they are read.

use wire::responses::{CreateResponse, InputItem};

use crate::files;
use crate::request::RequestContext;
use crate::upstream::Failover;

/// Has the PDFs of a request read, where one of its targets takes no files.
pub(super) async fn read(
    context: &RequestContext,
    failover: &Failover,
    request: &CreateResponse<'_>,
    past: &[InputItem<'_>],
) {
    if !failover.all_take_files() {
        let known = &context.app.runtime.files;
        files::read(known.of(context.caller.tenant(), &context.snapshot.config.files), request, past).await;
    }
}
