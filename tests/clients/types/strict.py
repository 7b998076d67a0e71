"""Values against the types of SDKs, strictly: no conversion, and no member that the types do not have."""

import functools
import json
import os
import typing
from collections.abc import Iterable, Sequence

import typing_extensions
from pydantic import BaseModel, Field, TypeAdapter, ValidationError


def problems(of, value):
    """What is wrong with a value by a type: a model, or what `closed` makes."""
    try:
        read = adapter(of).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        return [f"{place(problem['loc'])}: {problem['msg']}" for problem in error.errors()]
    return [f"{path}: no such member" for path in sorted(set(extras(read)))]


def place(steps):
    """Without the steps that only name a type."""
    return "".join(f"/{step}" for step in steps if "[" not in str(step))


@functools.cache
def adapter(of):
    return TypeAdapter(of)


def extras(value, path=""):
    """The members that models do not have. They keep them; dictionaries that are closed refuse them."""
    if isinstance(value, BaseModel):
        yield from (f"{path}/{name}" for name in value.model_extra or {})
        for name in type(value).model_fields:
            yield from extras(getattr(value, name, None), f"{path}/{name}")
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from extras(element, f"{path}/*")


@functools.cache
def closed(of):
    """A type of what is sent, with nothing left open. Python's are dictionaries, to which anything may be added, of
    iterables, which would only be looked at by who iterates over them."""
    if typing_extensions.is_typeddict(of):
        return dictionary(of.__name__, members(of), getattr(of, "__pydantic_config__", {}).get("extra", "forbid"))
    origin, arguments = typing_extensions.get_origin(of), typing_extensions.get_args(of)
    if origin is typing.Annotated:
        return closed(arguments[0])
    if origin in (typing_extensions.Required, typing_extensions.NotRequired):
        return origin[closed(arguments[0])]
    if origin in (list, Iterable, Sequence):
        return list[closed(arguments[0])]
    if origin is typing.Union:
        return union(tuple(closed(each) for each in arguments if not is_object(each)))
    return of


def is_object(of):
    """What only Python can pass: a file, or what was received, which may be sent again."""
    origin, arguments = typing_extensions.get_origin(of), typing_extensions.get_args(of)
    if origin is typing.Annotated:
        return is_object(arguments[0])
    if origin is typing.Union:
        return all(map(is_object, arguments))
    of = origin or of
    return isinstance(of, type) and issubclass(of, (BaseModel, typing.IO, os.PathLike))


def members(of):
    """The members of a dictionary, each with its closed type."""
    return {name: closed(hint) for name, hint in typing_extensions.get_type_hints(of, include_extras=True).items()}


def dictionary(name, of, extra="forbid"):
    made = typing_extensions.TypedDict(name, of, total=False)
    made.__pydantic_config__ = {"extra": extra}
    return made


def union(of):
    """Told apart by what each member of it calls itself, where they do: only then is a problem that of one of them."""
    for name in ("type", "role"):
        words = [word for each in of for word in literals(each, name)]
        if all(literals(each, name) for each in of) and len(words) == len(set(words)):
            return typing.Annotated[typing.Union[of], Field(discriminator=name)]
    return typing.Union[of]


def literals(of, name):
    """The words that a member must be one of, if it must be there."""
    hint = typing.get_type_hints(of, include_extras=True).get(name) if typing_extensions.is_typeddict(of) else None
    if typing_extensions.get_origin(hint) is not typing_extensions.Required:
        return ()
    (hint,) = typing_extensions.get_args(hint)
    return typing_extensions.get_args(hint) if typing_extensions.get_origin(hint) is typing.Literal else ()
