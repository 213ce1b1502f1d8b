"""Calls of universal functions: promotion, broadcasting, ``out=``, ``where=``, ``dtype=``, ``casting=``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import Unsupported
from ...graph.ir import Callee, Var
from ...prims.layout import is_one, is_zero
from ...prims.table import TABLE as PRIMS
from ..base import ArrayRef, StateGuard, TraceContext
from ..rule_table import below
from . import promote
from .numpy_rules import RuleTable
from .operands import (
    NO,
    broadcast_shapes,
    broadcast_to,
    convert,
    emit,
    exact_value,
    fill,
    operand,
    shape_of,
    to_var,
    value_of,
    write,
)
from .ufunc_emit import Loop, emitter, full_like, sets_flags
from .views import in_memory_as

TABLE = RuleTable()
# by the ufunc's own name: its path in scipy.special, and the op
_SCIPYS = {
    path.rpartition(".")[2]: (path, row.name)
    for row in PRIMS.values()
    for path in row.names_in("scipy.special")
}


def call_ufunc(
    tx: TraceContext,
    ufunc: np.ufunc,
    *args: object,
    out: object = None,
    where: object = True,
    dtype: object = None,
    casting: str = "same_kind",
    order: str = "K",
    subok: bool = True,
    signature: object = None,
    sig: object = None,
) -> Any:
    """``ufunc(*args, ...)`` with NumPy's meaning of every argument. Results of zero dimensions are
    scalars, unless written to ``out``."""
    if order not in ("K", "C") or signature is not None or sig is not None:
        raise Unsupported("a ufunc call with order= or signature=")
    inputs, outs = _split_arguments(ufunc, args, out)
    operands = [operand(tx, value) for value in inputs]
    known = is_numpys(ufunc)
    shortcut = _out_of_range_comparison(tx, ufunc, operands) if known else None
    if shortcut is not None and not any(outs) and where is True:
        return shortcut
    loop = _resolve(ufunc, operands, outs, dtype, casting)
    flags = not known or sets_flags(ufunc, loop)
    if flags:
        tx.assume("numpy-errstate")
    shape = broadcast_shapes(*map(shape_of, (*operands, where, *outs)))
    _check_outs(shape, outs)
    mask = _mask(tx, where, outs)
    results = _run(tx, ufunc, loop, operands, shape, mask if flags and known else None)
    if order == "C" and not all(r.type.is_contiguous for r in results):
        results = [emit(tx, "contiguous", r) for r in results]
    finished = [_deliver(tx, r, o, mask) for r, o in zip(results, outs)]
    return finished[0] if len(finished) == 1 else tuple(finished)


def _split_arguments(
    ufunc: np.ufunc, args: tuple[Any, ...], out: object
) -> tuple[tuple[Any, ...], list[ArrayRef | None]]:
    inputs = args[: ufunc.nin]
    if len(inputs) < ufunc.nin or len(args) > ufunc.nin + ufunc.nout:
        raise Unsupported(f"numpy.{ufunc.__name__} called with {len(args)} positional arguments")
    given = args[ufunc.nin :]
    if given and out is not None:
        raise Unsupported("out given both by position and by name")
    outs: tuple[Any, ...] = given or (out if isinstance(out, tuple) else (out,))
    padded = [*outs, *[None] * (ufunc.nout - len(outs))]
    for item in padded:
        if item is not None and not (isinstance(item, ArrayRef) and item.kind == "array"):
            raise Unsupported("out= must be an array")
    return inputs, padded


def _resolve(
    ufunc: np.ufunc, operands: list[Any], outs: list[ArrayRef | None], dtype: object, casting: str
) -> Loop:
    kinds = [promote.operand_type(value) for value in operands]
    if all(isinstance(kind, type) for kind in kinds):  # weak numbers alone are arrays: of objects, if large
        for value in operands:
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise Unsupported(f"the integer {value} is an object to numpy.{ufunc.__name__}")
    out_dtypes = [None if o is None else o.dtype.numpy for o in outs]
    signature = None
    if dtype is not None:
        wanted = promote.parse_dtype(dtype).numpy
        signature = (*[None] * ufunc.nin, *[wanted] * ufunc.nout)
    found = promote.resolve(ufunc, kinds, out_dtypes, casting, signature)
    ins, results = found[: ufunc.nin], found[ufunc.nin :]
    return Loop(tuple(map(promote.converted, ins)), tuple(map(promote.from_np, results)))


def _check_outs(shape: tuple[Any, ...], outs: list[ArrayRef | None]) -> None:
    for out in outs:
        if out is None:
            continue
        if len(out.shape) != len(shape) or not all(a == b for a, b in zip(out.shape, shape)):
            raise Unsupported("non-broadcastable output operand")


def _run(
    tx: TraceContext,
    ufunc: np.ufunc,
    loop: Loop,
    operands: list[Any],
    shape: tuple[Any, ...],
    mask: Var | None,
) -> list[Var]:
    ready = [broadcast_to(tx, to_var(tx, v, d), shape) for v, d in zip(operands, loop.ins)]
    if mask is not None:
        # elements that NumPy leaves alone are computed of numbers that raise no floating-point error
        chosen = broadcast_to(tx, mask, shape)
        harmless = 0 if ufunc is np.arctanh else 1
        ready = [emit(tx, "where", chosen, v, full_like(tx, v, harmless)) for v in ready]
    run = emitter(ufunc) if is_numpys(ufunc) else None
    op = _op_of_scipy(ufunc) if run is None and scipy_is_quiet(None, None) else None
    if op is not None and all(v.dtype in PRIMS[op].dtypes for v in ready):
        tx.states["scipy-errors"] = StateGuard(scipy_is_quiet, None, "scipy.special: errors are ignored")
        results = emit(tx, op, *ready)
    elif run is None:
        results = emit(tx, "ufunc_call", *ready, callee=_callee(ufunc), dtypes=loop.outs)
    else:
        results = run(tx, loop, *ready)
    made = [
        convert(tx, r, d) for r, d in zip(results if isinstance(results, tuple) else (results,), loop.outs)
    ]
    if not any(_loses_its_order(v, d) for v, d in zip(operands, loop.ins)):
        return made
    spread = [broadcast_to(tx, v.var, shape) for v in operands if isinstance(v, ArrayRef)]
    return [in_memory_as(tx, r, *spread) for r in made]


def _loses_its_order(value: object, dtype: dtypes.DType) -> bool:
    """Whether an operand has broadcast axes, which conversion fills: results are in the operand's order."""
    if not isinstance(value, ArrayRef) or value.dtype == dtype:
        return False
    return any(is_zero(s) and not is_one(d) for d, s in zip(value.shape, value.strides))


def is_numpys(ufunc: np.ufunc) -> bool:
    """Whether it is one of NumPy's own, which are known by name."""
    return getattr(np._core.umath, ufunc.__name__, None) is ufunc  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=256)
def _op_of_scipy(ufunc: np.ufunc) -> str | None:
    """The op that a function of scipy.special is, if there is one."""
    path, op = _SCIPYS.get(ufunc.__name__, ("", ""))
    return op if op and below(sys.modules.get("scipy.special"), path) is ufunc else None


def scipy_is_quiet(obj: object, expected: object) -> bool:
    """Whether scipy.special ignores errors of its functions, as it does by default. (It raises for lack of
    memory, of which ops need none.)"""
    special = sys.modules.get("scipy.special")
    return special is None or {v for k, v in special.geterr().items() if k != "memory"} == {"ignore"}


def takes_numbers(ufunc: np.ufunc) -> bool:
    """Whether it works element by element and has an inner loop for numbers."""
    return ufunc.signature is None and any(loop[0] not in "mMO" for loop in ufunc.types)


@functools.lru_cache(maxsize=256)
def _callee(ufunc: np.ufunc) -> Callee:
    return Callee(ufunc, ufunc.__name__, (), ())  # one for each, so that equal calls are found to be equal


def _mask(tx: TraceContext, where: object, outs: list[ArrayRef | None]) -> Any:
    if where is True or where is NO:
        return None
    if any(out is None for out in outs):
        raise Unsupported("where= without out= leaves elements undefined")
    mask = operand(tx, where)
    if promote.default_dtype(promote.operand_type(mask)) != np.dtype(np.bool_):
        raise Unsupported("where= must be boolean")
    return to_var(tx, mask, dtypes.bool_)


def _deliver(tx: TraceContext, result: Var, out: ArrayRef | None, mask: Var | None) -> ArrayRef:
    if out is None:
        return value_of(result)
    ready = convert(tx, result, out.dtype)
    if mask is not None:
        ready = emit(tx, "where", broadcast_to(tx, mask, out.shape), ready, out.var)
    return write(tx, out, ready)


# -- comparisons with Python integers that do not fit ------------------------------------------
_COMPARE = {
    "equal": (False, False),
    "not_equal": (True, True),
    "less": (False, True),
    "less_equal": (False, True),
    "greater": (True, False),
    "greater_equal": (True, False),
}


def _out_of_range_comparison(tx: TraceContext, ufunc: np.ufunc, operands: list[Any]) -> ArrayRef | None:
    """``uint8_array < -1``: NumPy compares Python integers that do not fit exactly."""
    if ufunc.__name__ not in _COMPARE or len(operands) != 2:
        return None
    x, y = operands
    mirrored = isinstance(y, ArrayRef)
    array, number = (y, x) if mirrored else (x, y)
    if not isinstance(array, ArrayRef) or type(number) is not int or not array.dtype.is_integer:
        return None
    info = np.iinfo(array.dtype.numpy)
    if array.kind == "python" or info.min <= number <= info.max:
        return None
    above = number > info.max
    below_answer, above_answer = _COMPARE[ufunc.__name__]
    answer = above_answer if above != mirrored else below_answer
    value = exact_value(answer, dtypes.bool_)
    like = emit(tx, "equal", array.var, array.var) if value else emit(tx, "not_equal", array.var, array.var)
    return value_of(like) if array.shape else value_of(fill(tx, (), value, dtypes.bool_))


# -- registration -----------------------------------------------------------------------------
def elementwise_ufuncs() -> Iterator[np.ufunc]:
    """The ufuncs of this NumPy that have a rule."""
    seen: set[int] = set()
    # not dir() and getattr(), which would import NumPy's lazy submodules
    for ufunc in vars(np).values():
        if not isinstance(ufunc, np.ufunc) or id(ufunc) in seen or ufunc.signature is not None:
            continue
        seen.add(id(ufunc))
        if emitter(ufunc) is not None:
            yield ufunc


def ufunc_rule(ufunc: np.ufunc) -> Any:
    """The rule of calling ``ufunc``."""

    def rule(tx: TraceContext, *args: Any, **kwargs: Any) -> Any:
        return call_ufunc(tx, ufunc, *args, **kwargs)

    return rule


for _ufunc in elementwise_ufuncs():
    TABLE.functions[_ufunc] = ufunc_rule(_ufunc)
