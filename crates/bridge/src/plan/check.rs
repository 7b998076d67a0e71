//! Ranges and limits of parameters, as OpenAI's API states and words them.

use wire::json::{Invalid, InvalidCode, Kind, Number, Object, Text};
use wire::responses::CreateResponse;

/// Refuses values outside the documented ranges.
pub(super) fn ranges(request: &CreateResponse<'_>) -> Result<(), Invalid> {
    if request.model.is_none_or(|model| model.decode().trim().is_empty()) {
        return Err(Invalid::missing().at("model"));
    }
    decimal(request.temperature, 0.0, 2.0).map_err(|e| e.at("temperature"))?;
    decimal(request.top_p, 0.0, 1.0).map_err(|e| e.at("top_p"))?;
    decimal(request.presence_penalty, -2.0, 2.0).map_err(|e| e.at("presence_penalty"))?;
    decimal(request.frequency_penalty, -2.0, 2.0).map_err(|e| e.at("frequency_penalty"))?;
    integer(request.max_output_tokens, 16, i64::MAX).map_err(|e| e.at("max_output_tokens"))?;
    integer(request.max_tool_calls, 1, i64::MAX).map_err(|e| e.at("max_tool_calls"))?;
    integer(request.top_logprobs, 0, 20).map_err(|e| e.at("top_logprobs"))?;
    one_of(request.truncation, &["auto", "disabled"]).map_err(|e| e.at("truncation"))?;
    metadata(request.metadata)
}

fn decimal(value: Option<Number<'_>>, min: f64, max: f64) -> Result<(), Invalid> {
    let Some(Number { value, .. }) = value else { return Ok(()) };
    if value < min {
        let message = format!("decimal below minimum value. Expected a value >= {min}, but got {value} instead.");
        return Err(Invalid::rule(InvalidCode::DecimalBelowMinValue, message));
    }
    if value > max {
        let message = format!("decimal above maximum value. Expected a value <= {max}, but got {value} instead.");
        return Err(Invalid::rule(InvalidCode::DecimalAboveMaxValue, message));
    }
    Ok(())
}

fn integer(value: Option<i64>, min: i64, max: i64) -> Result<(), Invalid> {
    let Some(value) = value else { return Ok(()) };
    if value < min {
        let message = format!("integer below minimum value. Expected a value >= {min}, but got {value} instead.");
        return Err(Invalid::rule(InvalidCode::IntegerBelowMinValue, message));
    }
    if value > max {
        let message = format!("integer above maximum value. Expected a value <= {max}, but got {value} instead.");
        return Err(Invalid::rule(InvalidCode::IntegerAboveMaxValue, message));
    }
    Ok(())
}

fn one_of(value: Option<Text<'_>>, supported: &'static [&'static str]) -> Result<(), Invalid> {
    match value {
        Some(text) if !supported.iter().any(|name| text.is(name)) => Err(Invalid::value(&text.decode(), supported)),
        _ => Ok(()),
    }
}

/// At most 16 pairs of strings, keys up to 64 characters, values up to 512.
pub fn metadata(given: Option<Object<'_>>) -> Result<(), Invalid> {
    let Some(metadata) = given else { return Ok(()) };
    for (count, (key, value)) in metadata.0.fields().enumerate() {
        let name = key.decode();
        let at = |invalid: Invalid| invalid.at(&name).at("metadata");
        if count == 16 {
            let message = "object has too many properties. Expected at most 16.";
            return Err(Invalid::rule(InvalidCode::ObjectAboveMaxProperties, message).at("metadata"));
        }
        if value.kind() != Kind::String {
            return Err(at(Invalid::expected("a string", value)));
        }
        if name.chars().count() > 64 {
            return Err(at(Invalid::rule(
                InvalidCode::StringAboveMaxLength,
                "key too long. Expected at most 64 characters.",
            )));
        }
        if value.text().is_some_and(|text| text.decode().chars().count() > 512) {
            return Err(at(Invalid::rule(
                InvalidCode::StringAboveMaxLength,
                "string too long. Expected at most 512 characters.",
            )));
        }
    }
    Ok(())
}
