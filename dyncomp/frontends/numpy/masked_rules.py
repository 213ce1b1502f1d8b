"""The rules of masked values (see ``masked``): all rules of the frontend refuse them, but for those here."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import product
from ..base import ArrayRef, Rule, TraceContext
from .index_parse import IntItem, MaskItem, Subscript, apply_basic, parse
from .indexing import result_position
from .indexing import setitem as plain_setitem
from .masked import (
    is_masked,
    joint_mask,
    mask_of,
    masked,
    mentions_masked,
    owned_mask,
    read,
    read_again,
    refused,
    rest_ndim,
    spread_mask,
    whole,
)
from .numpy_rules import RuleTable, resolve
from .operands import (
    NO,
    as_ref,
    broadcast_to,
    constant,
    convert,
    emit,
    given,
    is_scalar_constant,
    normalize_axes,
    to_var,
    value_of,
    view_of,
    write,
)
from .ufunc_emit import full_like
from .ufunc_methods import reduce_ufunc

_ELEMENTWISE_FUNCTIONS = (
    "where",
    "clip",
    "round",
    "around",
    "fix",
    "nan_to_num",
    "isclose",
    "sinc",
    "copy",
    "array",
    "asarray",
    "asanyarray",
    "astype",
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
)
_ELEMENTWISE_METHODS = ("astype", "copy", "__copy__", "clip", "round")
_ELEMENTWISE_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"),
    *("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor"),
    *("ilshift", "irshift", "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert", "divmod"),
)
_REDUCTIONS = ("sum", "prod", "mean", "var", "std", "max", "amax", "min", "amin", "any", "all")
_REDUCTION_METHODS = ("sum", "prod", "mean", "var", "std", "max", "min", "any", "all")
_NAN_REDUCTIONS = ("nansum", "nanprod", "nanmean", "nanvar", "nanstd")
_QUESTIONS = ("result_type", "can_cast", "issubdtype", "isdtype", "iscomplexobj", "isrealobj")
_EXTREMES = ("maximum", "minimum", "fmax", "fmin", "max", "amax", "min", "amin")


def with_masked(rules: RuleTable) -> RuleTable:
    """All rules, each with its meaning for masked values, or refusing them."""
    special = _masked_rules(rules)
    result = RuleTable()
    for mine, theirs, chosen in zip(result.parts(), rules.parts(), special.parts()):
        for key, rule in theirs.items():
            mine[key] = dispatch(rule, chosen.get(key))
    reading = rules.operators["getitem"]
    result.operators["getitem"] = _getitem_rule(reading)
    result.methods["__getitem__"] = result.operators["getitem"]
    return result


def dispatch(rule: Rule, chosen: Rule | None) -> Rule:
    """``rule``, and ``chosen`` where an argument is a masked value (refused without)."""

    @functools.wraps(rule)
    def dispatched(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        if not mentions_masked(args) and not mentions_masked(kwargs):
            return rule(tx, *args, **kwargs)
        if chosen is None:
            raise refused("an operation that is not elementwise on")
        return chosen(tx, *args, **kwargs)

    return dispatched


def _masked_rules(rules: RuleTable) -> RuleTable:
    table = RuleTable()
    for function, rule in rules.functions.items():
        if isinstance(function, np.ufunc):
            table.functions[function] = elementwise(rule)
    _choose(table.functions, rules.functions, map(resolve, _ELEMENTWISE_FUNCTIONS), elementwise)
    _choose(table.functions, rules.functions, map(resolve, _QUESTIONS), _as_it_is)
    _choose(table.methods, rules.methods, _ELEMENTWISE_METHODS, elementwise)
    _choose(table.methods, rules.methods, map(_special_method, _ELEMENTWISE_OPERATORS), elementwise)
    _choose(table.operators, rules.operators, _ELEMENTWISE_OPERATORS, elementwise)
    for name in (*_REDUCTIONS, *_NAN_REDUCTIONS):
        _choose(table.functions, rules.functions, [resolve(name)], _reduction_maker(name))
    for name in _REDUCTION_METHODS:
        _choose(table.methods, rules.methods, [name], _reduction_maker(name))
    _reduce_methods(table, rules)
    table.functions[np.count_nonzero] = _count_nonzero(rules.functions[np.count_nonzero])
    table.operators["setitem"] = table.methods["__setitem__"] = setitem
    table.attributes["dtype"] = rules.attributes["dtype"]
    table.attributes["itemsize"] = rules.attributes["itemsize"]
    table.attributes["ndim"] = table.functions[np.ndim] = _ndim
    table.attributes["size"] = _size
    table.attributes["shape"] = table.functions[np.shape] = _shape
    table.methods["__len__"] = _length
    return table


def _choose(
    into: dict[Any, Rule], rules: dict[Any, Rule], keys: Iterable[Any], make: Callable[[Rule], Rule]
) -> None:
    for key in keys:
        if key is not None and key in rules:
            into[key] = make(rules[key])


def _special_method(operator: str) -> str:
    return f"__{operator.strip('_')}__"


def _as_it_is(rule: Rule) -> Rule:
    return rule


def _ndim(tx: TraceContext, x: ArrayRef) -> int:
    return rest_ndim(x) + 1


def _length(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    """How many elements the mask selects: a Python ``int`` that the graph computes."""
    mask = mask_of(x)
    counted = emit(tx, "reduce_sum", convert(tx, mask, dtypes.int64), axes=tuple(range(mask.ndim)))
    return ArrayRef(counted, "python", x.frontend)


def _shape(tx: TraceContext, x: ArrayRef) -> tuple[Any, ...]:
    return (_length(tx, x), *x.shape[mask_of(x).ndim :])


def _size(tx: TraceContext, x: ArrayRef) -> ArrayRef:
    count, *rest = _shape(tx, x)
    factor = to_var(tx, product(rest), dtypes.int64)
    return ArrayRef(emit(tx, "multiply", count.var, factor), "python", x.frontend)


# -- elementwise ------------------------------------------------------------------------------
def elementwise(rule: Rule) -> Rule:
    """The rule of an elementwise function applied to ``full``: what it computes outside of the mask is
    never looked at."""

    def run(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        like = _the_masked(args, kwargs)
        ready = [_aligned(tx, value, like, True) for value in args]
        named = {name: _aligned(tx, value, like, False) for name, value in kwargs.items()}
        if named.get("order", "K") not in (None, "K", "C"):
            raise refused("another memory order of")
        result = rule(tx, *ready, **named)
        if isinstance(result, tuple):
            return tuple(_result(r, like, args, kwargs) for r in result)
        return _result(result, like, args, kwargs)

    return run


def _the_masked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> ArrayRef:
    """One of the masked operands; all must have one mask and as many dimensions."""
    found = _masked_operands(args, kwargs)
    if not found:
        raise refused("a sequence of")
    for ref in found[1:]:
        if ref.mask != found[0].mask:
            raise refused("two different masks have")
        if ref.ndim != found[0].ndim:
            raise refused("operands of different dimensions hold")
    return found[0]


def _masked_operands(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[ArrayRef]:
    out = kwargs.get("out")
    outs = out if isinstance(out, tuple) else ()
    return [v for v in (*args, *kwargs.values(), *outs) if is_masked(v)]


def _aligned(tx: TraceContext, value: Any, like: ArrayRef, positional: bool) -> Any:
    """An operand as it broadcasts against ``full``."""
    if is_masked(value):
        return whole(value)
    if isinstance(value, tuple) and value and all(v is None or is_masked(v) for v in value):
        return tuple(v if v is None else whole(v) for v in value)  # out=
    if mentions_masked(value):
        raise refused("a sequence of")
    if isinstance(value, (list, tuple, np.ndarray)) and positional:
        value = as_ref(tx, value)
    if not isinstance(value, ArrayRef):
        return value
    rest = rest_ndim(like)
    if value.ndim <= rest:
        return value
    if value.ndim != rest + 1 or not value.shape[0] == 1:
        raise refused("an array is combined with")
    return ArrayRef(emit(tx, "reshape", value.var, shape=value.shape[1:]), "array", readonly=True)


def _result(result: object, like: ArrayRef, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ArrayRef:
    if not isinstance(result, ArrayRef) or result.kind != "array" or result.ndim <= rest_ndim(like):
        raise refused("an operation that is not elementwise on")
    for operand in _masked_operands(args, kwargs):
        if operand.var == result.var:
            return operand  # written in place, or nothing to do
    return masked(result.var, mask_of(like))


# -- reductions -------------------------------------------------------------------------------
def _reduction_maker(name: str) -> Callable[[Rule], Rule]:
    return lambda rule: _reduction(rule, name, None)


def _reduce_methods(table: RuleTable, rules: RuleTable) -> None:
    for key in [f for f in rules.functions if isinstance(f, np.ufunc)]:
        reduce = key.reduce if key.nin == 2 and key.nout == 1 else None
        if reduce in rules.functions:
            table.functions[reduce] = _reduction(_reduce_rule(key), key.__name__, 0)


def _reduce_rule(ufunc: np.ufunc) -> Rule:
    def rule(
        tx: TraceContext,
        array: object,
        axis: object = 0,
        dtype: object = None,
        out: object = None,
        keepdims: object = False,
        initial: object = NO,
        where: object = NO,
    ) -> ArrayRef:
        return reduce_ufunc(tx, ufunc, array, axis, dtype, out, keepdims, initial, where)

    return rule


def _reduction(rule: Rule, name: str, default_axis: object) -> Rule:
    """A reduction with ``where=``: over the selected dimension (0) that is the mask."""
    signature = inspect.signature(_with_axis if name in _NAN_REDUCTIONS else rule)

    def run(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        bound = signature.bind(tx, *args, **kwargs)
        _, x, *_ = bound.args
        options = {k: v for k, v in list(bound.arguments.items())[2:] if v is not NO}
        options |= options.pop("options", {})
        axis = options.pop("axis", default_axis)
        keep = bool(options.pop("keepdims", False))
        _check_options(x, options)
        axes = normalize_axes(axis, rest_ndim(x) + 1)
        inner = _axes_of_full(x, axes)
        if 0 not in axes:
            return masked(rule(tx, whole(x), axis=inner, keepdims=keep, **options).var, mask_of(x))
        where = spread_mask(tx, mask_of(x), x.var)
        reduced = _reduce_selected(tx, rule, name, x, where, {"axis": inner, **options})
        return _kept(tx, reduced, x, axes) if keep else reduced

    return run


def _with_axis(tx: TraceContext, a: object, axis: object = None, **options: object) -> None:
    """The signature of functions that pass on their arguments."""


def _reduce_selected(
    tx: TraceContext, rule: Rule, name: str, x: ArrayRef, where: Var, options: dict[str, Any]
) -> ArrayRef:
    reduced: ArrayRef
    if name in _NAN_REDUCTIONS:
        if not x.dtype.is_float:
            raise refused("a reduction that passes over NaN, of integers, of")
        hidden = emit(tx, "where", where, x.var, full_like(tx, x.var, math.nan))
        return rule(tx, ArrayRef(hidden), **options)
    if name not in _EXTREMES or given(options.get("initial", NO)):
        return rule(tx, whole(x), where=ArrayRef(where), **options)
    if any(d == 0 for d in x.shape):
        raise refused("an extreme along an empty dimension of")
    options["initial"] = _least_extreme(name, x)
    reduced = rule(tx, whole(x), where=ArrayRef(where), **options)
    return _unless_empty(tx, reduced, mask_of(x))


def _least_extreme(name: str, x: ArrayRef) -> Any:
    """The value that a maximum or minimum over ``x`` cannot be beyond."""
    largest = "max" in name
    if x.dtype.is_complex or name.startswith("f"):
        raise refused("an extreme of complex numbers, or one that passes over NaN, of")
    if x.dtype.is_bool:
        return not largest
    if x.dtype.is_inexact:
        return -math.inf if largest else math.inf
    info = np.iinfo(x.dtype.numpy)
    return int(info.min if largest else info.max)


def _unless_empty(tx: TraceContext, reduced: ArrayRef, mask: Var) -> ArrayRef:
    """``reduced`` where the mask selects something. Else the graph raises ``IndexError``, so that the
    original runs and raises what NumPy raises."""
    found = emit(tx, "reduce_any", mask, axes=tuple(range(mask.ndim)))
    position = emit(tx, "subtract", constant(tx, 1, dtypes.int64), convert(tx, found, dtypes.int64))
    row = emit(tx, "reshape", reduced.var, shape=(1, *reduced.shape))
    return value_of(emit(tx, "index", row, position, dims=(0,), position=0))


def _check_options(x: object, options: dict[str, Any]) -> None:
    if not is_masked(x) or any(mentions_masked(v) for v in options.values()):
        raise refused("an argument of a reduction holds")
    special = any(given(options.get(name, NO)) for name in ("out", "mean"))
    if special or options.pop("where", True) is not True:
        raise refused("a reduction with out=, where= or mean= of")


def _axes_of_full(x: ArrayRef, axes: tuple[int, ...]) -> tuple[int, ...]:
    covered = mask_of(x).ndim
    selected = tuple(range(covered)) if 0 in axes else ()
    return (*selected, *(axis - 1 + covered for axis in axes if axis))


def _kept(tx: TraceContext, reduced: ArrayRef, x: ArrayRef, axes: tuple[int, ...]) -> ArrayRef:
    rest = x.shape[mask_of(x).ndim :]
    shape = tuple(1 if axis in axes else rest[axis - 1] for axis in range(len(rest) + 1))
    return value_of(emit(tx, "reshape", reduced.var, shape=shape))


def _count_nonzero(rule: Rule) -> Rule:
    def run(tx: TraceContext, a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        axes = normalize_axes(axis, rest_ndim(a) + 1)
        if 0 not in axes or keepdims:
            raise refused("counting along other axes of")
        flags = convert(tx, a.var, _bool_of(a))
        chosen = emit(tx, "logical_and", flags, spread_mask(tx, mask_of(a), a.var))
        inner = None if len(axes) == rest_ndim(a) + 1 else _axes_of_full(a, axes)
        return rule(tx, ArrayRef(chosen), inner)

    return run


def _bool_of(ref: ArrayRef) -> Any:
    return mask_of(ref).dtype


# -- subscripts -------------------------------------------------------------------------------
def _getitem_rule(rule: Rule) -> Rule:
    @functools.wraps(rule)
    def getitem(tx: TraceContext, x: Any, key: Any) -> Any:
        if is_masked(x) and is_masked(key):
            return read_again(tx, x, key)
        if mentions_masked(x) or mentions_masked(key):
            raise refused("subscript of")
        if not _has_mask(key) or not isinstance(x, ArrayRef) or x.kind != "array":
            return rule(tx, x, key)
        try:
            return read(tx, x, _only_mask(parse(tx, key, x.ndim)))
        except Unsupported as problem:
            if problem.break_id != "data-dependent-shape":
                raise
        return rule(tx, x, key)  # by the positions that the mask selects

    return getitem


def _has_mask(key: object) -> bool:
    entries = key if isinstance(key, tuple) else (key,)
    return any(isinstance(e, ArrayRef) and e.kind == "array" and e.dtype.is_bool and e.ndim for e in entries)


def _only_mask(subscript: Subscript) -> Subscript:
    if len(subscript.fancy) > 1:
        raise refused("index arrays stand together with")
    return subscript


def setitem(tx: TraceContext, x: Any, key: Any, value: Any) -> None:
    """``x[m] = t`` with the mask that selected ``t``, and writes into a masked ``t``."""
    if is_masked(x):
        _write_into_masked(tx, x, key, value)
        return
    if not isinstance(x, ArrayRef) or x.kind != "array" or not is_masked(value) or mentions_masked(key):
        raise refused("subscript of")
    subscript = _only_mask(parse(tx, key, x.ndim))
    if not subscript.masks:
        raise refused("an array is combined with")
    _write_masked(tx, x, subscript, value)


def _write_masked(tx: TraceContext, x: ArrayRef, subscript: Subscript, value: ArrayRef) -> None:
    place = subscript.masks[0]
    item = subscript.items[place]
    assert isinstance(item, MaskItem)
    basic = apply_basic(tx, x.var, subscript.items)
    view, first = basic.var, basic.dims[place]
    mask = mask_of(value)
    if owned_mask(tx, item.var) != mask:
        raise refused("another mask gave the")
    covered = view.shape[first : first + mask.ndim]
    if not all(a == b for a, b in zip(mask.shape, covered)):
        raise Unsupported("boolean index did not match the shape of the indexed array")
    moved = any(isinstance(i, IntItem) for i in subscript.items) and result_position(subscript) != first
    if moved or rest_ndim(value) != view.ndim - first - mask.ndim:
        raise refused("an assignment broadcasts")
    ready = broadcast_to(tx, to_var(tx, whole(value), x.dtype), view.shape)
    write(tx, view_of(x, view), emit(tx, "where", spread_mask(tx, mask, view, first), ready, view))


def _write_into_masked(tx: TraceContext, x: ArrayRef, key: Any, value: Any) -> None:
    everything = key is Ellipsis or (isinstance(key, slice) and key == slice(None))
    if everything:
        plain_setitem(tx, whole(x), Ellipsis, _spread_value(tx, value, x, mask_of(x)))
        return
    if not is_masked(key) or not key.dtype.is_bool or key.mask != x.mask or rest_ndim(key):
        raise refused("subscript of")
    mask = joint_mask(tx, x, key) if is_masked(value) else mask_of(x)
    ready = to_var(tx, _spread_value(tx, value, x, mask), x.dtype)
    chosen = spread_mask(tx, key.var, x.var)
    write(tx, whole(x), emit(tx, "where", chosen, broadcast_to(tx, ready, x.shape), x.var))


def _spread_value(tx: TraceContext, value: Any, x: ArrayRef, mask: Var) -> Any:
    """A value assigned to elements of ``x``: a number, or what ``mask`` selects."""
    if is_masked(value):
        if value.mask != mask or value.ndim != x.ndim:
            raise refused("another mask gave the")
        return whole(value)
    if is_scalar_constant(value) or (isinstance(value, ArrayRef) and not value.ndim):
        return value
    return _aligned(tx, value, x, True)
