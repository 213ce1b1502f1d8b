"""``python -m bench.capture``: what capturing costs, on functions of public packages. Prints a table.

Seconds are those of whole captures with the interpreting backend: symbolic execution, guards, the replacement
and its continuations; instructions are those of the trace that was kept (attempts that were begun again cost
time and do not count).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dyncomp


def _rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


def _chain(x: Any) -> Any:
    for _ in range(8):
        x = np.sin(x) * 0.5 + x
        x = np.where(x > 0, x, -x)
    return x


def programs() -> dict[str, Callable[[], Any]]:
    """What is captured: each is one call of a public function."""
    import scipy.integrate
    import scipy.optimize
    import scipy.signal
    import scipy.stats
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    table, signal = rng.normal(size=(50, 5)), rng.normal(size=500)
    return {
        "a chain of ufuncs": lambda: _chain(signal),
        "scipy.stats.zscore": lambda: scipy.stats.zscore(table),
        "scipy.signal.savgol_filter": lambda: scipy.signal.savgol_filter(signal, 7, 2),
        "scipy.signal.welch": lambda: scipy.signal.welch(signal, nperseg=64),
        "scipy.integrate.solve_ivp": lambda: scipy.integrate.solve_ivp(lambda t, y: -y, (0, 1), np.ones(3)),
        "scipy.optimize.minimize": lambda: scipy.optimize.minimize(_rosenbrock, np.zeros(3), method="BFGS"),
        "sklearn StandardScaler": lambda: StandardScaler().fit_transform(table),
        "sklearn PCA": lambda: PCA(2).fit(table).transform(table),
    }


def measure(program: Callable[[], Any]) -> tuple[int, int, int, float, float]:
    """Entries, breaks, instructions, seconds of capture and seconds of the first call."""
    dyncomp.reset()
    compiled = dyncomp.compile(program, backend="eager")
    start = time.perf_counter()
    compiled()
    total = time.perf_counter() - start
    entries = compiled.config.records.entries
    instructions = sum(entry.instructions for entry in entries)
    breaks = sum(len(entry.breaks) for entry in entries)
    return len(entries), breaks, instructions, sum(entry.seconds for entry in entries), total


def main() -> int:
    print(
        f"{'program':<28} {'entries':>7} {'breaks':>6} {'instr.':>6} "
        f"{'ms':>8} {'µs/instr.':>9} {'ms/entry':>8}"
    )
    for name, program in programs().items():
        program()
        entries, breaks, instructions, seconds, _ = min(
            (measure(program) for _ in range(3)), key=lambda m: m[3]
        )
        each = 1e6 * seconds / max(instructions, 1)
        per_entry = 1e3 * seconds / max(entries, 1)
        row = f"{name:<28} {entries:>7} {breaks:>6} {instructions:>6} {1e3 * seconds:>8.1f}"
        print(f"{row} {each:>9.1f} {per_entry:>8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
