//! The catalogue of models in the form that Codex reads: from `GET /v1/models`, or from the file that its
//! `model_catalog_json` names. One entry that it cannot read makes it forget all of them, so each has every member that
//! it insists on.

use std::collections::HashMap;

use bridge::Effort;
use providers::ApplyPatch;
use wire::json::ObjectWriter;

use super::facts::Facts;
use super::{Discovered, Known, Model, list};
use crate::config::Config;

/// The most entries: each carries its instructions, and Codex reads all of them when it starts.
const MOST: usize = 200;

const INSTRUCTIONS: &str = include_str!("instructions.txt");
const PATCH_TOOL: &str = include_str!("patch_tool.txt");
const PATCH_SHELL: &str = include_str!("patch_shell.txt");
const PATCH_RULES: &str = include_str!("patch_rules.txt");

/// The file for Codex's `model_catalog_json`: the models of the configuration, then those that were discovered.
pub fn codex_catalog(config: &Config, discovered: &Discovered) -> Vec<u8> {
    let mut out = Vec::new();
    let mut file = ObjectWriter::new(&mut out);
    write_catalog(&list(config, discovered), Known::only(discovered), file.key("models"));
    file.end();
    out
}

/// The entries, as a list.
pub(crate) fn write_catalog(models: &[Model<'_>], known: Known<'_>, out: &mut Vec<u8>) {
    out.push(b'[');
    let owners: Vec<_> = models.iter().map(|model| (model.discovered, model.owned_by.as_str())).collect();
    let chosen = shared(&owners, MOST);
    for (index, model) in chosen.into_iter().filter_map(|at| models.get(at)).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(model, &model.facts(known), index, out);
    }
    out.push(b']');
}

/// Which of them have a place: those of the configuration first, then each provider's own list in turn. In their order.
fn shared(models: &[(bool, &str)], most: usize) -> Vec<usize> {
    let mut taken: HashMap<&str, usize> = HashMap::new();
    let mut ranked: Vec<(usize, usize)> = Vec::with_capacity(models.len());
    for (at, (discovered, owner)) in models.iter().enumerate() {
        let rank = if *discovered {
            let rank = taken.entry(owner).or_default();
            *rank += 1;
            *rank
        } else {
            0
        };
        ranked.push((rank, at));
    }
    ranked.sort_unstable();
    let mut chosen: Vec<usize> = ranked.into_iter().take(most).map(|(_, at)| at).collect();
    chosen.sort_unstable();
    chosen
}

fn write(model: &Model<'_>, facts: &Facts, index: usize, out: &mut Vec<u8>) {
    let mut entry = ObjectWriter::new(out);
    entry.text("slug", &model.id);
    entry.text("display_name", facts.display_name.as_deref().unwrap_or(&model.id));
    entry.text("description", &format!("{} through godex.", model.owned_by));
    if let Some(level) = facts.default_level {
        entry.text("default_reasoning_level", level.name());
    }
    levels(&facts.levels, entry.key("supported_reasoning_levels"));
    entry.text("shell_type", "unified_exec").text("visibility", "list").bool("supported_in_api", true);
    entry.int("priority", index + 1);
    entry.text("base_instructions", &instructions(facts.apply_patch));
    entry.bool("support_verbosity", facts.verbosity);
    match facts.apply_patch {
        ApplyPatch::Freeform => entry.text("apply_patch_tool_type", "freeform"),
        ApplyPatch::Shell => entry.null("apply_patch_tool_type"),
    };
    let mut truncation = ObjectWriter::new(entry.key("truncation_policy"));
    truncation.text("mode", "tokens").int("limit", facts.tool_output());
    truncation.end();
    entry.bool("supports_parallel_tool_calls", true);
    let window = facts.window.tokens();
    entry.int("context_window", window).int("max_context_window", window);
    entry.int("auto_compact_token_limit", facts.compact_at());
    entry.json("experimental_supported_tools", b"[]");
    entry.json("input_modalities", if facts.images { br#"["text","image"]"# } else { br#"["text"]"# });
    entry.bool("supports_search_tool", facts.tool_search).bool("use_responses_lite", false);
    entry.text("multi_agent_version", facts.sub_agents.name());
    entry.end();
}

fn instructions(patches: ApplyPatch) -> String {
    let patch = match patches {
        ApplyPatch::Freeform => PATCH_TOOL,
        ApplyPatch::Shell => PATCH_SHELL,
    };
    [INSTRUCTIONS, patch, PATCH_RULES].concat()
}

fn levels(levels: &[Effort], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, level) in levels.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let mut entry = ObjectWriter::new(out);
        entry.text("effort", level.name()).text("description", about(*level));
        entry.end();
    }
    out.push(b']');
}

/// What people who choose among them are told.
const fn about(level: Effort) -> &'static str {
    match level {
        Effort::None => "No thinking before the answer",
        Effort::Minimal => "Hardly any thinking",
        Effort::Low => "Quick answers after little thinking",
        Effort::Medium => "Thinking as most tasks need it",
        Effort::High => "More thinking, for hard tasks",
        Effort::Xhigh => "Much thinking, for very hard tasks",
        Effort::Max => "As much thinking as the model has",
    }
}

#[cfg(test)]
mod tests {
    use super::shared;

    #[test]
    fn a_long_list_leaves_places_for_others() {
        let models = [(false, "a"), (true, "a"), (true, "a"), (true, "a"), (true, "b"), (true, "b"), (false, "c")];
        for (most, expected) in
            [(9, &[0, 1, 2, 3, 4, 5, 6][..]), (5, &[0, 1, 2, 4, 6]), (4, &[0, 1, 4, 6]), (2, &[0, 6]), (0, &[])]
        {
            assert_eq!(shared(&models, most), expected, "{most}");
        }
    }
}
