//! `godex drain`: the running godex ends, when what it answers is answered.

use crate::args::Flags;
use crate::{admin, output};

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    admin::with_running(flags, "drain", async |client| {
        let status = admin::ask(client, "GET", "/admin/status", None).await?;
        admin::ask(client, "POST", "/admin/drain", None).await?;
        output::print(&format!("godex drains and ends (process {})\n", status["pid"]))
    })
}
