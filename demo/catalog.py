"""What the demo runs: the programs of ``demo.programs`` and functions of installed packages."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .data import photograph


@dataclass(frozen=True)
class Program:
    """A function, where it comes from, and how near its results must be to NumPy's.

    ``make_inputs(quick)`` returns the arguments. ``rtol``: largest allowed difference of an array of
    floats, relative to its largest magnitude; 0 means the same bits up to the sign of zero. ``differing``:
    fraction of the entries of an integer or bool array that may differ (only where a rounding error is
    amplified without bound, and said why). ``differentiated``: what dyncomp runs is the value and gradient
    of this function by its first argument, which ``function`` gives by hand.
    """

    name: str
    module: str
    function: str
    make_inputs: Callable[[bool], tuple[Any, ...]]
    rtol: float = 1e-12
    differing: float = 0.0
    package: str = ""
    differentiated: str = ""

    @property
    def origin(self) -> str:
        """``demo``, or the package with its version."""
        if not self.package:
            return "demo"
        return f"{self.package} {importlib.metadata.version(self.package)}"

    def load(self) -> Callable[..., Any]:
        """The function itself."""
        return self._named(self.function)

    def compiled_from(self) -> Callable[..., Any]:
        """What dyncomp compiles: the function, or value and gradient of another."""
        if not self.differentiated:
            return self.load()
        import dyncomp

        return dyncomp.value_and_grad(self._named(self.differentiated))

    def _named(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(importlib.import_module(self.module), name)
        return found


def _own(
    name: str,
    function: str,
    rtol: float = 1e-12,
    differing: float = 0.0,
    inputs: str = "make_inputs",
    title: str = "",
    differentiated: str = "",
) -> Program:
    module = f"demo.programs.{name}"

    def make_inputs(quick: bool) -> tuple[Any, ...]:
        made: tuple[Any, ...] = getattr(importlib.import_module(module), inputs)(quick)
        return made

    return Program(
        title or name, module, function, make_inputs, rtol, differing, differentiated=differentiated
    )


PROGRAMS: tuple[Program, ...] = (
    _own("kmeans", "kmeans"),
    _own("pca", "pca", rtol=1e-10),
    _own("black_scholes", "black_scholes"),
    _own("nbody", "nbody", rtol=1e-10),
    _own("shallow_water", "shallow_water", rtol=1e-10),
    _own("heat", "heat", rtol=1e-11),
    _own("image_filters", "filter_chain"),
    # points on the boundary of the set amplify the last bit at each step
    _own("mandelbrot", "mandelbrot", differing=1e-3),
    _own("julia", "julia", differing=1e-3),
    _own("softmax_regression", "score", inputs="make_score_inputs", title="softmax_score"),
    _own("softmax_regression", "train", rtol=1e-10, title="softmax_train"),
    _own("lotka_volterra", "integrate", rtol=1e-11),
    _own("ising", "ising"),
    _own("fft_lowpass", "butterworth_lowpass"),
    _own("fdtd", "fdtd", rtol=1e-11),
    _own("red_black", "solve_poisson", rtol=1e-11),
    # the variance is a difference of running sums
    _own("moving_statistics", "bollinger", rtol=1e-6),
    _own("kalman", "kalman", rtol=1e-9),
    _own("haversine", "haversine"),
    _own("life", "life"),
    _own(
        "digits_network",
        "convolutional_by_hand",
        rtol=1e-10,
        title="cnn_gradient",
        differentiated="convolutional_loss",
    ),
)


def _square(quick: bool) -> np.ndarray:
    n = 60 if quick else 1000
    return np.random.default_rng(61).standard_normal((n, n))


def _vector(quick: bool) -> tuple[Any, ...]:
    return (_square(quick).reshape(-1),)


def _matrix(quick: bool) -> tuple[Any, ...]:
    return (_square(quick),)


def _rows(quick: bool) -> tuple[Any, ...]:
    return _square(quick), 1


def _picture(quick: bool) -> tuple[Any, ...]:
    return (photograph(quick),)


def _two_pictures(quick: bool) -> tuple[Any, ...]:
    image = photograph(quick)
    noise = np.random.default_rng(62).integers(-20, 21, image.shape)
    return image, np.clip(image + noise, 0, 255).astype(np.uint8)


def _sweep(quick: bool) -> tuple[Any, ...]:
    return np.linspace(0.0, 10.0, 4_000 if quick else 1_000_000), 1.0, 10.0, 50.0


def _series(quick: bool) -> tuple[Any, ...]:
    coefficients = np.array([1.0, -0.5, 0.25, 0.125, -0.3, 0.7, 0.01, -0.2])
    return np.linspace(-1.0, 1.0, 4_000 if quick else 1_000_000), coefficients


LIBRARY: tuple[Program, ...] = (
    Program("rosen", "scipy.optimize", "rosen", _vector, package="scipy"),
    Program("rosen_der", "scipy.optimize", "rosen_der", _vector, package="scipy"),
    Program("simpson", "scipy.integrate", "simpson", _matrix, package="scipy"),
    Program("chirp", "scipy.signal", "chirp", _sweep, package="scipy"),
    Program("logsumexp", "scipy.special", "logsumexp", _rows, package="scipy"),
    Program("zscore", "scipy.stats", "zscore", _matrix, package="scipy"),
    Program("chebval", "numpy.polynomial.chebyshev", "chebval", _series, package="numpy"),
    Program("rgb2hsv", "skimage.color", "rgb2hsv", _picture, package="scikit-image"),
    Program("rgb2lab", "skimage.color", "rgb2lab", _picture, package="scikit-image"),
    Program("peak_snr", "skimage.metrics", "peak_signal_noise_ratio", _two_pictures, package="scikit-image"),
    Program("adjust_sigmoid", "skimage.exposure", "adjust_sigmoid", _picture, package="scikit-image"),
    Program("sklearn_softmax", "sklearn.utils.extmath", "softmax", _matrix, package="scikit-learn"),
)


def installed(program: Program) -> bool:
    """Whether the packages that the program and its inputs come from are there."""
    root = program.module.partition(".")[0]
    pictures = ("fft_lowpass", "image_filters", "rgb2hsv", "rgb2lab", "peak_snr", "adjust_sigmoid")
    needed = [root] + (["skimage"] if program.name in pictures else [])
    return all(importlib.util.find_spec(name) is not None for name in needed)


def select(names: list[str]) -> list[Program]:
    """The programs named, in the order of the catalogue; all of them for no names.

    Raises ``KeyError`` for a name that is not known.
    """
    everything = [*PROGRAMS, *LIBRARY]
    unknown = set(names) - {program.name for program in everything}
    if unknown:
        raise KeyError(f"no such program: {', '.join(sorted(unknown))}")
    return [program for program in everything if not names or program.name in names]
