//! Whom LiteLLM calls by which prefix, and which of our specs speaks with them.

use super::azure;

/// A prefix of `litellm_params.model`.
pub(super) struct Vendor {
    pub(super) prefix: &'static str,
    /// What the model's name must have in it; empty: this is for all of them.
    pub(super) models: &'static str,
    pub(super) spec: &'static str,
    /// Where it is, if the spec does not know it.
    pub(super) base_url: Option<&'static str>,
    /// The variable that LiteLLM reads its address from, where everybody has an own one.
    pub(super) base_env: Option<&'static str>,
    /// The variable that LiteLLM reads its key from, if that is not the one of the spec.
    pub(super) key: Option<&'static str>,
    /// Its servers need no key, wherever they are, and LiteLLM goes without one.
    pub(super) keyless: bool,
    /// What has to come after an address that is given.
    pub(super) path: &'static str,
    /// Placeholders of the spec's address.
    pub(super) params: &'static [Param],
    pub(super) naming: Naming,
    /// What is to be known of it.
    pub(super) note: &'static str,
}

/// What fills a placeholder: a member of `litellm_params`, else a variable; with neither, the spec's own.
pub(super) struct Param {
    pub(super) name: &'static str,
    pub(super) member: &'static str,
    pub(super) variable: Option<&'static str>,
}

/// How a model is called here, by what LiteLLM calls it.
#[derive(Clone, Copy)]
pub(super) enum Naming {
    Same,
    /// `gemini-…` is `google/gemini-…`.
    Google,
    /// `HOST/owner/model` is `owner/model:HOST`.
    HostLast,
    /// Without the ways and regions before it: `converse/us-east-1/anthropic.claude-…`.
    Last,
}

impl Naming {
    pub(super) fn of(self, model: &str) -> String {
        match self {
            Self::Same => model.to_owned(),
            Self::Google => format!("google/{}", model.trim_start_matches("google/")),
            Self::HostLast => match model.split_once('/') {
                Some((host, owned)) if owned.contains('/') => format!("{owned}:{host}"),
                _ => model.to_owned(),
            },
            Self::Last => model.rsplit('/').next().unwrap_or(model).to_owned(),
        }
    }
}

const fn vendor(prefix: &'static str, spec: &'static str) -> Vendor {
    Vendor {
        prefix,
        models: "",
        spec,
        base_url: None,
        base_env: None,
        key: None,
        keyless: false,
        path: "",
        params: &[],
        naming: Naming::Same,
        note: "",
    }
}

/// One whose key LiteLLM reads from another variable than ours.
const fn keyed(prefix: &'static str, spec: &'static str, key: &'static str) -> Vendor {
    Vendor { key: Some(key), ..vendor(prefix, spec) }
}

/// One whose servers need no key. This is where LiteLLM looks for one all the same.
const fn keyless(prefix: &'static str, spec: &'static str, key: &'static str) -> Vendor {
    Vendor { keyless: true, ..keyed(prefix, spec, key) }
}

/// One whose API is OpenAI's, and of which no spec knows more.
const fn compatible(prefix: &'static str, base_url: &'static str, key: &'static str) -> Vendor {
    Vendor { base_url: Some(base_url), ..keyed(prefix, COMPATIBLE, key) }
}

/// What Azure has of others' models. The address and the key are the same for all of them.
const fn foundry(spec: &'static str) -> Vendor {
    Vendor { base_env: Some("AZURE_AI_API_BASE"), ..keyed("azure_ai", spec, "AZURE_AI_API_KEY") }
}

/// Some models of a vendor, at an address with placeholders.
const fn cloud(prefix: &'static str, models: &'static str, spec: &'static str, params: &'static [Param]) -> Vendor {
    Vendor { models, params, ..vendor(prefix, spec) }
}

pub(super) const COMPATIBLE: &str = "openai-compatible";

const AWS: &[Param] = &[Param { name: "region", member: "aws_region_name", variable: Some("AWS_REGION") }];
const GOOGLE: &[Param] = &[
    Param { name: "project", member: "vertex_project", variable: Some("VERTEXAI_PROJECT") },
    Param { name: "location", member: "vertex_location", variable: None },
];
const CLOUDFLARE: &[Param] = &[Param { name: "account", member: "", variable: Some("CLOUDFLARE_ACCOUNT_ID") }];

const BEDROCK_KEY: &str =
    "bedrock is asked with an API key of Bedrock, a bearer token: access keys of AWS are not used";
const GOOGLE_TOKEN: &str =
    "vertex_ai is asked with what `gcloud auth print-access-token` prints: see `auth` in the spec";

static VENDORS: &[Vendor] = &[
    vendor("openai", "openai"),
    keyed("azure", "azure", "AZURE_API_KEY"),
    vendor("anthropic", "anthropic"),
    vendor("deepseek", "deepseek"),
    vendor("groq", "groq"),
    vendor("mistral", "mistral"),
    vendor("xai", "xai"),
    vendor("openrouter", "openrouter"),
    keyed("together_ai", "together", "TOGETHERAI_API_KEY"),
    vendor("fireworks_ai", "fireworks"),
    vendor("cerebras", "cerebras"),
    vendor("gemini", "gemini"),
    // The address outside China is LiteLLM's for both.
    keyed("dashscope", "qwen-intl", "DASHSCOPE_API_KEY"),
    keyed("minimax", "minimax-intl", "MINIMAX_API_KEY"),
    vendor("moonshot", "moonshot"),
    vendor("zai", "zai"),
    keyed("volcengine", "volcengine", "VOLCENGINE_API_KEY"),
    keyed("perplexity", "perplexity", "PERPLEXITYAI_API_KEY"),
    vendor("deepinfra", "deepinfra"),
    keyed("nvidia_nim", "nvidia", "NVIDIA_NIM_API_KEY"),
    vendor("sambanova", "sambanova"),
    vendor("friendliai", "friendli"),
    vendor("novita", "novita"),
    vendor("hyperbolic", "hyperbolic"),
    vendor("nebius", "nebius"),
    vendor("baseten", "baseten"),
    vendor("cohere", "cohere"),
    vendor("cohere_chat", "cohere"),
    keyed("vercel_ai_gateway", "vercel", "VERCEL_AI_GATEWAY_API_KEY"),
    Vendor { path: "/v1", naming: Naming::HostLast, ..vendor("huggingface", "huggingface") },
    Vendor {
        note: "github: models are called with their owners at its present address, such as `openai/gpt-4.1`",
        ..keyed("github", "github-models", "GITHUB_API_KEY")
    },
    Vendor { base_env: Some("DATABRICKS_API_BASE"), ..keyed("databricks", "databricks", "DATABRICKS_API_KEY") },
    Vendor { key: Some("CLOUDFLARE_API_KEY"), ..cloud("cloudflare", "", "cloudflare", CLOUDFLARE) },
    Vendor { naming: Naming::Last, note: BEDROCK_KEY, ..cloud("bedrock", "anthropic.", "bedrock-anthropic", AWS) },
    Vendor { naming: Naming::Last, note: BEDROCK_KEY, ..cloud("bedrock", "openai.gpt-oss", "bedrock", AWS) },
    Vendor { note: GOOGLE_TOKEN, ..cloud("vertex_ai", "claude", "vertex-anthropic", GOOGLE) },
    Vendor { naming: Naming::Google, note: GOOGLE_TOKEN, ..cloud("vertex_ai", "gemini", "vertex", GOOGLE) },
    Vendor { path: "/v1", ..keyless("ollama", "ollama", "OLLAMA_API_KEY") },
    Vendor { path: "/v1", ..keyless("ollama_chat", "ollama", "OLLAMA_API_KEY") },
    keyless("lm_studio", "lmstudio", "LM_STUDIO_API_KEY"),
    keyless("hosted_vllm", "vllm", "HOSTED_VLLM_API_KEY"),
    Vendor { keyless: true, ..vendor("vllm", "vllm") },
    keyless("llamafile", "llamacpp", "LLAMAFILE_API_KEY"),
    keyed("litellm_proxy", "litellm", "LITELLM_PROXY_API_KEY"),
    vendor("custom_openai", COMPATIBLE),
    vendor("openai_like", COMPATIBLE),
    Vendor { models: "claude", ..foundry("anthropic") },
    foundry(COMPATIBLE),
    keyless("xinference", COMPATIBLE, "XINFERENCE_API_KEY"),
    keyless("docker_model_runner", COMPATIBLE, "DOCKER_MODEL_RUNNER_API_KEY"),
    compatible("codestral", "https://codestral.mistral.ai/v1", "CODESTRAL_API_KEY"),
    compatible("meta_llama", "https://api.llama.com/compat/v1", "LLAMA_API_KEY"),
    compatible("v0", "https://api.v0.dev/v1", "V0_API_KEY"),
];

/// Of `azure_ai/`, too.
static FOUNDRY_OPENAI: Vendor = foundry("azure");

/// Those whose API is another one, but for the models that are named above.
pub(super) const FOREIGN: &[&str] = &[
    "bedrock",
    "vertex_ai",
    "vertex_ai_beta",
    "sagemaker",
    "sagemaker_chat",
    "replicate",
    "watsonx",
    "watsonx_text",
    "snowflake",
    "palm",
    "ai21",
    "ai21_chat",
    "aleph_alpha",
    "nlp_cloud",
    "petals",
    "predibase",
    "triton",
    "oci",
    "github_copilot",
    "chatgpt",
    "bytez",
    "voyage",
    "jina_ai",
    "deepgram",
    "elevenlabs",
    "assemblyai",
];

/// Who is asked at `/completions`, if that is where LiteLLM asks for this model: the vendor, or the model where it is that.
pub(super) fn of_completions<'a>(prefix: &'a str, model: &'a str) -> Option<&'a str> {
    let is_own = |model: &str| {
        ["gpt-3.5-turbo-instruct", "davinci-002", "babbage-002"].iter().any(|name| model.starts_with(name))
    };
    let is_tuned = ["ft:davinci-002", "ft:babbage-002"].iter().any(|name| model.contains(name));
    match prefix {
        _ if prefix.starts_with("text-completion-") || prefix == "azure_text" => Some(prefix),
        // By another vendor's name, or with one before it, LiteLLM asks for chat.
        "" if is_own(model) => Some(model),
        "" | "openai" if is_tuned => Some(model),
        _ => None,
    }
}

/// Whose this model is.
pub(super) fn find(prefix: &str, model: &str) -> Option<&'static Vendor> {
    if prefix == "azure_ai" && azure::is_openai(model) {
        return Some(&FOUNDRY_OPENAI);
    }
    let model = model.to_ascii_lowercase();
    VENDORS.iter().find(|vendor| vendor.prefix == prefix && model.contains(vendor.models))
}

/// Whether it is the name of somebody, whoever it is.
pub(super) fn is_prefix(prefix: &str) -> bool {
    FOREIGN.contains(&prefix) || VENDORS.iter().any(|vendor| vendor.prefix == prefix)
}

/// The region that a model of Bedrock's may be called with: `bedrock/us-west-2/anthropic.claude-…`.
pub(super) fn region(model: &str) -> Option<&str> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_region = |part: &&str| {
        part.bytes().all(fits) && part.matches('-').count() >= 2 && part.ends_with(|last: char| last.is_ascii_digit())
    };
    let (before, _) = model.rsplit_once('/')?;
    before.split('/').find(is_region)
}

/// Who a model without a prefix belongs to.
pub(super) fn of_bare(model: &str) -> &'static str {
    if model.starts_with("claude") { "anthropic" } else { "openai" }
}

#[cfg(test)]
mod tests {
    use providers::Library;

    use super::*;

    #[test]
    fn every_vendor_has_a_spec_and_one_entry() {
        for (index, vendor) in VENDORS.iter().enumerate() {
            assert!(Library::BUILTIN.contains(vendor.spec), "{}", vendor.prefix);
            assert!(!FOREIGN.contains(&vendor.prefix) || !vendor.models.is_empty(), "{}", vendor.prefix);
            let same = |other: &Vendor| other.prefix == vendor.prefix && other.models == vendor.models;
            assert!(!VENDORS[..index].iter().any(same), "{}", vendor.prefix);
            // Where a spec has an address of its own, none is given here.
            assert!(vendor.base_url.is_none() || vendor.spec == COMPATIBLE, "{}", vendor.prefix);
        }
    }

    /// Whoever has a spec is asked by it.
    #[test]
    fn models_are_asked_by_the_spec_of_their_vendor() {
        for (whole, spec, model) in [
            ("anthropic/claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
            ("nvidia_nim/meta/llama3-70b-instruct", "nvidia", "meta/llama3-70b-instruct"),
            ("huggingface/together/deepseek-ai/DeepSeek-R1", "huggingface", "deepseek-ai/DeepSeek-R1:together"),
            ("huggingface/meta-llama/Llama-3.3-70B", "huggingface", "meta-llama/Llama-3.3-70B"),
            ("sambanova/Llama-4", "sambanova", "Llama-4"),
            ("nebius/Qwen/Qwen3", "nebius", "Qwen/Qwen3"),
            ("novita/deepseek/v3", "novita", "deepseek/v3"),
            ("hyperbolic/x", "hyperbolic", "x"),
            ("friendliai/x", "friendli", "x"),
            ("baseten/openai/gpt-oss-120b", "baseten", "openai/gpt-oss-120b"),
            ("deepinfra/x", "deepinfra", "x"),
            ("perplexity/sonar", "perplexity", "sonar"),
            ("cohere_chat/command-a", "cohere", "command-a"),
            ("databricks/dbrx", "databricks", "dbrx"),
            ("github/gpt-4.1", "github-models", "gpt-4.1"),
            ("vercel_ai_gateway/openai/gpt-4o", "vercel", "openai/gpt-4o"),
            ("dashscope/qwen-max", "qwen-intl", "qwen-max"),
            ("moonshot/kimi-k2", "moonshot", "kimi-k2"),
            ("zai/glm-4.6", "zai", "glm-4.6"),
            ("volcengine/ep-1", "volcengine", "ep-1"),
            ("xai/grok-4", "xai", "grok-4"),
            ("cloudflare/@cf/meta/llama-3", "cloudflare", "@cf/meta/llama-3"),
            ("bedrock/us.anthropic.claude-opus-4-1", "bedrock-anthropic", "us.anthropic.claude-opus-4-1"),
            ("bedrock/converse/us-west-2/anthropic.claude-3", "bedrock-anthropic", "anthropic.claude-3"),
            ("bedrock/openai.gpt-oss-20b-1:0", "bedrock", "openai.gpt-oss-20b-1:0"),
            ("vertex_ai/claude-sonnet-4@20250514", "vertex-anthropic", "claude-sonnet-4@20250514"),
            ("vertex_ai/gemini-2.5-pro", "vertex", "google/gemini-2.5-pro"),
            ("litellm_proxy/any", "litellm", "any"),
            ("azure_ai/Phi-4", COMPATIBLE, "Phi-4"),
            ("azure_ai/Claude-Opus-4-1", "anthropic", "Claude-Opus-4-1"),
            ("azure_ai/gpt-4o", "azure", "gpt-4o"),
            ("azure_ai/gpt-oss-120b", COMPATIBLE, "gpt-oss-120b"),
        ] {
            let (prefix, name) = whole.split_once('/').unwrap();
            let vendor = find(prefix, name).unwrap_or_else(|| panic!("{whole}"));
            assert_eq!((vendor.spec, vendor.naming.of(name).as_str()), (spec, model), "{whole}");
        }
        assert!(find("bedrock", "amazon.nova-pro-v1:0").is_none() && is_prefix("bedrock"));
        assert!(find("vertex_ai", "meta/llama-4").is_none());
        for (model, expected) in [
            ("bedrock/converse/us-gov-west-1/anthropic.claude-3", Some("us-gov-west-1")),
            ("bedrock/converse/anthropic.claude-3", None),
            ("anthropic.claude-3-5-4", None),
        ] {
            assert_eq!(region(model), expected, "{model}");
        }
    }
}
