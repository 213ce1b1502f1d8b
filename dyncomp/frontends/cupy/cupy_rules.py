"""NumPy's rules taken over for CuPy: what goes in is checked, what comes out is made CuPy's.

CuPy's results are arrays in C order, without dimensions where NumPy gives scalars; there is no state of
floating-point errors; and sizes that depend on data are not known without waiting for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...device import Device
from ...errors import Unsupported
from ...graph.ir import Var
from ...symbolic.integers import SymInt
from ..base import ArrayRef, Rule, TraceContext
from ..numpy.frontend import NumpyFrontend
from ..numpy.operands import emit, is_scalar_constant
from ..rule_table import LibraryRules, below
from . import cupy_facts
from .library import cupy

NUMPY = NumpyFrontend()
ERRSTATE = "numpy-errstate"


def resolve(path: str) -> Any:
    """``cupy.<path>``, or ``None`` where this version of CuPy has no such name."""
    return below(cupy, path)


class RuleTable(LibraryRules):
    """Rules of ``cupy.<path>``, of methods and attributes of arrays, and of operators."""

    def __init__(self) -> None:
        super().__init__(resolve)


# -- what goes in -------------------------------------------------------------------------------
def is_own(value: object) -> bool:
    """Whether it is an array of CuPy."""
    return isinstance(value, ArrayRef) and value.frontend == "cupy" and value.kind == "array"


def own(value: Any) -> ArrayRef:
    """An argument that CuPy takes only as one of its arrays."""
    if not is_own(value):
        raise Unsupported(f"a {type(value).__name__} where CuPy takes one of its arrays")
    found: ArrayRef = value
    return found


def operand(value: object) -> Any:
    """An operand of an elementwise function: one of CuPy's arrays or a number."""
    if isinstance(value, ArrayRef):
        if is_own(value) or value.kind in ("python", "scalar"):
            return value
        raise Unsupported(f"an array of {value.frontend} as operand of a CuPy function")
    if isinstance(value, SymInt) or is_scalar_constant(value):
        return value
    raise Unsupported(f"a {type(value).__name__} as operand of a CuPy function")


# -- what comes out -----------------------------------------------------------------------------
def taken(tx: TraceContext, rule: Rule, *args: object, keep_order: bool = False, **kwargs: object) -> Any:
    """What NumPy's ``rule`` gives, as CuPy's. ``keep_order``: fresh arrays stay in the order they have."""
    start = len(tx.builder.nodes)
    assumed = ERRSTATE in tx.assumptions
    result = rule(tx, *args, **kwargs)
    if not assumed:
        tx.assumptions.discard(ERRSTATE)
    return _owned(tx, result, start, keep_order)


def _owned(tx: TraceContext, result: Any, start: int, keep_order: bool) -> Any:
    if type(result) in (tuple, list):
        return type(result)(_owned(tx, item, start, keep_order) for item in result)
    if not isinstance(result, ArrayRef) or result.frontend == "cupy" or result.kind == "python":
        return result
    if result.kind == "masked":
        raise Unsupported("a size that depends on the data of a CuPy array", break_id="data-dependent-shape")
    if result.part is not None:
        raise Unsupported("a part of a complex CuPy array")
    return _owned_array(tx, result, start, keep_order)


def _owned_array(tx: TraceContext, result: ArrayRef, start: int, keep_order: bool) -> ArrayRef:
    var = result.var
    fresh = _is_fresh(tx, var, start)
    if not fresh and result.kind == "scalar":  # of NumPy nobody sees that it is not a copy
        var = emit(tx, "copy", var)
        fresh = True
    if fresh and not keep_order and not var.type.is_contiguous:
        var = emit(tx, "contiguous", var)
    return ArrayRef(var, "array", "cupy", readonly=result.readonly and not fresh)


def _is_fresh(tx: TraceContext, var: Var, start: int) -> bool:
    """Whether the nodes from ``start`` on made the memory of a value."""
    made = {out.name: node for node in tx.builder.nodes[start:] for out in node.outputs}
    while var.name in made:
        node = made[var.name]
        if not getattr(tx.builder.table[node.op], "is_view", False):
            return True
        var = node.inputs[0]
    return False


# -- calls by CuPy's signatures -------------------------------------------------------------------
Check = Callable[..., None]


def bound(order: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by their names; those that say nothing (``None``) left out."""
    if len(args) > len(order):
        raise Unsupported(f"{len(args)} positional arguments where CuPy takes {len(order)}")
    named = dict(zip(order, args))
    for name, value in kwargs.items():
        if name not in order or name in named:
            raise Unsupported(f"the argument {name} of a CuPy function")
        named[name] = value
    if named.pop("out", None) is not None:
        raise Unsupported("out= of a CuPy function that is not elementwise")
    return {name: value for name, value in named.items() if value is not None}


def on_device(tx: TraceContext) -> None:
    """Fresh arrays without arguments are on CuPy's current device, and so are all of a graph."""
    here = Device("cuda", cupy_facts.current_device())
    if tx.builder.device is None and not tx.builder.nodes:
        tx.builder.device = here
    if tx.builder.device != here:
        raise Unsupported(f"a CuPy array on {here} among others elsewhere")
