"""``a is b``."""

from __future__ import annotations

import datetime
import pathlib
import re
import types
from typing import Any

from ..breaks import Break
from ..guards.fact_kinds import Distinct
from ..guards.guard import Guard, Kind
from ..guards.source import Source
from ..immutable.values import FrozenValue
from ..values.array import ArrayValue
from ..values.base import OpaqueValue, Tracer, Value
from ..values.func import BoundMethodValue, FunctionValue
from ..values.mapping import DictValue
from ..values.mapping_proxy import MappingProxyValue
from ..values.number import ConstValue, is_unique
from ..values.obj import InstanceValue
from ..values.partial import PartialValue
from ..values.seq import ListValue, RangeValue, SliceValue, TupleValue

# types of which two values may stand for one object
_UNCERTAIN = (types.TracebackType, re.Pattern)
# immutable types whose functions may give an object that is there already
_SHARED: tuple[type, ...] = (datetime.timezone, datetime.timedelta, datetime.datetime, re.Match)
_SHARED += (pathlib.PurePosixPath, pathlib.PureWindowsPath, type(pathlib.Path()))
# values whose constants are made from their parts at each look
_MADE_ANEW = (TupleValue, RangeValue, SliceValue)


def identical(tracer: Tracer, a: Value, b: Value) -> bool:
    """``a is b``, guarded where both come from outside; breaks where it is not certain."""
    if a is b:
        return True
    if a.is_const and b.is_const and not any(isinstance(v, _MADE_ANEW) for v in (a, b)):
        return _identical_constants(tracer, a, b)
    if a.pytype is not b.pytype:
        return False
    if isinstance(a, FrozenValue) and (a.source is None or b.source is None) and a.pytype in _SHARED:
        raise Break("unsupported-operation", f"identity of {a.describe()} and {b.describe()}")
    if a.source is not None and b.source is not None and type(a) is type(b):
        if a.source == b.source:
            return True
        return _same_object(tracer, a, b)
    if isinstance(a, BoundMethodValue) or isinstance(b, BoundMethodValue) or a.pytype in _UNCERTAIN:
        raise Break("unsupported-operation", f"identity of {a.describe()} and {b.describe()}")
    if (a.source is None) != (b.source is None) and not a.is_const and not b.is_const:
        return False
    if a.source is None and b.source is None and not a.is_const and not b.is_const:
        return False
    raise Break("unsupported-operation", f"identity of {a.describe()} and {b.describe()}")


def _identical_constants(tracer: Tracer, a: Value, b: Value) -> bool:
    """Constants are guarded by value: where equal ones may be several objects, pin which they are."""
    x, y = a.const, b.const
    by_value = any(isinstance(value, ConstValue) and value.by_value for value in (a, b))
    if by_value and type(x) is type(y) and (x is y or x == y) and not is_unique(x):
        for value in (a, b):
            if value.source is not None:
                tracer.guard(value.source, Kind.IS, value.const)
    return x is y


def _same_object(tracer: Tracer, a: Value, b: Value) -> bool:
    """Identity of two objects from outside: one guard settles it."""
    first, second = _object_of(a), _object_of(b)
    if first is _UNKNOWN or second is _UNKNOWN:
        raise Break("unsupported-operation", f"identity of {a.describe()} and {b.describe()}")
    same = first is second
    tracer.guard(a.source, Kind.SAME_OBJECT if same else Kind.NOT_SAME_OBJECT, b.source)
    return same


class DistinctObjects:
    """Objects from outside that are told apart: by one guard for all of them, not one for each two."""

    def __init__(self) -> None:
        self._sources: dict[int, Source] = {}  # by the id of the object
        self._asked: dict[int, tuple[Source, int]] = {}  # others, and how many there were when it was asked

    def contains(self, tracer: Tracer, item: Value) -> bool:
        """Whether ``item``, from outside, is one of them, guarded."""
        key = self._key(item)
        assert item.source is not None
        known = self._sources.get(key)
        if known is None:
            self._asked.setdefault(key, (item.source, len(self._sources)))
            return False
        if known != item.source:
            tracer.guard(item.source, Kind.SAME_OBJECT, known)
        return True

    def add(self, item: Value) -> None:
        """Add what was found not to be one of them."""
        key = self._key(item)
        assert item.source is not None
        self._asked.pop(key, None)
        self._sources[key] = item.source

    def guards(self) -> list[Guard]:
        known = tuple(self._sources.values())
        groups = [known, *((source, *known[:count]) for source, count in self._asked.values())]
        return [Guard(None, Kind.DISTINCT, Distinct(group)) for group in groups if len(group) > 1]

    def _key(self, item: Value) -> int:
        found = _object_of(item)
        if found is _UNKNOWN:
            raise Break("unsupported-operation", f"identity of {item.describe()}")
        return id(found)


_UNKNOWN = object()


def _object_of(value: Value) -> Any:
    """The object that a value from outside stands for."""
    if isinstance(value, FunctionValue):
        return value.function
    if isinstance(value, (InstanceValue, MappingProxyValue, OpaqueValue, PartialValue)):
        return value.obj
    if isinstance(value, (ListValue, DictValue)) and value.obj is not None:
        return value.obj
    if isinstance(value, ArrayValue):
        return value  # one value per array: see ``tracer.by_id``
    return _UNKNOWN
