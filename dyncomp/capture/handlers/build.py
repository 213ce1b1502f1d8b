"""Instructions that make or take apart containers, strings and functions."""

from __future__ import annotations

from typing import Any

from ..breaks import Break
from ..calls.texts import join, text_of
from ..methods.sets import SET
from ..methods.table import items_for_list, items_in_two
from ..objects.attributes import maybe_attribute
from ..values.base import Frame, Tracer, Value
from ..values.derived import has_own_entries, merged_part
from ..values.func import CellValue, NestedFunctionValue
from ..values.iterator import IteratorValue
from ..values.mapping import DictValue
from ..values.number import ConstValue
from ..values.obj import InstanceValue
from ..values.seq import ListValue, SliceValue, TupleValue
from ..values.sets import SetValue
from .registry import handles

_NONE = ConstValue(None)


@handles("BUILD_TUPLE")
def build_tuple(tracer: Tracer, frame: Frame, count: int) -> None:
    frame.push(TupleValue(frame.popn(count)))


@handles("BUILD_LIST")
def build_list(tracer: Tracer, frame: Frame, count: int) -> None:
    frame.push(ListValue(frame.popn(count)))


@handles("BUILD_SET")
def build_set(tracer: Tracer, frame: Frame, count: int) -> None:
    result = SetValue(tracer, set())
    for item in frame.popn(count):
        result.add(tracer, item)
    frame.push(result)


@handles("BUILD_MAP")
def build_map(tracer: Tracer, frame: Frame, count: int) -> None:
    flat = frame.popn(2 * count)
    result = DictValue({})
    for key, value in zip(flat[::2], flat[1::2]):
        result.setitem(tracer, key, value)
    frame.push(result)


@handles("BUILD_CONST_KEY_MAP")
def build_const_key_map(tracer: Tracer, frame: Frame, count: int) -> None:
    keys = frame.pop().const
    values = frame.popn(count)
    result = DictValue({})
    for key, value in zip(keys, values):
        result.setitem(tracer, ConstValue(key), value)
    frame.push(result)


@handles("BUILD_SLICE")
def build_slice(tracer: Tracer, frame: Frame, count: int) -> None:
    parts = frame.popn(count)
    frame.push(SliceValue(*parts, *[_NONE] * (3 - count)))


def _container(frame: Frame, depth: int, kind: type) -> Any:
    """The container that a comprehension or display is filling."""
    found = frame.stack[-depth]
    if not isinstance(found, kind):
        raise Break("opaque-object", f"adding to {found.describe()}")
    return found


@handles("LIST_APPEND")
def list_append(tracer: Tracer, frame: Frame, depth: int) -> None:
    value = frame.pop()
    _container(frame, depth, ListValue).append(tracer, value)


@handles("SET_ADD")
def set_add(tracer: Tracer, frame: Frame, depth: int) -> None:
    value = frame.pop()
    _container(frame, depth, SetValue).add(tracer, value)


@handles("MAP_ADD")
def map_add(tracer: Tracer, frame: Frame, depth: int) -> None:
    key, value = frame.popn(2)
    _container(frame, depth, DictValue).setitem(tracer, key, value)


@handles("LIST_EXTEND")
def list_extend(tracer: Tracer, frame: Frame, depth: int) -> None:
    values = items_for_list(tracer, frame.pop())
    target = _container(frame, depth, ListValue)
    for value in values:
        target.append(tracer, tracer.realize(value))


@handles("SET_UPDATE")
def set_update(tracer: Tracer, frame: Frame, depth: int) -> None:
    source = frame.pop()
    SET["update"](tracer, _container(frame, depth, SetValue), source)


@handles("DICT_UPDATE")
def dict_update(tracer: Tracer, frame: Frame, depth: int) -> None:
    for key, value in _unpacked(tracer, frame.pop()).items():
        _container(frame, depth, DictValue).store(tracer, key, value)


@handles("DICT_MERGE")
def dict_merge(tracer: Tracer, frame: Frame, depth: int) -> None:
    """``**given`` of a call: no name twice."""
    given = _unpacked(tracer, frame.pop())
    keywords = _container(frame, depth, DictValue)
    if not given.keys().isdisjoint(keywords.contents(tracer)):
        raise Break("would-raise", "a call gives a keyword argument twice")
    for key, value in given.items():
        keywords.store(tracer, key, value)


def _unpacked(tracer: Tracer, source: Any) -> dict[Any, Any]:
    if isinstance(source, InstanceValue) and not has_own_entries(tracer, source):
        return _asked_for(tracer, source)
    source = merged_part(tracer, source)
    if not isinstance(source, DictValue):
        raise Break("unsupported-operation", f"unpacking of {source.describe()} into a dict")
    found: dict[Any, Any] = source.contents(tracer)
    return found


def _asked_for(tracer: Tracer, source: Value) -> dict[Any, Any]:
    """The entries of an object that says itself what its keys and items are."""
    keys = maybe_attribute(tracer, source, "keys")
    if keys is None:
        raise Break("would-raise", f"unpacking of {source.describe()} into a dict")
    found = DictValue({})
    for key in tracer.realize(tracer.call_value(keys, [], {})).items(tracer):
        key = tracer.realize(key)
        item = source.getitem(tracer, key)
        found.store(tracer, found.key_of(tracer, key), item)
    return found.contents(tracer)


@handles("LIST_TO_TUPLE")
def list_to_tuple(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.push(TupleValue(frame.pop().items(tracer)))


@handles("UNPACK_SEQUENCE")
def unpack_sequence(tracer: Tracer, frame: Frame, count: int) -> None:
    sequence = frame.pop()
    items = sequence.items(tracer)
    if len(items) != count:
        _wrong_number(tracer, sequence, len(items), count)
    for item in reversed(items):
        frame.push(tracer.realize(item))


def _wrong_number(tracer: Tracer, sequence: object, found: int, count: int) -> None:
    if isinstance(sequence, IteratorValue):  # plain Python would have taken fewer items from it
        raise Break("would-raise", f"{found} values to unpack, expected {count}")
    wrong = f"not enough values to unpack (expected {count}, got {found})"
    if found > count:
        wrong = f"too many values to unpack (expected {count})"
    tracer.raise_exception(ValueError, wrong)


@handles("UNPACK_EX")
def unpack_ex(tracer: Tracer, frame: Frame, arg: tuple[int, int]) -> None:
    before, after = arg
    items = [tracer.realize(v) for v in items_in_two(tracer, frame.pop(), before)]
    if len(items) < before + after:
        text = f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
        tracer.raise_exception(ValueError, text)
    end = len(items) - after
    for item in reversed(items[end:]):
        frame.push(item)
    frame.push(ListValue(items[before:end]))
    for item in reversed(items[:before]):
        frame.push(item)


# -- strings ----------------------------------------------------------------------------------------
_CONVERSIONS: dict[str, Any] = {"s": str, "r": repr, "a": ascii}


@handles("FORMAT_VALUE")
def format_value(tracer: Tracer, frame: Frame, arg: tuple[str, bool]) -> None:
    conversion, has_spec = arg
    spec = frame.pop() if has_spec else ConstValue("")
    value = frame.pop()
    if conversion:
        value = text_of(tracer, _CONVERSIONS[conversion], value)
    frame.push(text_of(tracer, format, value, spec))


@handles("CONVERT_VALUE")
def convert_value(tracer: Tracer, frame: Frame, arg: str) -> None:
    frame.push(text_of(tracer, _CONVERSIONS[arg], frame.pop()))


@handles("BUILD_STRING")
def build_string(tracer: Tracer, frame: Frame, count: int) -> None:
    frame.push(join(tracer, frame.popn(count)))


# -- functions ----------------------------------------------------------------------------------------
@handles("MAKE_FUNCTION")
def make_function(tracer: Tracer, frame: Frame, flags: tuple[str, ...]) -> None:
    code = frame.pop().const
    given = dict(zip(flags, frame.popn(len(flags))))
    closure = given.get("closure")
    given_cells = closure.items(tracer) if closure is not None else []
    cells = [cell for cell in given_cells if isinstance(cell, CellValue)]
    frame.push(
        NestedFunctionValue(
            code,
            frame.globals,
            given.get("defaults"),
            given.get("kwdefaults"),
            given.get("annotations"),
            cells,
        )
    )
