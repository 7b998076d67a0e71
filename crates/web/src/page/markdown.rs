//! HTML becomes Markdown: what a reader of the page sees, its links written out. Whatever the page does not show to people
//! (scripts, styles, what is hidden) and the menus around it are left out. Emphasis is left out too: it costs more than it
//! tells.

use std::borrow::Cow;
use std::collections::HashSet;

use url::Url;

use super::clean::{clean, is_hidden};
use super::html::{Tag, Token, Tokens, resolved};
use super::normalised;

/// Longer than what is read of a page, because links become longer.
pub(super) const MOST_TEXT: usize = 3 << 20;
/// Links beyond these, and longer ones, are text only.
const MOST_LINKS: usize = 5000;
const LONGEST_LINK: usize = 2048;
const LONGEST_TITLE: usize = 300;
/// Deeper levels look like this one.
const DEEPEST: usize = 6;

/// What a page says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Markdown {
    pub(super) title: String,
    pub(super) text: String,
    /// Where its links lead, each once.
    pub(super) links: Vec<String>,
}

/// Reads a page. `base`: where it was found.
pub(super) fn markdown(html: &str, base: &Url, xml: bool) -> Markdown {
    let read = read(html, base, xml, true);
    // A page that would be empty has its text in what others use for menus, or shows it when its scripts have run.
    if !read.text.is_empty() {
        return read;
    }
    let all = self::read(html, base, xml, false);
    Markdown { title: if read.title.is_empty() { all.title } else { read.title }, ..all }
}

fn read(html: &str, base: &Url, xml: bool, mut choosy: bool) -> Markdown {
    let mut writer = Writer::new(base.clone());
    let mut tokens = Tokens::new(html, xml);
    let mut skipped: Option<Skipped<'_>> = None;
    loop {
        let Some(token) = tokens.next() else {
            // An element without an end, and everything after it with it: then nothing more is skipped.
            let Some(skipped) = skipped.take() else { break };
            (choosy, tokens.at) = (false, skipped.from);
            continue;
        };
        if let Some(skipping) = &mut skipped {
            if skipping.ends_with(&token) {
                skipped = None;
            }
            continue;
        }
        match token {
            Token::Start(tag) if choosy && is_left_out(&tag) => {
                skipped = Some(Skipped { name: tag.name, depth: 0, from: tokens.at });
            }
            Token::Start(tag) => writer.start(&tag),
            Token::End(name) => writer.end(&name),
            Token::Text(text) => writer.text(&resolved(text)),
            Token::Raw { name, text } if name == "title" => writer.title(text),
            Token::Raw { name, text } if name == "xmp" => writer.text(text),
            Token::Raw { .. } => {}
        }
        if writer.out.len() > MOST_TEXT {
            break;
        }
    }
    writer.finish()
}

/// An element that is left out, until its end.
struct Skipped<'h> {
    name: Cow<'h, str>,
    /// Of elements of the same name inside.
    depth: usize,
    /// Where its content begins.
    from: usize,
}

impl Skipped<'_> {
    fn ends_with(&mut self, token: &Token<'_>) -> bool {
        match token {
            Token::Start(tag) if tag.name == self.name => {
                self.depth += 1;
                false
            }
            Token::End(name) if *name == self.name => {
                self.depth = match self.depth.checked_sub(1) {
                    Some(depth) => depth,
                    None => return true,
                };
                false
            }
            _ => false,
        }
    }
}

/// Whether nobody reads what is in it. Elements without content and those that need no end tag are not asked after.
fn is_left_out(tag: &Tag<'_>) -> bool {
    match &*tag.name {
        "audio" | "canvas" | "datalist" | "nav" | "object" | "select" | "svg" | "template" | "video" => true,
        "area" | "base" | "body" | "br" | "col" | "dd" | "dt" | "embed" | "head" | "hr" | "html" | "img" | "input"
        | "li" | "link" | "meta" | "option" | "source" | "tbody" | "td" | "th" | "thead" | "tr" | "track" | "wbr" => {
            false
        }
        _ => {
            let style = tag.attribute("style").map(|style| style.replace([' ', '\t', '\n'], "").to_ascii_lowercase());
            let styled = |what| style.as_deref().is_some_and(|style| style.contains(what));
            tag.attribute("hidden").is_some_and(|hidden| !hidden.eq_ignore_ascii_case("until-found"))
                || tag.attribute("role").is_some_and(|role| role.eq_ignore_ascii_case("navigation"))
                || styled("display:none")
                || styled("visibility:hidden")
        }
    }
}

/// A link whose text is being written.
struct Link {
    address: String,
    /// Where its text begins, when there is some.
    at: Option<usize>,
}

/// A row of a table.
#[derive(Default)]
struct Row {
    cells: usize,
    heads: usize,
    /// The line below the heads is written.
    headed: bool,
}

struct Writer {
    out: String,
    /// Ends of lines before what comes next: one for a new line, two for a new paragraph.
    breaks: usize,
    /// There is a space before what comes next.
    space: bool,
    /// What comes before the next text and belongs to it: the mark of a heading, of an entry, of a row.
    mark: String,
    quotes: usize,
    /// The next number of each list that is open; none for those without numbers.
    lists: Vec<Option<u32>>,
    rows: Vec<Row>,
    link: Option<Link>,
    /// Inline code is open, and whether there is something in it.
    code: usize,
    code_begun: bool,
    /// Text is as it is written, and whether there was some.
    pre: usize,
    pre_begun: bool,
    base: Url,
    title: Option<String>,
    links: Vec<String>,
    known: HashSet<String>,
    /// How often an address was made out; that too is bounded.
    joined: usize,
}

impl Writer {
    fn new(base: Url) -> Self {
        Self {
            out: String::new(),
            breaks: 0,
            space: false,
            mark: String::new(),
            quotes: 0,
            lists: Vec::new(),
            rows: Vec::new(),
            link: None,
            code: 0,
            code_begun: false,
            pre: 0,
            pre_begun: false,
            base,
            title: None,
            links: Vec::new(),
            known: HashSet::new(),
            joined: 0,
        }
    }

    fn finish(mut self) -> Markdown {
        self.end_link();
        if self.pre > 0 {
            self.pre = 1;
            self.end("pre");
        }
        self.out.truncate(self.out.trim_end().len());
        Markdown { title: self.title.unwrap_or_default(), text: self.out, links: self.links }
    }

    fn title(&mut self, text: &str) {
        if self.title.is_none() {
            let text = resolved(text);
            let words: Vec<&str> = text.split_whitespace().collect();
            let title: String = clean(&words.join(" ")).chars().take(LONGEST_TITLE).collect();
            self.title = Some(title).filter(|title| !title.is_empty());
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match &*tag.name {
            "br" => self.soft(1),
            "hr" => {
                self.hard(2);
                self.literal("---");
                self.hard(2);
            }
            "p" => self.paragraph(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.hard(2);
                let level = tag.name.bytes().next_back().map_or(1, |digit| usize::from(digit.saturating_sub(b'0')));
                self.mark = format!("{} ", "#".repeat(level));
            }
            "ul" | "ol" | "menu" => self.start_list(tag),
            "li" => self.start_entry(),
            "blockquote" => {
                self.hard(2);
                self.quotes += 1;
            }
            "pre" | "listing" => {
                self.hard(2);
                self.pre += 1;
            }
            "code" | "kbd" | "samp" | "tt" => self.code += 1,
            "a" => self.start_link(tag),
            "img" => {
                let alt = tag.attribute("alt").unwrap_or_default();
                if !alt.trim().is_empty() {
                    self.text(&format!("![{}]", alt.trim()));
                }
            }
            "base" => {
                let base = tag.attribute("href").and_then(|href| self.base.join(href.trim()).ok());
                if let Some(base) = base.filter(|base| base.as_str().len() <= LONGEST_LINK) {
                    self.base = base;
                }
            }
            "table" => {
                self.hard(2);
                self.rows.push(Row::default());
            }
            "tr" => self.start_row(),
            "td" | "th" => self.start_cell(&tag.name),
            name if is_block(name) => self.soft(1),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.mark.clear();
                self.hard(2);
            }
            "p" => self.paragraph(),
            "ul" | "ol" | "menu" => {
                self.lists.pop();
                self.mark.clear();
                self.hard(if self.lists.is_empty() { 2 } else { 1 });
            }
            "blockquote" => {
                self.quotes = self.quotes.saturating_sub(1);
                self.hard(2);
            }
            "pre" | "listing" if self.pre > 0 => {
                self.pre -= 1;
                if self.pre == 0 && std::mem::take(&mut self.pre_begun) {
                    self.out.truncate(self.out.trim_end_matches('\n').len());
                    self.new_line();
                    self.out.push_str("```");
                }
                self.hard(2);
            }
            "code" | "kbd" | "samp" | "tt" if self.code > 0 => {
                self.code -= 1;
                if self.code == 0 && std::mem::take(&mut self.code_begun) {
                    self.out.push('`');
                }
            }
            "a" => self.end_link(),
            "table" => {
                self.end_row();
                self.rows.pop();
                self.hard(2);
            }
            "tr" => self.end_row(),
            "td" | "th" => self.space = true,
            name if is_block(name) => self.soft(1),
            _ => {}
        }
    }

    /// A new line or paragraph, in a cell too.
    fn hard(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(breaks);
    }

    /// A new line or paragraph; in a cell, which is one line, a space.
    fn soft(&mut self, breaks: usize) {
        if self.pre > 0 && self.pre_begun {
            self.new_line();
        } else if self.rows.last().is_some_and(|row| row.cells > 0) {
            self.space = true;
        } else {
            self.hard(breaks);
        }
    }

    /// In a list one line follows the other.
    fn paragraph(&mut self) {
        self.soft(if self.lists.is_empty() { 2 } else { 1 });
    }

    fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\n' | '\u{2028}' | '\u{2029}' if self.pre > 0 => {
                    // The first line of it begins where there is something.
                    if self.pre_begun {
                        self.new_line();
                    }
                }
                '\r' if self.pre > 0 => {}
                c if c.is_whitespace() && (self.pre == 0 || c.is_control() && c != '\t') => self.space = true,
                c if is_hidden(c) => {}
                c => {
                    self.before();
                    self.out.push(c);
                }
            }
        }
    }

    fn literal(&mut self, text: &str) {
        self.before();
        self.out.push_str(text);
    }

    /// What has to be written before the next character.
    fn before(&mut self) {
        let broken = std::mem::take(&mut self.breaks);
        let space = std::mem::take(&mut self.space);
        if self.out.is_empty() || broken > 0 {
            self.out.truncate(self.out.trim_end_matches(' ').len());
            if self.out.is_empty() {
                self.quote();
            } else {
                (0..broken).for_each(|_| self.new_line());
            }
            // An entry's mark stands left of its text.
            let entry = self.mark.starts_with(|first: char| first == '-' || first.is_ascii_digit());
            let levels = self.lists.len().min(DEEPEST).saturating_sub(usize::from(entry));
            self.out.extend(std::iter::repeat_n("  ", levels));
        } else if space && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
        self.out.push_str(&self.mark);
        self.mark.clear();
        if self.pre > 0 && !self.pre_begun {
            self.pre_begun = true;
            self.out.push_str("```");
            self.new_line();
        }
        if let Some(link) = self.link.as_mut().filter(|link| link.at.is_none()) {
            link.at = Some(self.out.len());
        }
        if self.code > 0 && self.pre == 0 && !self.code_begun {
            self.code_begun = true;
            self.out.push('`');
        }
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.quote();
    }

    fn quote(&mut self) {
        self.out.extend(std::iter::repeat_n("> ", self.quotes.min(DEEPEST)));
    }

    fn start_list(&mut self, tag: &Tag<'_>) {
        self.hard(if self.lists.is_empty() { 2 } else { 1 });
        let first = tag.attribute("start").and_then(|start| start.trim().parse().ok()).unwrap_or(1);
        self.lists.push((tag.name == "ol").then_some(first));
    }

    fn start_entry(&mut self) {
        self.hard(1);
        self.mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "- ".to_owned(),
        };
    }

    fn start_row(&mut self) {
        self.end_row();
        self.hard(1);
        "| ".clone_into(&mut self.mark);
    }

    fn start_cell(&mut self, name: &str) {
        let Some(row) = self.rows.last_mut() else { return };
        row.cells += 1;
        row.heads += usize::from(name == "th");
        if row.cells > 1 {
            self.space = false;
            self.literal(" |");
            self.space = true;
        }
    }

    fn end_row(&mut self) {
        let Some(row) = self.rows.last_mut() else { return };
        let (cells, heads) = (std::mem::take(&mut row.cells), std::mem::take(&mut row.heads));
        let headed = row.headed;
        row.headed |= cells > 0;
        // There is nothing in it, or a table inside has had the last word.
        if cells == 0 || self.mark == "| " || self.breaks > 0 {
            self.mark.clear();
            self.hard(1);
            return;
        }
        self.space = false;
        self.out.push_str(" |");
        if !headed && heads == cells {
            self.new_line();
            self.out.push('|');
            self.out.extend(std::iter::repeat_n(" --- |", cells));
        }
        self.hard(1);
    }

    fn start_link(&mut self, tag: &Tag<'_>) {
        self.end_link();
        let Some(address) = tag.attribute("href").and_then(|href| self.address(href.trim())) else { return };
        // In what is shown as it is written nothing is a link.
        if self.pre == 0 && self.code == 0 {
            self.link = Some(Link { address, at: None });
        }
    }

    /// Where a link leads, if to another page of the web.
    fn address(&mut self, href: &str) -> Option<String> {
        if href.is_empty() || href.starts_with('#') || href.len() > LONGEST_LINK || self.joined >= MOST_LINKS {
            return None;
        }
        self.joined += 1;
        let address = self.base.join(href).ok()?;
        if !matches!(address.scheme(), "http" | "https") || address.as_str().len() > LONGEST_LINK {
            return None;
        }
        let address = String::from(address);
        if self.known.insert(normalised(&address)?) {
            self.links.push(address.clone());
        }
        Some(address)
    }

    fn end_link(&mut self) {
        let Some(Link { address, at: Some(at) }) = self.link.take() else { return };
        let text = self.out.split_off(at.min(self.out.len()));
        let words: Vec<&str> = text.split_whitespace().collect();
        self.out.push('[');
        self.out.push_str(&words.join(" "));
        self.out.push_str("](");
        self.out.push_str(&written(&address));
        self.out.push(')');
    }
}

/// An address as it stands in a link: parentheses that do not match would end it.
fn written(address: &str) -> Cow<'_, str> {
    let mut open = 0_usize;
    let matched = address.chars().all(|c| match c {
        '(' => {
            open += 1;
            true
        }
        ')' => open.checked_sub(1).is_some_and(|left| {
            open = left;
            true
        }),
        _ => true,
    });
    if matched && open == 0 {
        return Cow::Borrowed(address);
    }
    Cow::Owned(address.replace('(', "%28").replace(')', "%29"))
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "body"
            | "caption"
            | "center"
            | "dd"
            | "details"
            | "dialog"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "header"
            | "hgroup"
            | "legend"
            | "li"
            | "main"
            | "option"
            | "search"
            | "section"
            | "summary"
            | "tbody"
            | "tfoot"
            | "thead"
    )
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
