//! `godex traces`: what became of requests, as a table, as JSON, or as they come.

mod show;
mod table;

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use serde_json::Value;
use server::admin::AdminClient;
use server::config::{Bare, parse_duration};
use wire::visible::visible_json;

use crate::admin::{self, Look, ask, pretty, segment};
use crate::args::{Flags, some_id};
use crate::output;
use table::Table;

/// How often whoever follows asks for more.
const PAUSE: Duration = Duration::from_secs(1);

/// The most of one answer.
const PAGE: u32 = 1000;

/// Which traces, and how they are shown.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TracesArgs {
    #[command(subcommand)]
    command: Option<TracesCommand>,
    #[command(flatten)]
    filter: Filter,
    /// The most to list.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Go on with those that come.
    #[arg(long, short, conflicts_with = "until")]
    follow: bool,
    /// As JSON, one per line.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum TracesCommand {
    /// Show all that is kept of one.
    Show {
        /// Its number, or the id of its response or of its request.
        #[arg(value_parser = some_id)]
        id: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, ClapArgs)]
struct Filter {
    /// Of this model, as it was asked for, as its provider calls it, or as `provider/model`.
    #[arg(long)]
    model: Option<String>,
    #[arg(long)]
    provider: Option<String>,
    #[arg(long)]
    tenant: Option<String>,
    /// Of the API key of this name.
    #[arg(long)]
    key: Option<String>,
    /// Those that failed or were refused.
    #[arg(long)]
    errors: bool,
    /// With a note of this code.
    #[arg(long, value_name = "CODE")]
    note: Option<String>,
    /// That ended so.
    #[arg(long, value_parser = server::OUTCOMES)]
    outcome: Option<String>,
    /// That took longer, such as `2s` or `500ms`.
    #[arg(long, value_name = "TIME", value_parser = time)]
    slower_than: Option<Duration>,
    /// How far back, such as `1h`, or from when, such as `2026-11-16T16:00:00Z`.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Until when.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Of this response, request or conversation.
    #[arg(long)]
    id: Option<String>,
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text, Bare::Refused).ok_or_else(|| "expected a time such as `2s` or `500ms`".to_owned())
}

impl Filter {
    /// As a query.
    fn query(&self) -> String {
        let texts = [
            ("model", &self.model),
            ("provider", &self.provider),
            ("tenant", &self.tenant),
            ("key", &self.key),
            ("note", &self.note),
            ("outcome", &self.outcome),
            ("since", &self.since),
            ("until", &self.until),
            ("id", &self.id),
        ];
        let text = |(name, text): (&str, &Option<String>)| Some(format!("&{name}={}", segment(text.as_ref()?)));
        let mut query: String = texts.into_iter().filter_map(text).collect();
        if self.errors {
            query.push_str("&errors=true");
        }
        if let Some(time) = self.slower_than {
            query.extend(["&slower_ms=", &time.as_millis().to_string()]);
        }
        query
    }
}

pub(crate) fn run(flags: &Flags, args: &TracesArgs) -> anyhow::Result<()> {
    match &args.command {
        Some(TracesCommand::Show { id, json }) => {
            let path = format!("/admin/traces/{}", segment(id));
            let found = admin::look(flags, Look::Traces, async |client| ask(client, "GET", &path, None).await)?;
            output::print(&if *json { pretty(&found) } else { show::all(&found) })
        }
        None => {
            let listed = admin::look(flags, Look::Traces, async |client| list(client, args).await);
            admin::or_empty(listed, || Ok(()))
        }
    }
}

async fn list(client: &AdminClient, args: &TracesArgs) -> anyhow::Result<()> {
    let query = args.filter.query();
    let (mut found, mut dropped) = (Vec::new(), 0);
    let mut before = String::new();
    while found.len() < args.limit as usize {
        let limit = (args.limit - u32::try_from(found.len()).unwrap_or(args.limit)).min(PAGE);
        let page = ask(client, "GET", &format!("/admin/traces?limit={limit}{before}{query}"), None).await?;
        dropped = page["dropped"].as_u64().unwrap_or_default();
        found.extend(page["data"].as_array().cloned().unwrap_or_default());
        if page["has_more"] != true {
            break;
        }
        before = found.last().map(|last| format!("&before={}", last["number"])).unwrap_or_default();
    }
    if args.follow {
        // The newest come last, as those do that follow.
        found.reverse();
    }
    let mut table = Table::new();
    let mut shown = |found: &[Value]| {
        let line = |trace: &Value| visible_json(&format!("{trace}\n")).into_owned();
        if args.json { found.iter().map(line).collect::<Vec<_>>().concat() } else { table.lines(found) }
    };
    if !output::print_more(&shown(&found))? {
        return Ok(());
    }
    if !args.follow {
        if found.is_empty() && !args.json {
            output::tell("there are no such traces\n");
        }
        if dropped > 0 {
            output::tell(&format!("{dropped} traces were not kept since the start: see the log\n"));
        }
        return Ok(());
    }
    let mut last = found.last().and_then(|last| last["number"].as_i64()).unwrap_or_default();
    let mut is_away = false;
    loop {
        tokio::time::sleep(PAUSE).await;
        loop {
            let page = ask(client, "GET", &format!("/admin/traces?limit={PAGE}&after={last}{query}"), None).await;
            let page = match page {
                Ok(page) => page,
                // A server that is started anew has the same traces.
                Err(error) => {
                    if !std::mem::replace(&mut is_away, true) {
                        output::tell(&format!("{error:#}; waiting for it\n"));
                    }
                    break;
                }
            };
            is_away = false;
            let found = page["data"].as_array().map_or(&[][..], Vec::as_slice);
            last = found.last().and_then(|last| last["number"].as_i64()).unwrap_or(last);
            if !found.is_empty() && !output::print_more(&shown(found))? {
                return Ok(());
            }
            if found.is_empty() {
                last = last.min(newest(client).await.unwrap_or(last));
            }
            if page["has_more"] != true {
                break;
            }
        }
    }
}

/// The number of the newest trace of all, 0 if there is none. One that is lower than what was seen is of a file that began
/// anew; None: nobody answers.
async fn newest(client: &AdminClient) -> Option<i64> {
    let page = ask(client, "GET", "/admin/traces?limit=1", None).await.ok()?;
    Some(page["data"].get(0).and_then(|newest| newest["number"].as_i64()).unwrap_or_default())
}
