//! The two text formats that monitors ask for: `OpenMetrics`, and the older one of Prometheus.

use http::{HeaderMap, header};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Open,
    Plain,
}

impl Format {
    /// `OpenMetrics` only for those who name it.
    pub(super) fn wanted(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let names_it = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            let is_it = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/openmetrics-text"));
            is_it && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        };
        if values.flat_map(|value| value.split(',')).any(names_it) { Self::Open } else { Self::Plain }
    }

    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Open => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// A text of `OpenMetrics` without its end, in this format.
    pub(super) fn finish(self, mut text: String) -> String {
        match self {
            Self::Open => {
                text.push_str("# EOF\n");
                text
            }
            Self::Plain => plain(&text),
        }
    }
}

/// There a counter is called as its samples are.
fn plain(text: &str) -> String {
    let counters: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let mut out = String::with_capacity(text.len() + 1024);
    for line in text.lines() {
        let described = ["# HELP ", "# TYPE "].into_iter().find_map(|kind| Some((kind, line.strip_prefix(kind)?)));
        match described.and_then(|(kind, rest)| Some((kind, rest.split_once(' ')?))) {
            Some((kind, (name, rest))) if counters.contains(&name) => {
                for part in [kind, name, "_total ", rest] {
                    out.push_str(part);
                }
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_newer_format_is_for_those_who_name_it() {
        for (accept, format) in [
            (None, Format::Plain),
            (Some("*/*"), Format::Plain),
            (Some("text/plain"), Format::Plain),
            (Some("application/openmetrics-text"), Format::Open),
            (
                Some(
                    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;q=0.3",
                ),
                Format::Open,
            ),
            (Some("application/openmetrics-text;q=0, text/plain"), Format::Plain),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(accept.map(|accept| (header::ACCEPT, HeaderValue::from_static(accept))));
            assert_eq!(Format::wanted(&headers), format, "{accept:?}");
        }
    }

    #[test]
    fn counters_are_called_as_their_samples() {
        let open = "# HELP a Of a b.\n# TYPE a counter\na_total{x=\"# TYPE\"} 1\n# HELP b B.\n# TYPE b gauge\nb 2\n"
            .to_owned();
        assert_eq!(Format::Open.finish(open.clone()), format!("{open}# EOF\n"));
        let plain = "# HELP a_total Of a b.\n# TYPE a_total counter\na_total{x=\"# TYPE\"} 1\n# HELP b B.\n# TYPE b gauge\nb 2\n";
        assert_eq!(Format::Plain.finish(open), plain);
    }
}
