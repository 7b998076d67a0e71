//! The specs that are part of the binary: `specs/*.yaml` at the root of the workspace.

/// Specs by name, each as YAML text.
#[derive(Debug, Clone, Copy)]
pub struct Library<'a>(pub(crate) &'a [(&'a str, &'a str)]);

macro_rules! embed {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../specs/", $name, ".yaml")))),+]
    };
}

/// Every spec; those with a key first, in the order in which a start without a configuration prefers them. Of those that
/// share a key the first has it.
const SPECS: &[(&str, &str)] = embed![
    "deepseek",
    "openai",
    "zhipu",
    "minimax",
    "xiaomi",
    "moonshot",
    "qwen",
    "openrouter",
    "groq",
    "mistral",
    "xai",
    "gemini",
    "together",
    "fireworks",
    "cerebras",
    "azure",
    "anthropic",
    "deepseek-messages",
    "moonshot-messages",
    "zhipu-messages",
    "minimax-messages",
    "zai",
    "zai-coding",
    "kimi-code",
    "moonshot-cn",
    "minimax-intl",
    "qwen-intl",
    "qwen-workspace",
    "qwen-coding",
    "qwen-token",
    "xiaomi-plan",
    "bedrock",
    "vertex",
    "opencode",
    "opencode-go",
    "nvidia",
    "volcengine",
    "volcengine-coding",
    "volcengine-plan",
    "tencent",
    "baseten",
    "siliconflow",
    "siliconflow-cn",
    "sambanova",
    "novita",
    "vercel",
    "ollama-cloud",
    "deepinfra",
    "nebius",
    "stepfun",
    "stepfun-intl",
    "hyperbolic",
    "qianfan",
    "inception",
    "friendli",
    "cohere",
    "perplexity",
    "huggingface",
    "github-models",
    "cloudflare",
    "databricks",
    "bedrock-responses",
    "bedrock-anthropic",
    "vertex-anthropic",
    "anthropic-chat",
    "ollama",
    "vllm",
    "sglang",
    "llamacpp",
    "lmstudio",
    "litellm",
    "openai-compatible",
    "responses-compatible",
    "messages-compatible",
    "demo",
];

/// What is known of models wherever they are served: entries, for specs that say `families: true`. No spec by itself.
pub(crate) const FAMILIES: (&str, &str) = ("families", include_str!("../../../specs/families.yaml"));

impl Library<'static> {
    /// What the binary carries.
    pub const BUILTIN: Self = Self(SPECS);
}

impl<'a> Library<'a> {
    pub fn names(self) -> impl Iterator<Item = &'a str> {
        self.0.iter().map(|(name, _)| *name)
    }

    pub fn contains(self, name: &str) -> bool {
        self.text(name).is_some()
    }

    /// The variables that may hold a key of this spec, read off its text: who looks for keys need not read every spec.
    pub fn key_variables(self, name: &str) -> Vec<&'a str> {
        let mut next = self.text(name);
        // No spec is below more than a few others.
        for _ in 0..8 {
            let Some(text) = next else { break };
            let line = |key| text.lines().find_map(|line| line.strip_prefix(key)).map(without_comment);
            if let Some(said) = line("key_env:") {
                let names = said.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                return names.filter(|name| !name.is_empty()).collect();
            }
            // A key is for the addresses that it is said with.
            if text.lines().any(|line| line.starts_with("endpoints:") || line.trim_start().starts_with("base_url:")) {
                break;
            }
            next = line("extends:").and_then(|parent| self.text(parent.trim()));
        }
        Vec::new()
    }

    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }
}

fn without_comment(line: &str) -> &str {
    line.split_once('#').map_or(line, |(said, _)| said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve_named;

    #[test]
    fn the_variables_of_keys_are_those_of_the_whole_spec() {
        for name in Library::BUILTIN.names() {
            let provider = resolve_named(Library::BUILTIN, name, &|_| None).unwrap();
            assert_eq!(Library::BUILTIN.key_variables(name), provider.key_env, "{name}");
        }
        assert_eq!(Library::BUILTIN.key_variables("nobody"), Vec::<&str>::new());
    }
}
