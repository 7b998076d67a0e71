//! The commands at the start of a message. A line that only looks like one (`call me later`) is text.

/// What a message asks the demo model to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) calls: Vec<Call>,
    pub(super) think: Option<String>,
    pub(super) slow: Option<usize>,
    pub(super) long: Option<usize>,
    pub(super) length: bool,
    pub(super) echo: Option<String>,
    pub(super) refuse: bool,
    pub(super) fail: Option<Fail>,
    /// What is left after the commands.
    pub(super) rest: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: String,
    /// As written, valid JSON or not.
    pub(super) arguments: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fail {
    Status(u16, String),
    Stream,
    Cut,
}

/// The first so many calls are made; godex takes no more from any model.
const MAX_CALLS: usize = 128;
const MAX_CHUNKS: usize = 600;
const MAX_WORDS: usize = 50_000;

impl Script {
    /// Whether a command says all that there is to do: then what else the message says asks for nothing.
    pub(super) fn is_obeyed_at_once(&self) -> bool {
        let says = self.echo.is_some() || self.long.is_some() || self.length || self.refuse;
        says || self.fail.is_some() || !self.calls.is_empty()
    }

    pub(super) fn parse(message: &str) -> Self {
        let mut script = Self::default();
        let mut rest = message.trim_start();
        while !rest.is_empty() {
            if let Some(text) = rest.strip_prefix("echo ") {
                // To the very end, lines and blanks included: what comes back is exactly what was sent.
                script.echo = Some(text.to_owned());
                return script;
            }
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            if !script.command(line.trim()) {
                break;
            }
            rest = after.trim_start_matches(['\r', '\n']);
        }
        rest.trim().clone_into(&mut script.rest);
        script
    }

    /// Whether the line is a command; if so it is noted.
    fn command(&mut self, line: &str) -> bool {
        let (word, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim();
        match word {
            "call" => {
                let call = call(argument);
                let is_call = call.is_some();
                self.calls.extend(call.filter(|_| self.calls.len() < MAX_CALLS));
                is_call
            }
            "think" => {
                self.think = Some(argument.to_owned());
                true
            }
            "slow" => set(&mut self.slow, number(argument, MAX_CHUNKS)),
            "long" => set(&mut self.long, number(argument, MAX_WORDS)),
            "length" if argument.is_empty() => {
                self.length = true;
                true
            }
            "refuse" if argument.is_empty() => {
                self.refuse = true;
                true
            }
            "fail" => set(&mut self.fail, fail(argument)),
            _ => false,
        }
    }
}

fn set<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let known = value.is_some();
    if known {
        *place = value;
    }
    known
}

fn number(argument: &str, max: usize) -> Option<usize> {
    argument.parse::<usize>().ok().map(|number| number.min(max))
}

fn call(argument: &str) -> Option<Call> {
    let (name, arguments) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let arguments = arguments.trim();
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:/".contains(&b));
    let is_call = is_name && (arguments.is_empty() || arguments.starts_with('{'));
    let arguments = (!arguments.is_empty()).then(|| arguments.to_owned());
    is_call.then(|| Call { name: name.to_owned(), arguments })
}

fn fail(argument: &str) -> Option<Fail> {
    let (what, message) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    match (what, message.trim()) {
        ("stream", "") => Some(Fail::Stream),
        ("cut", "") => Some(Fail::Cut),
        (status, message) => {
            let status = status.parse().ok().filter(|status| (400..600).contains(status))?;
            let default = || format!("The demo model was asked to fail with status {status}.");
            Some(Fail::Status(status, if message.is_empty() { default() } else { message.to_owned() }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted() {
        let script = Script::parse(&("call f {}\n".repeat(1000) + "x"));
        assert_eq!((script.calls.len(), script.rest.as_str()), (MAX_CALLS, "x"));
    }

    #[test]
    fn reads_commands_and_leaves_text_alone() {
        let call = |name: &str, arguments: Option<&str>| Call {
            name: name.to_owned(),
            arguments: arguments.map(str::to_owned),
        };
        let text = |rest: &str| Script { rest: rest.to_owned(), ..Script::default() };
        let cases = [
            ("", Script::default()),
            ("Hello", text("Hello")),
            ("call me later today", text("call me later today")),
            ("lengthy text", text("lengthy text")),
            ("length of a rope", text("length of a rope")),
            ("slow down", text("slow down")),
            ("fail 200", text("fail 200")),
            ("fail whale", text("fail whale")),
            ("Hi\ncall f", text("Hi\ncall f")),
            (
                "call f {\"a\": 1}\r\ncall g\nthink hard\n\nAnd then?",
                Script {
                    calls: vec![call("f", Some("{\"a\": 1}")), call("g", None)],
                    think: Some("hard".to_owned()),
                    ..text("And then?")
                },
            ),
            ("slow 9999\nx", Script { slow: Some(600), ..text("x") }),
            ("long 3", Script { long: Some(3), ..Script::default() }),
            ("echo  a\nlong 3 ", Script { echo: Some(" a\nlong 3 ".to_owned()), ..Script::default() }),
            ("refuse\nlength", Script { refuse: true, length: true, ..Script::default() }),
            ("fail 429 too fast", Script { fail: Some(Fail::Status(429, "too fast".to_owned())), ..Script::default() }),
            ("fail stream", Script { fail: Some(Fail::Stream), ..Script::default() }),
            ("fail cut", Script { fail: Some(Fail::Cut), ..Script::default() }),
        ];
        for (message, expected) in cases {
            assert_eq!(Script::parse(message), expected, "{message:?}");
        }
    }
}
