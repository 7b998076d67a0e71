//! `godex replay`: a request that was made is sent again, and what is different now is shown. Nothing of it is stored.

use std::fmt::Write;
use std::io::{BufRead, IsTerminal};

use anyhow::bail;
use clap::Args as ClapArgs;
use serde_json::{Value, json};
use server::admin::AdminClient;

use super::explain::turn::{captured, usage};
use crate::admin::{self, ask, pretty};
use crate::args::{Flags, some_id};
use crate::screen::{Screen, Tone, brief};
use crate::{diff, output};

#[derive(Debug, ClapArgs)]
pub(crate) struct ReplayArgs {
    /// A response, a request, or the number of a trace.
    #[arg(value_parser = some_id)]
    id: String,
    /// To this model instead.
    #[arg(long, short, value_name = "MODEL")]
    model: Option<String>,
    /// Whose response it is [default: whoever has it].
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Do not ask before sending.
    #[arg(long, short)]
    yes: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &Flags, args: &ReplayArgs) -> anyhow::Result<()> {
    if !agreed(args)? {
        return Ok(());
    }
    let body = json!({"id": args.id, "model": args.model, "tenant": args.tenant});
    let replayed = admin::with_running(flags, "send it with", async |client: &AdminClient| {
        ask(client, "POST", "/admin/replay", Some(&body)).await
    });
    let replayed = replayed?;
    output::print(&if args.json { pretty(&replayed) } else { shown(&replayed, args, Screen::of_stdout()) })
}

/// It costs what it costs: whoever can be asked is.
fn agreed(args: &ReplayArgs) -> anyhow::Result<bool> {
    if args.yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        bail!("there is no terminal to ask on: add --yes to send the request again");
    }
    output::tell("The provider is asked again, and counts it. Go on? [y/N] ");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn shown(replayed: &Value, args: &ReplayArgs, screen: Screen) -> String {
    let model = replayed["request"]["model"].as_str().unwrap_or_default();
    let head = format!("{}, sent again to {model}", args.id);
    let mut out = format!("{}\n", screen.paint(Tone::Strong, &brief(&head, screen.width)));
    // Writing to a String cannot fail.
    let _ = match replayed["source"].as_str() {
        Some("captured") => writeln!(out, "the request is as it was captured"),
        _ => writeln!(out, "{}: the request is made of the stored items", captured(&replayed["captured"])),
    };
    for side in ["before", "after"] {
        let answer = &replayed[side];
        let status =
            answer["response"]["status"].as_str().unwrap_or(if answer["error"].is_null() { "-" } else { "failed" });
        let used = usage(&answer["response"]["usage"]).unwrap_or_else(|| "usage is not known".to_owned());
        let cost = answer["cost_usd"].as_str().map(|cost| format!(", ${cost}")).unwrap_or_default();
        let _ = writeln!(out, "  {side:<7} {}: {used}{}", brief(status, 20), brief(&cost, 40));
    }
    let differences = replayed["differences"].as_array().map_or(&[][..], Vec::as_slice);
    if differences.is_empty() {
        out.push_str("\nnothing is different\n");
        return out;
    }
    for difference in differences {
        out.push('\n');
        one(difference, screen, &mut out);
    }
    out
}

fn one(difference: &Value, screen: Screen, out: &mut String) {
    let what = difference["what"].as_str().unwrap_or_default();
    let (before, after) = (lines(&difference["before"]), lines(&difference["after"]));
    let short = |text: &str| !text.contains('\n') && text.chars().count() <= 30;
    let title = screen.paint(Tone::Strong, what);
    // Writing to a String cannot fail.
    if short(&before) && short(&after) {
        let (before, after) = (brief(&before, 30), brief(&after, 30));
        let _ = writeln!(out, "{title}  {} → {}", screen.paint(Tone::Bad, &before), screen.paint(Tone::Good, &after));
        return;
    }
    let _ = writeln!(out, "{title}");
    let whole = |text: &str| format!("{text}\n");
    let unified = diff::unified(what, Some(&whole(&before)), Some(&whole(&after)));
    // The first two lines name files, of which there are none.
    for line in unified.lines().skip(2) {
        let tone = match line.chars().next() {
            Some('+') => Tone::Good,
            Some('-') => Tone::Bad,
            _ => Tone::Faint,
        };
        let _ = writeln!(out, "  {}", screen.paint(tone, &brief(line, screen.width.saturating_sub(2))));
    }
}

/// A value as lines.
fn lines(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(lines).collect::<Vec<_>>().join("\n"),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_shown_as_people_read_it() {
        let args = ReplayArgs { id: "resp_1".into(), model: None, tenant: None, yes: true, json: false };
        let response = json!({"status": "completed", "usage": {"input_tokens": 3, "output_tokens": 1}});
        let replayed = json!({"source": "stored", "request": {"model": "b"},
            "before": {"response": response, "error": null, "cost_usd": "0.01"},
            "after": {"response": null, "error": {"message": "No."}},
            "differences": [{"what": "status", "before": "completed", "after": "failed"},
                {"what": "text", "before": "one\ntwo\u{1b}", "after": "one\nthree"}]});
        let expected = "resp_1, sent again to b
no body was captured: the request is made of the stored items
  before  completed: 3 tokens in, 1 out, $0.01
  after   failed: usage is not known

status  completed → failed

text
  @@ -1,2 +1,2 @@
   one
  -two\\u{1b}
  +three
";
        assert_eq!(shown(&replayed, &args, Screen { width: 80, colours: false }), expected);
        let cut = json!({"source": "stored", "captured": {"bytes": 4, "of": 99}});
        let said = "only the beginning of the body was captured (4 of 99 bytes, trace.payload_max_bytes): the request";
        assert!(shown(&cut, &args, Screen { width: 80, colours: false }).contains(said));
        let same = json!({"differences": []});
        assert!(shown(&same, &args, Screen { width: 80, colours: false }).contains("nothing is different"));
    }
}
