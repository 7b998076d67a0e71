//! `godex env`: where OpenAI's clients find us, as lines that a shell reads.

use anyhow::ensure;

use crate::args::{Flags, ShellKind, variable};
use crate::commands::codex::{client_key, gateway};
use crate::output;

pub(crate) fn run(flags: &Flags, shell: Option<ShellKind>) -> anyhow::Result<()> {
    let config = flags.look()?;
    ensure!(config.server.port != 0, "port 0 is any that is free, so nobody knows where it will be: name a port");
    let shell = shell.unwrap_or_else(|| usual(variable("SHELL").as_deref()));
    let url = format!("{}/v1", gateway::url(&config));
    output::print(&lines(shell, &[("OPENAI_BASE_URL", &url), ("OPENAI_API_KEY", client_key().expose())]))
}

fn usual(shell: Option<&str>) -> ShellKind {
    match shell.and_then(|path| path.rsplit('/').next()) {
        Some("fish") => ShellKind::Fish,
        None if cfg!(windows) => ShellKind::Powershell,
        _ => ShellKind::Sh,
    }
}

fn lines(shell: ShellKind, variables: &[(&str, &str)]) -> String {
    let line = |(name, value): &(&str, &str)| match shell {
        ShellKind::Sh => format!("export {name}='{}'\n", value.replace('\'', r"'\''")),
        ShellKind::Fish => format!("set -gx {name} '{}'\n", value.replace('\\', r"\\").replace('\'', r"\'")),
        ShellKind::Powershell => format!("$env:{name} = '{}'\n", value.replace('\'', "''")),
    };
    variables.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_as_each_shell_wants_them() {
        let odd = [("A", "it's \\ $HOME `x`")];
        for (shell, expected) in [
            (ShellKind::Sh, "export A='it'\\''s \\ $HOME `x`'\n"),
            (ShellKind::Fish, "set -gx A 'it\\'s \\\\ $HOME `x`'\n"),
            (ShellKind::Powershell, "$env:A = 'it''s \\ $HOME `x`'\n"),
        ] {
            assert_eq!(lines(shell, &odd), expected);
        }
    }

    #[test]
    fn the_users_shell_is_known_by_its_program() {
        for (shell, expected) in [
            (Some("/usr/bin/fish"), ShellKind::Fish),
            (Some("/bin/zsh"), ShellKind::Sh),
            (Some("fish"), ShellKind::Fish),
        ] {
            assert_eq!(usual(shell), expected, "{shell:?}");
        }
    }
}
