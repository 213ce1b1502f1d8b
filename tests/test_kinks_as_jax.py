"""Gradients at kinks, ties and ends of domains, beside JAX's: they agree, but for what ``DIFFERENT`` says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyncomp

jax = pytest.importorskip("jax")
special = pytest.importorskip("scipy.special")

INF, NAN = np.inf, np.nan
TIES = np.array([1.0, 3.0, 3.0, 0.0, 0.0, -1.0])
OTHER = np.array([1.0, 2.0, 3.0, 0.0, -0.0, -1.0])
ENDS = np.array([0.0, 0.0, 1.0, 2.0, 0.5, 0.0])
POWERS = np.array([0.0, 1.0, 0.0, 2.0, 0.0, 2.0])
SIDES = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
NONE = np.zeros(6)
W = np.arange(1.0, 7.0)

# expressions with ``x`` (and ``y``), their values
CASES: dict[str, tuple[Any, ...]] = {
    "np.sign(x)": (TIES,),
    "np.maximum(x, y)": (TIES, OTHER),
    "np.minimum(x, y)": (TIES, OTHER),
    "np.max(x)": (TIES,),
    "np.min(-x)": (TIES,),
    "np.max(x.reshape(2, 3), axis=0)": (TIES,),
    "np.ptp(x)": (TIES,),
    "np.nanmax(x)": (TIES,),
    "np.clip(x, 0.0, 3.0)": (TIES,),
    "np.clip(x, y, 3.0)": (TIES, OTHER),
    "np.maximum(x, 0)": (TIES,),
    "np.where(x > 0, x, 0.1 * x)": (TIES,),
    "np.select([x > 0, x < 0], [x, -x])": (TIES,),
    "x[np.argmax(x)]": (TIES,),
    "np.median(x)": (TIES,),
    "np.quantile(x, 0.3)": (TIES,),
    "np.prod(x)": (TIES,),
    "np.cumprod(x) * W": (TIES,),
    "np.sqrt(x)": (ENDS,),
    "x**0.5": (ENDS,),
    "x**1.0": (TIES,),
    "x**2": (TIES,),
    "x**3": (TIES,),
    "np.arctan2(x, y)": (ENDS, SIDES),
    "np.linalg.norm(x)": (NONE,),
    "np.linalg.norm(x, np.inf)": (TIES,),
    "np.std(x)": (NONE + 1.0,),
    "np.var(x)": (NONE + 1.0,),
    "np.sinc(x)": (TIES,),
    "np.floor(x) + np.round(x) + np.trunc(x)": (TIES,),
    "np.mod(x, y)": (TIES, OTHER + 5.0),
    "x // y": (TIES, OTHER + 5.0),
    "np.fmod(x, y)": (TIES, OTHER + 5.0),
    "np.heaviside(x, y)": (TIES, OTHER),
    "np.interp(x, np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 1.0]))": (TIES,),
    "np.abs(x + 1j * y)": (ENDS, NONE),
    "np.angle(x + 1j * y) * np.abs(x)": (ENDS + 1.0, NONE),
    "np.arcsin(x)": (SIDES * 2.0 - 1.0,),
    "np.arccosh(x)": (NONE + 1.0,),
    "np.cbrt(x)": (TIES,),
    "np.i0(x)": (TIES,),
    "np.nan_to_num(x)": (np.array([NAN, 1.0, 2.0, INF, -INF, 0.0]),),
    "np.nansum(x)": (np.array([NAN, 1.0, 2.0, 3.0, 3.0, 0.0]),),
    "special.logsumexp(x)": (TIES,),
    "special.entr(x)": (ENDS,),
    "special.i0e(x) + special.i1e(x)": (TIES,),
    "special.gammaln(x)": (ENDS + 1.0,),
    "special.expit(x)": (TIES * 1000.0,),
    "special.log_softmax(x)": (TIES * 1000.0,),
}
# expression: values, our gradients, JAX's, and why
DIFFERENT: dict[str, tuple[Any, ...]] = {
    # 0 at 0, as PyTorch's and as of abs of a complex number; JAX has the slope from above
    "np.abs(x)": ((TIES,), ([1, 1, 1, 0, 0, -1],), ([1, 1, 1, 1, 1, -1],)),
    "np.linalg.norm(x, 1)": ((TIES,), ([1, 1, 1, 0, 0, -1],), ([1, 1, 1, 1, 1, -1],)),
    "np.copysign(x, y)": ((TIES, OTHER), ([1, 1, 1, 0, 0, 1], NONE), ([1, 1, 1, 1, -1, 1], NONE)),
    # 0 at the origin, as abs of a complex number has it
    "np.hypot(x, y)": (
        (ENDS, SIDES),
        ([0, 0, 1, 1, 1, 0], [0, 1, 0, 0, 0, 0]),
        ([0.5, 0, 1, 1, 1, 0.5], [0.5, 1, 0, 0, 0, 0.5]),
    ),
    # shares among equals, as maximum; JAX takes the second
    "np.fmax(x, y)": (
        (TIES, OTHER),
        ([0.5, 1, 0.5, 0.5, 0.5, 0.5], [0.5, 0, 0.5, 0.5, 0.5, 0.5]),
        ([0, 1, 0, 0, 0, 0], [1, 0, 1, 1, 1, 1]),
    ),
    # of a running maximum the last of equals has all of it, as PyTorch's; JAX shares
    "np.maximum.accumulate(x) * W": ((TIES,), ([1, 2, 18, 0, 0, 0],), ([1, 11, 9, 0, 0, 0],)),
    # a constant: 1 everywhere
    "x**0.0": ((TIES,), (NONE,), ([0, 0, 0, NAN, NAN, 0],)),
    "np.power(x, y)": (
        (ENDS, POWERS),
        ([0, 1, 0, 4, 0, 0], [0, 0, 0, 4 * np.log(2), -np.log(2), 0]),
        ([NAN, 1, 0, 4, 0, 0], [0, 0, 0, 4 * np.log(2), -np.log(2), 0]),
    ),
    # no NaN of equal infinities, nor of 0/0 where x is 0
    "np.logaddexp(x, y)": (
        (np.array([-INF, 1.0, 0.0]), np.array([-INF, -INF, 0.0])),
        ([1, 1, 0.5], [1, 0, 0.5]),
        ([NAN, 1, 0.5], [NAN, 0, 0.5]),
    ),
    "special.xlogy(x, y)": (
        (np.array([0.0, 0.0, 2.0]), np.array([1.0, 0.0, 1.0])),
        ([0, -INF, 0], [0, 0, 2]),
        ([0, -INF, 0], [0, NAN, 2]),
    ),
    # the slope is infinite; JAX has that of the value for x < 0
    "special.rel_entr(x, y)": (
        (np.array([0.0, 1.0]), np.array([0.5, 1.0])),
        ([-INF, 1], [0, -1]),
        ([0, 1], [0, -1]),
    ),
    # z / |z| turns with z; JAX takes it as a constant, as that of real numbers
    "np.sign(x + 1j * y)": (
        (np.array([1.0, 0.0]), np.array([0.0, 2.0])),
        ([0, 0.5], [-0.5 * 2, 0]),
        ([0, 0], [0, 0]),
    ),
}


def both(expression: str, values: tuple[Any, ...]) -> tuple[Any, Any]:
    jax.config.update("jax_enable_x64", True)
    names = ", ".join("xy"[: len(values)])
    text = f"lambda {names}: np.sum(np.real(({expression}) * (1.0 + 1.0j)))"
    f = eval(text, {"np": np, "special": special, "W": W})
    g = eval(text, {"np": jax.numpy, "special": jax.scipy.special, "W": W})
    by = tuple(range(len(values)))
    with np.errstate(all="ignore"):
        ours = dyncomp.grad(f, argnums=by)(*values)
    return ours, jax.grad(g, argnums=by)(*map(jax.numpy.asarray, values))


@pytest.mark.parametrize("expression", CASES)
def test_same(expression):
    ours, theirs = both(expression, CASES[expression])
    for mine, his in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, his, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("expression", DIFFERENT)
def test_different(expression):
    values, ours, theirs = DIFFERENT[expression]
    for found, wanted in zip(both(expression, values), (ours, theirs), strict=True):
        for mine, expected in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-12, atol=1e-12)
