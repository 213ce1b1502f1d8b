"""NumPy's ufuncs and reductions of special values, plainly and compiled.

A case is a function, dtypes and a length: every pair of special values lies in arrays of several lengths, at
changing places, so that vectors and the elements behind them meet all of them.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
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
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*arguments)
    except Exception as error:
        return error


def shown(arguments: tuple[Any, ...], text: str) -> Any:
    """The elements of which a difference between results of functions by element speaks."""
    place = int(text.split()[1][:-1]) if text.startswith("at ") else 0
    return tuple(np.ravel(a)[place % max(1, a.size)] for a in arguments)


def elsewhere(function: Callable[..., Any], arguments: tuple[Any, ...], got: Any, length: int) -> Any:
    """NumPy's results of the elements in arrays of this length: its vector code and what is behind that
    (which the machine and the length choose) may give zeros of another sign."""
    flat = [np.ravel(a) for a in arguments]
    rows = [outcome(function, tuple(np.repeat(a[k], length) for a in flat))[0] for k in range(len(flat[0]))]
    return np.array(rows, got.dtype).reshape(got.shape)


def swept(
    function: Callable[..., Any],
    cases: Iterable[tuple[Any, ...]],
    ulps: float = 4.0,
    lengths: tuple[int, ...] = (),
) -> list[str]:
    """What differs, a line per case. ``lengths``: what NumPy gives for an element in arrays of these lengths
    is right as well."""
    compiled = dyncomp.compile(function)
    found = []
    for arguments in cases:
        copies = tuple(a.copy() for a in arguments)
        wanted, got = outcome(function, arguments), outcome(compiled, copies)
        text = differences(wanted, got, ulps)
        if text.startswith("at ") and lengths:
            for length in lengths:
                other = elsewhere(function, arguments, got, length)
                wanted = np.where(unequal(other, got, ulps), wanted, other)
            text = differences(np.asarray(wanted), np.asarray(got), ulps)
        if text:
            found.append(f"{[a.shape for a in arguments]} {text} of {shown(arguments, text)}")
    dyncomp.reset()
    return found


# -- ufuncs -----------------------------------------------------------------------------------
def of_ufunc(name: str, codes: str) -> list[str]:
    ufunc = getattr(np, name)
    operand_names = ", ".join("abc"[: ufunc.nin])
    function = eval(f"lambda {operand_names}: np.{name}({operand_names})", {"np": np})
    # exp(y log x): the error of a product as large as 700 counts as many times
    ulps = 4e4 if "power" in name and codes[0] in "FD" else 4.0
    lengths = (1, 64) if name in ("fmax", "fmin") and codes[0] in "fd" else ()
    cases = itertools.chain.from_iterable(operands(codes, length) for length in LENGTHS)
    return swept(function, cases, ulps, lengths)


def all_ufunc_cases() -> list[tuple[str, str]]:
    return [(f.__name__, codes) for f in ufuncs() for codes in signatures(f)]


# -- reductions -------------------------------------------------------------------------------
REDUCTIONS = [
    "sum",
    "mean",
    "prod",
    "max",
    "min",
    "any",
    "all",
    "argmax",
    "argmin",
    "cumsum",
    "cumprod",
    "var",
    "std",
    "ptp",
    "nansum",
    "nanmean",
    "nanprod",
    "nanmax",
    "nanmin",
    "nanargmax",
    "nancumsum",
    "nancumprod",
    "nanvar",
    "nanstd",
    "count_nonzero",
    "median",
    "nanmedian",
    "average",
    "sort",
    "diff",
    "add.reduce",
    "multiply.reduce",
    "maximum.reduce",
    "minimum.reduce",
    "fmax.reduce",
    "fmin.reduce",
    "logaddexp.reduce",
    "add.accumulate",
    "multiply.accumulate",
    "maximum.accumulate",
    "minimum.accumulate",
    "logical_and.reduce",
    "logical_or.reduce",
    "logical_xor.reduce",
    "bitwise_and.reduce",
    "bitwise_or.reduce",
    "bitwise_xor.reduce",
]
SHAPES = ((), (1,), (3,), (8,), (17,), (67,), (2, 3), (8, 5), (5, 17), (0,), (0, 3), (3, 0))


def elements(code: str) -> list[list[Any]]:
    """What arrays consist of: sums of them do not depend on the order."""
    dtype = np.dtype(code)
    if dtype.kind == "b":
        return [[True], [False], [True, False]]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return [[0], [info.min], [info.max], [info.min, info.max], [1, info.max]]
    inf, nan = np.inf, np.nan
    tiny = float(np.finfo(dtype).smallest_subnormal)
    reals: list[list[Any]] = [[-0.0], [0.0], [nan], [inf], [-inf], [1.0, nan], [1.0, inf], [inf, -inf]]
    reals += [[-0.0, 1.0], [tiny], [-tiny], [nan, -0.0], [inf, nan]]
    if dtype.kind == "f":
        return reals
    return [*reals, [complex(-0.0, -0.0)], [complex(0.0, -0.0)], [complex(inf, nan)], [1j, complex(nan, inf)]]


def reduction_cases(code: str) -> Iterator[tuple[Any, ...]]:
    for shape in SHAPES:
        for numbers in elements(code):
            count = int(np.prod(shape))
            flat = (numbers * (count // len(numbers) + 1))[:count]
            yield (np.array(flat, np.dtype(code)).reshape(shape),)


def of_reduction(name: str, code: str, axis: str) -> list[str]:
    text = f"np.{name}(x{axis})"
    if code in "FD" and name in ("prod", "nanprod", "multiply.reduce"):
        text += " + 0"  # signs of zeros depend on the order of the factors
    function = eval(f"lambda x: {text}", {"np": np})
    # deviations from a mean, squared and summed in another order
    return swept(function, reduction_cases(code), 100.0 if "var" in name or "std" in name else 4.0)


def all_reduction_cases() -> list[tuple[str, str, str]]:
    axes = ("", ", axis=None", ", axis=0", ", axis=-1")
    return list(itertools.product(REDUCTIONS, DTYPES, axes))
