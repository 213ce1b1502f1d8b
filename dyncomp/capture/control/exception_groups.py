"""Exception groups: ``except*``, and splitting, as CPython's ``exceptions.c`` does it."""

from __future__ import annotations

from collections.abc import Callable

from ..breaks import Break
from ..values.base import Tracer, Value
from ..values.exception import ExceptionValue
from ..values.func import BoundMethodValue, FunctionValue, NestedFunctionValue
from ..values.group import GroupValue, new_group
from ..values.number import ConstValue
from ..values.seq import ListValue, TupleValue
from . import exceptions

_NONE = ConstValue(None)
_Matches = Callable[[ExceptionValue], bool]


# -- methods ------------------------------------------------------------------------------------------------
def call_method(
    tracer: Tracer, group: GroupValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """``group.split(…)``, ``group.subgroup(…)``, ``group.derive(…)`` of ``BaseExceptionGroup``."""
    if kwargs or len(args) != 1:
        raise Break("would-raise", f"{name}() of {group.describe()} takes one argument")
    if name == "derive":
        return _derived(tracer, group, args[0])
    match, rest = _split(tracer, group, _matcher(tracer, args[0]), name == "split")
    return match or _NONE if name == "subgroup" else TupleValue([match or _NONE, rest or _NONE])


def _derived(tracer: Tracer, group: GroupValue, members: Value) -> GroupValue:
    args = [ConstValue(group.message), members]
    value = new_group(tracer, BaseExceptionGroup, args)
    value.initialize(args)
    return value


def _matcher(tracer: Tracer, condition: Value) -> _Matches:
    """What ``split`` is given: classes, or a function that is asked for each exception."""
    if isinstance(condition, (FunctionValue, NestedFunctionValue, BoundMethodValue)):
        return lambda value: tracer.realize(tracer.call_value(condition, [value], {})).truth(tracer)
    classes = tracer.constant_of(condition, "what an exception group is split by")
    if not all(_is_exception_class(cls) for cls in (classes if type(classes) is tuple else (classes,))):
        raise Break("unsupported-call", f"a split of an exception group by {condition.describe()}")
    return lambda value: exceptions.matches(tracer, value, condition)


def _is_exception_class(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, BaseException)


def _split(
    tracer: Tracer, value: ExceptionValue, matches: _Matches, wants_rest: bool
) -> tuple[ExceptionValue | None, ExceptionValue | None]:
    """The part of an exception that matches, and the rest."""
    if matches(value):
        return value, None
    if not isinstance(value, GroupValue):
        return None, value if wants_rest else None
    halves = [_split(tracer, member, matches, wants_rest) for member in value.members]
    match = _subset(tracer, value, [match for match, _ in halves if match is not None])
    rest = _subset(tracer, value, [rest for _, rest in halves if rest is not None])
    return match, rest


def _subset(tracer: Tracer, group: GroupValue, members: list[ExceptionValue]) -> ExceptionValue | None:
    """A group like ``group`` of some of its members, which is where and why that is."""
    if not members:
        return None
    made = tracer.realize(
        tracer.call_value(group.getattr(tracer, "derive"), [ListValue([*members])], {}),
    )
    if not isinstance(made, GroupValue):
        raise Break("unsupported-call", f"derive() of {group.describe()}")
    made.traceback, made.context = group.traceback, group.context
    made.origin, made.problem = group.origin, group.problem
    made.set_cause(group.cause)
    notes = group.written.get("__notes__")
    if notes is not None:
        made.written["__notes__"] = ListValue(notes.items(tracer))
    return made


# -- except* ------------------------------------------------------------------------------------------------
def match_clause(
    tracer: Tracer, value: Value, wanted: Value
) -> tuple[ExceptionValue | None, ExceptionValue | None]:
    """What ``except* wanted:`` takes of what is left of the exception, and what it leaves."""
    classes = _clause_classes(tracer, wanted)
    if not isinstance(value, ExceptionValue):
        return None, None
    if any(cls in value.cls.__mro__ for cls in classes):
        return value if isinstance(value, GroupValue) else _wrapped(tracer, value), None
    if isinstance(value, GroupValue):
        condition = ConstValue(classes)
        found = tracer.realize(tracer.call_value(value.getattr(tracer, "split"), [condition], {}))
        match, rest = found.items(tracer)
        return _exception(match), _exception(rest)
    return None, value


def _exception(value: Value) -> ExceptionValue | None:
    if isinstance(value, ExceptionValue):
        return value
    if not (value.is_const and value.const is None):
        raise Break("unsupported-call", "an exception group whose split() gives other things")
    return None


def _clause_classes(tracer: Tracer, wanted: Value) -> tuple[type, ...]:
    given = tracer.constant_of(wanted, "an exception class")
    classes = given if type(given) is tuple else (given,)
    if not all(map(_is_exception_class, classes)):
        text = "catching classes that do not inherit from BaseException is not allowed"
        exceptions.raise_exception(tracer, TypeError, text)
    if any(issubclass(cls, BaseExceptionGroup) for cls in classes):
        text = "catching ExceptionGroup with except* is not allowed. Use except instead."
        exceptions.raise_exception(tracer, TypeError, text)
    return classes


def _wrapped(tracer: Tracer, value: ExceptionValue) -> GroupValue:
    """A naked exception that a clause takes comes in a group of its own."""
    return _group_of(tracer, [value], value)


def _group_of(tracer: Tracer, members: list[ExceptionValue], origin: ExceptionValue) -> GroupValue:
    args = [ConstValue(""), ListValue([*members])]
    group = new_group(tracer, BaseExceptionGroup, args)
    group.initialize(args)
    group.origin, group.problem = origin.origin, origin.problem
    return group


def to_reraise(tracer: Tracer, original: ExceptionValue, found: list[Value]) -> ExceptionValue | None:
    """What the whole statement raises in the end: what its clauses raised, and the parts that none took."""
    left = [value for value in found if isinstance(value, ExceptionValue)]
    if not left:
        return None
    if not isinstance(original, GroupValue):
        return left[0]
    again = [value for value in left if _is_part(value, original)]
    raised = [value for value in left if not _is_part(value, original)]
    projected = _projection(tracer, original, again)
    if projected is not None:
        raised.append(projected)
    return raised[0] if len(raised) == 1 else _group_of(tracer, raised, original)


def _is_part(value: ExceptionValue, original: GroupValue) -> bool:
    """Whether an exception was split off the original and not raised by itself since."""
    same = value.traceback is original.traceback and value.context is original.context
    return isinstance(value, GroupValue) and same and value.cause is original.cause


def _projection(tracer: Tracer, group: GroupValue, parts: list[ExceptionValue]) -> ExceptionValue | None:
    """The group with just those members that are in one of its parts."""
    kept = {id(leaf) for part in parts for leaf in _leaves(part)}
    return _split(tracer, group, lambda value: id(value) in kept, False)[0]


def _leaves(value: ExceptionValue) -> list[ExceptionValue]:
    if not isinstance(value, GroupValue):
        return [value]
    return [leaf for member in value.members for leaf in _leaves(member)]
