//! `godex tenants`: what tenants have stored and may use.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args as ClapArgs, Subcommand};
use serde_json::{Value, json};
use server::admin::AdminClient;
use wire::visible::visible;

use super::terms::{TermsArgs, day, summary, table};
use crate::admin::{self, Look, ask, pretty, segment};
use crate::args::Flags;
use crate::{output, progress};

#[derive(Debug, ClapArgs)]
pub(crate) struct TenantsArgs {
    #[command(subcommand)]
    command: TenantsCommand,
    /// As JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum TenantsCommand {
    /// List the tenants that have anything, and what they may use.
    List,
    /// List the responses and conversations of a tenant, conversations first.
    Sessions {
        tenant: String,
        /// The most to list.
        #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
        limit: u64,
    },
    /// Write all of them out, one per line, as JSON.
    Export {
        tenant: String,
        /// Write to a file.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Erase all that a tenant has stored; its keys stay.
    Erase {
        tenant: String,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
        /// Do not wait for its running requests: cut them off.
        #[arg(long)]
        now: bool,
    },
    /// Limit all keys of a tenant together; what is not named stays as it is.
    Set {
        tenant: String,
        #[command(flatten)]
        terms: TermsArgs,
        /// Begin without any limit.
        #[arg(long)]
        clear: bool,
    },
}

pub(crate) fn run(flags: &Flags, args: &TenantsArgs) -> anyhow::Result<()> {
    if let TenantsCommand::Erase { tenant, yes: false, .. } = &args.command {
        confirm(tenant)?;
    }
    let work = async |client: &AdminClient| answer(client, args).await;
    match &args.command {
        TenantsCommand::List | TenantsCommand::Sessions { .. } => {
            let nothing = if args.json { pretty(&json!([])) } else { NOTHING.to_owned() };
            admin::or_empty(admin::look(flags, Look::Sessions, work), || output::print(&nothing))
        }
        TenantsCommand::Export { .. } => admin::look(flags, Look::Sessions, work),
        TenantsCommand::Erase { .. } | TenantsCommand::Set { .. } => admin::with(flags, work),
    }
}

const NOTHING: &str = "nothing is stored\n";

/// Nothing brings it back: whoever erases says once more what.
fn confirm(tenant: &str) -> anyhow::Result<()> {
    ensure!(io::stdin().is_terminal(), "erasing needs --yes where nobody can be asked");
    output::tell(&format!(
        "All responses and conversations of the tenant {0} and its usage (its budgets begin anew) will be erased, for good. \
         Type {0} to go on: ",
        visible(tenant)
    ));
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed).context("cannot read the answer")?;
    ensure!(typed.trim() == tenant, "nothing was erased");
    Ok(())
}

async fn answer(client: &AdminClient, args: &TenantsArgs) -> anyhow::Result<()> {
    let path = |tenant: &str, more: &str| format!("/admin/tenants/{}{more}", segment(tenant));
    let json = args.json;
    match &args.command {
        TenantsCommand::List => {
            let listed = ask(client, "GET", "/admin/tenants", None).await?;
            output::print(&if json { pretty(&listed["data"]) } else { list(&listed["data"]) })
        }
        TenantsCommand::Sessions { tenant, limit } => {
            let found = sessions(client, &path(tenant, "/sessions"), *limit).await?;
            output::print(&if json { pretty(&found.into()) } else { session_table(&found) })
        }
        TenantsCommand::Export { tenant, output } => {
            let count = export(client, &path(tenant, "/export"), output.as_deref()).await?;
            output::tell(&format!("{count} exported\n"));
            Ok(())
        }
        TenantsCommand::Erase { tenant, now, .. } => {
            let now = if *now { "?now=true" } else { "" };
            let done = ask(client, "DELETE", &path(tenant, now), None).await?;
            output::print(&if json { pretty(&done) } else { erased(tenant, &done["erased"]) })
        }
        TenantsCommand::Set { tenant, terms, clear } => {
            let path = path(tenant, "/terms");
            let mut whole = if *clear { json!({}) } else { ask(client, "GET", &path, None).await? };
            for (name, value) in terms.given() {
                whole[name] = value;
            }
            let set = ask(client, "PUT", &path, Some(&whole)).await?;
            let line = || format!("tenant {}: {}\n", visible(tenant), visible(&summary(&set)));
            output::print(&if json { pretty(&set) } else { line() })
        }
    }
}

fn list(tenants: &Value) -> String {
    let row = |tenant: &Value| {
        let name = tenant["name"].as_str().unwrap_or_default().to_owned();
        vec![name, tenant["responses"].to_string(), tenant["conversations"].to_string(), summary(&tenant["terms"])]
    };
    let rows: Vec<Vec<String>> = tenants.as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        return NOTHING.to_owned();
    }
    table(&["TENANT", "RESPONSES", "CONVERSATIONS", "LIMITS"], &rows)
}

/// Page by page.
async fn sessions(client: &AdminClient, path: &str, limit: u64) -> anyhow::Result<Vec<Value>> {
    let (mut found, mut after) = (Vec::new(), String::new());
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    while found.len() < limit {
        let wanted = (limit - found.len()).min(1000);
        let mut page = ask(client, "GET", &format!("{path}?limit={wanted}{after}"), None).await?;
        if let Some(data) = page["data"].as_array_mut() {
            found.append(data);
        }
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={}", segment(next));
    }
    Ok(found)
}

fn session_table(found: &[Value]) -> String {
    let row = |held: &Value| {
        let cell = |name: &str| held[name].as_str().unwrap_or("-").to_owned();
        let before =
            held["conversation_id"].as_str().or(held["previous_response_id"].as_str()).unwrap_or("-").to_owned();
        vec![cell("id"), day(&held["created_at"]), day(&held["expires_at"]), cell("status"), before]
    };
    if found.is_empty() {
        return NOTHING.to_owned();
    }
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    table(&["ID", "CREATED", "EXPIRES", "STATUS", "CONTINUES"], &rows)
}

/// Writes line by line, but the last, which says that there are no more. How many they were.
async fn export(client: &AdminClient, path: &str, file: Option<&Path>) -> anyhow::Result<u64> {
    let mut out: Box<dyn Write + Send> = match file {
        Some(file) => {
            Box::new(BufWriter::new(private(file).with_context(|| format!("cannot write {}", file.display()))?))
        }
        None => Box::new(BufWriter::new(Stdout)),
    };
    // The last line that has come, and what has come of the next.
    let (mut last, mut begun) = (Vec::new(), Vec::new());
    let mut sink = |chunk: &[u8]| -> io::Result<()> {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            begun.extend_from_slice(part);
            if part.ends_with(b"\n") {
                out.write_all(&last)?;
                last = std::mem::take(&mut begun);
            }
        }
        Ok(())
    };
    let status = client.read("GET", path, None, &mut sink).await?;
    let end = if last.is_empty() { &begun } else { &last };
    let end: Value = serde_json::from_slice(end).unwrap_or_default();
    if status >= 400 {
        bail!("{}", end["error"]["message"].as_str().unwrap_or("refused"));
    }
    if end["object"] != "end" {
        bail!("the export broke off: {}", end["message"].as_str().unwrap_or("the connection ended"));
    }
    out.flush().context("cannot write")?;
    let damaged = end["damaged"].as_u64().unwrap_or_default();
    ensure!(damaged == 0, "{damaged} cannot be read: a line with their id and the reason stands in their place");
    Ok(end["count"].as_u64().unwrap_or_default())
}

/// Where a line of progress may be.
struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        progress::aside(|| io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// A file for its owner alone: it holds what was said.
fn private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn erased(tenant: &str, done: &Value) -> String {
    format!(
        "erased of {}: {} responses, {} conversations, {} items, {} other rows\nIts keys still work; `godex keys revoke` ends \
         them. Copies that were made before (backups, Postgres' write-ahead log) still have it: see docs/admin.md.\n",
        visible(tenant),
        done["responses"],
        done["conversations"],
        done["items"],
        done["others"]
    )
}
