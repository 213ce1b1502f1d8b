"""What a tensor says of itself, and questions about torch's state that are answered at capture."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...device import CPU
from ...errors import Unsupported
from ...symbolic.integers import Dim, SymInt, depends_on_data, hint, product
from ..base import ArrayRef, StateGuard, TraceContext, TypedTuple, memory_of, own_number, part_shown
from ..known import relied_array
from ..numpy.operands import broadcast_shapes as common_shape
from ..numpy.operands import emit
from ..numpy.views import slice_axis
from . import autocast, state
from .formats import has_eager_strides
from .gradients import MODE, is_input, is_on, requires
from .library import torch
from .operands import axis_of, convert, need_tensor, tensor
from .placement import kind_of
from .torch_facts import TO_TORCH
from .torch_rules import RuleTable, resolve

TABLE = RuleTable()
_NUMBERS = 64  # in a list
_lazy = torch.distributions.utils.lazy_property


@TABLE.attribute("shape")
def shape(tx: TraceContext, self: object) -> TypedTuple:
    return TypedTuple(torch.Size, need_tensor(self).shape)


@TABLE.method("size")
def size(tx: TraceContext, self: object, dim: object = None) -> Any:
    x = need_tensor(self)
    if dim is None:
        return shape(tx, x)
    if x.ndim == 0:
        raise Unsupported("size(dim) of a 0-d tensor")
    return x.shape[axis_of(dim, x.ndim)]


@TABLE.method("stride")
def stride(tx: TraceContext, self: object, dim: object = None) -> Any:
    x = need_tensor(self)
    if part_shown(tx.builder, x.var) is not None:
        raise Unsupported("stride() of a view that is a copy in the graph")
    if not has_eager_strides(tx.builder, x.var):
        raise Unsupported("stride() of a tensor with dimensions of size one")
    return tuple(x.strides) if dim is None else x.strides[axis_of(dim, x.ndim)]


@TABLE.both("numel")
@TABLE.method("nelement")
def numel(tx: TraceContext, input: object) -> Dim:
    return product(need_tensor(input).shape)


@TABLE.method("dim", "ndimension")
@TABLE.attribute("ndim")
def ndim(tx: TraceContext, self: object) -> int:
    return need_tensor(self).ndim


@TABLE.method("__len__")
def length(tx: TraceContext, self: object) -> Dim:
    x = need_tensor(self)
    if x.ndim == 0:
        raise Unsupported("len() of a 0-d tensor")
    return x.shape[0]


@TABLE.attribute("dtype")
def dtype(tx: TraceContext, self: object) -> Any:
    return TO_TORCH[need_tensor(self).dtype]


@TABLE.attribute("device")
def device(tx: TraceContext, self: object) -> Any:
    x = need_tensor(self)
    return torch.device(str(CPU if x.host else x.type.device))


@TABLE.function("device")
def device_named(tx: TraceContext, type: object, index: object = None) -> Any:
    """``torch.device("cuda", 0)``; a number alone is of the accelerator that there is, now."""
    known = isinstance(type, torch.device) and index is None
    if not known and not (isinstance(type, str) and (index is None or isinstance(index, int))):
        raise Unsupported("torch.device of something else than a name")
    try:
        return torch.device(type) if index is None else torch.device(type, index)
    except RuntimeError as error:
        raise Unsupported(f"torch.device: {error}") from None


@TABLE.attribute("is_cuda")
def is_cuda(tx: TraceContext, self: object) -> bool:
    return kind_of(need_tensor(self)) == "cuda"


@TABLE.attribute("is_cpu")
def is_cpu(tx: TraceContext, self: object) -> bool:
    return kind_of(need_tensor(self)) == "cpu"


@TABLE.attribute("layout")
def layout(tx: TraceContext, self: object) -> Any:
    return torch.strided


@TABLE.attribute("itemsize")
def itemsize(tx: TraceContext, self: object) -> int:
    return need_tensor(self).dtype.itemsize


@TABLE.method("element_size")
def element_size(tx: TraceContext, self: object) -> int:
    return itemsize(tx, self)


@TABLE.attribute("requires_grad")
def requires_grad(tx: TraceContext, self: object) -> bool:
    """Without grad mode it is not guarded: nothing that is computed then requires a gradient."""
    if not torch.is_grad_enabled() and not tx.recorded:
        memory = memory_of(tx.builder, need_tensor(self).var)
        if any(inp.var.name == memory for inp in tx.builder.inputs):
            raise Unsupported("requires_grad without grad mode")
        return False
    return requires(tx, need_tensor(self).var)


@TABLE.attribute("is_leaf")
def is_leaf(tx: TraceContext, self: object) -> bool:
    x = need_tensor(self)
    if is_input(tx, x.var):
        return bool(tx.attribute(x, "is_leaf"))
    return x.var.name in tx.builder.leaves or not requires_grad(tx, x)


@TABLE.attribute("grad")
def grad(tx: TraceContext, self: object) -> None:
    """``None`` of what captured code made; what tensors from outside keep is read where they are."""
    x = need_tensor(self)
    made = tx.builder.producer(x.var) is not None
    if not (is_leaf(tx, x) if made else tx.attribute(x, "is_leaf") is True):
        raise Unsupported("grad of a tensor that is not a leaf")


@TABLE.attribute("grad_fn")
def grad_fn(tx: TraceContext, self: object) -> None:
    if requires_grad(tx, self):
        raise Unsupported("grad_fn of a tensor that requires grad")


def _holds(cond: object) -> None:
    raise AssertionError("stands for a check")


def _checked(error_type: type[Exception], cond: object, message: object) -> None:
    """``torch._check`` and its like: one that holds says nothing."""
    _holds(cond)


def check(tx: TraceContext, cond: object) -> None:
    """Where a condition that the graph finds is false, the original runs, which says so."""
    if isinstance(cond, ArrayRef) and cond.kind == "python" and cond.dtype.is_bool and tx.require is not None:
        tx.require(cond)
    elif cond is not True:
        raise Unsupported("a check of torch that does not hold")


def _lazily(self: Any, instance: Any, obj_type: Any = None) -> Any:
    """In place of ``lazy_property.__get__``: a class is only asked whether what it has there is lazy, and
    grad mode need not be turned on where no tensor has a gradient."""
    if instance is None:
        return self
    known = True
    for value in vars(instance).values():
        if isinstance(value, torch.Tensor):
            known = known and not value.requires_grad
        elif value is not None and not isinstance(value, (bool, int, float, torch.Size)):
            known = False
    if torch.is_grad_enabled() or known:
        found = self.wrapped(instance)
    else:
        with torch.enable_grad():
            found = self.wrapped(instance)
    setattr(instance, self.wrapped.__name__, found)
    return found


STAND_INS = {torch._check_with: _checked, _lazy.__get__: _lazily}
TABLE.functions[_holds] = check


def _always(answer: bool) -> Callable[..., bool]:
    def rule(tx: TraceContext, self: object) -> bool:
        need_tensor(self)
        return answer

    return rule


for _name in (
    *("is_sparse", "is_sparse_csr", "is_quantized", "is_meta", "is_mkldnn", "is_nested", "is_mps", "is_xla"),
    *("is_xpu", "is_vulkan", "is_maia", "is_mtia", "is_ipu"),
):
    TABLE.attribute(_name)(_always(False))


@TABLE.both("is_complex")
def is_complex(tx: TraceContext, input: object) -> bool:
    return need_tensor(input).dtype.is_complex


@TABLE.both("is_conj", "is_neg")
def is_marked(tx: TraceContext, input: object) -> bool:
    """``False``: tensors with these bits are no inputs, and views made by captured code are not asked."""
    if part_shown(tx.builder, need_tensor(input).var) is not None:
        raise Unsupported("the conjugate or negative bit of a view")
    return False


@TABLE.both("is_floating_point")
def is_floating_point(tx: TraceContext, input: object) -> bool:
    return need_tensor(input).dtype.is_float


@TABLE.function("is_tensor")
def is_tensor(tx: TraceContext, obj: object) -> bool:
    return isinstance(obj, ArrayRef) and obj.kind != "python"


@TABLE.method("item")
def item(tx: TraceContext, self: object) -> ArrayRef:
    """The Python number of a tensor of one element."""
    x = need_tensor(self)
    kinds = {"bool": dtypes.bool_, "float": dtypes.float64, "complex": dtypes.complex128}
    wanted = dtypes.int64 if x.dtype in _EXACT_INTEGERS else kinds.get(x.dtype.kind)
    if not all(type(n) is int and n == 1 for n in x.shape) or wanted is None or x.kind == "python":
        raise Unsupported("item() of this tensor", break_id="data-dependent-value")
    element = emit(tx, "reshape", x.var, shape=()) if x.ndim else x.var
    return ArrayRef(own_number(tx, convert(tx, element, wanted), element), "python", x.frontend)


_EXACT_INTEGERS = (
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint16,
    dtypes.uint32,
)


@TABLE.method("tolist")
def tolist(tx: TraceContext, self: object) -> Any:
    """The numbers of a small tensor, each for itself; its sizes are constants from then on."""
    x = need_tensor(self)
    if any(map(depends_on_data, x.shape)) or math.prod(map(hint, x.shape)) > _NUMBERS:
        raise Unsupported("tolist() of many numbers, or of unknown size", break_id="data-dependent-value")
    known = relied_array(tx.builder, x.var)
    return _numbers(tx, x) if known is None else known.tolist()


def _numbers(tx: TraceContext, x: ArrayRef) -> Any:
    if not x.ndim:
        return item(tx, x)
    rows = (slice_axis(tx, x.var, 0, place, 1) for place in range(int(x.shape[0])))
    return [_numbers(tx, tensor(emit(tx, "reshape", row, shape=x.shape[1:]))) for row in rows]


@TABLE.method("numpy", "__float__", "__int__", "__bool__", "__index__", "data_ptr")
def leaves_the_graph(tx: TraceContext, self: object, *args: object, **kwargs: object) -> Any:
    raise Unsupported("a value or an address of a tensor in Python", break_id="data-dependent-value")


# -- torch's state ----------------------------------------------------------------------------
def _state(question: Callable[..., Any]) -> Callable[..., Any]:
    """The answer now; torch's state is guarded."""

    def rule(tx: TraceContext, *args: object) -> Any:
        tx.assume("torch-state")
        return question(*args)

    return rule


def _constant(answer: object) -> Callable[..., Any]:
    def rule(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        tx.assume("torch-state")
        return answer

    return rule


for _path in ("is_inference_mode_enabled", "get_default_dtype", "_C._get_privateuse1_backend_name"):
    TABLE.function(_path)(_state(resolve(_path)))


@TABLE.function("is_grad_enabled")
def is_grad_enabled(tx: TraceContext) -> bool:
    tx.assume("torch-state")
    return is_on(tx)


@TABLE.function("_C._set_grad_enabled")
def set_grad_enabled(tx: TraceContext, mode: object) -> None:
    """For good, as blocks do that plain code began and captured code ends."""
    tx.assume("torch-state")
    if type(mode) is not bool or torch.is_inference_mode_enabled() or tx.set_mode is None:
        raise Unsupported("grad mode set in inference mode, or by something else than a bool")
    if mode is not is_on(tx):
        tx.set_mode((MODE, "", mode), torch._C._set_grad_enabled)


@TABLE.function("is_autocast_enabled")
def is_autocast_enabled(tx: TraceContext, device_type: str = "cuda") -> bool:
    tx.assume("torch-state")
    if device_type not in autocast.KINDS:
        raise Unsupported(f"autocast on {device_type}")
    return autocast.dtype_on(tx, device_type) is not None


@TABLE.function("get_autocast_dtype")
def get_autocast_dtype(tx: TraceContext, device_type: str) -> Any:
    tx.assume("torch-state")
    found = autocast.dtype_on(tx, device_type) if device_type in autocast.KINDS else None
    if found is None:
        raise Unsupported("the type of autocast where it is off")
    return TO_TORCH[found]


@TABLE.function("promote_types")
def promote_types(tx: TraceContext, type1: object, type2: object) -> Any:
    return torch.promote_types(type1, type2)


@TABLE.function("result_type")
def result_type(tx: TraceContext, tensor1: object, tensor2: object) -> Any:
    """By tensors of these types without elements where the operands have dimensions."""
    tx.assume("torch-state")
    return torch.result_type(*map(_like, (tensor1, tensor2)))


def _like(operand: object) -> Any:
    if not isinstance(operand, ArrayRef):
        return operand
    if operand.kind == "python":
        return operand.dtype.numpy.type().item()
    return torch.empty([1] * operand.ndim, dtype=TO_TORCH[operand.dtype], device="meta")


@TABLE.function("Size")
def size_of(tx: TraceContext, sizes: object = ()) -> TypedTuple:
    if not isinstance(sizes, (tuple, list)) or not all(
        type(n) is int or isinstance(n, SymInt) for n in sizes
    ):
        raise Unsupported("torch.Size of something else than ints")
    return TypedTuple(torch.Size, tuple(sizes))


@TABLE.function("broadcast_shapes")
def broadcast_shapes(tx: TraceContext, *shapes: object) -> TypedTuple:
    known = [tuple(shape) if isinstance(shape, (tuple, list)) else (shape,) for shape in shapes]
    if not any(isinstance(d, SymInt) for shape in known for d in shape):
        return TypedTuple(torch.Size, tuple(torch.broadcast_shapes(*shapes)))
    if not all(isinstance(d, SymInt) or (type(d) is int and d >= 0) for shape in known for d in shape):
        raise Unsupported("torch.broadcast_shapes of something else than sizes")
    return TypedTuple(torch.Size, common_shape(*known))


@TABLE.function("_C._infer_size")
def infer_size(tx: TraceContext, first: object, second: object) -> TypedTuple:
    return broadcast_shapes(tx, first, second)


@TABLE.function("Size.numel")
def number_of_elements(tx: TraceContext, size: tuple[Dim, ...]) -> Dim:
    return product(size)


TABLE.function("_C._get_deterministic_algorithms")(_state(torch._C._get_deterministic_algorithms))
# captured code runs in plain eager mode, on exact tensors: the state guard says so
for _path in (
    "overrides.has_torch_function",
    "overrides.has_torch_function_unary",
    "overrides.has_torch_function_variadic",
    "_C._has_torch_function",
    "_C._has_torch_function_unary",
    "_C._has_torch_function_variadic",
):
    TABLE.function(_path)(_constant(False))


TABLE.function("_C._len_torch_dispatch_stack")(_state(torch._C._len_torch_dispatch_stack))
TABLE.function("_C._len_torch_function_stack")(_state(torch._C._len_torch_function_stack))


@TABLE.function("_C._get_tracing_state")
def tracing_state(tx: TraceContext) -> None:
    """``None``: nobody records a trace (a tracer is looked for at capture only)."""
    if torch._C._get_tracing_state() is not None:
        raise Unsupported("a trace is being recorded")


@TABLE.function("_C._is_tracing")
def is_tracing(tx: TraceContext) -> bool:
    """``False``, see :func:`tracing_state`."""
    tracing_state(tx)
    return False


def is_capturing(tx: TraceContext) -> bool:
    """Guarded where it is asked."""
    found = torch._C._cuda_isCurrentStreamCapturing()
    words = f"torch: {'a' if found else 'no'} CUDA graph is being recorded"
    tx.states["torch-capturing"] = StateGuard(state.capturing_is, found, words)
    return bool(found)


if torch.version.cuda is not None or torch.version.hip is not None:  # else it is a class that refuses
    TABLE.function("_C._cuda_isCurrentStreamCapturing")(is_capturing)


@TABLE.function("_C._log_api_usage_once")
def log_api_usage(tx: TraceContext, event: str) -> None:
    """A count for torch's own telemetry hook, which nothing in Python reads."""
