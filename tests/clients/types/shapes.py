"""Values that differ only in what they say have one shape: the compiler need not read them all."""

import json


def shape(value, free, key=None):
    """The value without its numbers, and without the text of the members that are named as free."""
    if isinstance(value, dict):
        return {name: shape(member, free, name) for name, member in value.items()}
    if isinstance(value, list):
        return [json.loads(text) for text in sorted({json.dumps(shape(element, free, key)) for element in value})]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return 0
    return "" if key in free and value else value
