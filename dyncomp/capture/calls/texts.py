"""``str``, ``repr``, ``ascii`` and ``format`` of traced values."""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..breaks import Break
from ..control import exceptions
from ..immutable import methods as frozen
from ..immutable.values import FrozenValue
from ..values.array import ArrayValue
from ..values.base import Tracer, Value
from ..values.derived import DerivedValue
from ..values.exception import ExceptionValue
from ..values.mapping import DictValue
from ..values.number import PYTHON_NUMBERS, ConstValue, TextValue
from ..values.obj import InstanceValue
from ..values.seq import ListValue, RangeValue, TupleValue
from ..values.sets import SetValue
from .folding import is_computed, is_library_tuple, literal, pure_operand, python_call

_PLAIN = (*PYTHON_NUMBERS, str, bytes, type(None), type(Ellipsis), range, slice)


def text_of(tracer: Tracer, function: Callable[..., str], value: Value, *rest: Value) -> Value:
    """``function(value, *rest)`` where ``function`` is ``str``, ``repr``, ``ascii`` or ``format``."""
    value = tracer.realize(value)
    if isinstance(value, ExceptionValue):
        return _of_exception(tracer, function, value, rest)
    if isinstance(value, DerivedValue) and _is_written_as_builtin(tracer, value):
        return text_of(tracer, function, value.operand(tracer), *rest)
    if isinstance(value, InstanceValue):
        return _of_instance(tracer, function, value, rest)
    if any(is_computed(v) for v in (value, *rest)) and all(pure_operand(v) for v in (value, *rest)):
        return python_call(tracer, function, [value, *rest])
    if isinstance(value, ArrayValue):
        return _of_array(tracer, function, value, rest)
    if isinstance(value, FrozenValue):
        spec = tracer.constant_of(rest[0], "a format") if rest else ""
        return frozen.text(tracer, function, value, spec)
    if not _is_printable(tracer, value):
        raise Break("unsupported-call", f"formatting of {value.describe()}")
    constants = [literal(tracer, v, "a formatted value") for v in (value, *rest)]
    return ConstValue(tracer.fold(function, *constants))


def check_spec(tracer: Tracer, spec: Value) -> None:
    """``format()`` itself demands a string, whatever ``__format__`` would take."""
    spec = tracer.realize(spec)
    if not issubclass(spec.pytype, str):
        raise Break("would-raise", f"format() with {spec.describe()} as the format")


def _of_array(
    tracer: Tracer, function: Callable[..., str], value: ArrayValue, rest: tuple[Value, ...]
) -> Value:
    """The text of an array or an array scalar, made when the graph has run."""
    ref = value.ref
    specs = [tracer.constant_of(spec, "a format") for spec in rest]
    known = ref.frontend == "numpy" and ref.kind in ("array", "scalar", "python")
    if ref.frontend == "torch" and ref.kind == "array" and ref.ndim == 0 and function is format:
        # as ``Tensor.__format__``
        alone = tracer.realize(value.getattr(tracer, "detach").call(tracer, [], {}))
        number = tracer.realize(alone.getattr(tracer, "clone").call(tracer, [], {}))
        hint = tracer.fold(format, ref.dtype.numpy.type(0).item(), *specs)
        given = [part for spec in rest for part in (", ", spec)]
        return TextValue(hint, (ConstValue(format), "(", number, *given, ")"))
    if not known or (ref.kind == "array" and any(specs)):
        raise Break("unsupported-call", f"formatting of {value.describe()}")
    shown = as_it_is_now(tracer, value)
    example = ref.dtype.numpy.type(0)
    hint = tracer.fold(function, example.item() if ref.kind == "python" else example, *specs)
    parts = [part for spec in rest for part in (", ", spec)]
    return TextValue(hint, (ConstValue(function), "(", shown, *parts, ")"))


def as_it_is_now(tracer: Tracer, value: ArrayValue) -> Value:
    """What looks like the array when compiled code prints it, whatever is written to the array meanwhile."""
    if value.ref.kind != "array":
        return value
    copied = value.getattr(tracer, "copy").call(tracer, [], {"order": ConstValue("K")})
    return tracer.realize(copied)


def _is_written_as_builtin(tracer: Tracer, value: DerivedValue) -> bool:
    """Whether the class leaves its text to the builtin class, in which no name of a class is."""
    names = [name for name in ("__str__", "__repr__", "__format__") if name in vars(value.base)]
    inherited = all(value.is_native(tracer, name) for name in ("__repr__", *names))
    others = [name for name in ("__str__", "__format__") if name not in names]
    kept = all(getattr(value.cls, name) is getattr(object, name) for name in others)
    return inherited and kept and value.base is not OrderedDict


def _is_printable(tracer: Tracer, value: Value) -> bool:
    """Whether the value is constant all through and printing it runs no code of the user's."""
    value = tracer.realize(value)
    if isinstance(value, (ListValue, TupleValue)):
        known = value.pytype in (list, tuple) or is_library_tuple(tracer, value)
        return known and all(_is_printable(tracer, v) for v in value.contents(tracer))
    if isinstance(value, DictValue):
        entries = value.contents(tracer) if value.cls is dict else {None: value}
        keys = all(_is_printable_constant(tracer, k) for k in entries)
        return value.cls is dict and keys and all(_is_printable(tracer, v) for v in entries.values())
    if isinstance(value, SetValue):
        return all(_is_printable_constant(tracer, e) for e in value.elements(tracer))
    if isinstance(value, RangeValue):
        return value.is_const
    return value.is_const and _is_printable_constant(tracer, value.const)


_TEXT_METHODS = ("__str__", "__repr__", "__format__")


def _is_printable_constant(tracer: Tracer, constant: object) -> bool:
    if type(constant) is tuple:
        return all(_is_printable_constant(tracer, c) for c in constant)
    if isinstance(constant, enum.Enum):
        methods = [getattr(type(constant), name) for name in _TEXT_METHODS]
        return all(getattr(m, "__module__", "enum") == "enum" for m in methods)
    if isinstance(constant, type):
        return all(getattr(type(constant), name) is getattr(type, name) for name in _TEXT_METHODS)
    if type(constant) in (*_PLAIN, frozenset):
        return type(constant) is not frozenset or all(_is_printable_constant(tracer, c) for c in constant)
    return any(f.is_constant(constant) for f in tracer.config.frontends) and not callable(constant)


def _of_exception(
    tracer: Tracer, function: Callable[..., str], value: ExceptionValue, rest: tuple[Value, ...]
) -> Value:
    if function is format:
        return exceptions.formatted(tracer, value, rest[0] if rest else ConstValue(""))
    if function is ascii:
        raise Break("unsupported-call", f"ascii() of {value.describe()}")
    return exceptions.text_of(tracer, value, f"__{function.__name__}__")


def _of_instance(
    tracer: Tracer, function: Callable[..., str], value: InstanceValue, rest: tuple[Value, ...]
) -> Value:
    """By the class's own methods, where they are written in Python."""
    if function is format:
        method = value.special(tracer, "__format__")
        if method is not None:
            return _checked(tracer, tracer.call_value(method, list(rest) or [ConstValue("")], {}))
        plain = all(r.is_const and r.const == "" for r in rest)
        if not plain or value.cls.__format__ is not object.__format__:
            raise Break("unsupported-call", f"formatting of {value.describe()}")
    method = None
    if function is not repr and function is not ascii:
        method = value.special(tracer, "__str__")
        if method is None and value.cls.__str__ is not object.__str__:
            raise Break("unsupported-call", f"str() of {value.describe()}")
    method = method or value.special(tracer, "__repr__")
    if method is None:
        raise Break("unsupported-call", f"formatting of {value.describe()}")
    found = _checked(tracer, tracer.call_value(method, [], {}))
    return _escaped(value, found) if function is ascii else found


def _escaped(value: Value, text: Value) -> Value:
    """``ascii(value)`` of an object whose ``__repr__`` gives ``text``."""
    if not text.is_const:
        raise Break("unsupported-call", f"ascii() of {value.describe()}")
    return ConstValue(text.const.encode("ascii", "backslashreplace").decode("ascii"))


def _checked(tracer: Tracer, found: Value) -> Value:
    found = tracer.realize(found)
    if found.pytype is not str:
        raise Break("would-raise", f"a string method returned {found.describe()}")
    return found


def join(tracer: Tracer, parts: list[Value]) -> Value:
    """``"".join(parts)`` of strings, constant or not."""
    if all(part.is_const for part in parts):
        return ConstValue("".join(part.const for part in parts))
    if any(part.pytype is not str for part in parts):
        raise Break("unsupported-operation", "a formatted string of what is no string")
    template: list[Any] = [ConstValue("".join), "(("]
    for part in parts:
        template += [part, ", "]
    hint = "".join(part.hint if isinstance(part, TextValue) else part.const for part in parts)
    return TextValue(hint, (*template, "))"))
