//! Whom LiteLLM calls by which prefix, and which of our specs speaks with them.

/// A prefix of `litellm_params.model`.
pub(super) struct Vendor {
    pub(super) prefix: &'static str,
    pub(super) spec: &'static str,
    /// Where it is, if the spec does not know it.
    pub(super) base_url: Option<&'static str>,
    /// The variable that LiteLLM reads its key from, if that is not the one of the spec.
    pub(super) key: Option<&'static str>,
    /// What has to come after an address that is given.
    pub(super) path: &'static str,
}

const fn vendor(prefix: &'static str, spec: &'static str) -> Vendor {
    Vendor { prefix, spec, base_url: None, key: None, path: "" }
}

/// One whose API is OpenAI's, and of which no spec knows more.
const fn compatible(prefix: &'static str, base_url: &'static str, key: &'static str) -> Vendor {
    Vendor { prefix, spec: COMPATIBLE, base_url: Some(base_url), key: Some(key), path: "" }
}

pub(super) const COMPATIBLE: &str = "openai-compatible";

static VENDORS: &[Vendor] = &[
    vendor("openai", "openai"),
    vendor("text-completion-openai", "openai"),
    Vendor { key: Some("AZURE_API_KEY"), ..vendor("azure", "azure") },
    vendor("deepseek", "deepseek"),
    vendor("groq", "groq"),
    vendor("mistral", "mistral"),
    vendor("xai", "xai"),
    vendor("openrouter", "openrouter"),
    Vendor { key: Some("TOGETHERAI_API_KEY"), ..vendor("together_ai", "together") },
    vendor("fireworks_ai", "fireworks"),
    vendor("cerebras", "cerebras"),
    vendor("gemini", "gemini"),
    vendor("dashscope", "qwen"),
    vendor("moonshot", "moonshot"),
    vendor("minimax", "minimax"),
    Vendor { base_url: Some("https://api.z.ai/api/paas/v4"), key: Some("ZAI_API_KEY"), ..vendor("zai", "zhipu") },
    Vendor { path: "/v1", ..vendor("ollama", "ollama") },
    Vendor { path: "/v1", ..vendor("ollama_chat", "ollama") },
    vendor("lm_studio", "lmstudio"),
    vendor("hosted_vllm", "vllm"),
    vendor("vllm", "vllm"),
    vendor("llamafile", "llamacpp"),
    vendor("custom_openai", COMPATIBLE),
    vendor("openai_like", COMPATIBLE),
    vendor("litellm_proxy", COMPATIBLE),
    vendor("azure_ai", COMPATIBLE),
    vendor("xinference", COMPATIBLE),
    vendor("docker_model_runner", COMPATIBLE),
    compatible("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    compatible("perplexity", "https://api.perplexity.ai", "PERPLEXITYAI_API_KEY"),
    compatible("deepinfra", "https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
    compatible("nvidia_nim", "https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"),
    compatible("sambanova", "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    compatible("volcengine", "https://ark.cn-beijing.volces.com/api/v3", "VOLCENGINE_API_KEY"),
    compatible("codestral", "https://codestral.mistral.ai/v1", "CODESTRAL_API_KEY"),
    compatible("meta_llama", "https://api.llama.com/compat/v1", "LLAMA_API_KEY"),
    compatible("friendliai", "https://api.friendli.ai/serverless/v1", "FRIENDLI_TOKEN"),
    compatible("novita", "https://api.novita.ai/v3/openai", "NOVITA_API_KEY"),
    compatible("hyperbolic", "https://api.hyperbolic.xyz/v1", "HYPERBOLIC_API_KEY"),
    compatible("nebius", "https://api.studio.nebius.ai/v1", "NEBIUS_API_KEY"),
    compatible("github", "https://models.inference.ai.azure.com", "GITHUB_API_KEY"),
    compatible("v0", "https://api.v0.dev/v1", "V0_API_KEY"),
];

/// Those whose API is another one.
pub(super) const FOREIGN: &[&str] = &[
    "bedrock",
    "vertex_ai",
    "vertex_ai_beta",
    "sagemaker",
    "sagemaker_chat",
    "cohere",
    "cohere_chat",
    "replicate",
    "huggingface",
    "watsonx",
    "watsonx_text",
    "databricks",
    "snowflake",
    "palm",
    "ai21",
    "ai21_chat",
    "aleph_alpha",
    "nlp_cloud",
    "petals",
    "predibase",
    "triton",
    "cloudflare",
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

pub(super) fn find(prefix: &str) -> Option<&'static Vendor> {
    VENDORS.iter().find(|vendor| vendor.prefix == prefix)
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
            assert!(!FOREIGN.contains(&vendor.prefix), "{}", vendor.prefix);
            assert!(VENDORS[..index].iter().all(|other| other.prefix != vendor.prefix), "{}", vendor.prefix);
        }
    }
}
