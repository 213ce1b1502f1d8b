"""Random numbers from torch's own generator: drawn by torch before the graph, in the order of the program.

What depends on tensors is made of them as ATen's ``DistributionTemplates.h`` does it. Under
``options={"random": "fused"}`` uniform numbers are made in kernels (``random_bits.py``).
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...device import CPU
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Var, array_type
from ...prims.layout import is_c_contiguous
from ...symbolic.integers import Dim, SymInt, depends_on_data, hint
from ..base import ArrayRef, DrawingCall, TraceContext, is_usual_size
from ..known import relied_array
from ..numpy.operands import broadcast_shapes, emit
from .calls import called
from .create import check_placement
from .library import torch
from .operands import Number, need_tensor, only_defaults, pointwise, tensor, write
from .pointwise import add_var, multiply_var
from .promote import default_dtype, is_tensor, parse_dtype
from .random_bits import is_fused, uniform
from .reductions import argmax
from .shape import axes_in_memory, is_dense, sizes_of
from .torch_facts import TO_TORCH
from .torch_rules import RuleTable

TABLE = RuleTable()
_GENERATOR = torch.default_generator
_REAL = (dtypes.float32, dtypes.float64)
FLOATS = (*_REAL, dtypes.float16, dtypes.bfloat16)


def _keep(kept: list[Any], generator: Any) -> None:
    kept.append((generator.set_state, generator.get_state()))


def _drawn(
    tx: TraceContext,
    function: Any,
    args: tuple[Any, ...],
    kwargs: Any,
    shape: tuple[Dim, ...],
    dtype: DType,
    may_raise: bool = True,
) -> ArrayRef:
    """What ``function`` draws; its arguments depend on no tensor. Without ``may_raise`` it takes all sizes
    that are known and real types."""
    if tx.draw is None or tx.builder.device not in (None, CPU):
        raise Unsupported("random numbers on a device")
    if any(map(depends_on_data, shape)):
        raise Unsupported("random numbers as many as the data says", break_id="data-dependent-shape")
    sizes = tuple(map(hint, shape))
    if any(size < 0 for size in sizes):
        raise Unsupported("a negative dimension")

    def example() -> Any:
        return torch.empty(sizes, dtype=TO_TORCH[dtype])

    type_ = array_type(dtype, shape)
    may_raise |= dtype not in FLOATS or not is_usual_size(shape)
    owner, is_fraction = _GENERATOR, function is torch.rand
    call = DrawingCall(
        function, args, kwargs, type_, torch.Tensor, "torch", owner, _keep, example, may_raise, is_fraction
    )
    return tx.draw(call)


def _check(tx: TraceContext, keywords: dict[str, Any], like: bool = False) -> None:
    only_defaults(generator=keywords.pop("generator", None))
    check_placement(tx, keywords, fresh=not like)


def seed(tx: TraceContext) -> ArrayRef:
    bounds = (-(1 << 63), (1 << 63) - 1, ())
    return _drawn(tx, torch.randint, bounds, {"dtype": torch.int64}, (), dtypes.int64, False)


def _uniform(tx: TraceContext, shape: tuple[Dim, ...], dtype: DType) -> ArrayRef:
    if is_fused(tx) and dtype in _REAL:
        return tensor(uniform(tx, dtype, shape, lambda: seed(tx)))
    return _drawn(tx, torch.rand, (shape,), {"dtype": TO_TORCH[dtype]}, shape, dtype, False)


# -- factories ----------------------------------------------------------------------------------------------
def _of_size(function: object) -> Any:
    def rule(tx: TraceContext, *size: object, dtype: object = None, **keywords: object) -> ArrayRef:
        if "size" in keywords:
            size = (keywords.pop("size"),)
        _check(tx, keywords)
        wanted = default_dtype() if dtype is None else parse_dtype(dtype)
        shape = sizes_of(size)
        if function is torch.rand:
            return _uniform(tx, shape, wanted)
        return _drawn(tx, function, (shape,), {"dtype": TO_TORCH[wanted]}, shape, wanted, False)

    return rule


TABLE.function("rand")(_of_size(torch.rand))
TABLE.function("randn")(_of_size(torch.randn))


_FILL_LIKE = {torch.rand: "uniform_", torch.randn: "normal_"}


def _like(function: Any) -> Any:
    def rule(tx: TraceContext, input: object, *, dtype: object = None, **keywords: object) -> ArrayRef:
        _check(tx, keywords, like=True)
        x = need_tensor(input)
        wanted = x.dtype if dtype is None else parse_dtype(dtype)
        if not is_c_contiguous(x.shape, x.strides):
            if wanted is not x.dtype:
                raise Unsupported("random numbers of another type in another order than C")
            return filled_like(tx, x, _FILL_LIKE[function])
        if function is torch.rand:
            return _uniform(tx, x.shape, wanted)
        return _drawn(tx, function, (x.shape,), {"dtype": TO_TORCH[wanted]}, x.shape, wanted, False)

    return rule


TABLE.function("rand_like")(_like(torch.rand))
TABLE.function("randn_like")(_like(torch.randn))


@TABLE.function("randint")
def randint(tx: TraceContext, *args: object, dtype: object = None, **keywords: object) -> ArrayRef:
    """``randint(high, size)`` or ``randint(low, high, size)``."""
    given = list(args)
    for name in ("low", "high", "size"):
        if name in keywords:
            given.append(keywords.pop(name))
    if len(given) not in (2, 3) or not all(_is_integer(bound) for bound in given[:-1]):
        raise Unsupported("torch.randint with these arguments")
    _check(tx, keywords)
    wanted = dtypes.int64 if dtype is None else parse_dtype(dtype)
    shape = sizes_of((given[-1],))
    bounds = (0, *given[:-1])[-2:]
    return _drawn(tx, torch.randint, (*bounds, shape), {"dtype": TO_TORCH[wanted]}, shape, wanted)


def _is_integer(value: object) -> bool:
    return type(value) is int or isinstance(value, SymInt)


@TABLE.function("randperm")
def randperm(tx: TraceContext, n: Any, *, dtype: object = None, **keywords: object) -> ArrayRef:
    _check(tx, keywords)
    if not _is_integer(n):
        raise Unsupported("torch.randperm of something else than a number")
    wanted = dtypes.int64 if dtype is None else parse_dtype(dtype)
    return _drawn(tx, torch.randperm, (n,), {"dtype": TO_TORCH[wanted]}, (n,), wanted)


# -- filling tensors ----------------------------------------------------------------------------------------
def _filled(
    axes: tuple[int, ...], method: str, shape: tuple[int, ...], dtype: object, *args: object, **kwargs: object
) -> Any:
    """A new tensor in which an in-place method has drawn, seen in this order of its axes (none: C order)."""
    made = torch.empty(shape, dtype=dtype)
    getattr(made.permute(axes) if axes else made, method)(*args, **kwargs)
    return made


def filled_like(
    tx: TraceContext, x: ArrayRef, method: str, *args: object, may_raise: bool = True, **kwargs: Any
) -> ArrayRef:
    """What an in-place method draws in ``empty_like(x)``. In which order depends on its strides."""
    order = axes_in_memory(x.var)
    axes = () if order == sorted(order) else tuple(order.index(axis) for axis in range(x.ndim))
    shape = tuple(x.shape[axis] for axis in order)
    given = (axes, method, shape, TO_TORCH[x.dtype], *args)
    drawn = _drawn(tx, _filled, given, kwargs, shape, x.dtype, may_raise)
    return tensor(emit(tx, "transpose", drawn.var, perm=axes)) if axes else drawn


def _filling(method: str) -> Any:
    def rule(tx: TraceContext, self: object, *args: object, **kwargs: Any) -> ArrayRef:
        x = need_tensor(self)
        only_defaults(generator=kwargs.pop("generator", None))
        if not is_dense(x.var):
            raise Unsupported("random numbers in a tensor with holes")
        args = tuple([_number(tx, a) for a in args])
        kwargs = {name: _number(tx, a) for name, a in kwargs.items()}
        if not all(isinstance(a, Number) or is_number(a) for a in (*args, *kwargs.values())):
            raise Unsupported(f"{method} with tensors")
        return write(tx, x, filled_like(tx, x, method, *args, **kwargs).var)

    return rule


def _number(tx: TraceContext, value: object) -> object:
    """A number of NumPy that is known (``np.log(self.rescale)``) as Python's; anything else as it is."""
    if not isinstance(value, ArrayRef) or value.kind != "scalar":
        return value
    known = relied_array(tx.builder, value.var)
    return value if known is None else known.item()


def is_number(value: object) -> bool:
    """Whether it is a Python number known at run time only."""
    return isinstance(value, SymInt) or (isinstance(value, ArrayRef) and value.kind == "python")


for _method in ("normal_", "uniform_", "exponential_", "cauchy_", "log_normal_", "geometric_", "bernoulli_"):
    TABLE.method(_method)(_filling(_method))


# -- of tensors ---------------------------------------------------------------------------------------------
@TABLE.function("normal")
def normal(
    tx: TraceContext, mean: object, std: Any = 1.0, size: object = None, **keywords: object
) -> ArrayRef:
    """With numbers of a given size; or standard normal ones times ``std`` plus ``mean``."""
    dtype = keywords.pop("dtype", None)
    _check(tx, keywords)
    if size is not None:
        wanted = default_dtype() if dtype is None else parse_dtype(dtype)
        shape = sizes_of((size,))
        given = ((), "normal_", shape, TO_TORCH[wanted], mean, std)
        return _drawn(tx, _filled, given, {}, shape, wanted)
    tensors = [need_tensor(x) for x in (mean, std) if is_tensor(x)]
    if dtype is not None or not tensors or any(x.dtype not in _REAL for x in tensors):
        raise Unsupported("torch.normal of these arguments")
    if len({x.dtype for x in tensors}) > 1:
        raise Unsupported("torch.normal of tensors of different types")
    shape = broadcast_shapes(*(x.shape for x in tensors))
    scale: Any = 1.0 if is_tensor(std) else std
    if is_tensor(std):
        _require(tx, pointwise(tx, "greater_equal", std.var, _zero_like(tx, std)))
    dtype = tensors[0].dtype
    given = ((), "normal_", shape, TO_TORCH[dtype], 0.0, scale)
    made = _drawn(tx, _filled, given, {}, shape, dtype, may_raise=not is_tensor(std))
    if is_tensor(std):
        made = tensor(multiply_var(tx, made, std))
    return _without_slope(tx, add_var(tx, made, mean, 1), *tensors)


def _without_slope(tx: TraceContext, drawn: Var, *tensors: ArrayRef) -> ArrayRef:
    """In torch what is drawn depends on the tensors that say how, with derivative zero: as their signs do."""
    first, *rest = (tensor(pointwise(tx, "sign", x.var)) for x in tensors)
    for x in rest:
        first = tensor(add_var(tx, first, x, 1))
    return tensor(tx.ops.with_derivative_of(drawn, first.var))


def _zero_like(tx: TraceContext, x: ArrayRef) -> Var:
    found: Var = tx.builder.emit("full", shape=x.shape, value=0.0, dtype=x.dtype, device=CPU)
    return found


def _require(tx: TraceContext, truths: Var) -> None:
    """The program raises unless all are true."""
    if tx.require is None:
        raise Unsupported("random numbers by tensors")
    tx.require(tensor(tx.builder.emit("reduce_all", truths, axes=tuple(range(truths.ndim)))))


@TABLE.both("multinomial")
def multinomial(
    tx: TraceContext, input: object, num_samples: object, replacement: object = False, **keywords: object
) -> ArrayRef:
    """Of those that ATen draws by a race: the smallest ``q / p``, with ``q`` exponentially distributed. The
    program raises unless probabilities are finite, not negative and not all zero."""
    only_defaults(**keywords)
    x = need_tensor(input)
    if x.ndim not in (1, 2) or x.dtype not in _REAL or type(num_samples) is not int or num_samples < 1:
        raise Unsupported("torch.multinomial of these arguments")
    if replacement and num_samples > 1:
        raise Unsupported("torch.multinomial of several samples with replacement")
    if any(size == 0 for size in x.shape) or num_samples > x.shape[-1] or not is_dense(x.var):
        raise Unsupported("torch.multinomial of a tensor of this shape")
    infinite = tx.builder.emit("full", shape=x.shape, value=math.inf, dtype=x.dtype, device=CPU)
    zero, p = _zero_like(tx, x), tx.builder.emit("contiguous", x.var)
    valid = tx.builder.emit(
        "logical_and", tx.builder.emit("greater_equal", p, zero), tx.builder.emit("less", p, infinite)
    )
    _require(tx, valid)
    _require(tx, tx.builder.emit("reduce_any", tx.builder.emit("greater", p, zero), axes=(x.ndim - 1,)))
    drawn = filled_like(tx, x, "exponential_", 1.0, may_raise=False)
    race = tensor(pointwise(tx, "divide", x.var, drawn.var))
    if num_samples == 1:
        return argmax(tx, race, -1, True)
    return called(tx, torch.topk, (race, num_samples), {})[1][1]


@TABLE.function("bernoulli")
@TABLE.method("bernoulli")
def bernoulli(tx: TraceContext, input: object, p: object = None, **keywords: object) -> ArrayRef:
    """Whether uniform numbers in C order are below the probabilities."""
    only_defaults(**keywords)
    x = need_tensor(input)
    if p is not None or x.dtype not in _REAL:
        raise Unsupported("torch.bernoulli of these arguments")
    one = tx.builder.emit("full", shape=x.shape, value=1.0, dtype=x.dtype, device=CPU)
    above = tx.builder.emit("greater_equal", x.var, _zero_like(tx, x))
    _require(tx, tx.builder.emit("logical_and", above, tx.builder.emit("less_equal", x.var, one)))
    drawn = _uniform(tx, x.shape, x.dtype)
    is_below = tx.builder.emit("less", drawn.var, tx.builder.emit("contiguous", x.var))
    return _without_slope(tx, tx.builder.emit("convert", is_below, dtype=x.dtype), x)
