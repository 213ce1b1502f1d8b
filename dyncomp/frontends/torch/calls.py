"""torch's own routines as nodes of the graph, for functions that have no ops of their own.

What a routine gives is found by calling it at capture with tensors that have no memory (device ``meta``), or,
where it has no such form, with tensors of zeros. Sizes of results that depend on symbolic sizes are found by
further calls at other sizes. The node compares what it gets with what was found: where that differs, the
original program runs.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ...device import CPU
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Callee, Literal, Var
from ...prims.layout import is_c_contiguous
from ...signals import is_from_handler
from ...symbolic.assumptions import agree
from ...symbolic.integers import Dim, ShapeEnv, SymInt, hint
from ..base import ArrayRef, Rule, TraceContext, TypedTuple
from ..caller import Caller
from ..numpy.operands import emit
from ..numpy.whole_calls import check_staged
from . import state
from .autocast import Modes, is_ambient, modes_at, set_to
from .call_names import COMPOSED, FUNCTIONS, IN_PLACE, METHODS, RECURRENT, TRANSFORMS, UNCHECKED
from .formats import is_channels_last, is_channels_last_3d
from .gradients import check, is_on, requires
from .library import torch
from .operands import as_own, need_tensor, tensor, write
from .owner import OWNER
from .placement import puts
from .routine_gradients import Gradient, differentiated
from .torch_facts import FROM_TORCH, TO_TORCH
from .torch_rules import RuleTable, resolve

_CONSTANTS = (bool, int, float, complex, str, type(None), torch.dtype, torch.layout)
_LARGEST_CONSTANT = 1 << 16
_grad_mode = torch.is_grad_enabled
OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
_LARGEST_EXAMPLE = 1 << 22  # elements of tensors made for a call at capture


@dataclasses.dataclass(frozen=True)
class _Open:
    """Where an argument goes that is known when the graph runs: tensor ``index``, the Python number of one,
    or an integer."""

    kind: str
    index: int


@dataclasses.dataclass(eq=False)
class _Call:
    """A routine's call with its tensors and symbolic integers left open."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    orders: tuple[tuple[int, ...], ...] = ()
    in_order: bool | None = None  # whether ``orders`` permute nothing
    tried_on: str = ""  # where what it gives was found
    unsure: bool = False  # whether memory may be in another order than was found without memory
    wanted: frozenset[int] = frozenset()  # tensors that gradients may be asked by
    caller: Caller | None = None
    modes: Modes = ()  # of autocast, that the call finds on

    def on(self, tensors: Sequence[Any], numbers: Sequence[int]) -> Any:
        args = (_filled(a, tensors, numbers) for a in self.args)
        kwargs = {k: _filled(v, tensors, numbers) for k, v in self.kwargs.items()}
        if self.caller is not None:
            return self.caller.call(self.function, args, kwargs)
        return self.function(*args, **kwargs)

    def on_device(self, tensors: tuple[Any, ...], numbers: tuple[int, ...]) -> tuple[Any, ...]:
        """The results, axes permuted to ``orders``, in memory that is no argument's; raises where they lie
        otherwise."""
        given = {t.untyped_storage().data_ptr() for t in tensors}
        with torch.no_grad(), set_to(self.modes):
            found = self.on(tensors, numbers)
            results = tuple(
                _permuted(r.clone() if r.untyped_storage().data_ptr() in given else r, o)
                for r, o in zip(_leaves(found), self.orders, strict=True)
            )
        if not all(result.is_contiguous() for result in results):
            raise TypeError(f"{self.function.__name__} gives tensors in another order than was found")
        return results

    def to_tensors(self, arrays: tuple[Any, ...], numbers: tuple[int, ...]) -> tuple[Any, ...]:
        """The results as tensors, axes permuted to ``orders``."""
        if not _grad_mode() and not is_ambient() and not self.modes:
            return self._results(arrays, numbers)
        with torch.no_grad(), set_to(self.modes):
            return self._results(arrays, numbers)

    def _results(self, arrays: tuple[Any, ...], numbers: tuple[int, ...]) -> tuple[Any, ...]:
        found = _leaves(self.on([OWNER.from_numpy(a) for a in arrays], numbers))
        if self.in_order is None:
            self.in_order = all(order == tuple(range(len(order))) for order in self.orders)
        if self.unsure and not all(map(_lies_in, found, self.orders)):
            raise TypeError(f"{self.function.__name__} gives tensors in another order than was found")
        if self.in_order and len(found) == len(self.orders):
            return found
        return tuple(_permuted(r, o) for r, o in zip(found, self.orders, strict=True))

    def __call__(self, arrays: tuple[Any, ...], numbers: tuple[int, ...]) -> tuple[Any, ...]:
        """The results as arrays in C order, axes permuted to ``orders``."""
        return tuple(map(OWNER.to_numpy, self.to_tensors(arrays, numbers)))

    def needs(self, number: int) -> bool:
        return number in self.wanted

    def recorded(self, tensors: Sequence[Any], numbers: Sequence[int]) -> tuple[Any, ...]:
        """The results, axes permuted to ``orders``, as autograd records them."""
        found = _leaves(self.on(tensors, numbers))
        return tuple(r.permute(o) for r, o in zip(found, self.orders, strict=True))

    def gradient(self, tensors: Iterable[int], count: int) -> Gradient:
        """The gradient of this routine of ``count`` tensors, by those of ``tensors`` it may be asked for."""
        return Gradient(self, tuple(filter(self.needs, tensors)), count)


def _lies_in(tensor: Any, order: tuple[int, ...]) -> bool:
    return bool(tensor.permute(order).is_contiguous())


def _permuted(tensor: Any, order: tuple[int, ...]) -> Any:
    return tensor if order == tuple(range(len(order))) else tensor.permute(order).detach()


def _filled(argument: Any, tensors: Sequence[Any], numbers: Sequence[int]) -> Any:
    if type(argument) is _Open:
        if argument.kind == "integer":
            return numbers[argument.index]
        found = tensors[argument.index]
        return found if argument.kind == "array" else found.item()
    if type(argument) in (tuple, list):
        return type(argument)(_filled(part, tensors, numbers) for part in argument)
    return argument


def _leaves(found: object) -> tuple[Any, ...]:
    if type(found) is torch.Tensor:
        return (found,)
    parts = found if isinstance(found, (tuple, list)) else (found,)
    return tuple(part for part in parts if part is not None)


# -- arguments ----------------------------------------------------------------------------------------------
class _Opening:
    """Collects what of a call's arguments is known only when the graph runs."""

    def __init__(self) -> None:
        self.refs: list[ArrayRef] = []
        self.numbers: list[SymInt] = []
        self.names_cpu = False  # whether it is said to be on the CPU

    def of(self, value: Any) -> Any:
        if isinstance(value, ArrayRef):
            if value.kind == "array" and value.frontend != "torch":
                raise Unsupported("an array of another library")
            if value.kind not in ("array", "python"):
                raise Unsupported(f"a {value.kind} value in a call of torch")
            self.refs.append(value)
            return _Open(value.kind, len(self.refs) - 1)
        if isinstance(value, SymInt):
            self.numbers.append(value)
            return _Open("integer", len(self.numbers) - 1)
        if type(value) in (tuple, list):
            return type(value)(self.of(part) for part in value)
        if type(value) is torch.Size:
            return tuple(self.of(part) for part in value)
        if isinstance(value, torch.device) and value.type == "cpu":
            self.names_cpu = True
            return value
        if type(value) not in _CONSTANTS:
            raise Unsupported(f"a {type(value).__name__} in a call of torch")
        return value


# -- results ------------------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class _Found:
    """What one call gave: structure and, for each tensor, dtype, shape and axes, outermost first."""

    structure: Any
    dtypes: tuple[Any, ...]
    shapes: tuple[tuple[int, ...], ...]
    orders: tuple[tuple[int, ...], ...]
    device: str  # of the tensors that it was called with
    absent: tuple[int, ...] = ()  # where ``None`` is among the results


def _example_of(ref: ArrayRef, sizes: dict[str, int], device: str, integers: int = 0) -> Any:
    """A tensor like the argument, of zeros, or a number; ``integers``: what is added to integers."""
    if ref.kind == "python":
        return _Number(ref, 1 + integers)
    shape = [_size(d, sizes) for d in ref.shape]
    strides = [_size(s, sizes) for s in ref.strides]
    extent = 1 + sum((d - 1) * s for d, s in zip(shape, strides)) if all(shape) else 0
    if device != "meta" and extent > _LARGEST_EXAMPLE:
        raise Unsupported("a call of torch with large tensors that has to be tried at capture")
    made = torch.empty_strided(shape, strides, dtype=TO_TORCH[ref.dtype], device=device)
    return made if device == "meta" else made.fill_(integers if ref.dtype.is_integer else 0)


class _Number:
    """Stands for a tensor in place of which its Python number is passed."""

    def __init__(self, ref: ArrayRef, integer: int) -> None:
        self.number = ref.dtype.numpy.type(integer if ref.dtype.is_integer else 1).item()

    def item(self) -> Any:
        return self.number


def _size(dim: Dim, sizes: dict[str, int]) -> int:
    return dim.evaluate(sizes) if isinstance(dim, SymInt) else dim


def _is_arranged(ref: ArrayRef) -> bool:
    """In the computer's memory, and not in C order, or channels last too."""
    if ref.type.device != CPU or ref.kind != "array":
        return False
    if not is_c_contiguous(ref.shape, ref.strides):
        return True
    known = all(type(n) is int for n in (*ref.shape, *ref.strides))
    return known and (is_channels_last(ref.var) or is_channels_last_3d(ref.var))


def _are_alike(refs: list[ArrayRef]) -> bool:
    """Whether shapes are equal; that symbolic sizes are is a guard."""
    first = refs[0].shape
    return all(len(r.shape) == len(first) and all(a == b for a, b in zip(r.shape, first)) for r in refs)


def _try(call: _Call, opening: _Opening, sizes: dict[str, int]) -> _Found:
    """What the call gives at these sizes. Some routines refuse without memory what they take with it; some
    give results in another order than with it, of channels last, permuted and strided tensors; one spreads
    its operands only without it."""
    if call.function.__name__ == "binary_cross_entropy" and not _are_alike(opening.refs):
        raise Unsupported("torch.binary_cross_entropy of tensors of several shapes")
    numbers = [_size(n, sizes) for n in opening.numbers]
    if isinstance(call.function, OPERATORS):
        call.unsure = True
        try:  # not with memory: it may be code of the program, which says what it gives by another function
            return _tried_on(call, opening, sizes, numbers, "meta")
        except NotImplementedError as error:
            raise Unsupported(f"an operator of which no result is known without data: {error}") from None
    is_complex = any(ref.dtype.is_complex for ref in opening.refs)
    if call.function.__name__ in TRANSFORMS or is_complex or call.modes:
        return _tried_on(call, opening, sizes, numbers, "cpu")
    call.unsure = any(map(_is_arranged, opening.refs))
    if call.unsure:
        try:
            return _tried_on(call, opening, sizes, numbers, "cpu")
        except (NotImplementedError, Unsupported):
            pass  # such as for tensors that are too large
    try:
        return _tried_on(call, opening, sizes, numbers, "meta")
    except NotImplementedError:
        return _tried_on(call, opening, sizes, numbers, "cpu")
    except Unsupported:
        if any(ref.type.device != CPU for ref in opening.refs):
            raise
        return _tried_on(call, opening, sizes, numbers, "cpu")


def _tried_on(
    call: _Call, opening: _Opening, sizes: dict[str, int], numbers: list[int], device: str
) -> _Found:
    found = _given_by(call, opening, sizes, numbers, device)
    if call.function.__name__ not in UNCHECKED:
        _check_sizes_known(call, opening, sizes, numbers, found)
    return found


def _check_sizes_known(
    call: _Call, opening: _Opening, sizes: dict[str, int], numbers: list[int], found: _Found
) -> None:
    """Refuse calls whose results have sizes that integers give (``repeat_interleave``)."""
    read = [ref for ref in opening.refs if ref.dtype.is_integer]
    if not any(ref.kind == "python" or found.device != "meta" for ref in read):
        return
    try:
        other = _given_by(call, opening, sizes, numbers, found.device, 1)
    except (NotImplementedError, Unsupported):  # such as of indices
        return
    if other.shapes != found.shapes:
        name = call.function.__name__
        raise Unsupported(f"torch.{name}: sizes that depend on the data", break_id="data-dependent-shape")


def _given_by(
    call: _Call, opening: _Opening, sizes: dict[str, int], numbers: list[int], device: str, integers: int = 0
) -> _Found:
    examples = [_example_of(ref, sizes, device, integers) for ref in opening.refs]
    name = call.function.__name__
    try:
        with torch.no_grad(), set_to(call.modes):
            found = call.on(examples, numbers)
    except (NotImplementedError, Unsupported):
        raise
    except Exception as error:
        if is_from_handler(error):
            raise
        raise Unsupported(f"torch.{name}: {type(error).__name__}: {error}") from None
    results = _leaves(found)
    if not results or not all(type(r) is torch.Tensor and r.dtype in FROM_TORCH for r in results):
        raise Unsupported(f"torch.{name} gives something else than tensors")
    if any(r.is_conj() or r.is_neg() for r in results):
        raise Unsupported(f"torch.{name} gives what is to be conjugated or negated")
    memory = {e.untyped_storage()._cdata for e in examples if isinstance(e, torch.Tensor)}
    own = [r.untyped_storage()._cdata for r in results]
    if len(set(own)) < len(own) or memory.intersection(own):
        raise Unsupported(f"torch.{name} gives a view")
    return _Found(
        type(found) if isinstance(found, (tuple, list)) else None,
        tuple(FROM_TORCH[r.dtype] for r in results),
        tuple(tuple(r.shape) for r in results),
        tuple(map(_order, results)),
        device,
        tuple(k for k, r in enumerate(found) if r is None) if isinstance(found, (tuple, list)) else (),
    )


def _order(result: Any) -> tuple[int, ...]:
    """A result's axes from outermost to innermost; refuses one with holes."""
    axes = range(result.ndim)
    order = tuple(sorted(axes, key=lambda a: (-result.stride(a), a)))
    if not result.numel() or result.is_contiguous():
        return tuple(axes)
    if not result.permute(order).is_contiguous():
        raise Unsupported("a call of torch that gives a tensor with holes")
    return order


# -- symbolic sizes -----------------------------------------------------------------------------------------
def _symbols(opening: _Opening) -> list[str]:
    dims: list[Any] = [*opening.numbers]
    for ref in opening.refs:
        dims += [*ref.shape, *ref.strides]
    return sorted({name for dim in dims if isinstance(dim, SymInt) for name in dim.symbols()})


_STEPS = ((2, 4), (-1, -2), (1, 2))  # by how much a size is changed to see what follows it
Probe = tuple[dict[str, int], _Found]


def _shapes(call: _Call, opening: _Opening, first: _Found, env: ShapeEnv) -> list[tuple[Dim, ...]]:
    """The sizes of results as formulas: those of an argument, or linear in one symbol."""
    symbols = _symbols(opening)
    if not symbols:
        return list(first.shapes)
    probes: list[Probe] = [({**env.hints}, first)]
    for name in symbols:
        probes += _probes_of(name, call, opening, symbols, env)
    if any(_kind(found) != _kind(first) for _, found in probes):
        raise Unsupported("a call of torch whose results are arranged by their sizes")
    known = [d for ref in opening.refs for d in ref.shape if isinstance(d, SymInt)] + opening.numbers
    return [
        tuple(
            _formula([(sizes, p.shapes[k][axis]) for sizes, p in probes], known, symbols, env)
            for axis in range(len(shape))
        )
        for k, shape in enumerate(first.shapes)
    ]


def _kind(found: _Found) -> tuple[Any, ...]:
    return found.structure, found.dtypes, found.orders


def _equal_to(name: str, symbols: list[str], env: ShapeEnv) -> list[str]:
    """The symbols that the program has found to be equal to one, itself among them."""
    symbol = env.symbol(name)
    return [name, *(s for s in symbols if s != name and agree(env, env.symbol(s), symbol))]


def _probes_of(name: str, call: _Call, opening: _Opening, symbols: list[str], env: ShapeEnv) -> list[Probe]:
    """Calls at other values of a symbol. Where torch wants it to be like another size, that is guarded."""
    together, hints, hint = _equal_to(name, symbols, env), env.hints, env.hints[name]
    others = [[s] for s in symbols if s not in together and hints[s] == hint]
    for more in [[], *others, *([sum(others, [])] if len(others) > 1 else [])]:
        try:
            found = _probes(call, opening, hints, together + more)
        except Unsupported:
            continue
        if all(env.symbol(name) == env.symbol(other) for other in more):
            return found
    fixed = any(type(d) is int and d == hint for ref in opening.refs for d in ref.shape)
    if not fixed or not env.symbol(name) == hint:
        raise Unsupported("a call of torch that takes these sizes only")
    return [_at(call, opening, {**hints})] * 2


def _probes(call: _Call, opening: _Opening, hints: dict[str, int], names: list[str]) -> list[Probe]:
    """Calls at other values of equal symbols, by steps that torch accepts."""
    problem = Unsupported("a call of torch that takes these sizes only")
    for steps in _STEPS:
        try:
            return [
                _at(call, opening, {**hints, **{name: hints[name] + step for name in names}})
                for step in steps
            ]
        except Unsupported as refused:
            problem = refused
    raise problem


def _at(call: _Call, opening: _Opening, sizes: dict[str, int]) -> Probe:
    """At sizes that the program has not asked for: only where there is no other way with memory, as some
    routines do not check that sizes go together, and write beyond their buffers where they do not."""
    if call.tried_on != "meta" and call.function.__name__ not in UNCHECKED:
        return sizes, _try(call, opening, sizes)
    numbers = [_size(n, sizes) for n in opening.numbers]
    try:
        return sizes, _tried_on(call, opening, sizes, numbers, "meta")
    except NotImplementedError as error:
        raise Unsupported(f"torch.{call.function.__name__} at sizes that change: {error}") from None


def _formula(
    seen: list[tuple[dict[str, int], int]], known: list[SymInt], symbols: list[str], env: ShapeEnv
) -> Dim:
    for candidate in _candidates(seen, known, symbols, env):
        if all(_size(candidate, sizes) == size for sizes, size in seen):
            return candidate
    raise Unsupported("a call of torch whose results have sizes that follow no formula found")


def _candidates(
    seen: list[tuple[dict[str, int], int]], known: list[SymInt], symbols: list[str], env: ShapeEnv
) -> Iterator[Dim]:
    hints, size = seen[0]
    yield size
    yield from known
    for number, name in enumerate(symbols):
        sizes, other = seen[1 + 2 * number]
        if sizes[name] == hints[name]:
            continue
        slope, rest = divmod(other - size, sizes[name] - hints[name])
        if slope and not rest:
            yield env.symbol(name) * slope + (size - slope * hints[name])


def _drops(args: tuple[Any, ...]) -> bool:
    """Whether a recurrent layer draws random numbers: its one float says how much, ``train`` follows it."""
    return any(type(a) is float and a > 0 and train is True for a, train in zip(args, args[1:]))


def _work_beside_others(function: Any, opening: _Opening) -> float:
    """Nanoseconds on one core of a recurrent layer, whose time steps leave most threads idle; else 0."""
    if function.__name__ not in RECURRENT or len(opening.refs) < 2 or not opening.refs[0].ndim:
        return 0.0
    shape = opening.refs[0].shape
    rows = hint(math.prod(shape[:-1]))
    weights = sum(hint(math.prod(ref.shape)) for ref in opening.refs[1:] if ref.ndim == 2)
    return 0.02 * rows * weights


# -- rules --------------------------------------------------------------------------------------------------
def routine(function: Any, in_modes: bool = False, whole: bool = False) -> Rule:
    """The rule of a function of tensors that gives new tensors and changes nothing. ``in_modes``: autocast
    converts what the function gives to others. ``whole``: the function has ops."""

    def rule(tx: TraceContext, *args: Any, **kwargs: object) -> Any:
        trouble = state.problem(state.read_state())
        if trouble or kwargs.get("out") is not None:
            raise Unsupported(trouble or "out=")
        if function.__name__ in RECURRENT and _drops(args):
            raise Unsupported(f"torch.{function.__name__} with dropout")
        found, results = called(tx, function, args, kwargs, modes_at(tx) if in_modes else (), whole)
        if found.structure is None:
            return results[0]
        parts: list[ArrayRef | None] = [*results]
        for place in found.absent:
            parts.insert(place, None)
        if found.structure in (tuple, list):
            return found.structure(parts)
        return TypedTuple(found.structure, tuple(parts))

    return rule


def called(
    tx: TraceContext,
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    modes: Modes = (),
    whole: bool = False,
) -> tuple[_Found, list[ArrayRef]]:
    opening = _Opening()
    call = _Call(function, tuple(map(opening.of, args)), {k: opening.of(v) for k, v in kwargs.items()})
    call.modes = modes
    if tx.builder.loc is not None:
        call.caller = Caller(tx.builder.loc, tx.module())
    if not opening.refs and not opening.numbers:
        return _constant(tx, call)
    if not any(ref.kind == "array" for ref in opening.refs):  # of sizes or numbers that change
        tx.builder.device = tx.builder.device or CPU
        puts(tx, True)
    _check_places(opening)
    if tx.same_bits:
        check_staged(tx, opening.refs, (), opening.numbers)
    if modes and any(ref.type.device != CPU for ref in opening.refs):
        raise Unsupported(f"torch's {function.__name__} under autocast on a GPU")  # it is tried on the CPU
    found = _try(call, opening, tx.env.hints)
    call.tried_on = found.device
    shapes = _shapes(call, opening, found, tx.env)
    call.orders = found.orders
    constant = _without_gradient(tx, call, opening, found)
    return found, _emitted(tx, call, opening, found.dtypes, shapes, constant, whole)


def called_as(
    tx: TraceContext, function: Any, args: tuple[Any, ...], types: Sequence[tuple[DType, tuple[Dim, ...]]]
) -> list[ArrayRef]:
    """The results, in C order, of a call that is not tried as their types are known. Those that are inexact
    have gradients by all tensors."""
    opening = _Opening()
    call = _Call(function, tuple(map(opening.of, args)), {}, unsure=True)
    if tx.builder.loc is not None:
        call.caller = Caller(tx.builder.loc, tx.module())
    _check_places(opening)
    if tx.same_bits:
        check_staged(tx, opening.refs, (), opening.numbers)
    call.orders = tuple(tuple(range(len(shape))) for _, shape in types)
    call.wanted = _wanted(tx, opening)
    dtypes, shapes = zip(*types)
    return _emitted(tx, call, opening, dtypes, shapes, frozenset(), False)


def _emitted(
    tx: TraceContext,
    call: _Call,
    opening: _Opening,
    dtypes: tuple[DType, ...],
    shapes: Sequence[tuple[Dim, ...]],
    constant: frozenset[int],
    whole: bool,
) -> list[ArrayRef]:
    """The node and its results; ``constant``: those without gradients."""
    name = call.function.__name__
    # beside others a routine may have other threads
    work_ns = 0.0 if tx.same_bits else _work_beside_others(call.function, opening)
    callee = Callee(call, name, (), (), work_ns=work_ns, whole=whole)
    ordered = tuple(tuple(shape[a] for a in order) for shape, order in zip(shapes, call.orders))
    made = emit(
        tx,
        "routine_call",
        *(ref.var for ref in opening.refs),
        callee=callee,
        numbers=tuple(opening.numbers),
        dtypes=dtypes,
        shapes=ordered,
    )
    variables = made if isinstance(made, tuple) else (made,)
    variables = tuple(tx.ops.stop_gradient(v) if k in constant else v for k, v in enumerate(variables))
    return [tensor(_put_back(tx, v, order)) for v, order in zip(variables, call.orders)]


def _wanted(tx: TraceContext, opening: _Opening) -> frozenset[int]:
    """The tensors that gradients may be asked by."""
    if not is_on(tx):
        return frozenset()
    return frozenset(k for k, r in enumerate(opening.refs) if r.kind == "array" and requires(tx, r.var))


def _without_gradient(tx: TraceContext, call: _Call, opening: _Opening, found: _Found) -> frozenset[int]:
    """Results that require no gradient though arguments do. Refuses what torch does not differentiate: it
    is tried on tensors like the arguments."""
    refs = opening.refs
    call.wanted = _wanted(tx, opening)
    if not call.wanted:
        return frozenset()
    sizes = tx.env.hints
    try:
        examples = [_example_of(ref, sizes, found.device) for ref in refs]
        has = differentiated(call, examples, [_size(n, sizes) for n in opening.numbers])
    except Exception as error:
        if is_from_handler(error):
            raise
        raise Unsupported(f"torch.{call.function.__name__} has no derivative: {error}") from None
    return frozenset(k for k, dtype in enumerate(found.dtypes) if dtype.is_inexact and not has[k])


def _check_places(opening: _Opening) -> None:
    """A number's tensor is read in Python, which waits for a GPU."""
    on_gpu = any(ref.type.device != CPU for ref in opening.refs)
    if on_gpu and (opening.names_cpu or any(ref.kind != "array" for ref in opening.refs)):
        raise Unsupported("a call of torch with numbers or a device beside tensors on a GPU")


def _constant(tx: TraceContext, call: _Call) -> tuple[_Found, list[ArrayRef]]:
    """A call without tensors is made at capture."""
    tx.builder.device = tx.builder.device or CPU
    puts(tx, True)
    found = _tried_on(call, _Opening(), {}, [], "cpu")
    made = [OWNER.to_numpy(result) for result in _leaves(call.on((), ()))]
    if sum(array.size for array in made) > _LARGEST_CONSTANT:
        raise Unsupported(f"torch.{call.function.__name__} of a large tensor")
    return found, [
        tensor(emit(tx, "constant", literal=Literal.of(array, dtype)))
        for array, dtype in zip(made, found.dtypes)
    ]


def _put_back(tx: TraceContext, var: Var, order: tuple[int, ...]) -> Var:
    if order == tuple(range(len(order))):
        return var
    back = tuple(order.index(axis) for axis in range(len(order)))
    return as_own(tx, emit(tx, "transpose", var, perm=back))


def writing(function: object, whole: bool = False) -> Rule:
    """The rule of a method that writes what ``function`` gives into its tensor. ``whole``: as of
    ``routine``."""

    def rule(tx: TraceContext, self: object, *args: object, **kwargs: object) -> ArrayRef:
        x = need_tensor(self)
        modes = modes_at(tx) if whole else ()
        _, results = called(tx, function, (x, *args), kwargs, modes, whole)
        made = results[0]
        if made.dtype != x.dtype or len(results) > 1 or made.ndim != x.ndim:
            raise Unsupported("a method that changes its tensor's type")
        if not all(a == b for a, b in zip(made.shape, x.shape)):
            raise Unsupported("a method that changes its tensor's shape")
        return write(tx, x, made.var)

    return rule


def either(first: Rule, second: Rule) -> Rule:
    """``first``, and where it has no meaning for the arguments ``second``."""

    @functools.wraps(first)
    def rule(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        nodes = len(tx.builder.nodes)
        guards = len(tx.env.guards)
        try:
            found = first(tx, *args, **kwargs)
            check(tx, nodes, getattr(first, "__name__", ""))
            return found
        except Unsupported as problem:
            del tx.builder.nodes[nodes:]
            tx.env.forget(guards)
            try:
                return second(tx, *args, **kwargs)
            except Unsupported:
                del tx.builder.nodes[nodes:]
            raise problem

    return rule


@functools.cache
def _called_whole() -> frozenset[Any]:
    return frozenset(map(resolve, (*FUNCTIONS, *COMPOSED))) - {None}


def routine_in_modes(function: Any) -> Rule | None:
    """The rule of a function for which autocast has no policy, though it may have for others that it calls;
    ``None`` of what is no routine."""
    return routine(function, in_modes=True) if function in _called_whole() else None


def add_routines(table: RuleTable) -> None:
    """Give the routines rules, behind those that there are."""
    for path in FUNCTIONS:
        function = resolve(path)
        if function is not None:
            _add(table.functions, function, routine(function))
    for name in METHODS:
        method = getattr(torch.Tensor, name, None)
        if method is not None:
            _add(table.methods, name, routine(method))
    for name in IN_PLACE:
        method = getattr(torch.Tensor, name, None)
        if method is not None and hasattr(torch.Tensor, name + "_"):
            table.methods.setdefault(name + "_", writing(method))


def _add(rules: dict[Any, Rule], key: object, rule: Rule) -> None:
    known: Callable[..., Any] | None = rules.get(key)
    rules[key] = rule if known is None else either(known, rule)
