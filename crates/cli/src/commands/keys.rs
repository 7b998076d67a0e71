//! `godex keys`: the API keys that clients need. A key is printed once, when it is made, and is kept nowhere.

use std::fmt::Write;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use serde_json::{Map, Value, json};
use server::admin::AdminClient;
use server::checkup;
use server::config::{Bare, Config, KeyConfig, parse_duration, print_duration};
use wire::visible::visible;

use super::terms::{TermsArgs, day, moment, summary, table};
use crate::admin::{self, Look, NoDatabase, ask, pretty, segment};
use crate::args::Flags;
use crate::output;

#[derive(Debug, ClapArgs)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
    /// As JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make a key, and print it: once, on a line of its own.
    Create {
        #[arg(value_parser = new_name)]
        name: String,
        /// Whose data it sees [default: default].
        #[arg(long, value_name = "TENANT")]
        tenant: Option<String>,
        #[command(flatten)]
        terms: TermsArgs,
        /// How long it works, such as `90d` [default: until it is revoked].
        #[arg(long, value_name = "TIME", value_parser = life)]
        expires: Option<Duration>,
        /// Print the key and nothing else.
        #[arg(long, short)]
        quiet: bool,
    },
    /// List all keys.
    List,
    /// Show one key, without itself.
    Show { name: String },
    /// End all keys of this name, at once; by its id, one alone.
    Revoke { name: String },
    /// Make a new key in the place of one, which works on for a while; print the new one.
    Rotate {
        name: String,
        /// How long the older one works on.
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = grace)]
        grace: Duration,
        /// Print the key and nothing else.
        #[arg(long, short)]
        quiet: bool,
    },
    /// Forget a key that was revoked or has expired.
    Delete { name: String },
}

/// One that begins so would be taken for an option ever after.
fn new_name(text: &str) -> Result<String, String> {
    if text.starts_with('-') { Err("a name does not begin with `-`".to_owned()) } else { Ok(text.to_owned()) }
}

fn life(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text, Bare::Refused).filter(|time| time.as_secs() > 0);
    time.ok_or_else(|| "expected a duration such as `90d` or `12h`".to_owned())
}

fn grace(text: &str) -> Result<Duration, String> {
    parse_duration(text, Bare::Refused).ok_or_else(|| "expected a duration such as `24h` or `0s`".to_owned())
}

pub(crate) fn run(flags: &Flags, args: &KeysArgs) -> anyhow::Result<()> {
    let work = async |client: &AdminClient| answer(client, args).await;
    match &args.command {
        KeysCommand::List => {
            let without = || print(&declared(&flags.manage_alone()?), args.json, list);
            admin::or_empty(admin::look(flags, Look::Sessions, work), without)
        }
        KeysCommand::Show { name } => match admin::look(flags, Look::Sessions, work) {
            Err(error) if error.is::<NoDatabase>() => {
                let keys = declared(&flags.manage_alone()?);
                let own = keys.as_array().into_iter().flatten().find(|key| key["name"] == name.as_str());
                print(own.ok_or(error)?, args.json, shown)
            }
            done => done,
        },
        _ => admin::with(flags, work),
    }
}

fn print(value: &Value, json: bool, lines: impl FnOnce(&Value) -> String) -> anyhow::Result<()> {
    output::print(&if json { pretty(value) } else { lines(value) })
}

/// The keys that need no database, as they are listed beside others.
fn declared(config: &Config) -> Value {
    let now = checkup::unix_seconds();
    let one = |key: &KeyConfig| {
        let state = if key.expires_at.is_some_and(|at| at <= now) { "expired" } else { "active" };
        json!({"id": format!("config:{}", key.name), "name": key.name, "tenant": key.tenant, "hint": "", "created_at": 0,
            "expires_at": key.expires_at, "revoked_at": null, "replaced_by": null, "terms": key.terms, "state": state,
            "declared": true})
    };
    config.keys.iter().map(one).collect()
}

async fn answer(client: &AdminClient, args: &KeysArgs) -> anyhow::Result<()> {
    let path = |name: &str, more: &str| format!("/admin/keys/{}{more}", segment(name));
    let json = args.json;
    match &args.command {
        KeysCommand::Create { name, tenant, terms, expires, quiet } => {
            let body = new_key(name, tenant.as_deref(), terms, *expires);
            let made = ask(client, "POST", "/admin/keys", Some(&body)).await?;
            show_made(&made, json, *quiet, &explained(&made))
        }
        KeysCommand::List => {
            let listed = ask(client, "GET", "/admin/keys", None).await?;
            print(&listed["data"], json, list)
        }
        KeysCommand::Show { name } => {
            let key = ask(client, "GET", &path(name, ""), None).await?;
            print(&key, json, shown)
        }
        KeysCommand::Revoke { name } => {
            let key = ask(client, "DELETE", &path(name, ""), None).await?;
            let one = "is revoked: nobody gets in with it any more";
            let several = "are revoked: nobody gets in with them any more";
            print(&key, json, |key| ended(key, "revoked", one, several))?;
            let declared: Vec<&str> =
                key["still_declared"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            if !declared.is_empty() {
                let names = visible(&declared.join(", ")).into_owned();
                output::tell(&format!(
                    "warning: godex.yaml declares {names}, by the same name or with the same key, which works on: take it \
                     out of `keys` there, then `godex reload`\n"
                ));
            }
            Ok(())
        }
        KeysCommand::Rotate { name, grace, quiet } => {
            let body = json!({"grace": print_duration(*grace)});
            let made = ask(client, "POST", &path(name, "/rotate"), Some(&body)).await?;
            // A server of an earlier version does not say.
            let given = made["older_ends_at"].as_u64().map(|end| end.saturating_sub(checkup::unix_seconds()));
            let left = given.map_or(*grace, |left| Duration::from_secs(left).min(*grace));
            let older = if left < Duration::from_secs(1) {
                "the older one is dead".to_owned()
            } else {
                // What is left of a grace that began just now is the grace.
                let left = if grace.saturating_sub(left) < Duration::from_secs(3) { *grace } else { left };
                format!("the older one works for {} more", print_duration(left))
            };
            let older = match &made["expires_at"] {
                Value::Null => older,
                end => format!("{older}; the new one expires {}", moment(end)),
            };
            show_made(&made, json, *quiet, &format!("{}; {older}\n", made_line(&made)))
        }
        KeysCommand::Delete { name } => {
            let before = named(client, name).await?;
            let mut key = ask(client, "POST", &path(name, "/delete"), None).await?;
            let left = named(client, name).await?;
            let gone: Vec<Value> = before.into_iter().filter(|id| !left.contains(id)).collect();
            if let Some(members) = key.as_object_mut() {
                members.insert("deleted".to_owned(), gone.into());
            }
            print(&key, json, |key| ended(key, "deleted", "is forgotten", "are forgotten"))
        }
    }
}

fn new_key(name: &str, tenant: Option<&str>, terms: &TermsArgs, expires: Option<Duration>) -> Value {
    let mut body = Map::from_iter([("name".to_owned(), Value::from(name))]);
    body.extend(tenant.map(|tenant| ("tenant".to_owned(), tenant.into())));
    body.insert("terms".to_owned(), terms.given().into());
    body.extend(expires.map(|life| ("expires_in".to_owned(), print_duration(life).into())));
    body.into()
}

/// The key goes to stdout, alone, so that a script can take it; what is said of it goes to stderr.
fn show_made(made: &Value, json: bool, quiet: bool, said: &str) -> anyhow::Result<()> {
    if json {
        return output::print(&pretty(made));
    }
    output::print(&format!("{}\n", made["key"].as_str().unwrap_or_default()))?;
    if !quiet {
        output::tell(said);
    }
    Ok(())
}

fn text<'v>(key: &'v Value, name: &str) -> std::borrow::Cow<'v, str> {
    visible(key[name].as_str().unwrap_or("-"))
}

fn made_line(made: &Value) -> String {
    format!("key {} of tenant {}, shown this once and kept nowhere", text(made, "name"), text(made, "tenant"))
}

fn explained(made: &Value) -> String {
    let mut out = format!("{}\n", made_line(made));
    if made["closes_the_door"] == true {
        out.push_str(
            "It is the first one: from now on every client needs a key.\n  \
             OpenAI's clients:            export OPENAI_API_KEY=KEY\n  \
             godex codex and godex env:   export GODEX_API_KEY=KEY\n",
        );
    }
    out
}

/// What became of a key, or of all those of its name whose ids this member lists: one that was rotated has had several.
fn ended(key: &Value, ids: &str, one: &str, several: &str) -> String {
    let ids: Vec<&str> = key[ids].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if ids.len() < 2 {
        return format!("key {} ({}) {one}\n", text(key, "name"), text(key, "id"));
    }
    let ids = ids.join(", ");
    format!("keys {} ({}) {several}\n", text(key, "name"), visible(&ids))
}

/// The ids of all keys that have this name or id.
async fn named(client: &AdminClient, name: &str) -> anyhow::Result<Vec<Value>> {
    let listed = ask(client, "GET", "/admin/keys", None).await?;
    let own = listed["data"].as_array().into_iter().flatten().filter(|key| key["name"] == name || key["id"] == name);
    Ok(own.map(|key| key["id"].clone()).collect())
}

fn list(keys: &Value) -> String {
    let row = |key: &Value| {
        let state = if key["declared"] == true { "declared" } else { key["state"].as_str().unwrap_or("-") };
        let cell = |name: &str| key[name].as_str().unwrap_or("-").to_owned();
        let hint = key["hint"]
            .as_str()
            .filter(|hint| !hint.is_empty())
            .map_or_else(|| "-".to_owned(), |hint| format!("…{hint}"));
        let created = if state == "declared" { "-".to_owned() } else { day(&key["created_at"]) };
        let expires = day(&key["expires_at"]);
        vec![cell("name"), cell("tenant"), hint, created, expires, state.to_owned(), summary(&key["terms"])]
    };
    let rows: Vec<Vec<String>> = keys.as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        return "there are no keys\n".to_owned();
    }
    table(&["NAME", "TENANT", "KEY", "CREATED", "EXPIRES", "STATE", "LIMITS"], &rows)
}

fn shown(key: &Value) -> String {
    let mut out = String::new();
    let state = if key["declared"] == true { "declared in the configuration".into() } else { text(key, "state") };
    for (label, value) in [
        ("name", text(key, "name")),
        ("id", text(key, "id")),
        ("tenant", text(key, "tenant")),
        ("ends in", text(key, "hint")),
        ("created", if key["created_at"] == 0 { "-".into() } else { moment(&key["created_at"]).into() }),
        ("expires", moment(&key["expires_at"]).into()),
        ("state", state),
        ("limits", summary(&key["terms"]).into()),
    ] {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{label:<9} {}", visible(&value));
    }
    out
}
