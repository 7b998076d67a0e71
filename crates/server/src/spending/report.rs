//! Reports of what was used: in the shapes of OpenAI's `/v1/organization/usage/completions` and `/v1/organization/costs`,
//! and plainly, for `godex usage`. A cost that is not known is null, and never 0.
//!
//! They read the store, once for each answer, and change nothing.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use bytes::Bytes;
use store::{Store, UsageBy, UsageKey, UsageQuery, UsageSum, dollars};
use wire::json::{InvalidCode, ObjectWriter};

use crate::clock::{self, day_name};
use crate::error::{ApiError, clip};

const HOUR: i64 = 3600;
const DAY_HOURS: i64 = 24;
/// What a list in a query may have.
const MOST_VALUES: usize = 256;
/// What a plain report may have: more is for a narrower question.
const MOST_ROWS: usize = 100_000;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("{message}")]
    Invalid { param: String, message: String },
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<ReportError> for ApiError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Invalid { param, message } => {
                Self::bad_request(InvalidCode::InvalidValue, message).with_param(param)
            }
            ReportError::Store(error) => Self::store(&error),
        }
    }
}

fn invalid(param: &str, message: impl Into<String>) -> ReportError {
    ReportError::Invalid { param: param.to_owned(), message: message.into() }
}

// === OpenAI's shapes ===

/// What differs between the two.
struct Shape {
    /// The widths of buckets, in hours: the name, how many come unless it is said, and how many may be asked for.
    widths: &'static [(&'static str, i64, u64, u64)],
    groups: &'static [&'static str],
    write: fn(Grouped, &UsageKey, &UsageSum, &mut Vec<u8>),
    /// Whether it is of answers of models alone.
    answers_only: bool,
}

const COMPLETIONS: Shape = Shape {
    widths: &[("1d", DAY_HOURS, 7, 31), ("1h", 1, 24, 168)],
    groups: &["project_id", "api_key_id", "model"],
    write: completion,
    answers_only: true,
};

const COSTS: Shape = Shape {
    widths: &[("1d", DAY_HOURS, 7, 180)],
    groups: &["project_id", "api_key_id", "line_item"],
    write: cost,
    answers_only: false,
};

/// `GET /v1/organization/usage/completions?…`: what models were used for. `query` is the URL's, without the mark.
///
/// # Errors
/// A parameter that cannot be, or a store that does not answer.
pub async fn completions(store: &Store, query: &str) -> Result<Bytes, ReportError> {
    page(store, query, &COMPLETIONS, now()).await
}

/// `GET /v1/organization/costs?…`: what it cost, with the calls of hosted tools.
///
/// # Errors
/// A parameter that cannot be, or a store that does not answer.
pub async fn costs(store: &Store, query: &str) -> Result<Bytes, ReportError> {
    page(store, query, &COSTS, now()).await
}

fn now() -> i64 {
    i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX)
}

/// The parameters of a URL, lists as they are written in all of the usual ways.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(query: &str) -> Self {
        let pairs = url::form_urlencoded::parse(query.as_bytes()).into_owned();
        let name = |name: String| name.split('[').next().unwrap_or_default().to_owned();
        Self(pairs.map(|(key, value)| (name(key), value)).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    fn list(&self, name: &str) -> Result<Vec<String>, ReportError> {
        let values = self.0.iter().filter(|(key, _)| key == name).flat_map(|(_, value)| value.split(','));
        let values: Vec<String> = values.filter(|value| !value.is_empty()).map(str::to_owned).collect();
        if values.len() > MOST_VALUES {
            return Err(invalid(name, format!("Invalid '{name}': more than {MOST_VALUES} values.")));
        }
        Ok(values)
    }

    fn number(&self, name: &str) -> Result<Option<u64>, ReportError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let wrong = || invalid(name, format!("Invalid '{name}': expected a whole number, but got '{}'.", clip(text)));
        text.parse().map(Some).map_err(|_| wrong())
    }

    fn seconds(&self, name: &str) -> Result<Option<i64>, ReportError> {
        /// The year 9999.
        const LATEST: u64 = 253_402_300_799;
        let number = self.number(name)?;
        if number.is_some_and(|number| number > LATEST) {
            return Err(invalid(name, format!("Invalid '{name}': expected Unix seconds.")));
        }
        Ok(number.and_then(|number| i64::try_from(number).ok()))
    }
}

/// By what results are told apart.
#[derive(Debug, Clone, Copy, Default)]
struct Grouped {
    project: bool,
    key: bool,
    model: bool,
}

async fn page(store: &Store, query: &str, shape: &Shape, now: i64) -> Result<Bytes, ReportError> {
    let query = Query::of(query);
    for name in ["user_ids", "batch"] {
        if query.get(name).is_some_and(|value| value != "false") {
            return Err(invalid(name, format!("Unsupported parameter: '{name}' is not known here.")));
        }
    }
    let names: Vec<&str> = shape.widths.iter().map(|(name, ..)| *name).collect();
    let width = query.get("bucket_width").unwrap_or("1d");
    let Some((_, width, usual, most)) = shape.widths.iter().find(|(name, ..)| *name == width) else {
        let message = format!("Invalid 'bucket_width': '{}'. Supported: {}.", clip(width), names.join(", "));
        return Err(invalid("bucket_width", message));
    };
    let grouped = group(&query.list("group_by")?, shape)?;
    let limit = query.number("limit")?.unwrap_or(*usual);
    if !(1..=*most).contains(&limit) {
        return Err(invalid("limit", format!("Invalid 'limit': expected a number from 1 to {most}, but got {limit}.")));
    }
    let Some(start) = query.seconds("start_time")? else {
        return Err(invalid("start_time", "Missing required parameter: 'start_time'."));
    };
    let end = query.seconds("end_time")?.unwrap_or(now);
    if end <= start && query.get("end_time").is_some() {
        return Err(invalid("end_time", "Invalid 'end_time': it must be later than 'start_time'."));
    }
    // Buckets are whole days or hours, UTC.
    let first = (start / HOUR).div_euclid(*width) * width;
    let last = (end.max(start + 1) + HOUR * width - 1) / (HOUR * width) * width;
    let from = match query.get("page") {
        Some(page) => cursor(page, first, last, *width)?,
        None => first,
    };
    let to = last.min(from + width * i64::try_from(limit).unwrap_or(1));
    let models = query.list("models")?;
    let asked = UsageQuery {
        from,
        to,
        tenants: query.list("project_ids")?,
        keys: query.list("api_key_ids")?,
        // With the provider's name before it, as it is shown, or without.
        models: models
            .iter()
            .flat_map(|model| [Some(model.as_str()), model.split_once('/').map(|(_, model)| model)])
            .flatten()
            .map(str::to_owned)
            .collect(),
        by: UsageBy { tenant: grouped.project, key: grouped.key, provider: true, model: true, hours: *width },
    };
    let mut rows = store.usage(asked).await?;
    rows.retain(|(key, _)| {
        models.is_empty() || models.iter().any(|model| *model == key.model || *model == full_model(key))
    });
    Ok(write_page(&buckets(rows, grouped, *width, shape), grouped, (from, to, last, *width), shape))
}

fn group(names: &[String], shape: &Shape) -> Result<Grouped, ReportError> {
    let mut grouped = Grouped::default();
    for name in names {
        match name.as_str() {
            name if !shape.groups.contains(&name) => {
                let message = format!("Invalid 'group_by': '{}'. Supported: {}.", clip(name), shape.groups.join(", "));
                return Err(invalid("group_by", message));
            }
            "project_id" => grouped.project = true,
            "api_key_id" => grouped.key = true,
            _ => grouped.model = true,
        }
    }
    Ok(grouped)
}

fn cursor(page: &str, first: i64, last: i64, width: i64) -> Result<i64, ReportError> {
    let hour = page.strip_prefix("page_").and_then(|hour| hour.parse::<i64>().ok());
    let fits = |hour: &i64| (first..last).contains(hour) && (hour - first) % width == 0;
    hour.filter(fits).ok_or_else(|| invalid("page", "Invalid 'page': expected 'next_page' of the page before."))
}

/// Results by the bucket's first hour, in the store's order.
type Buckets = BTreeMap<i64, Vec<(UsageKey, UsageSum)>>;

fn buckets(rows: Vec<(UsageKey, UsageSum)>, grouped: Grouped, width: i64, shape: &Shape) -> Buckets {
    let mut buckets = Buckets::new();
    for (mut key, sum) in rows {
        // Calls of tools have no tokens.
        if shape.answers_only && sum.requests == 0 {
            continue;
        }
        let hour = key.hour.div_euclid(width) * width;
        key.hour = 0;
        if !grouped.model {
            (key.provider, key.model) = (String::new(), String::new());
        }
        let results = buckets.entry(hour).or_default();
        match results.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => known.add(sum),
            None => results.push((key, sum)),
        }
    }
    buckets
}

fn write_page(
    buckets: &Buckets,
    grouped: Grouped,
    (from, to, last, width): (i64, i64, i64, i64),
    shape: &Shape,
) -> Bytes {
    let mut body = Vec::with_capacity(1024);
    let mut page = ObjectWriter::new(&mut body);
    page.text("object", "page");
    let data = page.key("data");
    data.push(b'[');
    let mut hour = from;
    while hour < to {
        if hour > from {
            data.push(b',');
        }
        let mut bucket = ObjectWriter::new(data);
        bucket.text("object", "bucket").int("start_time", seconds(hour)).int("end_time", seconds(hour + width));
        let results = bucket.key("results");
        results.push(b'[');
        for (index, (key, sum)) in buckets.get(&hour).into_iter().flatten().enumerate() {
            if index > 0 {
                results.push(b',');
            }
            (shape.write)(grouped, key, sum, results);
        }
        results.push(b']');
        bucket.end();
        hour += width;
    }
    data.push(b']');
    page.bool("has_more", to < last);
    if to < last {
        page.text("next_page", &format!("page_{to}"));
    } else {
        page.null("next_page");
    }
    page.end();
    body.into()
}

fn seconds(hour: i64) -> u64 {
    u64::try_from(hour * HOUR).unwrap_or(0)
}

fn named(object: &mut ObjectWriter<'_>, name: &str, value: &str, is_grouped: bool) {
    if is_grouped && !value.is_empty() {
        object.text(name, value);
    } else {
        object.null(name);
    }
}

fn completion(grouped: Grouped, key: &UsageKey, sum: &UsageSum, out: &mut Vec<u8>) {
    let mut result = ObjectWriter::new(out);
    result.text("object", "organization.usage.completions.result");
    result.int("input_tokens", sum.input_tokens).int("output_tokens", sum.output_tokens);
    result.int("input_cached_tokens", sum.cached_tokens).int("num_model_requests", sum.requests);
    result.int("input_audio_tokens", 0_u64).int("output_audio_tokens", 0_u64);
    named(&mut result, "project_id", &key.tenant, grouped.project);
    result.null("user_id");
    named(&mut result, "api_key_id", &key.key, grouped.key);
    named(&mut result, "model", &full_model(key), grouped.model);
    result.null("batch").null("service_tier");
    result.end();
}

fn cost(grouped: Grouped, key: &UsageKey, sum: &UsageSum, out: &mut Vec<u8>) {
    let mut result = ObjectWriter::new(out);
    result.text("object", "organization.costs.result");
    match known_cost(sum) {
        Some(nanodollars) => {
            let mut amount = ObjectWriter::new(result.key("amount"));
            amount.json("value", dollars(nanodollars).as_bytes()).text("currency", "usd");
            amount.end();
        }
        None => {
            result.null("amount");
        }
    }
    named(&mut result, "line_item", &full_model(key), grouped.model);
    named(&mut result, "project_id", &key.tenant, grouped.project);
    named(&mut result, "api_key_id", &key.key, grouped.key);
    result.end();
}

/// As clients name it.
fn full_model(key: &UsageKey) -> String {
    if key.provider.is_empty() { key.model.clone() } else { format!("{}/{}", key.provider, key.model) }
}

/// What is known of the cost; None where nothing is.
fn known_cost(sum: &UsageSum) -> Option<u64> {
    let all = sum.requests + sum.tool_calls;
    (sum.unpriced == 0 || sum.unpriced < all || sum.nanodollars > 0).then_some(sum.nanodollars)
}

// === for people ===

/// What a plain report tells apart, in the order of its columns.
const COLUMNS: &[&str] = &["day", "tenant", "key", "provider", "model"];

/// What was used, one row for each of what `by` names (`day`, `tenant`, `key`, `model`, with commas): of the days from
/// `since` to now (Unix seconds, both in `query`), as a JSON object `{"rows": […]}`.
///
/// # Errors
/// A parameter that cannot be, or a store that does not answer.
pub async fn plain(store: &Store, query: &str) -> Result<Bytes, ReportError> {
    let query = Query::of(query);
    let by = query.list("by")?;
    if let Some(unknown) = by.iter().find(|name| !COLUMNS.contains(&name.as_str())) {
        let message = format!("usage is not told apart by '{}'; by {}", clip(unknown), COLUMNS.join(", "));
        return Err(invalid("by", message));
    }
    let has = |name: &str| by.iter().any(|known| known == name);
    let by = UsageBy {
        tenant: has("tenant"),
        key: has("key"),
        provider: has("provider") || has("model"),
        model: has("model"),
        hours: if has("day") { DAY_HOURS } else { 0 },
    };
    let since = query.seconds("since")?.unwrap_or(0);
    // Whole days; and what was counted by a clock that was ahead is not left out.
    let from = (since / HOUR).div_euclid(DAY_HOURS) * DAY_HOURS;
    let rows = store.usage(UsageQuery { from, to: i64::MAX / HOUR, by, ..UsageQuery::default() }).await?;
    if rows.len() > MOST_ROWS {
        return Err(invalid("by", format!("more than {MOST_ROWS} rows; ask for fewer days, or by less")));
    }
    let names = if by.key { store.access_list(None).await?.unwrap_or_default().keys } else { Vec::new() };
    let names = names.into_iter().map(|key| (key.id, key.name)).collect();
    Ok(write_rows(&rows, by, &names))
}

fn write_rows(rows: &[(UsageKey, UsageSum)], by: UsageBy, names: &HashMap<String, String>) -> Bytes {
    let mut body = b"{\"rows\":[".to_vec();
    for (index, (key, sum)) in rows.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        let mut row = ObjectWriter::new(&mut body);
        let day = day_name(key.hour.div_euclid(DAY_HOURS));
        for (is_told, name, value) in [
            (by.hours > 0, "day", &day),
            (by.tenant, "tenant", &key.tenant),
            (by.key, "key", &key.key),
            (by.model, "model", &full_model(key)),
            (by.provider && !by.model, "provider", &key.provider),
        ] {
            if is_told {
                row.text(name, value);
            }
        }
        if let Some(name) = names.get(&key.key) {
            row.text("key_name", name);
        }
        row.int("requests", sum.requests).int("input_tokens", sum.input_tokens);
        row.int("cached_tokens", sum.cached_tokens).int("output_tokens", sum.output_tokens);
        row.int("reasoning_tokens", sum.reasoning_tokens).int("tool_calls", sum.tool_calls);
        row.int("unpriced", sum.unpriced);
        match known_cost(sum) {
            // Text: a number would be read as a float.
            Some(nanodollars) => row.text("cost_usd", &dollars(nanodollars)),
            None => row.null("cost_usd"),
        };
        row.end();
    }
    body.extend_from_slice(b"]}");
    body.into()
}

/// How many seconds `30d`, `12h` or `2w` are.
pub fn span(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// The query of a plain report since so many seconds ago.
pub fn plain_query(by: &str, ago: u64) -> String {
    let mut query = String::new();
    let since = clock::unix_seconds().saturating_sub(ago);
    // Writing to a String cannot fail.
    let _ = write!(query, "since={since}&by=");
    query.extend(url::form_urlencoded::byte_serialize(by.as_bytes()));
    query
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
