"""Complex tensors on the CPU.

Few rules have a meaning for them: those named here, and those that only arrange elements. For other functions
torch's own routines are called within the graph (``calls``); what is in neither list breaks it. ``real``,
``view_as_real`` and their like are views for the program and copies in the graph: they are not written, their
arrays are not written after them, and where one is needed outside it is taken there (``base.part_shown``).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import Any

from ...device import CPU
from ...dtypes import DType, complex64, complex128, float32, float64
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import is_c_contiguous
from ..base import ArrayRef, Rule, TraceContext, part_shown
from ..numpy.operands import emit
from ..rule_table import refusal
from .call_names import FUNCTIONS, METHODS, TRANSFORMS
from .calls import either, routine
from .create import cast
from .library import torch
from .operands import in_order, need_tensor, only_defaults, pointwise, tensor
from .shape import axes_in_memory, is_dense, piece, transpose
from .torch_rules import RuleTable, resolve

TABLE = RuleTable()


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Rules that are right for complex numbers as they are.
_AS_THEY_ARE = frozenset(
    _names(
        "real imag view_as_real view_as_complex conj resolve_conj resolve_neg complex polar "
        "add sub subtract mul multiply neg negative abs absolute eq ne not_equal where "
        "iadd isub imul add_ sub_ subtract_ mul_ multiply_ copy_ fill_ zero_ getitem setitem "
        "__getitem__ __setitem__ shape size ndim dim ndimension numel nelement dtype device layout itemsize "
        "element_size is_complex is_floating_point is_conj is_neg is_sparse is_quantized is_meta is_cpu "
        "is_cuda requires_grad stride is_contiguous __len__ item is_tensor promote_types result_type adjoint "
        "reshape view reshape_as view_as flatten unflatten transpose swapaxes swapdims permute movedim "
        "moveaxis t T mT H mH unsqueeze squeeze expand expand_as broadcast_to broadcast_tensors split "
        "split_with_sizes chunk unbind select narrow ravel contiguous clone detach cat concat concatenate "
        "stack flip roll repeat zeros ones empty full zeros_like ones_like empty_like full_like new_zeros "
        "new_ones new_empty new_full eye to type_as cpu cfloat cdouble"
    )
)
# Routines for them beside those for real numbers (``call_names``).
_ROUTINES = _names(
    "sum mean exp log log2 log10 sqrt rsqrt square reciprocal sin cos tan sinh cosh tanh asin acos atan "
    "asinh acosh atanh sigmoid div divide true_divide angle isfinite isnan isinf isreal mm mv dot matmul sgn "
    "expm1 log1p cumsum cumprod prod all any masked_fill index_select diag trace"
)
_MADE_OF_REAL = (
    *(f"_VF.{name}" if name.endswith("stft") else f"_C._fft.{name}" for name in sorted(TRANSFORMS)),
    "_C._linalg.linalg_eig",
    "_C._linalg.linalg_eigvals",
)
_OPERATORS = {"truediv": operator.truediv, "pow": operator.pow, "matmul": operator.matmul}


_NOT_OF_REAL = refusal("a function of torch that is compiled for complex numbers only")


# -- which rules ----------------------------------------------------------------
def _is_complex(value: Any) -> bool:
    if isinstance(value, ArrayRef):
        return value.dtype.is_complex
    if type(value) in (tuple, list):
        return any(map(_is_complex, value))
    return isinstance(value, complex) or (isinstance(value, torch.dtype) and value.is_complex)


@functools.lru_cache(maxsize=4096)
def for_complex(rule: Rule, name: str, fallback: Rule | None) -> Rule:
    """``rule`` for the function ``name``; where complex numbers are among the arguments and it has no meaning
    for them, ``fallback``."""
    known = rule if name in _AS_THEY_ARE else None
    if known is not None and fallback is not None:
        known = either(known, fallback)

    @functools.wraps(rule)  # what is known of arguments is told by the rule's names for them
    def chosen(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        if not any(map(_is_complex, args)) and not any(map(_is_complex, kwargs.values())):
            return rule(tx, *args, **kwargs)
        if tx.builder.device not in (None, CPU):
            raise Unsupported("complex tensors on a GPU", break_id="array-dtype")
        found = known or fallback
        if found is None:
            raise Unsupported(f"torch's {name} of complex numbers", break_id="array-dtype")
        return found(tx, *args, **kwargs)

    return chosen


def _resolved(paths: Iterable[str]) -> dict[Any, Rule]:
    functions = (resolve(path) for path in paths)
    return {function: routine(function) for function in functions if function is not None}


@functools.cache
def _functions() -> dict[Any, Rule]:
    special = (f"special.{name}" for name in ("exp2", "expm1", "log1p", "sinc"))
    return _resolved((*FUNCTIONS, *_ROUTINES, *_MADE_OF_REAL, *special, "tensor"))


@functools.cache
def _methods() -> dict[str, Rule]:
    found = {name: getattr(torch.Tensor, name, None) for name in (*METHODS, *_ROUTINES)}
    return {name: routine(method) for name, method in found.items() if method is not None}


@functools.cache
def _operators() -> dict[str, Rule]:
    return {name: routine(function) for name, function in _OPERATORS.items()}


def function_rule(rule: Rule | None, function: object) -> Rule | None:
    """The rule of a function of torch; ``None`` where it has none for numbers of any kind."""
    fallback = _functions().get(function)
    if rule is None and fallback is None:
        return None
    return for_complex(rule or _NOT_OF_REAL, getattr(function, "__name__", ""), fallback)


def method_rule(rule: Rule | None, name: str) -> Rule | None:
    fallback = _methods().get(name)
    if rule is None and fallback is None:
        return None
    return for_complex(rule or _NOT_OF_REAL, name, fallback)


def attribute_rule(rule: Rule, name: str) -> Rule:
    return for_complex(rule, name, None)


def operator_rule(rule: Rule, name: str) -> Rule:
    return for_complex(rule, name, _operators().get(name))


for _path in _MADE_OF_REAL:
    _function = resolve(_path)
    if _function is not None:
        TABLE.functions[_function] = routine(_function)


# -- views that are copies ----------------------------------------------------------------
def _as_view(tx: TraceContext, copy: Var, of: ArrayRef, attribute: str = "") -> ArrayRef:
    """A copy that the program sees as a view; ``attribute``: how it is written behind its tensor."""
    tx.builder.seen_as_views[copy.name] = of.var.name
    return ArrayRef(copy, "array", "torch", readonly=True, part=(of, attribute) if attribute else None)


def _part(name: str) -> Rule:
    def rule(tx: TraceContext, input: object) -> ArrayRef:
        x = need_tensor(input)
        if not x.dtype.is_complex:
            if name == "imag":
                raise Unsupported("imag is not implemented for tensors with non-complex dtypes.")
            return x
        if not is_c_contiguous(x.shape, x.strides):
            raise Unsupported(f"{name} of a complex tensor that is not contiguous")
        return _as_view(tx, emit(tx, name, x.var), x, name)

    return rule


for _name in ("real", "imag"):
    TABLE.function(_name)(_part(_name))
    TABLE.attribute(_name)(_part(_name))


@TABLE.function("view_as_real")
def view_as_real(tx: TraceContext, input: object) -> ArrayRef:
    """Pairs of real and imaginary parts."""
    x = need_tensor(input)
    if not x.dtype.is_complex or not is_dense(x.var):
        raise Unsupported("view_as_real of this tensor")
    copy = _pairs(tx, x.var)
    found = in_order(tx, copy, [*axes_in_memory(x.var), x.ndim])
    if found is not copy:  # a view of the copy that lies as the tensor does
        tx.builder.seen_as_views[copy.name] = x.var.name
    return _as_view(tx, found, x)


def _pairs(tx: TraceContext, x: Var) -> Var:
    parts = [emit(tx, "reshape", emit(tx, name, x), shape=(*x.shape, 1)) for name in ("real", "imag")]
    found: Var = emit(tx, "concatenate", *parts, axis=x.ndim)
    return found


@TABLE.function("view_as_complex")
def view_as_complex(tx: TraceContext, input: object) -> ArrayRef:
    """Numbers made of pairs."""
    x = need_tensor(input)
    if x.dtype not in (float32, float64) or not x.ndim or not is_c_contiguous(x.shape, x.strides):
        raise Unsupported("view_as_complex of this tensor")
    if x.shape[-1] != 2:
        raise Unsupported("Tensor must have a last dimension of size 2")
    last = x.ndim - 1
    halves = [
        emit(tx, "reshape", piece(tx, x.var, last, place, 1).var, shape=x.shape[:-1]) for place in (0, 1)
    ]
    return _as_view(tx, pointwise(tx, "complex", *halves), x)


@TABLE.both("conj")
def conj(tx: TraceContext, input: object) -> ArrayRef:
    """torch marks a view; of real numbers the tensor itself."""
    x = need_tensor(input)
    if not x.dtype.is_complex:
        return x
    if not is_dense(x.var):
        raise Unsupported("conj of a tensor with holes")
    return _as_view(tx, pointwise(tx, "conj", x.var), x, "conj()")


@TABLE.both("adjoint")
@TABLE.attribute("mH")
def adjoint(tx: TraceContext, input: object) -> ArrayRef:
    return conj(tx, transpose(tx, input, -2, -1))


@TABLE.attribute("H")
def adjoint_of_matrix(tx: TraceContext, self: object) -> ArrayRef:
    if need_tensor(self).ndim != 2:
        raise Unsupported("tensor.H of a tensor that is no matrix")
    return adjoint(tx, self)


@TABLE.both("resolve_conj", "resolve_neg")
def resolved(tx: TraceContext, input: object) -> ArrayRef:
    """The tensor itself where nothing is marked, else a copy."""
    x = need_tensor(input)
    if part_shown(tx.builder, x.var) is None:
        return x
    raise Unsupported("a view whose marks are resolved")


# -- made of real ones ----------------------------------------------------------------
def _alike(a: ArrayRef, b: ArrayRef, what: str) -> None:
    if a.dtype != b.dtype or a.dtype not in (float32, float64):
        raise Unsupported(f"{what} of these dtypes")


@TABLE.function("complex")
def complex_(tx: TraceContext, real: object, imag: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    a, b = need_tensor(real), need_tensor(imag)
    _alike(a, b, "complex")
    return tensor(pointwise(tx, "complex", a.var, b.var))


@TABLE.function("polar")
def polar(tx: TraceContext, abs: object, angle: object, *, out: object = None) -> ArrayRef:
    only_defaults(out=out)
    a, b = need_tensor(abs), need_tensor(angle)
    _alike(a, b, "polar")
    turned = (pointwise(tx, name, b.var) for name in ("cos", "sin"))
    return tensor(pointwise(tx, "complex", *(pointwise(tx, "multiply", a.var, part) for part in turned)))


def _caster(dtype: DType) -> Rule:
    def rule(tx: TraceContext, self: object, memory_format: object = None) -> ArrayRef:
        only_defaults(memory_format=memory_format)
        return cast(tx, need_tensor(self), dtype)

    return rule


TABLE.method("cfloat")(_caster(complex64))
TABLE.method("cdouble")(_caster(complex128))
