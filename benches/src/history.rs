//! The history of a coding agent as a Responses `input`: questions, calls, and outputs full of code, with the
//! quotes, backslashes and newlines that make such text dear to copy.

use serde_json::{Value, json};

/// An `input` array of about this many bytes of JSON.
pub(crate) fn input(bytes: usize) -> Value {
    let mut items = vec![json!({"role": "user", "content": "Please make the failing test pass."})];
    let mut size = 0;
    for turn in 0.. {
        if size >= bytes {
            break;
        }
        let round = round(turn);
        size += round.iter().map(|item| item.to_string().len() + 1).sum::<usize>();
        items.extend(round);
    }
    items.push(json!({"role": "user", "content": "And now the next one."}));
    Value::Array(items)
}

/// One step of the agent: what it said, the command it ran, the file it got back.
fn round(turn: usize) -> Vec<Value> {
    let call = format!("call_{turn:08}");
    let command = json!({"command": ["bash", "-lc", format!("sed -n '{},+80p' \"src/part_{turn}.rs\"", turn * 80)],
        "workdir": "/home/dev/project", "timeout_ms": 10000});
    let said = format!("I'll look at part {turn}: the \"retry\" path, then C:\\temp\\trace.log.");
    vec![
        json!({"role": "user", "content": [{"type": "input_text", "text": format!("Step {turn}: go on.")}]}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}),
        json!({"type": "function_call", "call_id": call, "name": "shell", "arguments": command.to_string()}),
        json!({"type": "function_call_output", "call_id": call, "output": code(turn)}),
    ]
}

/// About 4 KB of something like Rust.
fn code(turn: usize) -> String {
    let line = |number: usize| match number % 4 {
        0 => format!("    fn step_{turn}_{number}(&self, name: &str) -> Result<(), Error> {{\n"),
        1 => format!("\tlet path = format!(\"{{}}\\\\{{name}}-{number}.log\", self.root);\n"),
        2 => "        assert_eq!(read(&path)?, \"caf\u{e9} \u{2713} \\\"quoted\\\"\\n\"); // why: see #42\n".to_owned(),
        _ => "        Ok(())\n    }\n\n".to_owned(),
    };
    (0..72).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::input;

    #[test]
    fn the_size_is_about_right() {
        for wanted in [200_000, 2_000_000] {
            let size = input(wanted).to_string().len();
            assert!((wanted..wanted + 10_000).contains(&size), "{size}");
        }
    }
}
