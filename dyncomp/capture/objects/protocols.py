"""What the language's protocols do with instances of user classes: ``len``, ``bool``, ``in``, ``iter``…"""

from __future__ import annotations

import math
import operator
from typing import Any

from ..breaks import Break
from ..calls import texts
from ..control import exceptions
from ..values.base import Codegen, Tracer, Value
from ..values.derived import DerivedValue
from ..values.exception import ExceptionValue
from ..values.iterator import IteratorValue
from ..values.number import ConstValue, SymIntValue
from ..values.obj import InstanceValue
from . import attributes, derived


def _defines(tracer: Tracer, obj: InstanceValue, name: str) -> bool:
    found = attributes.find_member(tracer, obj.cls, name) is not None
    if not found:
        attributes.guard_absent(tracer, obj.cls, name)
    return found


def _method(tracer: Tracer, obj: InstanceValue, name: str, what: str) -> Value | None:
    """The special method; ``None`` where the class has none, a break where it is not written in Python."""
    method = attributes.special_method(tracer, obj, name)
    if method is None and _defines(tracer, obj, name):
        raise Break("opaque-object", f"{what} of {obj.describe()}")
    return method


def length(tracer: Tracer, obj: InstanceValue) -> Value:
    """``len(obj)``."""
    method = _method(tracer, obj, "__len__", "len()")
    if method is None:
        tracer.raise_exception(TypeError, f"object of type {obj.cls.__name__[:200]!r} has no len()")
    found = tracer.realize(tracer.call_value(method, [], {}))
    if not isinstance(found, SymIntValue) and not (
        found.is_const and type(found.const) is int and found.const >= 0
    ):
        raise Break("opaque-object", f"a length that is {found.describe()}")
    return found


def truth(tracer: Tracer, obj: InstanceValue) -> bool:
    """``bool(obj)``."""
    method = _method(tracer, obj, "__bool__", "truth value")
    if method is not None:
        found = tracer.realize(tracer.call_value(method, [], {}))
        if found.pytype is not bool:
            text = f"__bool__ should return bool, returned {found.pytype.__name__[:200]}"
            tracer.raise_exception(TypeError, text)
        return bool(found.truth(tracer))
    if _defines(tracer, obj, "__len__"):
        return bool(length(tracer, obj).truth(tracer))
    return True


def contains(tracer: Tracer, obj: InstanceValue, item: Value) -> Value:
    """``item in obj``."""
    method = _method(tracer, obj, "__contains__", "membership test")
    if method is not None:
        return ConstValue(tracer.realize(tracer.call_value(method, [item], {})).truth(tracer))
    candidates = iterator(tracer, obj)
    while (candidate := candidates.next(tracer)) is not None:
        if candidate is item or tracer.compare("==", candidate, item).truth(tracer):
            return ConstValue(True)
    return ConstValue(False)


def iterator(tracer: Tracer, obj: InstanceValue) -> Value:
    """``iter(obj)``."""
    method = _method(tracer, obj, "__iter__", "iteration")
    if method is None:
        if _method(tracer, obj, "__getitem__", "iteration") is None:
            tracer.raise_exception(TypeError, f"{obj.cls.__name__[:200]!r} object is not iterable")
        return ItemIterator(obj)
    found = tracer.realize(tracer.call_value(method, [], {}))
    if not isinstance(found, IteratorValue) and not is_iterator(tracer, found):
        raise Break("unsupported-operation", f"iteration over {obj.describe()}")
    return found


def is_iterator(tracer: Tracer, obj: Value) -> bool:
    """Whether the object's class has a ``__next__`` of its own."""
    return isinstance(obj, InstanceValue) and attributes.special_method(tracer, obj, "__next__") is not None


def advance(tracer: Tracer, obj: InstanceValue) -> Value | None:
    """``next(obj)``, ``None`` at the end."""
    return step(tracer, obj)[0]


def step(tracer: Tracer, obj: InstanceValue) -> tuple[Value | None, ExceptionValue | None]:
    """``next(obj)``, or the StopIteration at the end."""
    method = _method(tracer, obj, "__next__", "next()")
    if method is None:
        tracer.raise_exception(TypeError, f"{obj.cls.__name__[:200]!r} object is not an iterator")
    tracer.steps += 1
    found, end = exceptions.result_or_exception(
        tracer, StopIteration, lambda: tracer.call_value(method, [], {})
    )
    return (None if found is None else tracer.realize(found)), end


def expand(tracer: Tracer, obj: InstanceValue, hinted: bool) -> list[Value]:
    """All items. ``hinted``: for a list or tuple, which asks first how many there may be."""
    source = iterator(tracer, obj)
    if hinted:
        _ask_length(tracer, obj)
    return _all_items(tracer, source)


def _ask_length(tracer: Tracer, obj: InstanceValue) -> None:
    """``operator.length_hint(obj)``, for what it does; a ``TypeError`` says that nobody knows."""
    if _defines(tracer, obj, "__len__"):
        found = exceptions.unless_raised(tracer, TypeError, lambda: length(tracer, obj))
        if found is not None:
            return
    if _defines(tracer, obj, "__length_hint__"):
        method = _method(tracer, obj, "__length_hint__", "length_hint()")
        assert method is not None
        hint = exceptions.unless_raised(tracer, TypeError, lambda: tracer.call_value(method, [], {}))
        known = hint is None or (tracer.realize(hint).is_const and _is_length(tracer.realize(hint).const))
        if not known:
            raise Break("unsupported-operation", f"the length hint of {obj.describe()}")


def _is_length(hint: object) -> bool:
    return hint is NotImplemented or (type(hint) is int and 0 <= hint < 2**31)


def _all_items(tracer: Tracer, source: Value) -> list[Value]:
    limit = tracer.config.options.unroll_ops
    found: list[Value] = []
    while (item := source.next(tracer)) is not None:
        found.append(item)
        if len(found) > limit:
            raise Break("unsupported-operation", f"expansion of {source.describe()}")
    return found


class ItemIterator(IteratorValue):
    """``iter`` of an object that has ``__getitem__`` only."""

    step = 1

    def __init__(self, origin: InstanceValue) -> None:
        self.origin = origin
        self.position = 0
        self.done = False

    @property
    def pytype(self) -> type:
        return type(iter(_Items()))

    def describe(self) -> str:
        return f"an iterator over {self.origin.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.origin,)

    def open_ended(self, tracer: Tracer) -> bool:
        return True

    def items(self, tracer: Tracer) -> list[Value]:
        return _all_items(tracer, self)

    def next(self, tracer: Tracer) -> Value | None:
        if self.done:
            return None
        tracer.steps += 1
        index = ConstValue(self.position)
        self.position += self.step
        found = exceptions.unless_raised(
            tracer, (IndexError, StopIteration), lambda: self.origin.getitem(tracer, index)
        )
        self.done = found is None
        return None if found is None else tracer.realize(found)

    def reconstruct(self, cg: Codegen) -> str:
        made = f"{cg.constant(iter)}({cg.value(self.origin)})"
        return f"{cg.constant(_at)}({made}, {-1 if self.done else self.position})"


class BackwardItemIterator(ItemIterator):
    """``reversed`` of an object that has ``__getitem__`` and a ``__len__`` that may be called again."""

    step = -1

    def __init__(self, origin: InstanceValue, length: int) -> None:
        super().__init__(origin)
        self.position = length - 1
        self.done = not length

    @property
    def pytype(self) -> type:
        return reversed

    def describe(self) -> str:
        return f"a reverse iterator over {self.origin.describe()}"

    def next(self, tracer: Tracer) -> Value | None:
        found = super().next(tracer)
        self.done = self.done or self.position < 0
        return found

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.constant(_backwards)}({cg.value(self.origin)}, {-1 if self.done else self.position})"


def _backwards(sequence: Any, position: int) -> Any:
    iterator = reversed(sequence)
    iterator.__setstate__(position if position < len(sequence) else -1)
    return iterator


class _Items:
    """An object that has ``__getitem__`` only."""

    def __getitem__(self, index: int) -> Any:
        raise IndexError


def _at(made: Any, position: int) -> Any:
    """An iterator of that kind at its next position; exhausted where that is negative."""
    if position < 0:
        made = iter(_Items())
        next(made, None)
    else:
        made.__setstate__(position)
    return made


# -- builtin functions that call a special method ------------------------------------------------------------
_CALLS: dict[Any, tuple[str, ...]] = {
    int: ("__int__", "__index__"),
    float: ("__float__", "__index__"),
    complex: ("__complex__", "__float__", "__index__"),
    str: ("__str__", "__repr__"),
    repr: ("__repr__",),
    hash: ("__hash__",),
    abs: ("__abs__",),
    round: ("__round__",),
    math.trunc: ("__trunc__",),
    math.floor: ("__floor__",),
    math.ceil: ("__ceil__",),
    operator.index: ("__index__",),
    reversed: ("__reversed__",),
    format: ("__format__",),
    bytes: ("__bytes__",),
}
# what the special method must return
_RESULTS: dict[Any, type] = {
    int: int,
    float: float,
    complex: complex,
    str: str,
    repr: str,
    hash: int,
    operator.index: int,
    format: str,
    bytes: bytes,
}


def call_builtin(tracer: Tracer, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``function(obj, …)`` of an instance whose class has the special method for it; else ``None``."""
    if not args or not isinstance(args[0], InstanceValue) or isinstance(args[0], ExceptionValue) or kwargs:
        return None
    try:
        names = _CALLS.get(function)
    except TypeError:
        return None
    if names is None:
        return None
    if function is operator.index and issubclass(args[0].cls, int) and isinstance(args[0], DerivedValue):
        return args[0].operand(tracer)  # integers are not asked
    for name in names:
        member = attributes.find_member(tracer, args[0].cls, name)
        if member is None or (member.raw is getattr(object, name, None) and member.raw is not None):
            continue
        if isinstance(args[0], DerivedValue) and args[0].is_native(tracer, name):
            return _of_builtin_part(tracer, function, args[0], args[1:])
        method = _method(tracer, args[0], name, f"{function.__name__}()")
        if method is None:
            break
        given = list(args[1:])
        if function is format:
            given = given or [ConstValue("")]
            texts.check_spec(tracer, given[0])
        found = tracer.realize(tracer.call_value(method, given, {}))
        return _converted(function, name, found)
    return None


def _of_builtin_part(tracer: Tracer, function: object, obj: DerivedValue, rest: list[Value]) -> Value:
    """A builtin function that the class leaves to the builtin class it derives from."""
    if function in (repr, format, str):
        return texts.text_of(tracer, function, obj, *rest)
    if function is hash and not rest:
        return derived.hash_of(tracer, obj)
    return tracer.realize(tracer.call_value(ConstValue(function), [obj.operand(tracer), *rest], {}))


def _hash_of(returned: int) -> int:
    """``hash(obj)`` where ``__hash__`` returned that: as it is where a machine word holds it."""
    if -(2**63) <= returned < 2**63:
        return returned if returned != -1 else -2
    return hash(returned)


def _converted(function: Any, name: str, found: Value) -> Value:
    """The builtin's result from the special method's."""
    wanted = _RESULTS.get(function)
    if wanted is None or (found.pytype is wanted and function is not hash and name != "__index__"):
        return found
    if found.is_const and type(found.const) is int and wanted in (int, float, complex):
        return ConstValue(_hash_of(found.const) if function is hash else wanted(found.const))
    raise Break("opaque-object", f"{function.__name__}() of an object whose {name} gives {found.describe()}")
