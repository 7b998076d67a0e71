//! What a fresh start prints: where it listens, what it serves, and a request to paste.

use std::fmt::Write;
use std::net::SocketAddr;

use server::config::{Config, ProviderConfig};
use wire::visible::visible;

/// `wants_keys`: clients have to show one.
pub(crate) fn banner(config: &Config, address: SocketAddr, wants_keys: bool) -> String {
    let providers: Vec<String> = config.providers.iter().map(provider).collect();
    let mut out = format!("godex {}\n\n", env!("CARGO_PKG_VERSION"));
    let lines = [
        ("address:", format!("{}://{address}", config.server.scheme())),
        ("config:", config.origin.to_string()),
        ("providers:", providers.join(", ")),
        ("session:", config.session.backend.to_string()),
    ];
    for (label, value) in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{label:<11} {}", visible(&value));
    }
    let key = if wants_keys { "-H \"authorization: Bearer $GODEX_API_KEY\" \\\n    " } else { "" };
    let model = config.sample_model().unwrap_or_else(|| "MODEL".to_owned());
    let _ = writeln!(
        out,
        "\nTry it:\n  curl {}://{}/v1/responses -H 'content-type: application/json' \\\n    \
         {key}-d '{{\"model\": \"{model}\", \"input\": \"Hello\"}}'\n",
        config.server.scheme(),
        reachable(address),
        model = visible(&model),
    );
    out
}

fn provider(config: &ProviderConfig) -> String {
    match config.models.as_slice() {
        [] => config.name.clone(),
        [model] if *model == config.name => config.name.clone(),
        models => format!("{} ({})", config.name, models.join(", ")),
    }
}

/// "All addresses" is where one listens, not where one calls.
fn reachable(address: SocketAddr) -> String {
    if address.ip().is_unspecified() { format!("localhost:{}", address.port()) } else { address.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_where_to_call() {
        for (address, expected) in
            [("127.0.0.1:1", "127.0.0.1:1"), ("0.0.0.0:2", "localhost:2"), ("[::]:3", "localhost:3")]
        {
            assert_eq!(reachable(address.parse().unwrap()), expected);
        }
    }
}
