//! Query strings: the few parameters that lists and retrievals take. Unknown ones are nobody's mistake.

use http::Uri;
use store::{Order, Page};
use wire::json::{Invalid, InvalidCode};

use crate::error::ApiError;

/// Everything that `include` can name.
const INCLUDABLE: &[&str] = &[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];

/// The parameters of a URL, decoded.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// `include` is checked here, and changes nothing: what is stored is shown whole, and what was not asked for when the
    /// response was made is not in it.
    pub(super) fn of(uri: &Uri) -> Result<Self, ApiError> {
        let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let query = Self(pairs.into_owned().collect());
        let named = query.0.iter().filter(|(name, _)| name.split('[').next() == Some("include"));
        for (_, value) in named {
            if !INCLUDABLE.contains(&value.as_str()) {
                return Err(Invalid::value(value, INCLUDABLE).at("include").into());
            }
        }
        Ok(query)
    }

    /// The last value, as everywhere.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.get(name) {
            None | Some("false" | "0" | "") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(other) => Err(Invalid::value(other, &["false", "true"]).at(name).into()),
        }
    }

    /// A number that is not negative.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        let wrong = |code, message: String| Err(Invalid::rule(code, message).at(name).into());
        match text.parse::<i128>() {
            // Beyond all that could be.
            Ok(number) if number > i128::from(u64::MAX) => Ok(Some(u64::MAX)),
            Ok(number) => match u64::try_from(number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => wrong(
                    InvalidCode::IntegerBelowMinValue,
                    format!("integer below minimum value. Expected a value >= 0, but got {number} instead."),
                ),
            },
            Err(_) => {
                let text: String = text.chars().take(64).collect();
                wrong(InvalidCode::InvalidType, format!("expected an integer, but got '{text}' instead."))
            }
        }
    }

    /// `limit`, `order`, `after` of a list.
    pub(super) fn page(&self, max_bytes: usize) -> Result<Page, ApiError> {
        let limit = self.get("limit").map_or(Ok(20), |text| limit(text).map_err(|invalid| invalid.at("limit")))?;
        let order = match self.get("order") {
            Some("asc") => Order::OldestFirst,
            None | Some("desc" | "") => Order::NewestFirst,
            Some(other) => return Err(Invalid::value(other, &["asc", "desc"]).at("order").into()),
        };
        let after = self.get("after").filter(|after| !after.is_empty()).map(str::to_owned);
        Ok(Page { limit, order, max_bytes, after })
    }
}

fn limit(text: &str) -> Result<u32, Invalid> {
    let Ok(number) = text.parse::<i64>() else {
        let digits = text.trim_start_matches(['-', '+']);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Invalid::beyond(text));
        }
        let text: String = text.chars().take(64).collect();
        return Err(Invalid::rule(InvalidCode::InvalidType, format!("expected an integer, but got '{text}' instead.")));
    };
    let wrong = |code, which, than| {
        Err(Invalid::rule(code, format!("integer {which} value. Expected a value {than}, but got {number} instead.")))
    };
    match number {
        ..1 => wrong(InvalidCode::IntegerBelowMinValue, "below minimum", ">= 1"),
        101.. => wrong(InvalidCode::IntegerAboveMaxValue, "above maximum", "<= 100"),
        _ => Ok(u32::try_from(number).unwrap_or(100)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str) -> Result<Page, ApiError> {
        Query::of(&format!("/v1/x?{query}").parse().unwrap())?.page(1)
    }

    #[test]
    fn lists_take_a_limit_an_order_and_a_cursor() {
        let whole = page("limit=100&order=asc&after=msg%5F1&include[]=reasoning.encrypted_content&x=y").unwrap();
        assert_eq!((whole.limit, whole.order, whole.after.as_deref()), (100, Order::OldestFirst, Some("msg_1")));
        let default = page("after=").unwrap();
        assert_eq!((default.limit, default.order, default.after), (20, Order::NewestFirst, None));
        for (query, code, param) in [
            ("limit=0", "integer_below_min_value", "limit"),
            ("limit=-1", "integer_below_min_value", "limit"),
            ("limit=101", "integer_above_max_value", "limit"),
            ("limit=many", "invalid_type", "limit"),
            ("limit=", "invalid_type", "limit"),
            ("order=up", "invalid_value", "order"),
            ("include=secrets", "invalid_value", "include"),
            ("include%5B0%5D=secrets", "invalid_value", "include"),
        ] {
            let error = page(query).unwrap_err();
            assert_eq!(
                (error.status.as_u16(), error.code.domain(), error.param.as_deref()),
                (400, code, Some(param)),
                "{query}"
            );
        }
    }
}
