"""New tensors: constants, ranges, ``*_like``, conversion between dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...device import CPU
from ...dtypes import DType
from ...errors import Unsupported
from ...graph.ir import Literal, Var
from ...symbolic.integers import Dim, SymInt
from ..base import ArrayRef, Rule, TraceContext, memory_of
from ..known import with_integers
from ..numpy.operands import emit
from . import state
from .formats import FORMATS, in_format, suggested_format
from .library import torch
from .operands import (
    Number,
    checked_number,
    contiguous,
    convert,
    fitting,
    integer,
    need_tensor,
    only_defaults,
    tensor,
    to_var,
)
from .placement import device_named, puts
from .promote import default_dtype, is_tensor, parse_dtype, scalar_dtype
from .shape import axes_in_memory, dense_copy, sizes_of
from .torch_facts import DEVICES, TO_TORCH
from .torch_rules import RuleTable

TABLE = RuleTable()
_SEVERAL = 256  # numbers of a tensor that are computed one by one


def check_placement(tx: TraceContext, keywords: dict[str, Any], fresh: bool = False) -> None:
    """Keyword arguments of factories that must be their defaults, and modes that must be off (a default
    device is one). ``fresh``: without ``device`` the tensor would be on the CPU, else where its model is."""
    _check_device(tx, keywords.pop("device", None), fresh)
    trouble = state.problem(state.read_state())
    if trouble:
        raise Unsupported(trouble)
    layout = keywords.pop("layout", None)
    if layout is not None and layout is not torch.strided:
        raise Unsupported(f"layout={layout}")
    memory_format = keywords.pop("memory_format", None)
    if memory_format is not None and memory_format is not torch.preserve_format:
        raise Unsupported(f"memory_format={memory_format}")
    known = {"requires_grad", "pin_memory", "out", "names"}
    if set(keywords) - known:
        raise Unsupported(f"unexpected keywords {sorted(set(keywords) - known)}")
    only_defaults(**keywords)


def _check_device(tx: TraceContext, device: object, fresh: bool) -> None:
    """All tensors of a graph are on one device, or on the CPU: where a new one is."""
    if device is None and not fresh:
        return
    wanted = CPU if device is None else device_named(tx, device)
    here = tx.builder.device
    if here is None and fresh and wanted.kind in DEVICES:
        here = tx.builder.device = wanted
    if wanted == CPU and here not in (None, CPU):
        puts(tx, True)
    elif wanted == (here or CPU):
        puts(tx, False)
    else:
        raise Unsupported(f"a tensor on {wanted} among those on {here}")


def filled(tx: TraceContext, shape: tuple[Dim, ...], value: Any, dtype: DType) -> ArrayRef:
    if any(not isinstance(d, SymInt) and d < 0 for d in shape):
        raise Unsupported("a negative dimension")
    if isinstance(value, Number):
        exact = fitting(value, dtype)
        return tensor(emit(tx, "full", shape=shape, value=exact, dtype=dtype, device=CPU))
    if is_tensor(value) and value.ndim:
        raise Unsupported("fill with a tensor that has dimensions")
    # torch takes the number out of a tensor
    var = checked_number(tx, value.var, dtype) if is_tensor(value) else to_var(tx, value, dtype)
    spread = emit(tx, "broadcast_in_dim", var, shape=shape, dims=())
    return tensor(emit(tx, "contiguous", spread))


def _factory(value: object) -> Any:
    def rule(tx: TraceContext, *size: object, dtype: object = None, **keywords: object) -> ArrayRef:
        if "size" in keywords:
            size = (keywords.pop("size"),)
        check_placement(tx, keywords, fresh=True)
        return filled(tx, sizes_of(size), value, default_dtype() if dtype is None else parse_dtype(dtype))

    return rule


TABLE.function("zeros")(_factory(0))
TABLE.function("ones")(_factory(1))
TABLE.function("empty")(_factory(0))  # whatever the memory holds: zeros are as good


@TABLE.function("full")
def full(
    tx: TraceContext, size: object, fill_value: object, *, dtype: object = None, **keywords: object
) -> ArrayRef:
    check_placement(tx, keywords, fresh=True)
    wanted = scalar_dtype(fill_value) if dtype is None else parse_dtype(dtype)
    return filled(tx, sizes_of((size,)), fill_value, wanted)


@TABLE.function("scalar_tensor")
def scalar_tensor(tx: TraceContext, s: object, *, dtype: object = None, **keywords: object) -> ArrayRef:
    check_placement(tx, keywords, fresh=True)
    return filled(tx, (), s, default_dtype() if dtype is None else parse_dtype(dtype))


def _like(value: object) -> Any:
    def rule(tx: TraceContext, input: object, *, dtype: object = None, **keywords: object) -> ArrayRef:
        return full_like(tx, input, value, dtype=dtype, **keywords)

    return rule


@TABLE.function("full_like")
def full_like(
    tx: TraceContext, input: object, fill_value: object, *, dtype: object = None, **keywords: object
) -> ArrayRef:
    """Keeps the order of the axes in memory, as ``clone`` does."""
    in_c_order = keywords.get("memory_format") is torch.contiguous_format
    if in_c_order:
        del keywords["memory_format"]
    check_placement(tx, keywords)
    x = need_tensor(input)
    wanted = x.dtype if dtype is None else parse_dtype(dtype)
    order = list(range(x.ndim)) if in_c_order else axes_in_memory(x.var)
    made = filled(tx, tuple(x.shape[a] for a in order), fill_value, wanted)
    if order == list(range(x.ndim)):
        return made
    back = tuple(order.index(a) for a in range(x.ndim))
    return tensor(emit(tx, "transpose", made.var, perm=back))


TABLE.function("zeros_like")(_like(0))
TABLE.function("ones_like")(_like(1))
TABLE.function("empty_like")(_like(0))


def _new(value: object) -> Any:
    def rule(
        tx: TraceContext, self: object, *sizes: object, dtype: object = None, **keywords: object
    ) -> ArrayRef:
        if not sizes and "size" in keywords:
            sizes = (keywords.pop("size"),)
        check_placement(tx, keywords)
        wanted = need_tensor(self).dtype if dtype is None else parse_dtype(dtype)
        return filled(tx, sizes_of(sizes), value, wanted)

    return rule


TABLE.method("new_zeros")(_new(0))
TABLE.method("new_ones")(_new(1))
TABLE.method("new_empty")(_new(0))


@TABLE.method("new_full")
def new_full(
    tx: TraceContext,
    self: object,
    size: object,
    fill_value: object,
    *,
    dtype: object = None,
    **keywords: object,
) -> ArrayRef:
    check_placement(tx, keywords)
    wanted = need_tensor(self).dtype if dtype is None else parse_dtype(dtype)
    return filled(tx, sizes_of((size,)), fill_value, wanted)


@TABLE.function("eye")
def eye(
    tx: TraceContext, n: object, m: object = None, *, dtype: object = None, **keywords: object
) -> ArrayRef:
    check_placement(tx, keywords, fresh=True)
    rows = integer(n)
    shape = (rows, rows if m is None else integer(m))
    if any(not isinstance(d, SymInt) and d < 0 for d in shape):
        raise Unsupported("eye of a negative size")
    row, column = (emit(tx, "iota", shape=shape, axis=a, dtype=dtypes.int64, device=CPU) for a in (0, 1))
    wanted = default_dtype() if dtype is None else parse_dtype(dtype)
    return tensor(convert(tx, emit(tx, "equal", row, column), wanted))


def _number(tx: TraceContext, value: Any) -> Any:
    """A tensor of one integer that is known by its number."""
    found = with_integers(tx.builder, value) if isinstance(value, ArrayRef) and not value.ndim else value
    return int(found) if isinstance(found, np.int64) else found


@TABLE.function("arange")
def arange(
    tx: TraceContext,
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: object = None,
    **keywords: object,
) -> ArrayRef:
    check_placement(tx, keywords, fresh=True)
    if end is None:
        start, end = 0, start
    start, end, step = (_number(tx, value) for value in (0 if start is None else start, end, step))
    if any(isinstance(v, bool) or not isinstance(v, (int, float, SymInt)) for v in (start, end, step)):
        raise Unsupported("arange of something else than numbers known at capture")
    floating = any(isinstance(v, float) for v in (start, end, step))
    wanted = parse_dtype(dtype) if dtype is not None else (default_dtype() if floating else dtypes.int64)
    if floating and wanted.is_integer:
        start, end, step = map(_whole, (start, end, step))
    elif floating:
        return _float_range(tx, float(start), float(end), float(step), wanted)
    if step == 0 or (step > 0 and end < start) or (step < 0 and end > start):
        raise Unsupported("arange: upper bound and larger bound inconsistent with step sign")
    count = (end - start + (step - 1)) // step if step > 0 else (start - end + (-step - 1)) // -step
    if not wanted.is_float and not wanted.is_integer:
        raise Unsupported(f"arange of {wanted}")
    return tensor(_ramp(tx, count, start, step, wanted))


def _whole(number: Any) -> Dim:
    """A limit or step of a range of integers."""
    if isinstance(number, float):
        if not number.is_integer() or abs(number) > 1 << 53:
            raise Unsupported("arange of integers with limits or a step that are none")
        return int(number)
    found: Dim = number
    return found


def _ramp(tx: TraceContext, count: Dim, start: Dim, step: Dim, wanted: DType) -> Var:
    values = emit(tx, "iota", shape=(count,), axis=0, dtype=dtypes.int64, device=CPU)
    for op, number, neutral in (("multiply", step, 1), ("add", start, 0)):
        if isinstance(number, SymInt) or number != neutral:
            operand = to_var(tx, number, dtypes.int64)
            spread = emit(tx, "broadcast_in_dim", operand, shape=(count,), dims=())
            values = emit(tx, op, values, spread)
    return convert(tx, values, wanted)


def _float_range(tx: TraceContext, start: float, end: float, step: float, wanted: DType) -> ArrayRef:
    """start + i*step, each rounded once from double."""
    if step == 0 or not math.isfinite(start + end + step) or not wanted.is_float:
        raise Unsupported("arange of non-finite numbers")
    count = math.ceil((end - start) / step)
    if count < 0 or count > 1 << 16:
        raise Unsupported("a floating point range that is empty or very long")
    values = start + np.arange(count, dtype=np.float64) * step
    return tensor(_literal(tx, values, wanted))


def _literal(tx: TraceContext, array: np.ndarray[Any, Any], dtype: DType) -> Var:
    return emit(tx, "constant", literal=Literal.of(array.astype(dtype.numpy), dtype))


@TABLE.function("tensor")
def make_tensor(tx: TraceContext, data: object, *, dtype: object = None, **keywords: object) -> ArrayRef:
    """Of numbers and nested lists of numbers."""
    check_placement(tx, keywords, fresh=True)
    if isinstance(data, (*Number, SymInt)):
        wanted = scalar_dtype(data) if dtype is None else parse_dtype(dtype)
        return filled(tx, (), data, wanted)
    if isinstance(data, ArrayRef):
        copied = emit(tx, "copy", _of_numpy(tx, data, copied=True))
        return tensor(contiguous(tx, copied if dtype is None else convert(tx, copied, parse_dtype(dtype))))
    leaves = list(_leaves(data))
    if any(isinstance(v, SymInt) for v in leaves):
        return _of_sizes(tx, data, dtypes.int64 if dtype is None else parse_dtype(dtype))
    if any(not isinstance(v, Number) for v in leaves) or not (leaves or data == []):
        raise Unsupported("torch.tensor of something else than numbers known at capture")
    kinds = {type(v) for v in leaves}
    if dtype is not None:
        wanted = parse_dtype(dtype)
    elif float in kinds or not kinds:
        wanted = default_dtype()
    else:
        wanted = dtypes.int64 if int in kinds else dtypes.bool_
    for value in leaves:
        fitting(value, dtypes.float64 if wanted.is_float else wanted)  # those of lists may become infinite
    try:
        array = np.array(data)
    except ValueError as error:
        raise Unsupported(str(error)) from error
    with np.errstate(over="ignore"):
        return tensor(_literal(tx, array, wanted))


def _of_sizes(tx: TraceContext, numbers: Any, dtype: DType) -> ArrayRef:
    """Of a list of integers some of which are symbolic."""
    if not all(type(v) is int or isinstance(v, SymInt) for v in numbers) or len(numbers) > _SEVERAL:
        raise Unsupported("torch.tensor of many numbers that may change, or of others than integers")
    if dtype not in (dtypes.int64, dtypes.float64, dtypes.float32):
        raise Unsupported(f"torch.tensor of {dtype} of numbers that may not fit")
    parts = [emit(tx, "reshape", to_var(tx, number, dtype), shape=(1,)) for number in numbers]
    return tensor(emit(tx, "concatenate", *parts, axis=0) if len(parts) > 1 else parts[0])


@TABLE.method("new_tensor")
def new_tensor(
    tx: TraceContext, self: object, data: object, *, dtype: object = None, **keywords: object
) -> ArrayRef:
    """Of an array of NumPy's."""
    if not isinstance(data, ArrayRef) or data.frontend != "numpy":
        raise Unsupported("new_tensor of something else than an array")
    return make_tensor(
        tx, data, dtype=TO_TORCH[need_tensor(self).dtype] if dtype is None else dtype, **keywords
    )


def _legacy(dtype: DType | None) -> Rule:
    """``torch.Tensor``, ``torch.LongTensor``…: of a list of numbers, or of sizes."""

    def rule(tx: TraceContext, *given: object) -> ArrayRef:
        wanted = default_dtype() if dtype is None else dtype
        if len(given) == 1 and isinstance(given[0], ArrayRef) and given[0].frontend == "numpy":
            return as_tensor(tx, given[0], TO_TORCH[wanted])
        if len(given) == 1 and type(given[0]) in (list, tuple):
            return make_tensor(tx, given[0], dtype=TO_TORCH[wanted])
        if not given:
            raise Unsupported("a tensor of nothing")
        check_placement(tx, {}, fresh=True)
        return filled(tx, sizes_of(given), 0, wanted)

    return rule


TABLE.functions[torch.Tensor] = _legacy(None)
for _kind, _dtype in {
    torch.FloatTensor: dtypes.float32,
    torch.DoubleTensor: dtypes.float64,
    torch.LongTensor: dtypes.int64,
    torch.IntTensor: dtypes.int32,
    torch.BoolTensor: dtypes.bool_,
}.items():
    TABLE.functions[_kind] = _legacy(_dtype)


def _of_numpy(tx: TraceContext, array: ArrayRef, copied: bool = False) -> Var:
    """A NumPy array that the graph makes (``np.linspace(0, 1, n)``), or that is ``copied``; its memory."""
    is_given = not copied and memory_of(tx.builder, array.var) not in tx.builder.producers
    if array.frontend != "numpy" or array.kind != "array" or is_given:
        raise Unsupported("a tensor of an array")
    return array.var


@TABLE.function("from_numpy")
def from_numpy(tx: TraceContext, ndarray: object) -> ArrayRef:
    if not isinstance(ndarray, ArrayRef):
        raise Unsupported("from_numpy of something else than an array")
    return tensor(_of_numpy(tx, ndarray))


def _leaves(data: object) -> Any:
    if isinstance(data, (list, tuple)):
        for item in data:
            yield from _leaves(item)
    else:
        yield data


# -- conversion -------------------------------------------------------------------------------
def cast(tx: TraceContext, x: ArrayRef, dtype: DType, copy: bool = False) -> ArrayRef:
    """In another dtype; the tensor itself where nothing changes. The order of the axes in memory is kept."""
    if x.dtype == dtype:
        return tensor(dense_copy(tx, x.var)) if copy else x
    return tensor(convert(tx, x.var, dtype))


def _caster(dtype: DType) -> Any:
    def rule(tx: TraceContext, self: object, memory_format: object = None) -> ArrayRef:
        only_defaults(memory_format=memory_format)
        return cast(tx, need_tensor(self), dtype)

    return rule


for _name, _dtype in {
    "float": dtypes.float32,
    "double": dtypes.float64,
    "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "bool": dtypes.bool_,
}.items():
    TABLE.method(_name)(_caster(_dtype))


@TABLE.method("to")
def to(tx: TraceContext, self: Any, *args: Any, **kwargs: Any) -> ArrayRef:
    x = need_tensor(self)
    wanted, on_host = x.dtype, x.host
    copy = bool(kwargs.pop("copy", False))
    kwargs.pop("non_blocking", None)
    asked = kwargs.pop("memory_format", None)
    for value in (*args, *kwargs.values()):
        if is_tensor(value):
            wanted = need_tensor(value).dtype
            on_host = value.host
        elif isinstance(value, torch.dtype):
            wanted = parse_dtype(value)
        elif value is None or value is False:
            continue
        elif isinstance(value, (str, torch.device)):
            on_host = _is_on_host(tx, value)
        else:
            raise Unsupported(f"to({value!r})")
    if asked is None or asked is torch.preserve_format:
        return _moved(tx, x, wanted, on_host, copy)
    if on_host != x.host or asked not in FORMATS:
        raise Unsupported(f"to(memory_format={asked})")
    if wanted == x.dtype and not copy and suggested_format(x.var) is asked:
        return x  # also where its axes lie in another order: torch asks no more than that
    made = emit(tx, "copy", x.var) if wanted == x.dtype else convert(tx, x.var, wanted)
    return tensor(in_format(tx, made, asked))


def _is_on_host(tx: TraceContext, device: object) -> bool:
    """Whether a device that a tensor is moved to is the CPU while the graph is on another."""
    place, here = device_named(tx, device), tx.builder.device or CPU
    if place not in (CPU, here):
        raise Unsupported(f"a tensor on {place} among those on {here}")
    return place != here


def _moved(tx: TraceContext, x: ArrayRef, dtype: DType, on_host: bool, copy: bool = False) -> ArrayRef:
    """In another dtype, and from the CPU to the graph's device or not."""
    if on_host and not x.host:
        raise Unsupported("a tensor on a GPU moved to the CPU")
    puts(tx, on_host)
    return cast(tx, x, dtype, copy or (x.host and not on_host))


@TABLE.method("type")
def type_of(tx: TraceContext, self: object, dtype: object = None, non_blocking: object = False) -> Any:
    x = need_tensor(self)
    if dtype is None:
        return torch.empty(0, dtype=TO_TORCH[x.dtype]).type()
    if not isinstance(dtype, torch.dtype):
        raise Unsupported(f"type({dtype!r})")
    return cast(tx, x, parse_dtype(dtype))


@TABLE.method("type_as")
def type_as(tx: TraceContext, self: object, other: object) -> ArrayRef:
    target = need_tensor(other)
    return _moved(tx, need_tensor(self), target.dtype, target.host)


@TABLE.method("cpu")
def cpu(tx: TraceContext, self: object, memory_format: object = None) -> ArrayRef:
    only_defaults(memory_format=memory_format)
    return to(tx, self, "cpu")


@TABLE.method("cuda")
def cuda(
    tx: TraceContext,
    self: object,
    device: object = None,
    non_blocking: object = False,
    memory_format: object = None,
) -> ArrayRef:
    only_defaults(memory_format=memory_format)
    return to(tx, self, "cuda" if device is None else torch.device(device))


def _limits(kind: Callable[..., Any]) -> Any:
    def rule(tx: TraceContext, type: Any = None) -> Any:
        return kind() if type is None else kind(type)

    return rule


TABLE.functions[torch.finfo] = _limits(torch.finfo)
TABLE.functions[torch.iinfo] = _limits(torch.iinfo)


@TABLE.function("as_tensor")
def as_tensor(tx: TraceContext, data: object, dtype: object = None, **keywords: object) -> ArrayRef:
    """A tensor of the type that is asked for is given back itself."""
    if isinstance(data, ArrayRef) and data.frontend == "numpy":
        return as_tensor(tx, from_numpy(tx, data), dtype, **keywords)
    if not is_tensor(data):
        return make_tensor(tx, data, dtype=dtype, **keywords)
    x = need_tensor(data)
    check_placement(tx, keywords)
    if dtype is None or parse_dtype(dtype) == x.dtype:
        return x
    return tensor(convert(tx, x.var, parse_dtype(dtype)))
