//! Reads what `/metrics` answers, in both formats, and takes nothing that is not exactly so.

use std::collections::{BTreeMap, HashSet};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Open,
    Plain,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// Metrics of one name.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) samples: Vec<Sample>,
}

/// All of it, or the first line that is wrong.
pub(super) fn read(text: &str, format: Format) -> Result<Vec<Described>, String> {
    let mut all: Vec<Described> = Vec::new();
    let (mut help, mut names) = (None, HashSet::new());
    let body = match format {
        Format::Open => text.strip_suffix("# EOF\n").ok_or("there is no end")?,
        Format::Plain => text,
    };
    if !body.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    for line in body.lines() {
        let wrong = |why: &str| Err(format!("{why}: {line}"));
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, words) = rest.split_once(' ').ok_or(line)?;
            if !is_name(name) || words.is_empty() || !names.insert(name.to_owned()) {
                return wrong("a name that was there, or no words");
            }
            help = Some(name.to_owned());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or(line)?;
            if help.take().as_deref() != Some(name) || !["counter", "gauge", "histogram"].contains(&kind) {
                return wrong("a type of something else");
            }
            all.push(Described { name: name.to_owned(), kind: kind.to_owned(), samples: Vec::new() });
        } else if line.starts_with('#') {
            return wrong("a comment");
        } else {
            let sample = sample(line).ok_or_else(|| format!("no sample: {line}"))?;
            let family = all.last_mut().ok_or("a sample before all")?;
            if !belongs(&sample, family, format) {
                return wrong("a sample of something else");
            }
            let same = |other: &&Sample| other.name == sample.name && other.labels == sample.labels;
            if family.samples.iter().any(|other| same(&other)) {
                return wrong("twice");
            }
            family.samples.push(sample);
        }
    }
    all.iter().try_for_each(check)?;
    Ok(all)
}

fn belongs(sample: &Sample, family: &Described, format: Format) -> bool {
    let suffixes: &[&str] = match (family.kind.as_str(), format) {
        ("counter", Format::Open) => &["_total"],
        ("histogram", _) => &["_bucket", "_sum", "_count"],
        _ => &[""],
    };
    suffixes.iter().any(|suffix| sample.name.strip_suffix(suffix) == Some(&family.name))
}

/// Buckets, the sum, the count.
type Set = (Vec<(f64, f64)>, Option<f64>, Option<f64>);

/// What must hold of a whole family.
fn check(family: &Described) -> Result<(), String> {
    if family.kind == "counter" && family.samples.iter().any(|sample| sample.value < 0.0) {
        return Err(format!("{} runs backwards", family.name));
    }
    if family.kind == "counter" && !family.samples.iter().all(|sample| sample.name.ends_with("_total")) {
        return Err(format!("{} is called otherwise", family.name));
    }
    if family.kind != "histogram" {
        return Ok(());
    }
    let mut sets: BTreeMap<Vec<(String, String)>, Set> = BTreeMap::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        let bound = labels.remove("le");
        let set = sets.entry(labels.into_iter().collect()).or_default();
        match (sample.name.strip_prefix(&family.name), bound) {
            (Some("_bucket"), Some(bound)) => set.0.push((number(&bound).ok_or("no bound")?, sample.value)),
            (Some("_sum"), None) => set.1 = Some(sample.value),
            (Some("_count"), None) => set.2 = Some(sample.value),
            _ => return Err(format!("{sample:?} is no part of a histogram")),
        }
    }
    for (labels, (buckets, sum, count)) in sets {
        let rises = buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let last = buckets.last().copied();
        if !rises
            || last.map(|(bound, _)| bound) != Some(f64::INFINITY)
            || last.map(|(_, all)| all) != count
            || sum.is_none()
        {
            return Err(format!("{} {labels:?}: {buckets:?} {sum:?} {count:?}", family.name));
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(plain)
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => text.parse().ok(),
        _ => None,
    }
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            if !is_name(label) || labels.insert(label.to_owned(), value).is_some() {
                return None;
            }
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    rest = after.strip_prefix('}')?;
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ')?;
    (is_name(name) && !value.contains(' ')).then_some(())?;
    Some(Sample { name: name.to_owned(), labels, value: number(value)? })
}

/// The text up to the closing quote, and what follows that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut out, mut characters) = (String::new(), text.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((out, &text[at + 1..])),
            '\\' => out.push(match characters.next()?.1 {
                'n' => '\n',
                escaped @ ('\\' | '"') => escaped,
                _ => return None,
            }),
            '\n' => return None,
            other => out.push(other),
        }
    }
    None
}

#[test]
fn the_reader_is_strict() {
    let good = "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"\\\"\\\\\\n\"} 1\n";
    assert_eq!(read(good, Format::Plain).unwrap()[0].samples[0].labels["x"], "\"\\\n");
    for bad in [
        "# HELP a_total A.\n# TYPE a_total counter\na_total 1",
        "# HELP a_total A.\n# TYPE b_total counter\n",
        "# HELP a_total A.\n# TYPE a_total counter\nb 1\n",
        "# HELP a_total A.\n# TYPE a_total counter\na_total 1\na_total 2\n",
        "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"1\" 2\n",
        "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"a\nb\"} 2\n",
        "# HELP a A.\n# TYPE a counter\na 2\n",
        "# HELP h H.\n# TYPE h histogram\nh_sum 1\nh_count 2\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\n",
        "# HELP h H.\n# TYPE h histogram\nh_sum 1\nh_count 1\nh_bucket{le=\"1\"} 1\n",
        "a 1\n",
    ] {
        assert!(read(bad, Format::Plain).is_err(), "{bad}");
    }
    assert!(read(good, Format::Open).is_err());
}
