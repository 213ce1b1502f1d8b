"""``python -m bench.capture``: what capturing costs, on functions of public packages. Prints a table.

Times are processor times of the thread in whole captures with the interpreting backend: symbolic execution,
guards, the replacement and its continuations. Instructions are those of the traces that were kept; those
executed symbolically are these and those of attempts that were begun again (restarts). The last column is ms
per entry with the inductor: all that it does but the work of the C++ compiler, which is another process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Cost:
    """Of all captures of one call: how many entries, breaks and instructions, and the seconds they took."""

    entries: int
    breaks: int
    restarts: int
    instructions: int
    executed: int
    seconds: float


def measure(program: Callable[[], Any], backend: str) -> Cost:
    """Compile a function anew and call it once."""
    dyncomp.reset()
    compiled = dyncomp.compile(program, backend=backend)
    capture = compiled.config.on_miss
    seconds = 0.0

    def timed(*args: Any) -> Any:
        nonlocal seconds
        start = time.thread_time()
        try:
            return capture(*args)
        finally:
            seconds += time.thread_time() - start

    compiled.config.on_miss = timed
    compiled()
    entries = compiled.config.records.entries
    breaks = sum(len(entry.breaks) for entry in entries)
    restarts = sum(entry.restarts for entry in entries)
    kept, executed = (sum(getattr(e, name) for e in entries) for name in ("instructions", "executed"))
    return Cost(len(entries), breaks, restarts, kept, executed, seconds)


def least(program: Callable[[], Any], backend: str, times: int) -> Cost:
    return min((measure(program, backend) for _ in range(times)), key=lambda cost: cost.seconds)


def main() -> int:
    print(
        f"{'program':<28} {'entries':>7} {'breaks':>6} {'restarts':>8} {'kept':>6} "
        f"{'executed':>8} {'ms':>8} {'µs/kept':>8} {'µs/exec.':>8} {'ms/entry':>8} {'inductor':>8}"
    )
    for name, program in programs().items():
        program()
        cost, compiling = least(program, "eager", 5), least(program, "inductor", 3)
        per_kept, per_executed = (1e6 * cost.seconds / max(n, 1) for n in (cost.instructions, cost.executed))
        per_entry, with_inductor = (1e3 * c.seconds / max(c.entries, 1) for c in (cost, compiling))
        row = (
            f"{name:<28} {cost.entries:>7} {cost.breaks:>6} {cost.restarts:>8} {cost.instructions:>6} "
            f"{cost.executed:>8} {1e3 * cost.seconds:>8.1f} {per_kept:>8.1f} {per_executed:>8.1f}"
        )
        print(f"{row} {per_entry:>8.2f} {with_inductor:>8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
