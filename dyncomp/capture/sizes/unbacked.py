"""Numbers and sizes that depend on the data, as symbols (``symbolic.integers``: unbacked).

What a mask selects is kept at full size for as long as that will do (``frontends/numpy/masked``), and a
Python int from an array (``int(x.sum())``) stays in the graph. Where an operation wants the array itself, or
the int as a size or an index, the graph makes them then: a node defines the symbol.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...dtypes import int64
from ...errors import Unsupported
from ...frontends.base import ArrayRef
from ...frontends.known import relied_array, with_integers
from ...frontends.meaning import size_in
from ...symbolic.integers import SymInt
from ..breaks import BREAKS, Break, Skip
from ..values.array import ArrayValue
from ..values.base import LazyValue, Tracer, Value
from ..values.drawn import take_back
from ..values.number import ConstValue, SymIntValue
from ..values.seq import ListValue, SliceValue, TupleValue


def as_break(error: Unsupported, what: str = "") -> Break:
    """The graph break that a refusal is; raises ``Skip`` for a refusal of the whole frame."""
    if error.whole_frame:
        raise Skip(error.reason)
    known = error.break_id if error.break_id in BREAKS else "unsupported-call"
    return Break(known, f"{what}: {error.reason}" if what else error.reason)


def is_whole_number(value: Value) -> bool:
    """A Python int that the graph computes."""
    return isinstance(value, ArrayValue) and value.ref.kind == "python" and value.pytype is int


def item(tracer: Tracer, value: ArrayValue) -> Value:
    """The Python int of an array as a symbol, or as the number that it is known to be."""
    if value.symbol is None:
        known = relied_array(tracer.builder, value.ref.var)
        value.symbol = None if known is None else int(known)
    if value.symbol is None:
        tracer.builder.loc = tracer.loc
        value.symbol = size_in(tracer.tx, value.ref.var)
    return SymIntValue(value.symbol) if isinstance(value.symbol, SymInt) else ConstValue(value.symbol)


def select(tracer: Tracer, value: ArrayValue) -> None:
    """Turn a masked value into the array that it stands for, for good."""
    ref = tracer.frontend(value.ref).selected(tracer.tx, value.ref)
    value.ref = ref
    tracer.by_ref[ref] = value


def with_sizes(tracer: Tracer, values: Sequence[Value], run: Callable[[], Value]) -> Value:
    """``run()``; where that breaks, once more with masked values selected and Python ints as symbols."""
    try:
        return run()
    except Break as problem:
        candidates = _candidates(tracer, values)
        if not candidates or problem.break_id == "would-raise":
            raise
        nodes = len(tracer.builder.nodes)
        before = [(v, v.ref, v.symbol) for v in candidates]
        try:
            for value in candidates:
                _settle(tracer, value)
            return run()
        except (Break, Unsupported):
            del tracer.builder.nodes[nodes:]
            for value, ref, symbol in before:
                value.ref, value.symbol = ref, symbol
            raise problem from None


def _candidates(tracer: Tracer, given: Sequence[Value]) -> list[ArrayValue]:
    """What may be settled of the ``given`` values that were looked at. NumPy's own integers only where they
    cannot take part in type promotion: as bounds of slices, and where there are no arrays."""
    known = [_looked_at(tracer, value) for value in given]
    values = [value for value in known if value is not None]
    found = list(_arrays(values))
    bounds = {id(v) for v in _slice_bounds(values)}
    alone = all(v.ref.kind in ("scalar", "python") for v in found)
    return [v for v in found if _is_deferred(v) or (_is_int64(v) and (alone or id(v) in bounds))]


def _looked_at(tracer: Tracer, value: Value) -> Value | None:
    if not isinstance(value, LazyValue):
        return value
    return tracer.by_source.get(value.source) if value.source is not None else None


def _is_deferred(value: ArrayValue) -> bool:
    return value.ref.kind == "masked" or (is_whole_number(value) and value.symbol is None)


def _is_int64(value: ArrayValue) -> bool:
    return value.ref.kind == "scalar" and value.ref.dtype == int64 and value.symbol is None


def _slice_bounds(values: Sequence[Value]) -> Iterator[ArrayValue]:
    for value in values:
        if isinstance(value, SliceValue):
            yield from _arrays(value.parts)
        elif isinstance(value, (TupleValue, ListValue)):
            yield from _slice_bounds(value.children())


def _settle(tracer: Tracer, value: ArrayValue) -> None:
    if value.symbol is not None or value.ref.kind == "array":
        return  # given twice
    if value.ref.kind == "masked":
        select(tracer, value)
    else:
        item(tracer, value)


def _arrays(values: Sequence[Value]) -> Iterator[ArrayValue]:
    for value in values:
        if isinstance(value, ArrayValue):
            yield value
        elif isinstance(value, (TupleValue, ListValue, SliceValue)):
            yield from _arrays(value.children())


# parameters that say how or where: no rule writes to them, or gives them or views of them as its result
_READ_ONLY = frozenset(
    (
        *("shape", "newshape", "reps", "repeats", "axis", "axes", "pad_width", "shift", "dims"),
        *("size", "sizes", "stride"),
        *("index", "indices", "key", "sections", "indices_or_sections", "multi_index", "offset", "num"),
        *("start", "stop", "step", "k", "obj", "bins", "minlength", "pad"),
    )
)
_SIZES = frozenset(("shape", "newshape", "size", "sizes"))


def _parameters(rule: Callable[..., Any], count: int) -> list[str]:
    """The names of the first ``count`` parameters behind the context; "" where they cannot be told."""
    try:
        taken = list(inspect.signature(rule).parameters.values())[1:]
    except (TypeError, ValueError):
        taken = []
    taken = [p for p in taken if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    names = [p.name for p in taken]
    rest = names[-1] if taken and taken[-1].kind is inspect.Parameter.VAR_POSITIONAL else ""
    return (names + [rest] * count)[:count]


def call_rule(tracer: Tracer, rule: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A library's rule; where it refuses arrays of integers that are known, by these integers, and where it
    refuses single integers as sizes, by symbols for them."""
    builder = tracer.builder
    nodes = len(builder.nodes)
    try:
        return assuming(tracer, lambda: rule(tracer.tx, *args, **kwargs))
    except Unsupported:
        del builder.nodes[nodes:]
        names = _parameters(rule, len(args))
        known = [_known(tracer, n, a) for n, a in zip(names, args)]
        named = {k: _known(tracer, k, v) for k, v in kwargs.items()}
        if all(map(operator.is_, (*known, *named.values()), (*args, *kwargs.values()))):
            raise
        return assuming(tracer, lambda: rule(tracer.tx, *known, **named))


def _known(tracer: Tracer, name: str, argument: object) -> Any:
    """The argument of a parameter, with integers for arrays of such that are known. (An axis is no array of
    them, but a tuple.)"""
    if name not in _READ_ONLY or (name == "axis" and isinstance(argument, ArrayRef) and argument.ndim):
        return argument
    found = with_integers(tracer.builder, argument)
    return _with_symbols(tracer, found) if name in _SIZES else found


def _with_symbols(tracer: Tracer, argument: Any) -> Any:
    """Sizes with symbols for arrays of one integer; the same object where there is none."""
    if isinstance(argument, ArrayRef) and argument.kind == "array":
        is_one = not argument.ndim and argument.dtype == int64
        return size_in(tracer.tx, argument.var) if is_one else argument
    if type(argument) in (tuple, list):
        parts = [_with_symbols(tracer, part) for part in argument]
        same = all(map(operator.is_, parts, argument))
        return argument if same else type(argument)(parts)
    return argument


def assuming(tracer: Tracer, run: Callable[[], Any]) -> Any:
    """Run a library's rule, which may take sizes that depend on the data to be as they usually are; what was
    assumed by one that fails is forgotten, and what it drew."""
    env = tracer.env
    count = len(env.guards)
    draws = len(tracer.draws)
    env.assuming = True
    try:
        return run()
    except Exception:
        env.forget(count)
        take_back(tracer, draws)
        raise
    finally:
        env.assuming = False


def definition(tracer: Tracer, name: str) -> tuple[ArrayValue, int]:
    """The value whose size along an axis an unbacked symbol is (axis -1: the number itself)."""
    frontend = _frontend_name(tracer)
    for node in tracer.builder.nodes:
        defines = getattr(tracer.config.table.get(node.op), "defines", "")
        if defines == "value" and str(node.kwargs["value"]) == name:
            return tracer.array_value(ArrayRef(node.outputs[0], "python", frontend)), -1
        for var in node.outputs if defines == "sizes" else ():
            for axis, dim in enumerate(var.shape):
                if isinstance(dim, SymInt) and str(dim) == name:
                    return tracer.array_value(ArrayRef(var, "array", frontend)), axis
    raise KeyError(name)


def _frontend_name(tracer: Tracer) -> str:
    names = [v.ref.frontend for v in tracer.inputs if isinstance(v, ArrayValue)]
    return names[0] if names else str(tracer.config.frontends[0].name)
