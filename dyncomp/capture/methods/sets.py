"""Methods of sets and frozensets."""

from __future__ import annotations

from typing import Any

from ..breaks import Break
from ..values.base import Tracer, Value
from ..values.mapping import DictValue
from ..values.number import ConstValue, SymIntValue
from ..values.seq import ListValue, TupleValue
from ..values.sets import SetValue
from .table import Method, is_stepped, one_by_one

SET: dict[str, Method] = {}
FROZEN: dict[str, Method] = {}
_NONE = ConstValue(None)


def real_iterable(tracer: Tracer, value: Value) -> tuple[Any, bool]:
    """A real object that fills a set as the object would, and whether its order is certain."""
    value = tracer.realize(value)
    if isinstance(value, SetValue):
        return value.elements(tracer), value.certain and value.source is None
    if value.is_const and isinstance(value.const, (frozenset, str, bytes, range)):
        return value.const, True
    if isinstance(value, DictValue):
        for key in value.contents(tracer):
            tracer.fold(hash, key)
        return dict.fromkeys(value.contents(tracer)), True
    probe = SetValue(tracer, set())
    return tuple(probe.element_of(tracer, tracer.realize(v)) for v in value.items(tracer)), True


def new_set(tracer: Tracer, iterable: Value | None, frozen: bool) -> Value:
    """``set(iterable)`` or ``frozenset(iterable)``."""
    if frozen and isinstance(iterable, SetValue) and iterable.frozen:
        return iterable
    symbolic = _symbolic_integers(tracer, iterable)
    if symbolic:
        tracer.steps += 1
        return SetValue(tracer, None, frozen=frozen, symbolic=symbolic)
    real, certain = ((), True) if iterable is None else real_iterable(tracer, iterable)
    tracer.steps += 1
    return SetValue(tracer, frozenset(real) if frozen else set(real), frozen=frozen, certain=certain)


def _symbolic_integers(tracer: Tracer, iterable: Value | None) -> list[Value]:
    """The items of a sequence of ints of which some are symbolic: how many there are in a set of them
    (whether lengths agree) can be told without fixing them."""
    if not isinstance(iterable, (ListValue, TupleValue)) or iterable.pytype not in (list, tuple):
        return []
    items = [tracer.realize(item) for item in iterable.contents(tracer)]
    whole = all(isinstance(i, SymIntValue) or (i.is_const and type(i.const) is int) for i in items)
    return items if whole and any(isinstance(i, SymIntValue) for i in items) else []


def set_operator(tracer: Tracer, op: str, plain: str, a: Value, b: Value) -> Value | None:
    """``a op b`` where one is a traced set and both are sets; ``None`` where they are not."""
    if not (_is_set(a) and _is_set(b)):
        return None
    first, sure_a = real_iterable(tracer, a)
    second, sure_b = real_iterable(tracer, b)
    if plain in _RELATIONS:
        return ConstValue(_RELATIONS[plain](first, second))
    name = _IN_PLACE.get(op)
    if name is not None and isinstance(a, SetValue) and not a.frozen:
        _change(tracer, a, name, [b])
        return a
    if plain not in _COMBINE:
        return None
    result = _COMBINE[plain](first, second)
    return SetValue(tracer, result, frozen=isinstance(result, frozenset), certain=sure_a and sure_b)


def _is_set(value: Value) -> bool:
    return isinstance(value, SetValue) or (value.is_const and isinstance(value.const, frozenset))


_RELATIONS = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_COMBINE = {
    "|": lambda a, b: a | b,
    "&": lambda a, b: a & b,
    "-": lambda a, b: a - b,
    "^": lambda a, b: a ^ b,
}
_IN_PLACE = {
    "|=": "update",
    "&=": "intersection_update",
    "-=": "difference_update",
    "^=": "symmetric_difference_update",
}
_ADDING = frozenset({"update", "symmetric_difference_update"})


def _change(tracer: Tracer, owner: SetValue, name: str, others: list[Value]) -> Value:
    if any(is_stepped(tracer, other) for other in others):
        return _change_in_turn(tracer, owner, name, others)
    reals = [real_iterable(tracer, other) for other in others]
    certain = all(sure for _, sure in reals)
    if name in _ADDING and not certain:
        if owner.source is not None:
            raise Break("unsupported-operation", f"{name} of a set from outside by another from outside")
        owner.certain = False
    owner.change(tracer, name, tuple(real for real, _ in reals))
    return _NONE


def _change_in_turn(tracer: Tracer, owner: SetValue, name: str, others: list[Value]) -> Value:
    """Iterators may look at the set while it changes."""
    for other in others:
        if not is_stepped(tracer, other):
            if len(others) > 1 and name not in _ITEM_BY_ITEM:
                raise Break("unsupported-operation", f"{name} with several iterables")
            _change(tracer, owner, name, [other])
        elif name in _ITEM_BY_ITEM:
            for item in one_by_one(tracer, other):
                element = owner.element_of(tracer, tracer.realize(item))
                owner.change(tracer, _ITEM_BY_ITEM[name], (element,))
        else:
            if len(others) > 1:
                raise Break("unsupported-operation", f"{name} with several iterables")
            owner.change(tracer, name, (_steady_items(tracer, owner, other),))
    return _NONE


_ITEM_BY_ITEM = {"update": "add", "difference_update": "discard"}


def _steady_items(tracer: Tracer, owner: SetValue, other: Value) -> tuple[Any, ...]:
    """The items of an iterator, which may look at the set but not change it."""
    before = frozenset(owner.elements(tracer))
    items = tuple(owner.element_of(tracer, tracer.realize(item)) for item in one_by_one(tracer, other))
    if owner.elements(tracer) != before:
        raise Break("unsupported-operation", f"{owner.describe()} that changes while it is combined")
    return items


def _real_other(tracer: Tracer, owner: SetValue, other: Value) -> tuple[Any, bool]:
    if is_stepped(tracer, other):
        return _steady_items(tracer, owner, other), True
    return real_iterable(tracer, other)


def _changing(name: str) -> Method:
    def run(tracer: Tracer, owner: SetValue, *others: Value) -> Value:
        return _change(tracer, owner, name, list(others))

    return run


def _combining(name: str) -> Method:
    def run(tracer: Tracer, owner: SetValue, *others: Value) -> Value:
        reals = [_real_other(tracer, owner, other) for other in others]
        own, certain = real_iterable(tracer, owner)
        certain = certain and all(sure for _, sure in reals)
        if owner.frozen:
            own = frozenset(own)
        result = tracer.fold(lambda: getattr(own, name)(*(real for real, _ in reals)))
        return SetValue(tracer, result, frozen=owner.frozen, certain=certain)

    return run


def _asking(name: str) -> Method:
    def run(tracer: Tracer, owner: SetValue, other: Value, /) -> Value:
        if name != "issubset" and is_stepped(tracer, other):
            raise Break(
                "unsupported-call", f"{name} with an iterator, which may not be asked for all its items"
            )
        real, _ = real_iterable(tracer, other)
        return ConstValue(getattr(owner.elements(tracer), name)(real))

    return run


for _name in ("union", "intersection", "difference"):
    SET[_name] = FROZEN[_name] = _combining(_name)
for _name in ("issubset", "issuperset", "isdisjoint"):
    SET[_name] = FROZEN[_name] = _asking(_name)
for _name in ("update", "intersection_update", "difference_update"):
    SET[_name] = _changing(_name)


def _symmetric_difference(tracer: Tracer, owner: SetValue, other: Value, /) -> Value:
    return _combining("symmetric_difference")(tracer, owner, other)


def _symmetric_difference_update(tracer: Tracer, owner: SetValue, other: Value, /) -> Value:
    return _change(tracer, owner, "symmetric_difference_update", [other])


def _copy(tracer: Tracer, owner: SetValue, /) -> Value:
    if owner.frozen:
        return owner
    return _combining("copy")(tracer, owner)


def _add(tracer: Tracer, owner: SetValue, value: Value, /) -> Value:
    owner.add(tracer, value)
    return _NONE


def _discard(tracer: Tracer, owner: SetValue, value: Value, /) -> Value:
    element = owner.element_of(tracer, value)
    if element in owner.elements(tracer):
        owner.change(tracer, "discard", (element,))
    return _NONE


def _remove(tracer: Tracer, owner: SetValue, value: Value, /) -> Value:
    element = owner.element_of(tracer, value)
    if element not in owner.elements(tracer):
        tracer.raise_exception(KeyError, element)
    owner.change(tracer, "remove", (element,))
    return _NONE


def _pop(tracer: Tracer, owner: SetValue, /) -> Value:
    if not owner.elements(tracer):
        tracer.raise_exception(KeyError, "pop from an empty set")
    if owner.source is not None or not owner.certain:
        raise Break("unsupported-call", "pop of a set from outside")
    return ConstValue(owner.change(tracer, "pop", ()))


def _clear(tracer: Tracer, owner: SetValue, /) -> Value:
    owner.change(tracer, "clear", ())
    return _NONE


SET["symmetric_difference"] = FROZEN["symmetric_difference"] = _symmetric_difference
SET["symmetric_difference_update"] = _symmetric_difference_update
SET["copy"] = FROZEN["copy"] = _copy
SET.update(add=_add, discard=_discard, remove=_remove, pop=_pop, clear=_clear)
