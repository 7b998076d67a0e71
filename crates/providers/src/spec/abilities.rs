//! What a provider does itself of what clients may ask for, and what godex does in its place, in words for people. For
//! models of which the spec says nothing particular.

use bridge::{BlockCache, CacheMarks, ChoiceKind, EffortField, ImageInput, JsonSchema, Parameter, Replay};

use super::models::Entry;
use super::{Provider, Wire};

/// What only some servers know, and few miss.
const USUAL: [Parameter; 4] =
    [Parameter::Verbosity, Parameter::ServiceTier, Parameter::SafetyIdentifier, Parameter::PromptCacheKey];

fn code(text: &str) -> String {
    format!("`{text}`")
}

impl Provider {
    /// What the provider does itself.
    pub fn native(&self) -> Vec<String> {
        let (dialect, request) = (&self.dialect, &self.dialect.request);
        let mut said = Vec::new();
        match dialect.json_schema {
            JsonSchema::Native => said.push("JSON schemas".to_owned()),
            JsonSchema::JsonObject | JsonSchema::Prompt => {}
        }
        match request.content.images {
            ImageInput::All => said.push("images".to_owned()),
            ImageInput::Data => said.push("images as data".to_owned()),
            ImageInput::None => {}
        }
        let media =
            [("video", request.content.video), ("audio", request.content.audio), ("files", request.content.files)];
        said.extend(media.iter().filter(|(_, has)| *has).map(|(name, _)| (*name).to_owned()));
        let reasoning = &request.reasoning;
        if reasoning.effort != EffortField::None {
            said.push("reasoning effort".to_owned());
        } else if reasoning.on.is_some() || reasoning.off.is_some() {
            said.push("thinking on or off".to_owned());
        }
        match reasoning.replay {
            Replay::Always => said.push("its reasoning comes back to it".to_owned()),
            Replay::Tools => said.push("its reasoning comes back to it after calls".to_owned()),
            Replay::Never => {}
        }
        let run = request.tools.native.iter().chain(&request.tools.native_members);
        said.extend(run.map(|(tool, _)| code(tool.name())));
        if !request.tools.custom.is_empty() {
            said.push("custom tools".to_owned());
        }
        let marks = request.messages.cache_marks != CacheMarks::None || request.blocks.cache == BlockCache::Marks;
        if marks || request.blocks.cache == BlockCache::Automatic {
            said.push("a prompt cache that is asked for".to_owned());
        }
        said
    }

    /// Models that are asked by another API than the rest, by their patterns.
    pub fn other_wires(&self) -> Vec<(Wire, Vec<&str>)> {
        let other = |entry: &Entry| entry.wire().filter(|wire| *wire != self.wire);
        let entries = self.entries().filter_map(|(_, entry)| Some((other(entry)?, entry)));
        entries.map(|(wire, entry)| (wire, entry.patterns.iter().map(String::as_str).collect())).collect()
    }

    /// What godex does otherwise than asked, or in the provider's place.
    pub fn degraded(&self) -> Vec<String> {
        let (dialect, request) = (&self.dialect, &self.dialect.request);
        let mut said = Vec::new();
        match dialect.json_schema {
            JsonSchema::Native => {}
            JsonSchema::JsonObject => said.push("a schema is an instruction, with `json_object`".to_owned()),
            JsonSchema::Prompt => said.push("a schema is an instruction".to_owned()),
        }
        if request.content.images == ImageInput::None {
            said.push("images are left out or described".to_owned());
        }
        let lacking: Vec<String> = ChoiceKind::ALL
            .iter()
            .filter(|kind| !request.tools.choices.contains(kind))
            .map(|kind| code(kind.name()))
            .collect();
        if !lacking.is_empty() {
            said.push(format!("no `tool_choice` {}", lacking.join(", ")));
        }
        if let Some(most) = request.content.max_images {
            said.push(format!("at most {most} images"));
        }
        if let Some(most) = request.tools.max {
            said.push(format!("at most {most} tools"));
        }
        if request.tools.custom.is_empty() {
            said.push("custom tools are functions".to_owned());
        }
        let dropped: Vec<String> =
            dialect.drop.iter().filter(|parameter| !USUAL.contains(parameter)).map(|p| code(p.name())).collect();
        if !dropped.is_empty() {
            said.push(format!("left out: {}", dropped.join(", ")));
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::Wire;
    use crate::{Library, resolve_named};

    #[test]
    fn abilities_are_told() {
        let of = |name| resolve_named(Library::BUILTIN, name, &|_| None).unwrap();
        let openai = of("openai");
        assert!(openai.native().contains(&"JSON schemas".to_owned()) && openai.native().contains(&"audio".to_owned()));
        assert!(openai.degraded().contains(&"at most 128 tools".to_owned()), "{:?}", openai.degraded());
        let wires = |name| of(name).other_wires().iter().map(|(wire, of)| (*wire, of.join(" "))).collect::<Vec<_>>();
        assert_eq!(wires("openai"), [(Wire::Responses, "gpt-5.4* gpt-5.5* gpt-5.6* gpt-6*".to_owned())]);
        assert_eq!(wires("anthropic"), []);
        assert!(of("qwen").native().contains(&"`web_search`".to_owned()));
        assert!(of("anthropic").native().contains(&"a prompt cache that is asked for".to_owned()));
        let xiaomi = of("xiaomi");
        assert!(xiaomi.native().contains(&"`web_search`".to_owned()), "{:?}", xiaomi.native());
        for said in [
            "a schema is an instruction, with `json_object`",
            "images are left out or described",
            "no `tool_choice` `none`, `required`, `function`",
        ] {
            assert!(xiaomi.degraded().contains(&said.to_owned()), "{said}: {:?}", xiaomi.degraded());
        }
    }
}
