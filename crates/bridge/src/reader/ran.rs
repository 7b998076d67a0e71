//! Calls of tools that an upstream ran itself while it answered: somebody may have to pay for them, and no usage says so.

/// How often which tool was called.
#[derive(Debug, Clone, Default)]
pub(super) struct Ran(Vec<(&'static str, u64)>);

/// What tools are called where they are counted, by what an upstream calls them. Everything else is a `tool`.
const NAMES: &[(&str, &str)] = &[
    ("web_search", "web_search"),
    ("web_fetch", "web_search"),
    ("file_search", "file_search"),
    ("code_interpreter", "code_interpreter"),
    ("code_execution", "code_interpreter"),
    ("image_generation", "image_generation"),
    ("mcp", "mcp"),
    ("shell", "shell"),
    ("tool_search", "tool_search"),
];

impl Ran {
    pub(super) fn add(&mut self, tool: &str) {
        let name = NAMES.iter().find(|(theirs, _)| *theirs == tool).map_or("tool", |(_, name)| *name);
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.0.push((name, 1)),
        }
    }

    pub(super) fn all(&self) -> &[(&'static str, u64)] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_counted_by_their_names() {
        let mut ran = Ran::default();
        for tool in ["web_search", "code_execution", "web_fetch", "new", "newer"] {
            ran.add(tool);
        }
        assert_eq!(ran.all(), [("web_search", 2), ("code_interpreter", 1), ("tool", 2)]);
    }
}
