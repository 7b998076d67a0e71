//! What a key, a token or a tenant may do: models, hosted tools, limits, a budget. In the store it is JSON, in
//! `godex.yaml` members of the key's entry, on the command line flags; the words are the same.

use std::fmt;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use store::dollars;

/// The most tokens per minute that can be said, and that several instances can share.
pub const MOST_TPM: u64 = 1 << 50;

/// What may be done. What is not said is not limited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
// What a newer version has added is a limit that this one would not keep.
#[serde(default, deny_unknown_fields)]
pub struct Terms {
    /// Models and aliases, each as clients name it; a `*` at the end stands for anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// Hosted tools: `web_search`, `mcp` (every MCP server) or `mcp:LABEL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Requests that ask a model, per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpm: Option<u64>,
    /// Tokens per minute, both ways together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpm: Option<u64>,
    /// Turns at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// Background responses that wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<u64>,
    /// Bytes of request bodies in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

impl Terms {
    /// Whether a model may be asked for by this name.
    pub fn allow_model(&self, name: &str) -> bool {
        self.models.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| fits(pattern, name)))
    }

    /// Whether a hosted tool may be used: `web_search`, or `mcp:LABEL`.
    pub fn allow_tool(&self, tool: &str) -> bool {
        let named = |allowed: &String| {
            allowed == tool || tool.strip_prefix(allowed.as_str()).is_some_and(|rest| rest.starts_with(':'))
        };
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(named))
    }

    /// As the store keeps it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// # Errors
    /// It was not written by this version, or by one that knew less.
    /// As it is sent: a list would be read as the members in their order, and an empty one as no limit at all.
    pub(crate) fn of_object<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Terms;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, members: M) -> Result<Terms, M::Error> {
                Terms::deserialize(MapAccessDeserializer::new(members))
            }
        }
        from.deserialize_map(Members)
    }

    pub fn from_json(json: &str) -> Result<Self, String> {
        // A list would be read as the members in their order.
        if !json.trim_start().starts_with('{') {
            return Err("expected an object".to_owned());
        }
        serde_json::from_str(json).map_err(|error| error.to_string())
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// What may be spent in a period: `50usd/month`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Billionths of a US dollar.
    pub nanodollars: u64,
    pub per: Period,
}

/// Calendar periods, in UTC; weeks begin on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    Day,
    Week,
    Month,
    /// For good.
    Total,
}

impl Period {
    const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Total];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Total => "total",
        }
    }
}

const NANO: u64 = 1_000_000_000;

/// Why a budget is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a budget such as `50usd/month`; periods are day, week, month, total")]
pub struct NoBudget;

impl FromStr for Budget {
    type Err = NoBudget;

    fn from_str(text: &str) -> Result<Self, NoBudget> {
        let (amount, per) = text.split_once('/').ok_or(NoBudget)?;
        let per = Period::ALL.into_iter().find(|period| period.name() == per).ok_or(NoBudget)?;
        let amount = amount.trim().strip_suffix("usd").ok_or(NoBudget)?.trim_end();
        let (whole, part) = amount.split_once('.').unwrap_or((amount, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 9 {
            return Err(NoBudget);
        }
        let (whole, part) = (whole.parse::<u64>().map_err(|_| NoBudget)?, format!("{part:0<9}"));
        let part = part.parse::<u64>().map_err(|_| NoBudget)?;
        let nanodollars = whole.checked_mul(NANO).and_then(|nano| nano.checked_add(part)).ok_or(NoBudget)?;
        // What a database's integer can count.
        (i64::try_from(nanodollars).is_ok()).then_some(Self { nanodollars, per }).ok_or(NoBudget)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}usd/{}", dollars(self.nanodollars), self.per.name())
    }
}

impl Serialize for Budget {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_read_as_they_are_written() {
        for (text, nanodollars, shown) in [
            ("50usd/month", Some(50 * NANO), "50usd/month"),
            ("0.25usd/day", Some(NANO / 4), "0.25usd/day"),
            ("1.000000001usd/week", Some(NANO + 1), "1.000000001usd/week"),
            ("0usd/total", Some(0), "0usd/total"),
            ("10 usd/total", Some(10 * NANO), "10usd/total"),
            ("50", None, ""),
            ("50usd", None, ""),
            ("50eur/month", None, ""),
            ("-1usd/month", None, ""),
            ("1e9usd/month", None, ""),
            (".5usd/month", None, ""),
            ("5.usd/month", None, ""),
            ("0.0000000001usd/month", None, ""),
            ("50usd/year", None, ""),
            ("99999999999usd/month", None, ""),
        ] {
            let budget = text.parse::<Budget>().ok();
            assert_eq!(budget.map(|budget| budget.nanodollars), nanodollars, "{text}");
            assert_eq!(budget.map_or(String::new(), |budget| budget.to_string()), shown, "{text}");
        }
    }

    #[test]
    fn models_and_tools_are_allowed_by_name() {
        let terms = Terms {
            models: Some(vec!["fast".into(), "deepseek/*".into()]),
            tools: Some(vec!["web_search".into(), "mcp:clock".into()]),
            ..Terms::default()
        };
        for (name, allowed) in
            [("fast", true), ("faster", false), ("deepseek/chat", true), ("deepseek", false), ("openai/fast", false)]
        {
            assert_eq!(terms.allow_model(name), allowed, "{name}");
            assert!(Terms::default().allow_model(name));
        }
        let all_servers = Terms { tools: Some(vec!["mcp".into()]), ..Terms::default() };
        let nothing = Terms { tools: Some(Vec::new()), models: Some(Vec::new()), ..Terms::default() };
        for (tool, some, servers) in [
            ("web_search", true, false),
            ("mcp:clock", true, true),
            ("mcp:clocks", false, true),
            ("mcp:files", false, true),
        ] {
            assert_eq!((terms.allow_tool(tool), all_servers.allow_tool(tool)), (some, servers), "{tool}");
            assert!(Terms::default().allow_tool(tool) && !nothing.allow_tool(tool));
        }
        assert!(!nothing.allow_model("fast"));
    }

    #[test]
    fn terms_come_back_from_the_store_and_unknown_limits_do_not_pass() {
        let terms = Terms {
            models: Some(vec!["fast".into()]),
            rpm: Some(60),
            budget: "2.5usd/day".parse().ok(),
            ..Terms::default()
        };
        assert_eq!(terms.to_json(), r#"{"models":["fast"],"rpm":60,"budget":"2.5usd/day"}"#);
        assert_eq!(Terms::from_json(&terms.to_json()), Ok(terms));
        assert_eq!(Terms::from_json("{}"), Ok(Terms::default()));
        assert!(Terms::from_json(r#"{"rph":5}"#).is_err());
        assert!(Terms::from_json(r#"{"budget":"5"}"#).is_err());
    }
}
