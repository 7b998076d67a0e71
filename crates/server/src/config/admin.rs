//! `admin`: where the operator's own listener is, apart from the one for clients.

use std::fmt;
use std::path::PathBuf;

use providers::yaml::Field;

use super::key::Keys;
use super::{Secret, Sources, address, locate, print, table};

/// Shorter ones could be guessed.
const SHORTEST_TOKEN: usize = 16;
const DEFAULT: &str = "~/.godex/admin.sock";

/// Where keys, tenants and the server itself are managed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdminConfig {
    pub listen: AdminListen,
    /// What has to be shown there; always set with [`AdminListen::Tcp`].
    pub token: Option<Secret>,
}

/// Where it listens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AdminListen {
    #[default]
    Off,
    /// A socket in the file system, for whoever may open it: the user that godex runs as.
    Unix(PathBuf),
    /// `host:port`.
    Tcp(String),
}

impl fmt::Display for AdminListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => f.write_str(address),
        }
    }
}

pub(super) fn read(keys: &mut Keys<'_>, sources: &Sources<'_>) -> AdminConfig {
    let token = keys.field(&table::ADMIN_TOKEN).and_then(|field| token(&field));
    let given = keys.field(&table::ADMIN_LISTEN);
    let listen = match &given {
        Some(field) => listen(field, sources).unwrap_or_default(),
        // Without a home there is no place that is the user's alone.
        None if cfg!(unix) && sources.home.is_some() => AdminListen::Unix(locate::expand(DEFAULT, sources)),
        None => AdminListen::Off,
    };
    if let (Some(field), AdminListen::Tcp(_), None) = (&given, &listen, keys.field(&table::ADMIN_TOKEN)) {
        let help = "such as `token: ${GODEX_ADMIN_TOKEN}`, or listen on `unix:PATH`";
        field.problem("a port needs `admin.token`: whoever reaches it could make keys", Some(help.to_owned()));
    }
    AdminConfig { listen, token }
}

/// As a comment where it cannot be read again: a port without its token, which is not printed.
pub(super) fn print(listen: &AdminListen) -> String {
    match listen {
        AdminListen::Off => "off".to_owned(),
        AdminListen::Unix(_) => print::quote(&listen.to_string()),
        AdminListen::Tcp(address) => format!("# {address}"),
    }
}

fn token(field: &Field<'_>) -> Option<Secret> {
    let token = field.text()?;
    if token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let help = "`openssl rand -hex 32` makes one";
        field.problem("expected at least 16 visible ASCII characters", Some(help.to_owned()));
        return None;
    }
    Some(Secret::new(token))
}

fn listen(field: &Field<'_>, sources: &Sources<'_>) -> Option<AdminListen> {
    let text = field.text()?;
    if text == "off" {
        return Some(AdminListen::Off);
    }
    if let Some(path) = text.strip_prefix("unix:") {
        if path.is_empty() {
            return field.expected("a path after `unix:`");
        }
        if !cfg!(unix) {
            field.problem("there are no such sockets on this system", Some("listen on `127.0.0.1:5679`".to_owned()));
        }
        return Some(AdminListen::Unix(locate::expand(path, sources)));
    }
    let host_and_port = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    match host_and_port {
        Some((host, port)) if !host.is_empty() => {
            Some(AdminListen::Tcp(address::authority(address::unbracket(host), port)))
        }
        _ => field.expected("`unix:PATH`, `HOST:PORT` or `off`"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Config, Overrides, load};
    use super::*;

    fn config(text: &str, home: Option<&str>) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("godex.yaml");
        std::fs::write(&path, text).unwrap();
        let env = |name: &str| (name == "TOKEN").then(|| "a-token-of-the-admin".to_owned());
        let overrides = Overrides::default();
        let (cwd, home) = (Path::new("/cwd"), home.map(Path::new));
        let sources = Sources { config_path: Some(&path), cwd, home, env: &env, overrides };
        load(&sources).map_err(|problems| problems.to_string())
    }

    #[cfg(unix)]
    #[test]
    fn it_listens_where_it_is_told_and_else_at_home() {
        for (text, home, listen) in [
            ("", Some("/home/u"), "unix:/home/u/.godex/admin.sock"),
            ("", None, "off"),
            ("admin: {listen: off}", Some("/home/u"), "off"),
            ("admin: {listen: 'unix:~/a.sock'}", Some("/home/u"), "unix:/home/u/a.sock"),
            ("admin: {listen: 'unix:run/a.sock'}", None, "unix:/cwd/run/a.sock"),
            ("admin: {listen: '127.0.0.1:5679', token: '${TOKEN}'}", None, "127.0.0.1:5679"),
            ("admin: {listen: '0.0.0.0:5679', token: '${TOKEN}'}", None, "0.0.0.0:5679"),
            ("admin: {listen: '[::1]:5679', token: '${TOKEN}'}", None, "[::1]:5679"),
        ] {
            let config = config(text, home).unwrap();
            assert_eq!(config.admin.listen.to_string(), listen, "{text}");
            let shown = format!("{}{config:?}", config.print());
            assert!(!shown.contains("a-token-of"), "{shown}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (admin, expected) in [
            ("listen: '127.0.0.1:5679'", "admin.listen: a port needs `admin.token`"),
            ("listen: '5679'", "admin.listen: expected `unix:PATH`, `HOST:PORT` or `off`"),
            ("listen: ':5679'", "admin.listen: expected `unix:PATH`"),
            ("listen: '127.0.0.1:99999', token: '${TOKEN}'", "admin.listen: expected `unix:PATH`"),
            ("listen: 'unix:'", "admin.listen: expected a path after `unix:`"),
            ("listen: off, token: short", "admin.token: expected at least 16"),
            ("listen: off, token: 'sixteen and blanks'", "admin.token: expected at least 16 visible"),
        ] {
            let problem = config(&format!("admin: {{{admin}}}"), None).unwrap_err();
            assert!(problem.contains(expected) && problem.lines().count() == 1, "{admin}: {problem}");
            assert!(!problem.contains("short") && !problem.contains("blanks"), "{problem}");
        }
    }
}
