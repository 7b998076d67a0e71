//! `godex search`: what the configured services find.

use std::fmt::Write;

use anyhow::{Context, anyhow};
use server::Found;
use wire::json::ObjectWriter;
use wire::visible::visible;

use crate::args::Flags;
use crate::output;
use crate::progress::Progress;

pub(crate) fn run(flags: &Flags, query: &str, json: bool) -> anyhow::Result<()> {
    let config = flags.load()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let progress = Progress::start("searching");
    let found = runtime.context("cannot start the runtime")?.block_on(server::search(&config, query));
    drop(progress);
    let found = found.map_err(|why| anyhow!(why))?;
    if json {
        return output::print(&as_json(&found));
    }
    if found.is_empty() {
        return output::print("nothing was found\n");
    }
    let mut out = String::new();
    for (index, found) in found.iter().enumerate() {
        let title = if found.title.is_empty() { "(without a title)" } else { &found.title };
        let date = found.date.as_ref().map(|date| format!(" ({})", visible(date))).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}. {}{date}\n   {}", index + 1, visible(title), visible(&found.url));
        if !found.text.is_empty() {
            let _ = writeln!(out, "   {}", visible(&found.text));
        }
    }
    output::print(&out)
}

fn as_json(found: &[Found]) -> String {
    let mut out = b"[".to_vec();
    for (index, found) in found.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"\n" } else { b",\n" });
        let mut object = ObjectWriter::new(&mut out);
        object.text("title", &found.title).text("url", &found.url).text("text", &found.text);
        if let Some(date) = &found.date {
            object.text("date", date);
        }
        object.end();
    }
    out.extend_from_slice(if found.is_empty() { b"]\n" } else { b"\n]\n" });
    String::from_utf8(out).unwrap_or_default()
}
