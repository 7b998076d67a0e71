//! Where providers are and who pays: named addresses, placeholders, several variables, commands.

use std::path::{Path, PathBuf};

use super::super::{KeyFrom, Overrides, Secret};
use super::*;

type Variables<'a> = &'a [(&'a str, &'a str)];

fn load(text: &str, env: Variables<'_>, origin: Origin) -> Result<Config, Problems> {
    let document = Document::parse("godex.yaml", text)?;
    let env = |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let sources =
        Sources { config_path: None, cwd: Path::new("/w"), home: None, env: &env, overrides: Overrides::default() };
    read(&document, &sources, origin)
}

fn of_file(text: &str, env: Variables<'_>) -> Result<Config, Problems> {
    load(text, env, Origin::File(PathBuf::from("/w/godex.yaml")))
}

fn of_environment(env: Variables<'_>) -> Config {
    load("", env, Origin::Defaults).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn an_address_is_named_or_filled() {
    let env = [("DASHSCOPE_API_KEY", "k"), ("AWS_BEARER_TOKEN_BEDROCK", "k"), ("AWS_DEFAULT_REGION", "us-west-2")];
    for (entry, url) in [
        ("qwen: {}", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
        ("qwen: {endpoint: {name: intl}}", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
        ("qwen-intl: {}", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
        ("mine: {spec: {extends: qwen, endpoint: {name: us}}}", "https://dashscope-us.aliyuncs.com/compatible-mode/v1"),
        ("bedrock: {}", "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1"),
        (
            "bedrock: {endpoint: {params: {region: eu-west-1}}}",
            "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1",
        ),
        ("bedrock: {endpoint: {name: mantle}}", "https://bedrock-mantle.us-west-2.api.aws/v1"),
    ] {
        let config = of_file(&format!("providers:\n  {entry}"), &env).unwrap_or_else(|problems| panic!("{problems}"));
        let provider = &config.providers[0];
        assert_eq!(provider.base_url, url, "{entry}");
        assert_eq!(provider.api_keys.first().map(Secret::expose), Some("k"), "{entry}: the address is the spec's own");
    }
}

#[test]
fn what_is_missing_or_wrong_has_its_line() {
    let key = [("AWS_BEARER_TOKEN_BEDROCK", "k"), ("DASHSCOPE_API_KEY", "k"), ("EVIL", "a/b")];
    for (entry, expected) in [
        (
            "bedrock: {}",
            "godex.yaml:2:3: providers.bedrock: endpoint.params.region is missing; set `endpoint.params: {region: …}`, or the \
             environment variable AWS_REGION or AWS_DEFAULT_REGION",
        ),
        (
            "qwen: {endpoint: {name: itnl}}",
            "godex.yaml:2:27: providers.qwen.endpoint.name: there is no address `itnl`; did you mean `intl`? known: cn, intl, us",
        ),
        (
            "qwen: {endpoint: {name: intl, base_url: 'https://x.example'}, credentials: {api_key: k}}",
            "godex.yaml:2:27: providers.qwen.endpoint.name: an address has a name or is given, not both",
        ),
        (
            "bedrock: {endpoint: {params: {region: '${EVIL}'}}}",
            "providers.bedrock.endpoint.params.region: this cannot be part of an address",
        ),
        (
            "zai: {}",
            "providers.zai: credentials.api_key is missing; set it here, or set the environment variable ZAI_API_KEY",
        ),
    ] {
        let problems = of_file(&format!("providers:\n  {entry}"), &key).unwrap_err().to_string();
        assert!(problems.contains(expected), "{entry}: {problems}");
    }
}

/// A key in the environment is enough, unless it opens other things, too; and it is one provider's.
#[test]
fn keys_in_the_environment_become_providers() {
    for (env, expected) in [
        (&[("XIAOMI_API_KEY", "k")][..], "xiaomi demo"),
        (&[("MIMO_API_KEY", " "), ("XIAOMI_API_KEY", "k")], "xiaomi demo"),
        (&[("ZHIPU_API_KEY", "k")], "zhipu demo"),
        (&[("ZAI_API_KEY", "k")], "zai demo"),
        (&[("ZAI_API_KEY", "k"), ("ZHIPU_API_KEY", "l")], "zhipu zai demo"),
        (&[("ZAI_CODING_API_KEY", "k"), ("ZAI_API_KEY", "l")], "zai zai-coding demo"),
        (&[("DASHSCOPE_API_KEY", "k"), ("DASHSCOPE_WORKSPACE_ID", "w")], "qwen demo"),
        (&[("OPENCODE_API_KEY", "k")], "opencode demo"),
        (
            &[("GITHUB_TOKEN", "k"), ("HF_TOKEN", "k"), ("CLOUDFLARE_API_TOKEN", "k"), ("CLOUDFLARE_ACCOUNT_ID", "a")],
            "demo",
        ),
        (&[("AWS_BEARER_TOKEN_BEDROCK", "k"), ("AWS_REGION", "eu-west-1")], "bedrock demo"),
        (&[("GOOGLE_CLOUD_PROJECT", "p")], "demo"),
    ] {
        let config = of_environment(env);
        let names: Vec<&str> = config.providers.iter().map(|provider| provider.name.as_str()).collect();
        assert_eq!(names.join(" "), expected, "{env:?}");
        assert_eq!(config.left_out, Vec::<String>::new(), "{env:?}");
    }
    let config = of_environment(&[("XIAOMI_API_KEY", "k")]);
    assert_eq!(config.providers[0].key_from, KeyFrom::Variable("XIAOMI_API_KEY".to_owned()));
    let config = of_environment(&[("AWS_BEARER_TOKEN_BEDROCK", "k")]);
    assert_eq!(config.default_provider, "demo");
    assert_eq!(
        config.left_out,
        [
            "bedrock is left out: AWS_BEARER_TOKEN_BEDROCK is set, but its region is not known; set AWS_REGION or AWS_DEFAULT_REGION"
        ]
    );
}

#[test]
fn a_command_takes_the_place_of_a_key() {
    let project = [("GOOGLE_CLOUD_PROJECT", "p-1")];
    let config = of_file("providers:\n  vertex: {}", &project).unwrap_or_else(|problems| panic!("{problems}"));
    let provider = &config.providers[0];
    assert_eq!(
        provider.base_url,
        "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/endpoints/openapi"
    );
    assert_eq!((&provider.key_from, provider.api_keys.len()), (&KeyFrom::Command("gcloud".to_owned()), 0));
    // What is printed loads again, and its tokens still go where they are meant to.
    let again = of_file(&config.print(), &project).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!((&again.providers[0].base_url, &again.providers[0].key_from), (&provider.base_url, &provider.key_from));
    let keyed = of_file("providers:\n  vertex: {credentials: {api_key: k}}", &project).unwrap();
    assert!(matches!(keyed.providers[0].key_from, KeyFrom::File(_)));
    // The token is for the spec's own address.
    let elsewhere = "providers:\n  vertex: {endpoint: {base_url: 'https://other.example/v1'}}";
    let problems = of_file(elsewhere, &project).unwrap_err().to_string();
    assert!(problems.contains("credentials.api_key is missing"), "{problems}");
}

/// Named addresses of another region are not paid for with the first one's prices.
#[test]
fn prices_are_for_the_address_that_they_are_said_with() {
    let env = [("MINIMAX_API_KEY", "k")];
    for (entry, is_known) in [("minimax: {}", true), ("minimax: {endpoint: {name: intl}}", false)] {
        let config = of_file(&format!("providers:\n  {entry}"), &env).unwrap();
        assert_eq!(config.providers[0].provider.price("MiniMax-M3").is_some(), is_known, "{entry}");
    }
}
