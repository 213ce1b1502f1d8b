"""NumPy's ufuncs and reductions of special values, plainly and compiled.

A case is a function, dtypes and a length: every pair of special values lies in arrays of several lengths, at
changing places, so that vectors and the elements behind them meet all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dyncomp

DTYPES = "?bBhHiIlLefdFD"
LENGTHS = (None, 1, 3, 8, 17, 67)  # None: no dimensions


def values_of(code: str) -> np.ndarray[Any, Any]:
    dtype = np.dtype(code)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        numbers = {
            info.min,
            info.min + 1,
            -2,
            -1,
            0,
            1,
            2,
            3,
            7,
            8,
            info.bits - 1,
            info.bits,
            info.max - 1,
            info.max,
        }
        return np.array(sorted(n for n in numbers if info.min <= n <= info.max), dtype)
    info = np.finfo(dtype)
    tiny, small = float(info.smallest_subnormal), float(info.smallest_normal)
    reals = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, np.inf, -np.inf, np.nan, tiny, -tiny, small]
    reals += [float(info.max), -float(info.max), float(info.eps), 709.0, -104.0, 1e4]
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.array(reals).astype(dtype)
    parts = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, tiny, float(info.max) / 4]
    return np.array([complex(a, b) for a in parts for b in parts], dtype)


def operands(codes: str, length: int | None) -> Iterator[tuple[Any, ...]]:
    """Arrays of this length in which every combination of values is."""
    tables = [values_of(code) for code in codes]
    if len(codes) > 1 and any(len(t) > 40 for t in tables):  # of complex numbers every third
        tables = [t[:: 7 if len(t) > 40 else 1] for t in tables]
    whole = [np.array(column) for column in zip(*itertools.product(*tables))]
    whole = [w.astype(t.dtype) for w, t in zip(whole, tables)]
    size = len(whole[0])
    if length is None:
        for k in range(0, size, max(1, size // 12)):
            yield tuple(np.array(w[k]) for w in whole)
        return
    count = -(-size // length) if length > 16 else 6
    for k in range(count):
        places = (np.arange(length) + k * (length if length > 16 else max(1, size // count) + 1)) % size
        yield tuple(w[places] for w in whole)


def ufuncs() -> list[np.ufunc]:
    found = {id(f): f for f in vars(np).values() if isinstance(f, np.ufunc) and not f.signature}
    return sorted(found.values(), key=lambda f: f.__name__)


def takes(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    try:
        with np.errstate(all="ignore"):
            function(*arguments)
    except TypeError:
        return False
    except Exception:
        return True
    return True


def signatures(function: np.ufunc) -> Iterator[str]:
    """Dtypes that it takes: each alone, and next to another one of its kind."""
    for code in DTYPES:
        codes = code * function.nin
        if function.__name__ == "ldexp":
            codes = code + "i"
        if takes(function, tuple(np.ones(1, c) for c in codes)):
            yield codes


def differences(wanted: Any, got: Any, ulps: float) -> str:
    """What differs between two results; signs of zeros and infinities, and NaN, count. ``ulps``: floats."""
    if isinstance(wanted, Exception) or isinstance(got, Exception):
        same = type(wanted) is type(got)
        return "" if same else f"{got!r:.100} instead of {wanted!r:.100}"
    if isinstance(wanted, tuple):
        return "".join(differences(a, b, ulps) for a, b in zip(wanted, got, strict=True))
    if type(wanted) is not type(got) or wanted.dtype != got.dtype or wanted.shape != got.shape:
        return f"{type(got)} {got.dtype} {got.shape} instead of {type(wanted)} {wanted.dtype} {wanted.shape}"
    if wanted.dtype.kind == "c":
        return differences(wanted.real, got.real, ulps) or differences(wanted.imag, got.imag, ulps)
    bad = unequal(np.atleast_1d(wanted), np.atleast_1d(got), ulps)
    if not bad.any():
        return ""
    place = int(np.flatnonzero(bad)[0])
    return f"at {place}: {np.ravel(got)[place]!r} instead of {np.ravel(wanted)[place]!r}"


def unequal(a: Any, b: Any, ulps: float) -> Any:
    if a.dtype.kind != "f":
        return a != b
    with np.errstate(all="ignore"):
        step = np.spacing(np.abs(np.where(np.isfinite(a), a, 1)))
        near = np.abs(a - b) <= ulps * step
    same = (np.isnan(a) & np.isnan(b)) | (a == b) | (np.isfinite(a) & np.isfinite(b) & near)
    return ~same | ((np.signbit(a) != np.signbit(b)) & ~np.isnan(a) & ((a == 0) | (b == 0) | np.isinf(a)))


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        with np.errstate(all="ignore"):
            return function(*arguments)
    except Exception as error:
        return error


def check(function: Callable[..., Any], compiled: Callable[..., Any], arguments: Any, ulps: float) -> str:
    copies = tuple(a.copy() for a in arguments)
    return differences(outcome(function, arguments), outcome(compiled, copies), ulps)


def swept(function: Callable[..., Any], cases: Iterator[tuple[Any, ...]], ulps: float = 4.0) -> list[str]:
    """What differs, a line per case."""
    compiled = dyncomp.compile(function)
    found = []
    for arguments in cases:
        text = check(function, compiled, arguments, ulps)
        if text:
            shown = (
                tuple(np.ravel(a)[int(text.split()[1][:-1])] for a in arguments) if text[:3] == "at " else ()
            )
            found.append(f"{[a.shape for a in arguments]} {text} of {shown}")
    dyncomp.reset()
    return found
