"""Recompute the polynomials of the C++ math helpers (``dyncomp/inductor/render/cpp/csrc/math_*.h``).

``python tools/fit_math.py`` compares every ``POLY`` with its fit and fails if one differs;
``python tools/fit_math.py --write [SECTION…]`` puts the fits into the files. Needs mpmath.

A fit is the interpolation at Chebyshev nodes in 110-digit arithmetic, within a small factor of the best
polynomial (L. N. Trefethen, "Approximation Theory and Approximation Practice", ch. 4), each coefficient
rounded once; with a weight it has the least squares of weighted errors at many such nodes. Sections whose
polynomial is another's without its first coefficients name that one. A ``POLY_IF`` has two fits.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

mp.dps = 110
HEADERS = Path(__file__).resolve().parent.parent / "dyncomp" / "inductor" / "render" / "cpp" / "csrc"
_POLY = re.compile(r"POLY\((\w+), (\w+),([^;]*)\);")
_POLY_IF = re.compile(r"POLY_IF\((\w+), (\w+), (\w+),([^;]*)\);")
_NODES = 60
_SAMPLES = 200
_ERFC_CENTRE = mpf("3.75")


@dataclass(frozen=True)
class Fit:
    """``function`` on [low, high] by ``count`` coefficients; ``skip``: how many the section leaves out;
    ``weight``: what an error at a place counts."""

    section: str
    function: Callable[[Any], Any]
    low: Any
    high: Any
    count: int
    single: bool = False
    skip: int = 0
    weight: Callable[[Any], Any] | None = None


def interpolate(fit: Fit) -> tuple[list[Any], Any]:
    """Coefficients from the constant up, and the largest absolute error at sample points."""
    low, high, n = mpf(fit.low), mpf(fit.high), fit.count
    middle, radius = (low + high) / 2, (high - low) / 2
    count = _NODES if fit.weight else n
    weight = fit.weight or (lambda x: mpf(1))
    nodes = [middle + radius * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    powers = mp.matrix(count, n)
    for i, x in enumerate(nodes):
        for j in range(n):
            powers[i, j] = weight(x) * x**j
    solved = list(mp.lu_solve(powers, mp.matrix([weight(x) * fit.function(x) for x in nodes])))
    places = [low + (high - low) * (i + mpf("0.37")) / _SAMPLES for i in range(_SAMPLES)]
    error = max(weight(x) * abs(mp.polyval(solved[::-1], x) - fit.function(x)) for x in places)
    return solved, error


def spelled(value: Any, single: bool) -> str:
    return mp.nstr(value, 10) + "f" if single else float(value).hex()


# -- the functions ----------------------------------------------------------------------------
def _odd_rest(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """(f(x)/x - 1) / x^2 as a function of z = x^2."""
    return lambda z: (function(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def _exp_tail(r: Any) -> Any:
    if abs(r) < mpf(10) ** -15:
        return mpf(1) / 2 + r / 6 + r * r / 24
    return (mp.exp(r) - 1 - r) / r**2


def _log_tail(z: Any) -> Any:
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / (s * z)


def _log_twice(z: Any) -> Any:
    """The same with t = 2s: (log((2+t)/(2-t)) - t) / t^3 of z = t^2."""
    return _log_tail(z / 4) / 8


def _log_single(f: Any) -> Any:
    return (mp.log(1 + f) - f + f * f / 2) / f**3


def _cos_tail(z: Any) -> Any:
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def _cos_rest(z: Any) -> Any:
    return (mp.cos(mp.sqrt(z)) - 1) / z


def _erfc_log(x: Any) -> Any:
    """-log(erfc(x)) / x - 1."""
    return -mp.log(mp.erfc(x)) / x - 1


def _erf_small(z: Any) -> Any:
    return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1


def _scaled_erfc(centre: Any) -> Callable[[Any], Any]:
    """exp(x^2) erfc(x) of u = (x - centre) / (x + centre)."""

    def function(u: Any) -> Any:
        x = centre * (1 + u) / (1 - u)
        return mp.exp(x * x) * mp.erfc(x)

    return function


def _levelled_erfc(u: Any) -> Any:
    """(1 + 2x) exp(x^2) erfc(x) - 5/4, which stays small (M. M. Shepherd, J. G. Laframboise, 1981)."""
    x = _ERFC_CENTRE * (1 + u) / (1 - u)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x) - mpf(5) / 4


def _turned(x: Any, centre: Any) -> Any:
    return (mpf(x) - centre) / (mpf(x) + centre)


def _inverse_cube_root(m: Any) -> Any:
    return 1 / mp.cbrt(m)


def fits() -> list[Fit]:
    """One fit for each ``POLY`` of the headers; several of one section in the order of its text."""
    half_log2 = mp.log(2) / 2 * mpf("1.001")
    log_square = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.01")
    quarter = (mp.pi / 4) ** 2 * mpf("1.01") ** 2
    eighth = (mp.sqrt(2) - 1) ** 2 * mpf("1.001") ** 2
    erf_centre = mpf("2.5")
    erfc_low, erfc_high = _turned("0.49", _ERFC_CENTRE), _turned("27.3", _ERFC_CENTRE)
    sine, tangent = _odd_rest(mp.sin), _odd_rest(mp.atan)
    return [
        Fit("dc_exp_tail_f64", _exp_tail, -half_log2, half_log2, 10),
        Fit("dc_log_tail_f64", _log_tail, 0, log_square, 8),
        Fit("dc_pow_f64", _log_twice, 0, 4 * log_square, 8, skip=1),
        Fit("dc_sin_kernel_f64", sine, 0, quarter, 7),
        Fit("dc_cos_kernel_f64", _cos_tail, 0, quarter, 7),
        Fit("dc_wave_f64", _cos_tail, 0, quarter, 7),
        Fit("dc_wave_f64", sine, 0, quarter, 7),
        Fit("dc_atan_rest_f64", tangent, 0, eighth, 12),
        Fit("dc_asin_tail_f64", _odd_rest(mp.asin), 0, mpf("0.2505"), 14),
        Fit("dc_sinh_f64", _odd_rest(mp.sinh), 0, 1, 7),
        Fit("dc_tanh_f64", _odd_rest(mp.tanh), 0, mpf("0.31") ** 2, 9),
        Fit("dc_tanh_f64", _exp_tail, -half_log2, half_log2, 10),
        Fit("dc_erf_small_f64", _erf_small, 0, mpf("1.01"), 14),
        Fit("dc_erf_f64", _erf_small, 0, mpf("1.01"), 14),
        Fit("dc_erf_f64", _scaled_erfc(erf_centre), _turned(1, erf_centre), _turned("6.05", erf_centre), 16),
        Fit("dc_erfc_f64", _levelled_erfc, erfc_low, erfc_high, 22),
        Fit("dc_cbrt_f64", _inverse_cube_root, 1, 2, 4),
        Fit("dc_exp_tail_f32", _exp_tail, -half_log2, half_log2, 5, single=True),
        Fit("dc_tanh_f32", _odd_rest(mp.tanh), 0, mpf("0.55") ** 2, 5, single=True),
        Fit("dc_tanh_f32", _exp_tail, -half_log2, half_log2, 5, single=True),
        Fit("dc_exp2_f32", lambda f: mpf(2) ** f, mpf(-1) / 2, mpf(1) / 2, 7, single=True),
        Fit("dc_log_tail_f32", _log_single, mp.sqrt(mpf(0.5)) - 1, mp.sqrt(mpf(2)) - 1, 9, single=True),
        Fit("dc_wave_f32", _cos_rest, 0, quarter, 4, single=True),
        Fit("dc_wave_f32", sine, 0, quarter, 4, single=True),
        Fit("dc_erf_f32", _erf_small, 0, mpf("0.81"), 6, single=True),
        Fit("dc_erf_f32", _erfc_log, mpf("0.9"), 4, 6, single=True, weight=lambda x: x * mp.erfc(x)),
        Fit("dc_cbrt_f32", _inverse_cube_root, 1, 2, 3, single=True),
        Fit("dc_pow_f32", _log_tail, 0, log_square, 4),
        Fit("dc_pow_f32", _exp_tail, -half_log2, half_log2, 5),
    ]


# -- the files --------------------------------------------------------------------------------
def _replaced(text: str, table: dict[str, list[list[str]]]) -> tuple[str, list[str]]:
    """The text with the polynomials of ``table``; and the sections that were different."""
    parts = re.split(r"(?m)^(?=// @ )", text)
    changed = []
    for place, part in enumerate(parts):
        head = re.match(r"// @ (\w+)\n", part)
        if head is None or head[1] not in table:
            continue
        before, wanted = part, iter(table[head[1]])
        part = _POLY.sub(lambda m, w=wanted: f"POLY({m[1]}, {m[2]}, {', '.join(next(w))});", part)
        parts[place] = _POLY_IF.sub(lambda m, w=wanted: _choice(m, next(w), next(w)), part)
        if parts[place] != before:
            changed.append(head[1])
    return "".join(parts), changed


def _choice(match: re.Match[str], one: list[str], other: list[str]) -> str:
    pairs = ", ".join(f"{a} | {b}" for a, b in zip_longest(one, other, fillvalue="0.0"))
    return f"POLY_IF({match[1]}, {match[2]}, {match[3]}, {pairs});"


def main() -> int:
    """Compare or write; the exit status is 1 if a polynomial differs from its fit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the fits into the headers")
    parser.add_argument("sections", nargs="*", help="only these sections")
    options = parser.parse_args()
    table: dict[str, list[list[str]]] = {}
    for fit in fits():
        if options.sections and fit.section not in options.sections:
            continue
        solved, error = interpolate(fit)
        print(f"{fit.section:20} {fit.count:3} coefficients, error {mp.nstr(error, 3)}")
        table.setdefault(fit.section, []).append([spelled(c, fit.single) for c in solved[fit.skip :]])
    different: list[str] = []
    for name in ("math_f64.h", "math_f32.h"):
        path = HEADERS / name
        text, changed = _replaced(path.read_text(), table)
        different += changed
        if options.write:
            path.write_text(text)
    print("different:" if different else "all as fitted", *different)
    return 1 if different and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
