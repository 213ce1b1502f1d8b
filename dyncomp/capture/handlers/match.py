"""Instructions of ``match`` statements."""

from __future__ import annotations

from typing import Any

from ..breaks import Break
from ..objects import attributes, instance_checks
from ..values.base import Frame, Tracer
from ..values.mapping import DictValue
from ..values.number import ConstValue
from ..values.seq import TupleValue
from .registry import handles

# flags of types (object.h)
_SEQUENCE = 1 << 5
_MAPPING = 1 << 6
_MATCH_SELF = 1 << 22


@handles("MATCH_SEQUENCE")
def match_sequence(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.push(ConstValue(bool(frame.stack[-1].pytype.__flags__ & _SEQUENCE)))


@handles("MATCH_MAPPING")
def match_mapping(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.push(ConstValue(bool(frame.stack[-1].pytype.__flags__ & _MAPPING)))


@handles("MATCH_KEYS")
def match_keys(tracer: Tracer, frame: Frame, arg: object) -> None:
    subject, keys = frame.stack[-2:]
    if not isinstance(subject, DictValue):
        raise Break("opaque-object", f"a mapping pattern against {subject.describe()}")
    constants = [subject.key_of(tracer, key) for key in keys.items(tracer)]
    if len(set(constants)) != len(constants):
        raise Break("would-raise", "mapping pattern checks duplicate keys")
    found = [value for key in constants if (value := subject.lookup(tracer, key)) is not None]
    if len(found) < len(constants):
        frame.push(ConstValue(None))
    else:
        frame.push(TupleValue([tracer.realize(value) for value in found]))


@handles("MATCH_CLASS")
def match_class(tracer: Tracer, frame: Frame, count: int) -> None:
    subject, given, names = frame.popn(3)
    cls = tracer.constant_of(given, "a class")
    if not isinstance(cls, type):
        raise Break("would-raise", "called match pattern must be a class")
    if not instance_checks.is_instance(tracer, subject, cls):
        frame.push(ConstValue(None))
        return
    keywords = tracer.constant_of(names, "attribute names")
    positional, matches_self = _positional_names(tracer, cls, given, count)
    if len({*positional, *keywords}) != len(positional) + len(keywords):
        raise Break("would-raise", f"{cls.__name__}() got several sub-patterns for an attribute")
    found = [subject] if matches_self else []
    for name in (*positional, *keywords):
        value = attributes.maybe_attribute(tracer, subject, name)
        if value is None:
            frame.push(ConstValue(None))
            return
        found.append(tracer.realize(value))
    frame.push(TupleValue(found))


def _positional_names(tracer: Tracer, cls: type, given: Any, count: int) -> tuple[tuple[str, ...], bool]:
    """The attributes that positional patterns mean, and whether the one pattern means the subject itself."""
    if not count:
        return (), False
    if attributes.find_member(tracer, cls, "__match_args__") is None:
        if not cls.__flags__ & _MATCH_SELF:
            raise Break("would-raise", f"{cls.__name__}() accepts 0 positional sub-patterns")
        if count > 1:
            raise Break("would-raise", f"{cls.__name__}() accepts 1 positional sub-pattern")
        return (), True
    names = tracer.constant_of(given.getattr(tracer, "__match_args__"), "__match_args__")
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise Break("would-raise", f"{cls.__name__}.__match_args__ must be a tuple of strings")
    if count > len(names):
        raise Break("would-raise", f"{cls.__name__}() accepts {len(names)} positional sub-patterns")
    return names[:count], False
