"""A function of NumPy as one node, called as the program calls it: ``numerics="strict"``.

What the results are like is known from the rule of the function. Where NumPy warns, of floating-point errors
too, the graph raises, and the original warns.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...dataclass import dataclass, field
from ...errors import Unsupported
from ...graph.ir import COPY, ArrayType, Callee, Node, Var
from ...prims.layout import sorted_axes
from ...symbolic.integers import SymInt, same
from ..base import STRICT, ArrayRef, Called, TraceContext, TypedTuple, memory_of
from ..caller import Caller
from .operands import NO, emit, write

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, np.dtype, np.generic)
_SCALAR_TYPES = (bool, int, float, complex)


@dataclass(frozen=True, slots=True)
class _Open:
    """Where an argument goes that is known when the graph runs: array ``index``, or an integer."""

    kind: str
    index: int


@dataclass(eq=False)
class WholeCall:
    """A call with its arrays and symbolic integers left open. It gives the arrays in its result, then copies
    of those that it wrote into (``written``); axes as ``orders`` has them."""

    function: Callable[..., Any]
    args: Any
    kwargs: Any
    caller: Caller | None
    kept: tuple[bool, ...]  # of the arrays in its result: whether they are new
    written: tuple[int, ...]
    orders: tuple[tuple[int, ...], ...]

    def __call__(self, arrays: Sequence[Any], numbers: Sequence[int]) -> tuple[Any, ...]:
        given = [np.array(a, order="K") if k in self.written else a for k, a in enumerate(arrays)]
        args, kwargs = (_filled(part, given, numbers) for part in (self.args, self.kwargs))
        raised = {error: "raise" for error, mode in np.geterr().items() if mode != "ignore"}
        with np.errstate(**raised):  # type: ignore[arg-type]
            if self.caller is None:
                found = self.function(*args, **kwargs)
            else:
                found = self.caller.call(self.function, args, kwargs)
        results = list(_leaves(found))
        if len(results) != len(self.kept):
            raise TypeError(f"{self.function} gave {len(results)} arrays, not {len(self.kept)}")
        made = [r for r, is_kept in zip(results, self.kept) if is_kept]
        made += [given[k] for k in self.written]
        laid_out = tuple(np.asarray(a).transpose(order) for a, order in zip(made, self.orders, strict=True))
        if not all(a.flags.c_contiguous for a in laid_out):
            raise TypeError(f"{self.function} gave arrays in another order than was expected")
        return laid_out


def _filled(argument: Any, arrays: Sequence[Any], numbers: Sequence[int]) -> Any:
    if type(argument) is _Open:
        if argument.kind == "integer":
            return numbers[argument.index]
        array = arrays[argument.index]
        return array if argument.kind == "array" else array[()] if argument.kind == "scalar" else array.item()
    if type(argument) in (tuple, list):
        return type(argument)(_filled(part, arrays, numbers) for part in argument)
    if type(argument) is dict:
        return {name: _filled(part, arrays, numbers) for name, part in argument.items()}
    if type(argument) is slice:
        return slice(*_filled((argument.start, argument.stop, argument.step), arrays, numbers))
    return argument


def _leaves(found: Any) -> Iterator[Any]:
    if isinstance(found, (tuple, list)):
        for part in found:
            yield from _leaves(part)
    elif found is not None:
        yield found


@dataclass
class _Opening:
    """Collects what of a call's arguments is known only when the graph runs."""

    written: frozenset[str]
    refs: list[ArrayRef] = field(default_factory=list)
    numbers: list[SymInt] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def of(self, value: Any) -> Any:
        if isinstance(value, ArrayRef):
            return self._array(value)
        if isinstance(value, SymInt):
            self.numbers.append(value)
            return _Open("integer", len(self.numbers) - 1)
        if type(value) in (tuple, list):
            return type(value)(self.of(part) for part in value)
        if type(value) is dict:
            return {name: self.of(part) for name, part in value.items()}
        if type(value) is slice:
            return slice(*map(self.of, (value.start, value.stop, value.step)))
        if type(value) is np.ndarray and value.dtype != object:
            return value.copy(order="K")
        is_type = type(value) is type and (value in _SCALAR_TYPES or issubclass(value, np.generic))
        if not is_type and value is not NO and not isinstance(value, _CONSTANTS):
            raise _refusal(f"a {type(value).__name__} in a call of NumPy")
        return value

    def _array(self, ref: ArrayRef) -> _Open:
        if ref.kind not in ("array", "scalar", "python") or ref.frontend not in ("numpy", ""):
            raise _refusal(f"a {ref.kind} value in a call of NumPy")
        name = ref.var.name
        if name not in self.places:  # the same array is the same object
            self.places[name] = len(self.refs)
            self.refs.append(ref)
        return _Open(ref.kind, self.places[name])


def _refusal(reason: str) -> Unsupported:
    return Unsupported(f"{reason} ({STRICT})")


def call_whole(
    tx: TraceContext,
    called: Called,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: Any,
    made: Sequence[Node],
) -> Any:
    """See ``Frontend.call_whole``."""
    function = _function(called)
    opening = _Opening(frozenset(node.inputs[0].name for node in made if node.op == COPY))
    opened = opening.of(tuple(args)), opening.of(dict(kwargs))
    written = tuple(k for k, ref in enumerate(opening.refs) if ref.var.name in opening.written)
    if len(written) < len(opening.written):
        raise _refusal(f"{called.name}, which writes into a part of an array")
    results = _Results(tx, opening, made)
    results.look_at(result)
    targets = [opening.refs[k] for k in written]
    if not all(_is_dense(ref.type) for ref in targets):
        raise _refusal(f"{called.name}, which writes into an array with holes")
    check_staged(tx, opening.refs, results.new, opening.numbers)
    types = [ref.type for ref in results.new] + [ref.type for ref in targets]
    orders = tuple(tuple(_order(t)) for t in types)
    caller = None if tx.builder.loc is None else Caller(tx.builder.loc, tx.module())
    call = WholeCall(function, *opened, caller, tuple(results.kept), written, orders)
    variables = emit(
        tx,
        "routine_call",
        *(ref.var for ref in opening.refs),
        callee=Callee(call, called.name, (), (), whole=True),
        numbers=tuple(opening.numbers),
        dtypes=tuple(t.dtype for t in types),
        shapes=tuple(tuple(t.shape[a] for a in order) for t, order in zip(types, orders)),
    )
    variables = variables if isinstance(variables, tuple) else (variables,)
    laid_out = [_put_back(tx, var, order) for var, order in zip(variables, orders)]
    for target, var in zip(targets, laid_out[len(results.new) :]):
        write(tx, target, var)
    fresh = {ref.var.name: var for ref, var in zip(results.new, laid_out)}
    return _with_values(result, fresh)


def check_staged(
    tx: TraceContext, given: Sequence[ArrayRef], made: Sequence[ArrayRef], numbers: Sequence[SymInt]
) -> None:
    """Of symbolic sizes a call is a stage of its own, which is given copies of views: refuse those of which
    the library may see that they are laid out otherwise, or show what another argument is."""
    dims = [*numbers, *(d for ref in (*given, *made) for d in (*ref.shape, *ref.strides))]
    if not any(isinstance(d, SymInt) for d in dims):
        return
    memory = [memory_of(tx.builder, ref.var) for ref in given]
    for ref, name in zip(given, memory):
        if ref.var.name != name and (memory.count(name) > 1 or not _is_dense(ref.type)):
            raise _refusal("a call of the library with views of arrays of symbolic sizes")


def _function(called: Called) -> Callable[..., Any]:
    if called.kind == "function":
        function: Callable[..., Any] = called.function
    elif called.kind == "method":
        function = _Method(called.name)
    elif called.kind == "operator" and called.name == "divmod":
        function = divmod
    elif called.kind == "operator" and hasattr(operator, called.name):
        function = getattr(operator, called.name)
    else:
        raise _refusal(f"{called.kind} {called.name}")
    return function


@dataclass(frozen=True, slots=True)
class _Method:
    name: str

    def __call__(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(array, self.name)(*args, **kwargs)


class _Results:
    """The arrays in what a rule gave: new ones, and those that were arguments."""

    def __init__(self, tx: TraceContext, opening: _Opening, made: Sequence[Node]) -> None:
        self.tx = tx
        self.opening = opening
        self.fresh = {var.name for node in made for var in node.outputs}
        self.memory: set[str] = set()
        self.new: list[ArrayRef] = []
        self.kept: list[bool] = []

    def look_at(self, result: Any) -> None:
        if isinstance(result, TypedTuple):
            result = result.items
        if isinstance(result, (tuple, list)):
            for part in result:
                self.look_at(part)
        elif isinstance(result, ArrayRef):
            self._array(result)
        elif result is not None:
            raise _refusal("a function of NumPy that gives arrays and other things")

    def _array(self, ref: ArrayRef) -> None:
        is_argument = ref.var.name in self.opening.places
        self.kept.append(not is_argument)
        if is_argument:
            return
        memory = memory_of(self.tx.builder, ref.var)
        if memory not in self.fresh or memory in self.memory or ref.kind == "masked" or ref.mask is not None:
            raise _refusal("a function of NumPy that gives a view")
        self.memory.add(memory)
        self.new.append(ref)


def _with_values(result: Any, fresh: dict[str, Var]) -> Any:
    if isinstance(result, TypedTuple):
        return replace(result, items=tuple(_with_values(part, fresh) for part in result.items))
    if isinstance(result, (tuple, list)):
        return type(result)(_with_values(part, fresh) for part in result)
    if isinstance(result, ArrayRef):
        return replace(result, var=fresh.get(result.var.name, result.var), part=None)
    return result


def _order(t: ArrayType) -> list[int]:
    """The axes from outermost to innermost in memory."""
    return list(range(len(t.shape))) if t.is_contiguous else sorted_axes(t.shape, t.strides)


def _is_dense(t: ArrayType) -> bool:
    wanted: Any = 1
    for axis in reversed(_order(t)):
        if not same(t.shape[axis], 1) and not same(t.strides[axis], wanted):
            return False
        wanted = wanted * t.shape[axis]
    return True


def _put_back(tx: TraceContext, var: Var, order: tuple[int, ...]) -> Var:
    if order == tuple(range(len(order))):
        return var
    found: Var = emit(tx, "transpose", var, perm=tuple(order.index(axis) for axis in range(len(order))))
    return found
