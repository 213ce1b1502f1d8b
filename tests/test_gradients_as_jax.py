"""Gradients and tangents of NumPy's and SciPy's functions against those of the functions of the same names in
``jax.numpy`` and ``jax.scipy``: whatever calls both libraries take and give the same values for."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.frontends.numpy.frontend import NumpyFrontend

jax = pytest.importorskip("jax")
pytest.importorskip("scipy")

MODULES = {
    "numpy": "jax.numpy",
    "numpy.linalg": "jax.numpy.linalg",
    "numpy.fft": "jax.numpy.fft",
    "scipy.special": "jax.scipy.special",
    "scipy.linalg": "jax.scipy.linalg",
}
RNG = np.random.default_rng(8)


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    """In (0.15, 0.95), no two the same."""
    count = int(np.prod(shape))
    return (0.15 + 0.8 * (RNG.permutation(count) + RNG.uniform(0.2, 0.8, count)) / count).reshape(shape)


def complex_numbers(*shape: int) -> np.ndarray[Any, Any]:
    return numbers(*shape) + 1j * numbers(*shape)


ARRAYS: dict[str, Any] = {
    "x": numbers(3, 4),
    "y": numbers(3, 4),
    "m": numbers(3, 3) + 2.0 * np.diag([1.0, 2.0, 3.5]),
    "n": numbers(3, 3),
    "u": numbers(4),
    "v": numbers(4),
    "s": numbers(2, 3, 4),
    "z": complex_numbers(3, 4),
    "w": complex_numbers(3, 4),
    "c": complex_numbers(3, 3) + 2.0 * np.diag([1.0, 2.0, 3.5]),
    "e": complex_numbers(4),
}
LITERAL = {
    "i": np.array([0, 2, 1, 1]),
    "k": np.array([2, 3, 1, 2]),
    "mask": np.array([[True, False, True, True], [False, True, True, False], [True, True, False, True]]),
}
for _array in (*ARRAYS.values(), *LITERAL.values()):
    _array.flags.writeable = False  # what is taken for out= is refused
# what a function is tried with: argument lists
CALLS = """
x ; 1.1 + x ; x - 0.5 ; z ; u ; e ; m ; c ; s
x, y ; x - 0.5, y ; z, w ; x, z ; u, v ; e, u ; m, n ; c, m ; x, u ; m, n[0] ; 1.5, x ; x, 2 ; x, 2.5 ; z, 2
x, axis=0 ; x, axis=1, keepdims=True ; z, axis=0 ; s, axis=(0, 2) ; x, axis=-1 ; s, 1 ; x, ddof=1
u, 1 ; x, 1 ; x, 1, 0 ; x, 0, 1 ; x, 1, axis=1 ; s, (0, 2), (1, 0) ; x, (2, 6) ; x, (1, 3, 4) ; u, (3, 4)
x, i[:3] ; x, i[:3, None], 1 ; x, i[:3], axis=1 ; u, i ; x, 0.3 ; x, 0.3, axis=1 ; x, 30.0
x, [0.2, 0.7], axis=0
[x, y] ; [x, y], axis=1 ; [x, y], 1 ; [u, v] ; [[x, y], [y, x]] ; x, 2, axis=1 ; x, [1, 2], axis=0
x, [1, 2], 1
mask, x, y ; [mask, ~mask], [x, y] ; i[:3] % 2, [u[:3], v[:3]] ; mask, x ; x, mask ; u > 0.5, u
x, 0.3, 0.6 ; x, y - 0.2, y + 0.1 ; x, u, None ; u, v, u[:3] ; v, [0.1, 0.4, 0.8], u[:3] ; u[::-1], v
"ij,jk->ik", m, n ; "ij,ij->j", x, y ; "ii", m ; "ij->ji", z ; "i,j->ij", u, v ; "ij,jk", c, m
m, 3 ; m, -2 ; x, ((1, 0), (0, 2)) ; x, 1, mode="edge" ; x, 1, "reflect" ; u, 2, mode="wrap" ; x, "fro"
x, 1 ; x, "nuc"
m, u[:3] ; c, e[:3] ; m @ m.T, n ; m @ m.T ; c @ np.conj(c).T ; x, y, axes=1 ; x, y.T, axes=1
u, v, "same" ; u, v[:2], "full"
u, v[:2], mode="valid" ; e, e[:2] ; u, 2, 3 ; 0.2, x, y ; x, y, x + y ; x + 1.0, y + 1.0, x
x, y + 2.0, 0.3 * x
x[0], x[1], 5 ; u, u > 0.5 ; x, [1, 2] ; x, 5 ; x, i[:3], y[:3] ; x, 1, y[1] ; m, n, lower=True
m, n, trans=1 ; x, None
u, 1.5, 0.3 ; u, 1, 2 ; x[None], 0 ; x[:, None], 1 ; s, 2, 0 ; s, (2, 0, 1) ; x, y[:, 0] ; u, n=6 ; u, 3
z, axis=0, n=2
2, x ; 1, x + 1.0 ; i, u ; i + 1.0, u ; x, i ; i[:3], m[:, 0] + 1.5 ; x, 4 - i ; m, b=n
"""
# Calls of these may be refused: NotDifferentiableError, and why.
REFUSED = {
    **dict.fromkeys(("numpy.histogram", "numpy.histogram2d"), "edges of bins; counts have no derivative"),
    **dict.fromkeys(
        ("numpy.nanmedian", "numpy.nanquantile", "numpy.nanpercentile"), "NumPy's routine is called"
    ),
    **dict.fromkeys(
        ("numpy.around", "numpy.round", "numpy.nan_to_num", "numpy.nanmax"), "of complex numbers"
    ),
    **dict.fromkeys(("numpy.nanmin", "numpy.corrcoef"), "of complex numbers"),
    **dict.fromkeys(("numpy.percentile", "numpy.quantile", "numpy.roll"), "positions that are data"),
    "numpy.frexp": "it takes a number of the format apart",
    "numpy.block": "of one list of matrices",
    "numpy.delete": "positions that are data",
    "scipy.linalg.circulant": "of a stack",
    **dict.fromkeys(("comb", "factorial", "gammaincc", "gammainc", "betainc", "owens_t"), "no rule"),
    **dict.fromkeys(
        ("sici", "wofz", "gammasgn", "erfcx", "gamma", "xlogy", "xlog1py"), "no rule, or not of complex"
    ),
}
# Their gradients may differ.
DIFFERENT = {
    "numpy.sign": "of complex numbers: z / |z| turns with z, and is a constant in JAX",
    "scipy.special.spence": "JAX has NaN above 1",
}
# some that the default suite compares, too
QUICK = (
    "numpy.add",
    "numpy.arctan2",
    "numpy.cumprod",
    "numpy.linalg.solve",
    "numpy.median",
    "numpy.fft.rfft",
)


def names() -> Iterator[tuple[str, str]]:
    frontend = NumpyFrontend()
    for ours, theirs in MODULES.items():
        library, other = importlib.import_module(ours), importlib.import_module(theirs)
        for name in sorted(vars(library)):
            made = getattr(library, name)
            if name.startswith("_") or isinstance(made, type) or not callable(made):
                continue
            if not callable(getattr(other, name, None)):
                continue
            if ours.startswith("scipy") or frontend.find_function(made) is not None:
                yield f"{ours}.{name}", f"{theirs}.{name}"


def differences(ours: str, theirs: str, most: int = 6) -> Iterator[str]:
    """What :func:`compare` says of calls of a function: of few of a kind, which a line of ``CALLS`` is."""
    made = 0
    for line in CALLS.strip().splitlines():
        kind = 0
        for call in line.split(";"):
            if kind < 2 and made < most:
                found = compare(ours, theirs, call.strip())
                if found is not None:
                    kind, made = kind + 1, made + 1
                    yield found


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def function(path: str, call: str, used: list[str], tools: Any) -> Any:
    """``run(*arrays)``: the call as a function of its arrays."""
    module, _, name = path.rpartition(".")
    space = {"f": getattr(importlib.import_module(module), name), "np": tools, **LITERAL}
    text = f"def run({', '.join(used)}):\n    return f({call})\n"
    exec(compile(text, f"<{path}({call})>", "exec"), space)
    return space["run"]


def loss(run: Any, tools: Any, weights: list[Any]) -> Any:
    """A number made of all floating-point results, real and imaginary parts alike."""

    def total(*args: Any) -> Any:
        found = 0.0
        for weight, leaf in zip(weights, leaves(run(*args))):
            if weight is not None:
                found = found + tools.sum(tools.real(leaf * weight)) + tools.sum(tools.abs(leaf) ** 2 * 0.3)
        return found

    return total


def same(a: Any, b: Any, tolerance: float = 1e-7) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def compare(ours: str, theirs: str, call: str) -> str | None:
    """What differs; ``None`` where not both take the call, or give no floating-point numbers."""
    used = [name for name in ARRAYS if _uses(call, name)]
    args = [ARRAYS[name] for name in used]
    run, other = function(ours, call, used, np), function(theirs, call, used, jax.numpy)
    with np.errstate(all="ignore"):
        try:
            expected = leaves(run(*args))
        except Exception:
            return None
        kinds = [np.asarray(leaf).dtype.kind for leaf in expected]
        if not all(np.isfinite(leaf).all() for leaf, kind in zip(expected, kinds) if kind in "fc"):
            return None
        if not used or not set(kinds) & set("fc") or not set(kinds) <= set("fcbiu"):
            return None
        weights = [
            numbers(*np.shape(leaf)) * (1.0 if kind == "f" else 1.0 - 0.5j) if kind in "fc" else None
            for leaf, kind in zip(expected, kinds)
        ]
        by = tuple(range(len(args)))

        def theirs_of(*args: Any) -> Any:
            return loss(other, jax.numpy, weights)(*args), leaves(other(*args))

        try:
            both = jax.jit(jax.value_and_grad(theirs_of, argnums=by, has_aux=True))
            (_, given), gradients = both(*map(jax.numpy.asarray, args))
        except Exception:
            return None
        if len(expected) != len(given) or not all(map(same, expected, given)):
            return None
        conjugates = [np.conj(g) for g in gradients]
        tangents = [numbers(*a.shape) * (1.0 if a.dtype.kind == "f" else 0.5 + 1j) for a in args]
        number = loss(run, np, weights)
        try:
            found = dyncomp.grad(number, argnums=by)(*args)
            _, pushed = dyncomp.jvp(number, tuple(args), tuple(tangents))
        except dyncomp.NotDifferentiableError as error:
            return "" if is_in(ours, REFUSED) else f"{call}: {str(error).splitlines()[0]}"
        for name, mine, his in zip(used, found, conjugates):
            if not same(mine, his):
                return "" if is_in(ours, DIFFERENT) else f"{call}: by {name}: {mine} and JAX {his}"
        product = sum(np.vdot(g, t).real for g, t in zip(conjugates, tangents))
        if not same(pushed, product) and not is_in(ours, DIFFERENT):
            return f"{call}: tangent {pushed} and JAX {product}"
    return ""


def is_in(path: str, table: dict[str, str]) -> bool:
    return path in table or path.rpartition(".")[2] in table


def _uses(call: str, name: str) -> bool:
    return re.search(rf"(?<![\w.\"]){name}(?![\w\"(=])", re.sub(r'"[^"]*"', "", call)) is not None


def parameters() -> list[Any]:
    return [
        pytest.param(ours, theirs, id=ours, marks=() if ours in QUICK else (pytest.mark.slow,))
        for ours, theirs in names()
    ]


@pytest.fixture(autouse=True)
def in_double_precision():
    jax.config.update("jax_enable_x64", True)
    yield
    dyncomp.reset()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ours, theirs", parameters())
def test_gradients(ours: str, theirs: str) -> None:
    assert [found for found in differences(ours, theirs) if found] == []
