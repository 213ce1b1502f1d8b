"""What the families of rows share: meta functions of pointwise ops, checks, and reference wrappers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import ALL, DType, bfloat16, float32, from_numpy
from ..graph.ir import ArrayType
from ..graph.noted import silently
from .layout import k_order_strides, shapes_equal

Array = np.ndarray[Any, Any]

BOOL = tuple(d for d in ALL if d.is_bool)
SIGNED = tuple(d for d in ALL if d.kind == "int")
UNSIGNED = tuple(d for d in ALL if d.kind == "uint")
INTEGER = SIGNED + UNSIGNED
FLOAT = tuple(d for d in ALL if d.is_float)
COMPLEX = tuple(d for d in ALL if d.is_complex)
INEXACT = FLOAT + COMPLEX
REAL = INTEGER + FLOAT
NUMBER = INTEGER + INEXACT
ANY = BOOL + NUMBER
NATIVE = tuple(d for d in ALL if d is not bfloat16)


def require(types: Sequence[ArrayType], allowed: Sequence[DType], name: str) -> None:
    """Raise ``TypeError`` unless every type's dtype is in ``allowed``."""
    for t in types:
        if t.dtype not in allowed:
            raise TypeError(f"{name} is not defined for {t.dtype}")


def require_alike(types: Sequence[ArrayType], name: str) -> None:
    """Raise ``TypeError`` unless all have one dtype, and as :func:`require_same_shape`."""
    first = types[0]
    for t in types[1:]:
        if t.dtype is not first.dtype:
            raise TypeError(f"{name} needs operands of one dtype, not {first.dtype} and {t.dtype}")
    require_same_shape(types, name)


def require_same_shape(types: Sequence[ArrayType], name: str) -> None:
    """Raise ``ValueError`` unless all have one shape and device (broadcasting is explicit)."""
    first = types[0]
    for t in types[1:]:
        if t.shape is not first.shape and not shapes_equal(t.shape, first.shape):
            raise ValueError(f"{name} needs operands of one shape, not {first.shape} and {t.shape}")
        if t.device is not first.device and t.device != first.device:
            raise ValueError(f"{name} needs operands on one device, not {first.device} and {t.device}")


def pointwise_type(types: Sequence[ArrayType], dtype: DType) -> ArrayType:
    """The type of a fresh pointwise result: NumPy's K order over the operands."""
    first = types[0]
    return ArrayType(
        dtype, first.shape, k_order_strides(first.shape, [t.strides for t in types]), first.device
    )


def pointwise_meta(
    name: str, allowed: Sequence[DType], result: Callable[[DType], DType] | DType | None = None
) -> Callable[..., ArrayType]:
    """Meta of a pointwise op on operands of one dtype. ``result``: the result's dtype, a function of the
    operands', or ``None`` for the same."""

    known = frozenset(allowed)

    def meta(*types: ArrayType) -> ArrayType:
        require_alike(types, name)
        dtype = types[0].dtype
        if dtype not in known:
            require(types, allowed, name)
        if isinstance(result, DType):
            dtype = result
        elif result is not None:
            dtype = result(dtype)
        return pointwise_type(types, dtype)

    return meta


def quiet(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn`` without floating-point warnings."""

    def wrapped(*args: object, **kwargs: object) -> Any:
        with silently():
            return fn(*args, **kwargs)

    return wrapped


def is_bfloat16(x: object) -> bool:
    dtype = getattr(x, "dtype", None)
    # the name of a dtype is costly to ask for
    return dtype is not None and dtype.kind == "V" and dtype.name == "bfloat16"


def _has_bfloat16(args: tuple[Any, ...]) -> bool:
    for arg in args:  # noqa: SIM110 - faster than any(), and every node of an interpreted graph asks
        if is_bfloat16(arg):
            return True
    return False


def widening(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn`` computing bfloat16 through float32 (NumPy itself has no bfloat16), warnings off."""

    def wrapped(*args: Any, **kwargs: object) -> Any:
        with silently():
            if not _has_bfloat16(args):
                return np.asarray(fn(*args, **kwargs))
            wide = [a.astype(float32.numpy) if is_bfloat16(a) else a for a in args]
            out = np.asarray(fn(*wide, **kwargs))
            return out.astype(bfloat16.numpy) if out.dtype == np.float32 else out

    return wrapped


def type_of(x: Array) -> ArrayType:
    """The type of a concrete array."""
    dtype = from_numpy(x.dtype)
    if dtype is None:
        raise TypeError(f"no dyncomp dtype for {x.dtype}")
    return ArrayType(dtype, x.shape, tuple(s // x.itemsize for s in x.strides))


def with_strides(x: Array, strides: Sequence[int]) -> Array:
    """A copy of ``x`` in the memory order of ``strides`` (dense and positive)."""
    order = sorted(range(x.ndim), key=lambda a: (-strides[a], a))
    out = np.empty([x.shape[a] for a in order], x.dtype)
    back = [order.index(a) for a in range(x.ndim)]
    out = out.transpose(back)
    out[...] = x
    return out


def laid_out(
    ref: Callable[..., Array], meta: Callable[..., ArrayType], always: bool = False
) -> Callable[..., Array]:
    """``ref`` with its result in the memory order that ``meta`` states: for references that are no NumPy
    function of their own (``always``), and for bfloat16 that goes through float32."""

    def wrapped(*args: Any, **params: Any) -> Array:
        out = ref(*args, **params)
        if always or _has_bfloat16(args):
            expected = meta(*(type_of(a) for a in args), **params)
            out = with_strides(out, expected.strides)  # type: ignore[arg-type]
        return out

    return wrapped


def axes_tuple(axes: Sequence[int], ndim: int, name: str) -> tuple[int, ...]:
    """``axes`` checked: in range, non-negative, distinct."""
    out = tuple(axes)
    if any(not 0 <= a < ndim for a in out) or len(set(out)) != len(out):
        raise ValueError(f"{name}: axes {out} are not distinct axes of {ndim} dimensions")
    return out


def check_axis(axis: int, ndim: int, name: str) -> None:
    """Raise ``ValueError`` unless ``0 <= axis < ndim``."""
    if not 0 <= axis < ndim:
        raise ValueError(f"{name}: axis {axis} is out of bounds for {ndim} dimensions")


def drop(values: Sequence[Any], axes: Sequence[int]) -> tuple[Any, ...]:
    """``values`` without the positions in ``axes``."""
    return tuple(v for i, v in enumerate(values) if i not in axes)


def replace(values: Sequence[Any], axis: int, value: object) -> tuple[Any, ...]:
    """``values`` with position ``axis`` changed."""
    return (*values[:axis], value, *values[axis + 1 :])
