//! What hosted tools need: MCP servers as people run them, over HTTP and over their standard streams, and a search
//! service. All of them end with this value.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::super::install::{self, folder};
use super::search;
use crate::process::{self, Running};

pub(super) struct Hosted {
    _servers: Vec<Running>,
    tools: SocketAddr,
    mortal: SocketAddr,
    everything: SocketAddr,
    search: SocketAddr,
}

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

impl Hosted {
    pub(super) fn start() -> Result<Self> {
        let [tools, mortal, everything] =
            [process::free_address()?, process::free_address()?, process::free_address()?];
        let python = |address: SocketAddr| {
            let mut command = Command::new(install::python());
            command.arg(own_server()).args(["streamable-http", &address.port().to_string()]);
            command
        };
        let mut node = Command::new(install::node()?.node);
        node.arg(everything_server()).arg("streamableHttp").env("PORT", everything.port().to_string());
        let mut servers = Vec::new();
        for (name, mut command) in [("tools", python(tools)), ("mortal", python(mortal)), ("everything", node)] {
            servers.push(Running::start_logged(&mut command, &folder(&format!("mcp-{name}.log")))?);
        }
        for address in [tools, mortal, everything] {
            listening(address)?;
        }
        Ok(Self { _servers: servers, tools, mortal, everything, search: search::start()? })
    }

    pub(super) fn configuration(&self) -> Result<String> {
        let python = install::python().display().to_string();
        let node = install::node()?.node.display().to_string();
        let own = own_server().display().to_string();
        let everything = everything_server().display().to_string();
        let url = |label: &str, address: SocketAddr, more: &str| {
            format!("      {label}: {{url: 'http://{address}/mcp'{more}}}\n")
        };
        let stdio = |label: &str, command: &[&str], more: &str| {
            let command = command.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ");
            format!("      {label}: {{command: [{command}]{more}}}\n")
        };
        let servers = [
            url("tools", self.tools, ", client_headers: true"),
            url("mortal", self.mortal, ""),
            url("everything", self.everything, ""),
            // Nothing listens on that port.
            "      gone: {url: 'http://127.0.0.1:1/mcp'}\n".to_owned(),
            stdio("relaxed", &[&python, &own, "stdio", "--label", "relaxed"], ", require_approval: never"),
            stdio("strict", &[&python, &own, "stdio", "--label", "strict"], ", require_approval: always"),
            stdio("mortal_process", &[&python, &own, "stdio"], ""),
            stdio("many", &[&python, &own, "stdio", "--tools", "1000"], ""),
            stdio("everything_process", &[&node, &everything, "stdio"], ""),
            stdio("time", &[&python, "-m", "mcp_server_time", "--local-timezone", "UTC"], ""),
            stdio("fetch", &[&python, "-m", "mcp_server_fetch", "--ignore-robots-txt", "--allow-private-ips"], ""),
        ];
        let search = format!("  web_search: {{spec: searxng, endpoint: {{base_url: 'http://{}'}}}}\n", self.search);
        Ok(format!("tools:\n  mcp:\n    servers:\n{}{search}", servers.concat()))
    }

    /// Where clients that must name a URL find the servers.
    pub(super) fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("GODEX_MCP_URL", format!("http://{}/mcp", self.tools)),
            ("GODEX_MCP_EVERYTHING_URL", format!("http://{}/mcp", self.everything)),
            ("GODEX_PAGE_URL", format!("http://{}/page", self.search)),
        ]
    }
}

fn own_server() -> PathBuf {
    crate::root().join("tests/clients/servers/tools.py")
}

fn everything_server() -> PathBuf {
    folder("node").join("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

fn listening(address: SocketAddr) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    bail!("no MCP server listens at {address}: see {}", folder("mcp-*.log").display())
}
