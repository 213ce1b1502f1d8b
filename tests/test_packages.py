"""Functions of installed public packages, compiled as they are imported, give what plain Python gives.

They were written by others and not for a compiler: validation layers, array-API shims, warnings blocks,
classes, generators. Skipped where a package is missing.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import dyncomp
from tests.packages.examples import body_of, compare, compare_module, function_of

RNG = np.random.default_rng(0)
VECTOR, OTHER = RNG.random(300), RNG.random(300)
TABLE, IMAGE, COLOUR = RNG.random((50, 4)), RNG.random((32, 24)), RNG.random((24, 16, 3))
LABELS = (TABLE[:, 0] > 0.5).astype(int)

CASES: list[tuple[str, str, tuple[Any, ...]]] = [
    ("scipy.optimize", "rosen", (VECTOR,)),
    ("scipy.optimize", "rosen_der", (VECTOR,)),
    ("scipy.optimize", "rosen_hess", (VECTOR[:20],)),
    ("scipy.optimize", "rosen_hess_prod", (VECTOR, OTHER)),
    ("scipy.signal.windows", "hann", (64,)),
    ("scipy.signal.windows", "tukey", (64,)),
    ("scipy.signal.windows", "kaiser", (64, 8.0)),
    ("scipy.signal", "detrend", (VECTOR,)),
    ("scipy.signal", "hilbert", (VECTOR,)),
    ("scipy.signal", "gausspulse", (VECTOR,)),
    ("scipy.signal", "chirp", (VECTOR, 1.0, 2.0, 3.0)),
    ("scipy.signal", "sawtooth", (VECTOR,)),
    ("scipy.stats", "zscore", (VECTOR,)),
    ("scipy.stats", "gmean", (VECTOR,)),
    ("scipy.stats", "skew", (VECTOR,)),
    ("scipy.stats", "pearsonr", (VECTOR, OTHER)),
    ("scipy.stats", "circmean", (VECTOR,)),
    ("scipy.spatial.distance", "cosine", (VECTOR, OTHER)),
    ("scipy.spatial.distance", "canberra", (VECTOR, OTHER)),
    ("scipy.spatial.distance", "minkowski", (VECTOR, OTHER, 3)),
    ("scipy.linalg", "toeplitz", (VECTOR[:12],)),
    ("scipy.linalg", "circulant", (VECTOR[:12],)),
    ("scipy.integrate", "simpson", (VECTOR,)),
    ("scipy.integrate", "cumulative_trapezoid", (VECTOR,)),
    ("skimage.color", "rgb2gray", (COLOUR,)),
    ("skimage.color", "rgb2hsv", (COLOUR,)),
    ("skimage.color", "hsv2rgb", (COLOUR,)),
    ("skimage.color", "rgb2lab", (COLOUR,)),
    ("skimage.color", "deltaE_cie76", (COLOUR, COLOUR[::-1])),
    ("skimage.metrics", "mean_squared_error", (IMAGE, IMAGE[::-1])),
    ("skimage.metrics", "peak_signal_noise_ratio", (IMAGE, IMAGE[::-1])),
    ("skimage.exposure", "adjust_gamma", (IMAGE, 2.0)),
    ("skimage.exposure", "rescale_intensity", (IMAGE,)),
    ("skimage.filters", "threshold_otsu", (IMAGE,)),
    ("skimage.filters", "frangi", (IMAGE,)),
    ("skimage.transform", "resize", (IMAGE, (16, 16))),
    ("sklearn.metrics", "mean_squared_error", (VECTOR, OTHER)),
    ("sklearn.metrics", "r2_score", (VECTOR, OTHER)),
    ("sklearn.metrics", "log_loss", (LABELS, TABLE[:, 1])),
    ("sklearn.metrics.pairwise", "rbf_kernel", (TABLE,)),
    ("sklearn.preprocessing", "scale", (TABLE,)),
    ("numpy.polynomial.chebyshev", "chebval", (VECTOR, [1.0, 2.0, 3.0])),
    ("numpy.polynomial.legendre", "legval", (VECTOR, [1.0, 2.0, 3.0])),
]


def equal(expected: Any, found: Any) -> bool:
    if type(expected) is not type(found):
        return False
    if isinstance(expected, np.ndarray):
        same = expected.dtype == found.dtype and expected.shape == found.shape
        return same and np.allclose(expected, found, rtol=1e-9, atol=1e-12, equal_nan=True)
    if isinstance(expected, tuple | list):
        return len(expected) == len(found) and all(map(equal, expected, found))
    if isinstance(expected, float | np.floating):
        return bool(np.allclose(expected, found, rtol=1e-9, equal_nan=True))
    return str(expected) == str(found)


@pytest.mark.parametrize("module, name, args", CASES, ids=[f"{m}.{n}" for m, n, _ in CASES])
@pytest.mark.filterwarnings("ignore")
def test_package_function(module: str, name: str, args: tuple[Any, ...]) -> None:
    function = getattr(pytest.importorskip(module), name)
    before = dyncomp.stats()["internal_errors"]
    expected = function(*copy.deepcopy(args))
    compiled = dyncomp.compile(function, backend="eager")
    for _ in range(2):
        assert equal(expected, compiled(*copy.deepcopy(args)))
    assert dyncomp.stats()["internal_errors"] == before


def _fit(estimator: Any, *data: Any) -> Any:
    return estimator.fit(*data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_whole_algorithms(backend: str) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    integrate = pytest.importorskip("scipy.integrate")
    decomposition = pytest.importorskip("sklearn.decomposition")
    linear = pytest.importorskip("sklearn.linear_model")
    runs = [
        lambda: optimize.minimize(optimize.rosen, np.zeros(4), method="BFGS").x,
        lambda: optimize.curve_fit(lambda x, a, b: a * np.exp(-b * x), VECTOR, 2 * np.exp(-3 * VECTOR))[0],
        lambda: integrate.solve_ivp(lambda t, y: -y * np.array([1.0, 2.0]), (0, 1), np.ones(2)).y,
        lambda: abs(decomposition.PCA(2).fit_transform(TABLE)),
        lambda: _fit(linear.LogisticRegression(), TABLE, LABELS).coef_,
    ]
    for run in runs:
        expected = run()
        compiled = dyncomp.compile(run, backend=backend)
        assert np.allclose(expected, compiled(), rtol=1e-4)
        assert np.allclose(expected, compiled(), rtol=1e-4)


# -- the examples of documentation ----------------------------------------------------------------
@pytest.mark.parametrize(("module", "step"), [("numpy", 30), ("numpy.ma", 20), ("numpy.linalg", 4)])
def test_examples_of_docstrings(module, step):
    report = compare_module(module, step=step)
    assert report.compared >= 5
    assert not report.found


def test_examples_become_functions():
    text = """Twice.

    >>> a = np.arange(3)
    >>> a * 2
    array([0, 2, 4])
    >>> for i in range(2):
    ...     a += i
    """
    body = body_of(text)
    assert body == "a = np.arange(3)\nvalue1 = (a * 2)\nfor i in range(2):\n    a += i"
    result = function_of("twice", body, "numpy")()
    assert result["a"].tolist() == [1, 2, 3] and result["value1"].tolist() == [0, 2, 4]
    assert body_of("no examples") is None
    assert body_of(">>> def") is None
    assert body_of(">>> plt.plot(x)") is None


def test_differences_in_examples_are_found():
    calls = []

    def changes_its_mind():
        calls.append(None)
        return {"a": len(calls) > 2}

    def never_the_same():
        calls.append(None)
        return {"a": len(calls)}

    assert compare(changes_its_mind, "eager")
    assert compare(never_the_same, "eager") is None
