//! The servers of the configuration, as the commands ask them.

use anyhow::Context;
use futures_util::future::join_all;
use server::config::{Config, McpServerConfig};
use server::mcp::{self, Called, Checked};
use tokio::runtime::Runtime;

/// What can be asked; tests have servers of their own.
pub(super) trait Servers {
    fn check(&self, server: &McpServerConfig) -> Result<Checked, String>;

    /// All at the same time: one that hangs delays nobody's answer.
    fn check_all(&self, servers: &[&McpServerConfig]) -> Vec<Result<Checked, String>>;

    fn call(&self, label: &str, tool: &str, arguments: &str) -> Result<Called, String>;
}

/// Those that are declared.
pub(super) struct Declared<'c> {
    config: &'c Config,
    runtime: Runtime,
}

impl<'c> Declared<'c> {
    pub(super) fn new(config: &'c Config) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self { config, runtime: runtime.context("cannot start the runtime")? })
    }
}

impl Servers for Declared<'_> {
    fn check(&self, server: &McpServerConfig) -> Result<Checked, String> {
        self.runtime.block_on(mcp::check(server))
    }

    fn check_all(&self, servers: &[&McpServerConfig]) -> Vec<Result<Checked, String>> {
        self.runtime.block_on(join_all(servers.iter().map(|server| mcp::check(server))))
    }

    fn call(&self, label: &str, tool: &str, arguments: &str) -> Result<Called, String> {
        self.runtime.block_on(mcp::call(self.config, label, tool, arguments))
    }
}
