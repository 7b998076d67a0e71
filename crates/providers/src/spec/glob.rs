//! Patterns for the names of models: `*` is any text, `?` one character; case does not count.

pub(super) fn matches(pattern: &str, name: &str) -> bool {
    // Nearly all are plain: these are compared where they are.
    if pattern.is_ascii() && name.is_ascii() {
        return fits(pattern.as_bytes(), name.as_bytes(), u8::eq_ignore_ascii_case);
    }
    let fold = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    fits(&fold(pattern), &fold(name), char::eq)
}

fn fits<T: Copy + PartialEq + From<u8>>(pattern: &[T], name: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    let (any, one) = (T::from(b'*'), T::from(b'?'));
    let (mut at, mut read) = (0, 0);
    // Where the last `*` is, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while let Some(character) = name.get(read) {
        match pattern.get(at) {
            Some(wanted) if *wanted == any => {
                star = Some((at, read));
                at += 1;
            }
            Some(wanted) if *wanted == one || same(wanted, character) => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((start, taken)) = star else { return false };
                star = Some((start, taken + 1));
                (at, read) = (start + 1, taken + 1);
            }
        }
    }
    pattern.get(at..).is_none_or(|rest| rest.iter().all(|character| *character == any))
}

/// A name rather than a pattern.
pub(super) fn is_exact(pattern: &str) -> bool {
    !pattern.contains(['*', '?'])
}

#[test]
fn names_and_patterns() {
    for (pattern, name, expected) in [
        ("glm-5.2", "glm-5.2", true),
        ("glm-5.2", "GLM-5.2", true),
        ("glm-5.2", "glm-5.2-air", false),
        ("glm-*v*", "glm-4.6v", true),
        ("glm-*v*", "glm-4.5V-flash", true),
        ("glm-*v*", "glm-5.2", false),
        ("*", "", true),
        ("**", "x", true),
        ("?", "", false),
        ("o?-*", "o3-mini", true),
        ("o?-*", "o3", false),
        ("*/kimi-k3*", "moonshotai/kimi-k3-preview", true),
        ("a*b*c", "aXbXbXc", true),
        ("a*b*c", "aXbXbX", false),
        ("é*", "Éa", true),
        ("glm*é", "GLM-É", true),
        ("a?", "aé", true),
        ("", "x", false),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
    let (pattern, name) = ("*a".repeat(40) + "b", "a".repeat(4000));
    assert!(!matches(&pattern, &name), "and it does not take for ever");
}
