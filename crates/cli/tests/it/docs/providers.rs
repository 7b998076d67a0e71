//! `docs/providers.md`: what each built-in spec comes to, and what of it nobody has tried.

use providers::{Auth, Library, Provider, resolve_named};

use super::{check, code, root, table};

fn provider(name: &str) -> Provider {
    resolve_named(Library::BUILTIN, name, &|_| None).unwrap()
}

fn list(texts: impl IntoIterator<Item = String>) -> String {
    texts.into_iter().collect::<Vec<_>>().join(", ")
}

fn keys(of: &Provider) -> String {
    match (&of.token, of.key_env.is_empty()) {
        (Some(token), true) => format!("what {} prints", code(token.program())),
        (Some(token), false) => {
            let names = list(of.key_env.iter().map(|name| code(name)));
            format!("{names}, else what {} prints", code(token.program()))
        }
        (None, false) => list(of.key_env.iter().map(|name| code(name))),
        (None, true) if of.auth == Auth::None => "none".to_owned(),
        (None, true) => "none of its own".to_owned(),
    }
}

/// All addresses, the usual one first, each with its name if it has one.
fn addresses(of: &Provider) -> Vec<String> {
    let own = of.base_url.iter().filter(|_| of.endpoint_name.is_none()).map(|url| code(url));
    let usual = |name: &String| of.endpoint_name.as_ref() == Some(name);
    let mut named: Vec<&(String, String)> = of.endpoints.iter().collect();
    named.sort_by_key(|(name, _)| !usual(name));
    let named = named.into_iter().filter(|(_, url)| of.endpoint_name.is_some() || of.base_url.as_ref() != Some(url));
    own.chain(named.map(|(name, url)| format!("{} ({})", code(url), code(name)))).collect()
}

/// Which API is spoken, and with which models another one.
fn wires(of: &Provider) -> String {
    let others = of.other_wires();
    let other = |(wire, models): &(providers::Wire, Vec<&str>)| {
        format!("; {} for {}", code(wire.name()), list(models.iter().map(|model| code(model))))
    };
    format!("{}{}", code(of.wire.name()), others.iter().map(other).collect::<String>())
}

fn short_address(of: &Provider) -> String {
    of.base_url.as_deref().map_or_else(|| "yours".to_owned(), code)
}

/// What comments of the spec call unverified, with what they stand beside.
fn unverified(text: &str) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((before, comment)) = line.split_once('#').filter(|(_, comment)| comment.contains("unverified")) else {
            continue;
        };
        let mut comment = comment.trim().to_owned();
        // A comment of several lines is one.
        while before.trim().is_empty() && lines.peek().is_some_and(|next| next.trim_start().starts_with('#')) {
            let next = lines.next().unwrap_or_default();
            comment = format!("{comment} {}", next.trim_start().trim_start_matches('#').trim());
        }
        // What comes before the word is not in doubt, unless nothing comes after it.
        let (known, doubt) = comment.split_once("unverified").unwrap_or_default();
        let doubt = doubt.trim_start_matches(':').trim();
        let doubt = if doubt.trim_matches('.').is_empty() { known.trim() } else { doubt };
        let before = before.trim().trim_start_matches("- ").trim();
        let parts = [code(before), doubt.trim_end_matches('.').to_owned()];
        let parts = parts.into_iter().filter(|part| !part.is_empty() && part != "``");
        said.push(parts.collect::<Vec<_>>().join(": "));
    }
    said
}

fn page(name: &str) -> String {
    let of = provider(name);
    let text = std::fs::read_to_string(root().join(format!("specs/{name}.yaml"))).unwrap();
    let addresses = match addresses(&of).as_slice() {
        [] => "Address: yours".to_owned(),
        [one] => format!("Address: {one}"),
        several => format!("Addresses: {}", several.join(", ")),
    };
    let mut lines = vec![format!("Wire: {}. {addresses}", wires(&of))];
    let mut say = |label: &str, said: Vec<String>| {
        lines.extend((!said.is_empty()).then(|| format!("{label}: {}", said.join("; "))));
    };
    let params = of
        .params_env
        .iter()
        .map(|(param, variables)| format!("`{{{param}}}` from {}", list(variables.iter().map(|name| code(name)))));
    say("Filled in", params.collect());
    let not_alone = if of.automatic { "" } else { "; used only where it is configured" };
    say("Key", vec![format!("{}{not_alone}", keys(&of))]);
    match of.extends().filter(|parent| *parent != "openai-compatible") {
        Some(parent) if of.speaks_like(&provider(parent)) => say("Speaks as", vec![format!("[{parent}](#{parent})")]),
        parent => {
            say("Extends", parent.map(|parent| format!("[{parent}](#{parent})")).into_iter().collect());
            say("Native", of.native());
            say("Degraded", of.degraded());
        }
    }
    for doubt in unverified(&text) {
        say("Unverified", vec![doubt]);
    }
    let lines = lines.iter().map(|line| format!("- {line}.\n")).collect::<Vec<_>>().concat();
    format!("### {name}\n\n{lines}\n")
}

#[test]
fn providers_are_documented() {
    let names: Vec<&str> = Library::BUILTIN.names().filter(|name| *name != "demo").collect();
    assert!(names.len() >= 45, "{}", names.len());
    let rows = names.iter().map(|name| {
        let of = provider(name);
        [format!("[{name}](#{name})"), code(of.wire.name()), keys(&of), short_address(&of)]
    });
    let overview = table(["spec", "wire", "key", "address"], rows.collect::<Vec<_>>());
    let pages: String = names.iter().map(|name| page(name)).collect();
    check("docs/providers.md", &[("overview", overview), ("providers", pages)]);
}

#[test]
fn what_is_unverified_is_found_with_what_it_is_about() {
    let text = "# Source: x. unverified: all\n# of it.\nkey: 1 # unverified\n- match: a # plain\nlimit: 2 # unverified: a guess\n\
                # Both. unverified\n";
    assert_eq!(unverified(text), ["all of it", "`key: 1`", "`limit: 2`: a guess", "Both"]);
}
