//! `godex mcp`: the declared MCP servers, asked from here as a response would ask them: whether they can be reached, what
//! tools they have, and one call of a tool. No approval is asked for: who runs this is the operator.

mod servers;

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use server::config::{McpAddress, McpServerConfig};
use server::mcp::{Called, Checked, ListedTool};
use wire::visible::{visible, visible_lines};

use crate::args::{Flags, McpCommand};
use crate::output;
use crate::progress::Progress;
use servers::{Declared, Servers};

/// How many tools most providers take at once.
const MANY_TOOLS: usize = 128;

pub(crate) fn run(flags: &Flags, command: &McpCommand) -> anyhow::Result<ExitCode> {
    let config = flags.look()?;
    let declared = Declared::new(&config)?;
    let servers = &config.tools.mcp.servers;
    let progress = Progress::start("asking the MCP servers");
    let (text, good) = match command {
        McpCommand::List { server, json } => list(servers, &declared, server.as_deref(), *json)?,
        McpCommand::Check { json } => check(servers, &declared, *json),
        McpCommand::Call { server, tool, arguments, json } => {
            call(servers, &declared, (server, tool), arguments, *json)?
        }
    };
    drop(progress);
    output::print(&text)?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The servers with their tools; good, if all could be asked.
fn list(
    servers: &[McpServerConfig],
    all: &impl Servers,
    label: Option<&str>,
    json: bool,
) -> anyhow::Result<(String, bool)> {
    let wanted: Vec<&McpServerConfig> = match label {
        Some(label) => vec![server(servers, label)?],
        None => servers.iter().collect(),
    };
    let states = states(&wanted, all);
    let good = states.iter().all(|state| state.tools.is_ok());
    if json {
        return Ok((format!("{:#}\n", json!({"servers": states.iter().map(State::json).collect::<Vec<_>>()})), good));
    }
    let mut out = String::new();
    if states.is_empty() {
        out.push_str(NONE);
    }
    for (index, state) in states.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{gap}{}", state.line());
        for tool in state.tools.iter().flat_map(|tools| &tools.tools) {
            let _ = writeln!(out, "  {}", tool_line(tool));
        }
    }
    Ok((out, good))
}

const NONE: &str = "no MCP servers are declared: tools.mcp.servers in godex.yaml\n";

/// One line for each server, and one for each of its problems; good, if there are none.
fn check(servers: &[McpServerConfig], all: &impl Servers, json: bool) -> (String, bool) {
    let wanted: Vec<&McpServerConfig> = servers.iter().collect();
    let states = states(&wanted, all);
    let good = states.iter().all(|state| state.problems().is_empty());
    if json {
        let states: Vec<Value> = states.iter().map(State::summary).collect();
        return (format!("{:#}\n", json!({"ok": good, "servers": states})), good);
    }
    let mut out = if states.is_empty() { NONE.to_owned() } else { String::new() };
    for state in &states {
        let _ = writeln!(out, "{}", state.line());
        // The first line has said it of a server that cannot be asked.
        for problem in state.problems().iter().filter(|_| state.tools.is_ok()) {
            let _ = writeln!(out, "  {}", visible(problem));
        }
        for advice in state.advice() {
            let _ = writeln!(out, "  {}", visible(&advice));
        }
    }
    (out, good)
}

/// What a tool answers; good, if it does not fail.
fn call(
    servers: &[McpServerConfig],
    all: &impl Servers,
    (label, tool): (&str, &str),
    arguments: &str,
    json: bool,
) -> anyhow::Result<(String, bool)> {
    let server = server(servers, label)?;
    let parsed: Value = serde_json::from_str(arguments).context("the arguments are not JSON")?;
    ensure!(parsed.is_object(), "the arguments must be a JSON object, such as '{{\"city\": \"Paris\"}}'");
    if let Some(allowed) = server.allowed_tools.as_ref().filter(|allowed| !allowed.iter().any(|name| name == tool)) {
        bail!("`{tool}` is not among the allowed_tools of `{label}`: {}", allowed.join(", "));
    }
    let tools = all.check(server).map_err(|why| anyhow::anyhow!("`{label}` cannot be asked: {why}"))?;
    let names: Vec<&str> = tools.tools.iter().map(|tool| tool.name.as_str()).collect();
    ensure!(names.contains(&tool), "`{label}` has no tool `{tool}`{}", instead(tool, &names));
    let called = all.call(label, tool, arguments).map_err(|why| anyhow::anyhow!("{label}: {why}"))?;
    let Called { failed, text, images } = &called;
    if json {
        return Ok((format!("{:#}\n", json!({"is_error": failed, "text": text, "images": images})), !failed));
    }
    if *failed {
        bail!("{tool} failed: {text}");
    }
    Ok((format!("{}\n", visible_lines(text)), true))
}

/// The declared server of this label.
fn server<'s>(servers: &'s [McpServerConfig], label: &str) -> anyhow::Result<&'s McpServerConfig> {
    let labels: Vec<&str> = servers.iter().map(|server| server.label.as_str()).collect();
    let found = servers.iter().find(|server| server.label == label);
    found.with_context(|| match labels.as_slice() {
        [] => format!("there is no MCP server `{label}`: none are declared (tools.mcp.servers in godex.yaml)"),
        labels => format!("there is no MCP server `{label}`{}", instead(label, labels)),
    })
}

/// What was probably meant, and what there is.
fn instead(word: &str, names: &[&str]) -> String {
    let all = names.join(", ");
    match providers::yaml::nearest(word, names) {
        Some(name) => format!("; did you mean `{name}`? There are: {all}"),
        None if names.is_empty() => "; there are none".to_owned(),
        None => format!("; there are: {all}"),
    }
}

/// A server, and what came of asking it.
struct State<'s> {
    server: &'s McpServerConfig,
    tools: Result<Checked, String>,
}

fn states<'s>(wanted: &[&'s McpServerConfig], all: &impl Servers) -> Vec<State<'s>> {
    wanted.iter().zip(all.check_all(wanted)).map(|(server, tools)| State { server, tools }).collect()
}

impl State<'_> {
    fn line(&self) -> String {
        let what = match &self.tools {
            Ok(found) => {
                let name = found.server.as_ref().map(|name| format!("{}, ", name.trim())).unwrap_or_default();
                let count = found.tools.len();
                let plural = if count == 1 { "" } else { "s" };
                format!("{name}protocol {}, {count} tool{plural}, {} ms", found.version, found.took.as_millis())
            }
            Err(why) if self.server.optional => format!("cannot be asked, and is optional: {why}"),
            Err(why) => format!("cannot be asked: {why}"),
        };
        format!("{} ({}): {}", self.server.label, place(self.server), visible(&what))
    }

    /// What does not work.
    fn problems(&self) -> Vec<String> {
        let tools = match &self.tools {
            Ok(tools) => tools,
            Err(why) => return vec![why.clone()],
        };
        let names: Vec<&str> = tools.tools.iter().map(|tool| tool.name.as_str()).collect();
        let allowed = self.server.allowed_tools.iter().flatten();
        let missing = allowed.filter(|name| !names.contains(&name.as_str()));
        missing.map(|name| format!("allowed_tools: there is no tool `{name}`{}", instead(name, &names))).collect()
    }

    /// What works and may be a nuisance.
    fn advice(&self) -> Vec<String> {
        let offered = self.tools.iter().flat_map(|tools| &tools.tools).filter(|tool| tool.allowed).count();
        let many = format!("{offered} tools are more than many providers take: name some in allowed_tools");
        (offered > MANY_TOOLS).then_some(many).into_iter().collect()
    }

    fn summary(&self) -> Value {
        let tools = self.tools.as_ref().ok();
        json!({
            "label": self.server.label,
            "at": place(self.server),
            "server": tools.and_then(|tools| tools.server.as_ref()),
            "protocol": tools.map(|tools| &tools.version),
            "tools": tools.map(|tools| tools.tools.len()),
            "optional": self.server.optional,
            "problems": self.problems(),
        })
    }

    fn json(&self) -> Value {
        let tool = |tool: &ListedTool| {
            // Schemas come as the server sent them.
            let schema: Value = serde_json::from_str(&tool.input_schema).unwrap_or_default();
            json!({"name": tool.name, "description": tool.description, "read_only": tool.read_only,
                "allowed": tool.allowed, "input_schema": schema})
        };
        let tools = self.tools.as_ref().ok();
        json!({
            "label": self.server.label,
            "at": place(self.server),
            "server": tools.and_then(|tools| tools.server.as_ref()),
            "protocol": tools.map(|tools| &tools.version),
            "tools": tools.map(|tools| tools.tools.iter().map(tool).collect::<Vec<_>>()),
            "error": self.tools.as_ref().err(),
        })
    }
}

fn tool_line(tool: &ListedTool) -> String {
    let first = tool.description.as_deref().unwrap_or_default().trim().lines().next().unwrap_or_default();
    let marks = [(tool.read_only, "read-only"), (!tool.allowed, "not allowed")];
    let marks: Vec<&str> = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
    let says = if first.is_empty() { String::new() } else { format!(": {first}") };
    visible(&format!("{}{marks}{says}", tool.name)).into_owned()
}

/// Where it is, without what may be secret in it.
fn place(server: &McpServerConfig) -> String {
    match &server.at {
        McpAddress::Url { .. } => format!("{:?}", server.at),
        McpAddress::Command { command, .. } => format!("command {}", command.first().map_or("", String::as_str)),
    }
}

#[cfg(test)]
#[path = "mcp/tests.rs"]
mod tests;
