"""Whether results have the same bits: values, signs of zeros and places of NaN, types and layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dyncomp

STRICT = {"numerics": "strict"}


def strictly(function: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    return dyncomp.compile(function, options=STRICT, **settings)


def _numbers(value: Any) -> np.ndarray[Any, Any]:
    if hasattr(value, "detach"):
        value = value.detach().resolve_conj().resolve_neg()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
        value = value.numpy()
    return np.asarray(value)


def bits(a: Any, b: Any) -> str:
    """How ``b`` differs from ``a``; empty where it does not."""
    if isinstance(a, (tuple, list)):
        if type(a) is not type(b) or len(a) != len(b):
            return f"{type(b)} of {len(b)}, not {type(a)} of {len(a)}"
        return next((f"[{k}]: {text}" for k, (x, y) in enumerate(zip(a, b)) if (text := bits(x, y))), "")
    if isinstance(a, dict):
        return bits([*a.keys(), *a.values()], [*b.keys(), *b.values()])
    if type(a) is not type(b):
        return f"{type(b)}, not {type(a)}"
    if not hasattr(a, "dtype"):
        return "" if a == b or a != a else f"{b!r}, not {a!r}"
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{b.dtype}{b.shape}, not {a.dtype}{a.shape}"
    x, y = _numbers(a), _numbers(b)
    if x.dtype.kind == "c":
        x, y = (np.stack([z.real, z.imag]) for z in (x, y))
    if x.dtype.kind == "V":  # halves of ml_dtypes
        x, y = x.astype(np.float32), y.astype(np.float32)
    if x.dtype.kind != "f":
        return "" if np.array_equal(x, y) else f"{y}, not {x}"
    missing = np.isnan(x)
    same = (missing == np.isnan(y)) & (missing | ((x == y) & (np.signbit(x) == np.signbit(y))))
    count = int((~same).sum())
    return f"{count} of {x.size} differ: {y[~same][0]}, not {x[~same][0]}" if count else ""
