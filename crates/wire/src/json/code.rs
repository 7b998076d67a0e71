//! The codes for values of a request that do not fit.

crate::codes! {
    /// Why a value of a request is refused: mostly OpenAI's own `error.code`.
    pub enum InvalidCode {
        /// A value has another type than its parameter takes.
        InvalidType = "invalid_type" => "Send the type that the message names.";
        /// A value has the right type and is none of those that are taken there.
        InvalidValue = "invalid_value" => "Send one of the values that the message names.";
        /// A parameter that must be there is missing.
        MissingRequiredParameter = "missing_required_parameter" => "Add the parameter that `param` names.";
        /// Only with `compat.strict`: a parameter that the API does not have.
        UnknownParameter = "unknown_parameter" => "Remove the parameter, or turn `compat.strict` off: then it is ignored with a note.";
        /// A parameter that godex does not serve, or, with `compat.strict`, one that the provider does not take.
        UnsupportedParameter = "unsupported_parameter" => "Remove the parameter; with `compat.strict` off it may be ignored with a note instead.";
        /// A value, a tool or a kind of content that the model or its provider does not take.
        UnsupportedValue = "unsupported_value" => "Remove what `param` names, or use a model that takes it.";
        /// A list that needs an element has none.
        EmptyArray = "empty_array" => "Send at least one element.";
        /// A list has more elements than are taken.
        ArrayAboveMaxLength = "array_above_max_length" => "Send fewer elements; the message has the limit.";
        /// A text is longer than is taken.
        StringAboveMaxLength = "string_above_max_length" => "Shorten the text; the message has the limit.";
        /// An object has more members than are taken.
        ObjectAboveMaxProperties = "object_above_max_properties" => "Send fewer members; the message has the limit.";
        /// An integer is below the least that is taken.
        IntegerBelowMinValue = "integer_below_min_value" => "Raise the value; the message has the limit.";
        /// An integer is above the most that is taken.
        IntegerAboveMaxValue = "integer_above_max_value" => "Lower the value; the message has the limit.";
        /// A number is below the least that is taken.
        DecimalBelowMinValue = "decimal_below_min_value" => "Raise the value; the message has the limit.";
        /// A number is above the most that is taken.
        DecimalAboveMaxValue = "decimal_above_max_value" => "Lower the value; the message has the limit.";
        /// The JSON Schema of an output format or a tool breaks a rule of structured outputs.
        InvalidJsonSchema = "invalid_json_schema" => "Mend the schema where the message says.";
        /// The input has the output of a tool call that neither the input nor the stored history has.
        UnknownCall = "bridge.history.unknown_call" => "Send the call before its output, or name the response that made it with `previous_response_id`.";
    }
}
