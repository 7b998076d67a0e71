//! The part of a link in parentheses: an address, and maybe a title.

/// Parentheses inside of an address, beyond which it is none.
const MOST_NESTED: u8 = 8;

#[derive(Debug, Clone, Default)]
pub(super) struct Target {
    /// The address so far, without the escapes around it.
    pub(super) url: String,
    stage: Stage,
    /// Parentheses that are open in it.
    depth: u8,
    is_escaped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    #[default]
    Before,
    /// Between `<` and `>`.
    Angle,
    Bare,
    /// A title may come, or the end.
    After,
    /// In a title that ends with this.
    Title(char),
    /// Only the end may come.
    Last,
}

/// What a character comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    More,
    Whole,
    /// It is no address.
    None,
}

impl Target {
    pub(super) fn read(&mut self, c: char) -> Read {
        let was_escaped = std::mem::replace(&mut self.is_escaped, false);
        match self.stage {
            Stage::Before if c.is_whitespace() => Read::More,
            Stage::Before if c == '<' => self.go_on(Stage::Angle),
            Stage::Before => {
                self.stage = Stage::Bare;
                self.bare(c, false)
            }
            Stage::Bare => self.bare(c, was_escaped),
            Stage::Angle if was_escaped => self.take_escaped(c),
            Stage::Angle => match c {
                '>' => self.go_on(Stage::After),
                '<' | '\n' => Read::None,
                '\\' => self.escape(),
                _ => self.take(c),
            },
            Stage::After | Stage::Last if c.is_whitespace() => Read::More,
            Stage::After | Stage::Last if c == ')' => Read::Whole,
            Stage::After => match c {
                '"' | '\'' => self.go_on(Stage::Title(c)),
                '(' => self.go_on(Stage::Title(')')),
                _ => Read::None,
            },
            Stage::Last => Read::None,
            Stage::Title(_) if was_escaped => Read::More,
            Stage::Title(end) if c == end => self.go_on(Stage::Last),
            Stage::Title(end) => match c {
                '(' if end == ')' => Read::None,
                '\\' => self.escape(),
                _ => Read::More,
            },
        }
    }

    fn bare(&mut self, c: char, was_escaped: bool) -> Read {
        match c {
            _ if was_escaped => return self.take_escaped(c),
            '\\' => return self.escape(),
            ')' if self.depth == 0 && self.url.is_empty() => return Read::None,
            ')' if self.depth == 0 => return Read::Whole,
            ')' => self.depth -= 1,
            '(' if self.depth == MOST_NESTED => return Read::None,
            '(' => self.depth += 1,
            c if c.is_whitespace() => return self.go_on(Stage::After),
            c if c.is_control() => return Read::None,
            _ => {}
        }
        self.take(c)
    }

    const fn go_on(&mut self, stage: Stage) -> Read {
        self.stage = stage;
        Read::More
    }

    const fn escape(&mut self) -> Read {
        self.is_escaped = true;
        Read::More
    }

    /// After a backslash: only punctuation can be escaped.
    fn take_escaped(&mut self, c: char) -> Read {
        if !c.is_ascii_punctuation() {
            self.url.push('\\');
        }
        self.take(c)
    }

    fn take(&mut self, c: char) -> Read {
        self.url.push(c);
        if may_be_address(&self.url) { Read::More } else { Read::None }
    }
}

/// Whether it is, or can become, the address of a page.
pub(super) fn may_be_address(text: &str) -> bool {
    ["https://", "http://"].iter().any(|scheme| {
        let length = scheme.len().min(text.len());
        text.as_bytes()[..length].eq_ignore_ascii_case(&scheme.as_bytes()[..length])
    })
}
