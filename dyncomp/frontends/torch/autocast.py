"""What ``torch.autocast`` does to calls: operands are converted by a policy for each function.

The policies are those of ATen/autocast_mode.h by name. They are torch's lists of its functions, most of
which are several ops (``linear``, ``cross_entropy``…). So they stand here and not in rows, and a test
compares them with torch's dispatcher. Functions that a row names need no mention: they have the policy of
that one of them which has one. Another function that is in no list may call some that have policies: torch
itself runs it where autocast is on (``calls.routine_in_modes``), or it is not captured. The mode is the
library's own where the captured code is entered (a guard compares it), and what blocks of the captured code
set (``TraceContext.modes``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

from ...dtypes import DType, bfloat16, float16, float32
from ...errors import Unsupported
from ...prims.table import TABLE as PRIMS
from ..base import ArrayRef, Rule, TraceContext
from .library import torch
from .operands import convert, tensor
from .placement import kind_of, refs_in
from .torch_facts import FROM_TORCH, TO_TORCH

MODE = "torch.autocast"
KINDS = ("cpu", "cuda")
CLASSES: tuple[type, ...] = (torch.autocast,)


# The names of each function that is one op, as ``__name__`` has them.
_OPS = [
    names
    for row in PRIMS.values()
    if (names := frozenset(path.replace(".", "_") for path in row.names_in("torch")))
]


def _names(text: str) -> frozenset[str]:
    """The functions in a text, with their other names: ``special.log1p`` calls ``log1p``."""
    names = frozenset(text.split())
    return names.union(*(others for others in _OPS if others & names))


_ELIGIBLE = (float32, float16, bfloat16)
_WIDTH = {float16: 1, bfloat16: 1, float32: 2}

# Computed in the type of the mode, on both devices and on a GPU only.
_LOWER = _names(
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear matmul mm bmm addmm "
    "addbmm baddbmm prelu scaled_dot_product_attention"
)
_LOWER_CUDA = _names("mv addmv addr einsum")
# Computed in float32.
_WIDE_CUDA = _names(
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus "
    "layer_norm group_norm logsumexp l1_loss smooth_l1_loss huber_loss mse_loss nll_loss nll_loss_nd "
    "cross_entropy_loss cross_entropy binary_cross_entropy_with_logits kl_div"
)
_WIDE_CPU = _names("l1_loss smooth_l1_loss huber_loss mse_loss nll_loss kl_div prod")
# In float32 unless the call says in which type.
_WIDE_BY_DEFAULT_CUDA = _names("prod softmax log_softmax cumprod cumsum sum norm linalg_vector_norm")
# In the widest type of the operands.
_PROMOTED = _names("cat concat concatenate stack atan2 addcmul addcdiv")
# As without it; what these call has no policy.
_AS_EVER = _names(
    "abs absolute abs_ add add_ sub sub_ subtract mul mul_ multiply div div_ divide true_divide rsub neg "
    "neg_ negative sqrt_ square tanh_ sigmoid_ relu relu_ relu6 gelu silu elu "
    "selu celu leaky_relu hardswish hardsigmoid hardtanh mish floor ceil round trunc sign "
    "clamp clamp_ clamp_min clamp_max clip maximum minimum max min amax amin argmax argmin mean var std "
    "all any eq ne lt le gt ge less less_equal greater greater_equal equal not_equal logical_and "
    "logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not isnan isinf "
    "isfinite where masked_fill masked_fill_ dropout embedding batch_norm max_pool1d max_pool2d "
    "avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d getitem setitem __getitem__ "
    "__setitem__ __len__ __bool__ __float__ __int__ __index__ and_ or_ xor invert pos floordiv mod iadd "
    "isub imul itruediv truediv reshape reshape_as view view_as flatten unflatten permute transpose t "
    "swapaxes swapdims movedim moveaxis expand expand_as broadcast_to broadcast_tensors repeat squeeze "
    "unsqueeze chunk split split_with_sizes unbind select narrow index_select gather contiguous clone "
    "detach copy_ fill_ zero_ to type type_as float half bfloat16 double int long bool cpu item tolist "
    "size dim numel stride nelement is_contiguous is_floating_point is_complex element_size ndimension "
    "data_ptr requires_grad_ tril triu diagonal flip roll pad constant_pad_nd pixel_shuffle topk sort "
    "argsort diff zeros ones full empty arange linspace eye tensor zeros_like ones_like full_like empty_like "
    "new_zeros new_ones new_full new_empty new_tensor one_hot tril_indices triu_indices finfo iinfo "
    "is_tensor get_default_dtype is_autocast_enabled get_autocast_dtype is_grad_enabled "
    "is_inference_mode_enabled promote_types result_type broadcast_shapes _infer_size multinomial "
    "_get_tracing_state _is_tracing "
    "_has_torch_function _has_torch_function_unary _has_torch_function_variadic _log_api_usage_once"
)
_AS_EVER = _AS_EVER.union(*_OPS) - _WIDE_CUDA
# As without it on a CPU, where a GPU has a policy.
_AS_EVER_CPU = (_WIDE_CUDA | _WIDE_BY_DEFAULT_CUDA | {"atan2", "addcmul", "addcdiv"}) - _WIDE_CPU
_AS_EVER_CPU -= _names("nll_loss_nd cross_entropy_loss cross_entropy binary_cross_entropy_with_logits")


# -- the mode ---------------------------------------------------------------------------------
def ambient(kind: str) -> Any:
    """torch's type of the mode that is on for a kind of device now; ``None`` where it is off."""
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None


def mode_of(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str, Any] | None:
    """The mode, the kind of device and its type in a block ``with cls(*args, **kwargs)``."""
    if cls not in CLASSES:
        return None
    names = ("device_type", "dtype", "enabled", "cache_enabled")
    given = {**dict(zip(names, args)), **kwargs}
    kind, dtype, enabled = given.get("device_type"), given.get("dtype"), given.get("enabled", True)
    if kind not in KINDS or set(given) - set(names) or type(enabled) is not bool:
        raise Unsupported("torch.autocast with these arguments")
    if kind == "cuda" and enabled and torch.version.cuda is None:
        raise Unsupported("torch.autocast for a device that there is not")
    if dtype is None:
        dtype = torch.get_autocast_dtype(kind)
    if dtype not in (torch.float16, torch.bfloat16):
        raise Unsupported(f"torch.autocast of dtype {dtype}")
    return MODE, kind, dtype if enabled else None


def dtype_on(tx: TraceContext, kind: str) -> DType | None:
    """The element type of the mode for a kind of device at this place of the captured code."""
    blocks = tx.modes.get(MODE, {})
    found = blocks[kind] if kind in blocks else ambient(kind)
    return None if found is None else FROM_TORCH[found]


def is_on(tx: TraceContext) -> bool:
    return any(dtype_on(tx, kind) is not None for kind in KINDS)


def is_ambient() -> bool:
    """Whether the mode is on for some kind of device now."""
    return any(torch.is_autocast_enabled(kind) for kind in KINDS)


def switched_off() -> AbstractContextManager[Any]:
    """For calls of torch that have their operands in the types that they want."""
    return set_to(())


Modes = tuple[tuple[str, Any], ...]  # kinds of devices and torch's types


def modes_at(tx: TraceContext) -> Modes:
    """The modes that are on at this place of the captured code."""
    found = ((kind, dtype_on(tx, kind)) for kind in KINDS)
    return tuple((kind, TO_TORCH[dtype]) for kind, dtype in found if dtype is not None)


def set_to(modes: Modes) -> AbstractContextManager[Any]:
    """For calls of torch: these modes and no others. What they convert is not kept."""
    wanted = dict(modes)
    if not wanted and not is_ambient():
        return nullcontext()
    stack = ExitStack()
    for kind in KINDS:
        if kind in wanted:
            stack.enter_context(torch.autocast(kind, wanted[kind], cache_enabled=False))
        elif torch.is_autocast_enabled(kind):
            stack.enter_context(torch.autocast(kind, enabled=False))
    return stack


# -- rules ------------------------------------------------------------------------------------
@functools.lru_cache(maxsize=4096)
def under_autocast(rule: Rule, name: str, whole: Callable[[Any], Rule | None], function: Any = None) -> Rule:
    """``rule`` for the function ``name``, with operands as autocast gives them. ``whole(function)``: its rule
    where it is in no list, as a call of torch that finds the mode on."""

    @functools.wraps(rule)  # what is known of arguments is told by the rule's names for them
    def cast(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        if not is_on(tx):
            return rule(tx, *args, **kwargs)
        kinds = {kind_of(ref) for ref in refs_in([*args, *kwargs.values()]) if ref.kind == "array"}
        if len(kinds) > 1 and name in _AS_EVER:
            return rule(tx, *args, **kwargs)
        if len(kinds) > 1:
            raise Unsupported("tensors of several devices under autocast")
        kind = next(iter(kinds), "")
        lower = dtype_on(tx, kind) if kind else None
        if lower is None:
            return rule(tx, *args, **kwargs)
        try:
            wanted = _wanted(name, kind, lower, args, kwargs)
        except Unsupported:
            found = whole(function)
            if found is None:
                raise
            return found(tx, *args, **kwargs)
        if wanted is None:
            return rule(tx, *args, **kwargs)
        args, kwargs = _cast(tx, [args, kwargs], wanted)
        return rule(tx, *args, **kwargs)

    return cast


def _wanted(
    name: str, kind: str, lower: DType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> DType | None:
    """The type that operands are converted to; ``None`` where they stay as they are."""
    on_gpu = kind == "cuda"
    if name in _LOWER or (on_gpu and name in _LOWER_CUDA):
        return lower
    if on_gpu and name in ("truediv", "floordiv", "mod") and not isinstance(args[0], ArrayRef):
        if name != "truediv":
            raise Unsupported(f"a number {name} a tensor under autocast")
        return float32  # torch takes the reciprocal and multiplies
    if name in (_WIDE_CUDA if on_gpu else _WIDE_CPU):
        return float32
    if on_gpu and name in _WIDE_BY_DEFAULT_CUDA:
        return None if _says_dtype(args, kwargs) else float32
    if name in _PROMOTED and (on_gpu or name not in _AS_EVER_CPU):
        found = [ref.dtype for ref in refs_in([*args, *kwargs.values()]) if _is_eligible(ref)]
        if len({d for d in found if d is not float32}) > 1:
            raise Unsupported("float16 and bfloat16 under autocast")
        return max(found, key=_WIDTH.__getitem__, default=None)
    if name in _AS_EVER or (not on_gpu and name in _AS_EVER_CPU):
        return None
    raise Unsupported(f"torch's {name} under autocast")


def _says_dtype(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return kwargs.get("dtype") is not None or any(isinstance(a, torch.dtype) for a in args)


def _is_eligible(ref: ArrayRef) -> bool:
    return ref.kind == "array" and ref.dtype in _ELIGIBLE


def _cast(tx: TraceContext, value: Any, dtype: DType) -> Any:
    """``value`` with the tensors in it converted."""
    if isinstance(value, ArrayRef):
        if not _is_eligible(value) or value.dtype is dtype:
            return value
        return tensor(convert(tx, value.var, dtype))
    if type(value) in (list, tuple):
        return type(value)(_cast(tx, part, dtype) for part in value)
    if type(value) is dict:
        return {key: _cast(tx, part, dtype) for key, part in value.items()}
    return value
