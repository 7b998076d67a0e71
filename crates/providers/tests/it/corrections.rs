//! Facts about providers that were wrong once, and that no golden shows: addresses, names of keys, windows, trials.

use bridge::BlockCache;
use providers::Wire;

use crate::specs::provider;

#[test]
fn windows_are_as_they_are_listed() {
    for (spec, model, window, input) in [
        ("openai", "gpt-5.4", 1_050_000, 922_000),
        ("openai", "gpt-5.5-2026-04-23", 1_050_000, 922_000),
        ("openai", "gpt-6-astra", 1_050_000, 922_000),
        ("openai", "gpt-5.4-mini", 400_000, 272_000),
        ("openai", "gpt-5.2", 400_000, 272_000),
        ("azure", "gpt-5.6-luna", 1_050_000, 922_000),
        ("azure", "gpt-5.4-nano", 400_000, 272_000),
    ] {
        let spec = provider(spec).for_model(model);
        assert_eq!((spec.context_window, spec.catalog.max_input), (Some(window), Some(input)), "{model}");
    }
}

#[test]
fn models_that_refuse_functions_in_chat_are_asked_otherwise() {
    for (spec, model, wire) in [
        ("openai", "gpt-5.4", Wire::Responses),
        ("openai", "gpt-5.4-mini", Wire::Responses),
        ("openai", "gpt-5.6-sol", Wire::Responses),
        ("openai", "gpt-6-sol", Wire::Responses),
        ("openai", "gpt-5.2", Wire::Chat),
        ("azure", "gpt-6-astra", Wire::Responses),
        ("azure", "gpt-5.1", Wire::Chat),
        ("azure", "my-deployment", Wire::Chat),
        ("opencode", "gpt-5.6-luna", Wire::Responses),
    ] {
        assert_eq!(provider(spec).for_model(model).wire, wire, "{spec} {model}");
    }
}

#[test]
fn regions_have_names() {
    for (spec, name, address) in [
        ("minimax", "intl", "https://api.minimax.io/v1"),
        ("qwen", "intl", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
        ("zhipu", "general", "https://open.bigmodel.cn/api/paas/v4"),
        ("zhipu", "zai", "https://api.z.ai/api/paas/v4"),
        ("bedrock", "mantle", "https://bedrock-mantle.{region}.api.aws/v1"),
        ("zhipu-messages", "intl", "https://api.z.ai/api/anthropic"),
        ("minimax-messages", "cn", "https://api.minimaxi.com/anthropic"),
        ("moonshot-messages", "coding", "https://api.kimi.com/coding"),
    ] {
        let provider = provider(spec);
        let found = provider.endpoints.iter().find(|(known, _)| known == name).map(|(_, url)| url.as_str());
        assert_eq!(found, Some(address), "{spec}");
    }
}

#[test]
fn keys_have_the_names_that_others_use() {
    for (spec, names) in [
        ("xiaomi", vec!["MIMO_API_KEY", "XIAOMI_API_KEY"]),
        ("kimi-code", vec!["KIMI_API_KEY"]),
        ("bedrock", vec!["AWS_BEARER_TOKEN_BEDROCK"]),
        ("opencode", vec!["OPENCODE_API_KEY"]),
        ("huggingface", vec!["HF_TOKEN", "HUGGINGFACE_API_KEY"]),
    ] {
        assert_eq!(provider(spec).key_env, names, "{spec}");
    }
    // What opens other things, too, is used where somebody has named it.
    for spec in ["github-models", "huggingface", "cloudflare", "databricks"] {
        assert!(!provider(spec).automatic, "{spec}");
    }
}

/// A trial of one host is refused by another, with every request.
#[test]
fn trials_and_marks_go_to_who_knows_them() {
    let models =
        ["claude-opus-5-5", "claude-haiku-4-5", "claude-sonnet-5-5", "claude-opus-5", "kimi-k3", "glm-5.2", "m"];
    let mut others = 0;
    for name in providers::Library::BUILTIN.names().filter(|name| provider(name).wire == Wire::Messages) {
        for model in models {
            let blocks = provider(name).for_model(model).dialect.request.blocks;
            let betas: Vec<&str> = blocks.all_betas().collect();
            assert!(name == "anthropic" || betas.is_empty(), "{name} {model}: {betas:?}");
            let is_claude = name.ends_with("anthropic");
            assert_eq!(blocks.cache == BlockCache::Marks, is_claude, "{name} {model}");
            assert!(is_claude || !blocks.eager_input, "{name} {model}");
        }
        others += usize::from(name != "anthropic");
    }
    assert!(others >= 7, "{others}");
    let betas = |model| provider("anthropic").for_model(model).dialect.request.blocks.all_betas().count();
    assert_eq!((betas("claude-opus-5-5"), betas("claude-haiku-4-5"), betas("claude-opus-5")), (1, 1, 0));
}
