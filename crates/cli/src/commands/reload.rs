//! `godex reload`: the running godex reads its configuration anew.

use crate::args::Flags;
use crate::{admin, output};

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    admin::with_running(flags, "reload", async |client| {
        admin::ask(client, "POST", "/admin/reload", None).await?;
        output::print("the configuration was read anew\n")
    })
}
