"""Every pass is linear in the size of the program: its work is counted at depths of 2 to 32 layers.

Work is the number of lines of Python that a pass executes (``bench.compile_time.counted``), not time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.compile_time import DEPTHS, PROGRAMS, amounts, counted, exponent
from dyncomp.build.toolchain import Toolchain, find_toolchain
from dyncomp.inductor import compile as inductor
from dyncomp.pipeline import PASSES

MOST = 1.1
# What a doubling of the depth may multiply: a pass that turns quadratic late has a small exponent over all.
MOST_DOUBLED = 2.3
# Passes of fewer lines than this at 32 layers tell little of how they grow.
TOLD = 1000
OF_THE_INDUCTOR = [
    "transposed",
    "narrow",
    "partition",
    "lower",
    "emit",
    "memory",
    "schedule",
    "render",
    "launch",
]
EXPECTED = {"capture", "compile", *(step.name for step in PASSES), *OF_THE_INDUCTOR}


@pytest.fixture(autouse=True)
def quick_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The code is not run: g++ need not optimise it. The cache has no kernels of other tests."""
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path))

    def unoptimised() -> Toolchain:
        found = find_toolchain()
        return replace(found, flags=("-O0", *(f for f in found.flags if f != "-O2")))

    monkeypatch.setattr(inductor, "find_toolchain", unoptimised)


def check(name: str) -> None:
    amounts(PROGRAMS[name], counted, DEPTHS[:1])  # imports, and tables that are made once
    found = amounts(PROGRAMS[name], counted)
    missing = EXPECTED - {*found}
    assert not missing, f"nothing was counted of {missing}"
    steep = {}
    for step, lines in found.items():
        doubled = lines[-1] / max(lines[-2], 1)
        if lines[-1] >= TOLD and (exponent(lines) > MOST or doubled > MOST_DOUBLED):
            steep[step] = (lines, round(exponent(lines), 2))
    assert not steep, f"not linear in the depth {DEPTHS}: {steep}"
    deeper = sum(lines[-1] > 4 * lines[0] for lines in found.values())
    assert deeper > len(EXPECTED) / 2, "the programs do not get deeper"


@pytest.mark.parametrize("name", ["layers", "gradient"])
def test_numpy(name):
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "convolutions", "training"])
def test_torch(name):
    pytest.importorskip("torch")
    check(name)


def test_exponent():
    assert exponent([5 * d for d in DEPTHS]) == pytest.approx(1)
    assert exponent([3 * d**2 for d in DEPTHS]) == pytest.approx(2)


def test_what_is_quadratic_is_seen():
    """The count sees work inside a pass, and gives it to the pass that does it."""
    from dyncomp.spans import span

    def compile_all(depth: int) -> None:
        with span("pass", "slow"):
            _compare(range(depth))
        with span("pass", "fast"):
            list(_each(range(depth)))

    rows = []
    for depth in (50, 100):
        with counted() as found, span("compile", "f"):
            compile_all(depth)
        rows.append(found)
    assert rows[1]["slow"] > 3.5 * rows[0]["slow"]
    assert 1.7 * rows[0]["fast"] < rows[1]["fast"] < 2.3 * rows[0]["fast"]


def _compare(items: range) -> None:
    for a in items:
        for b in items:
            assert (a < b) == (b > a)


def _each(items: range) -> Iterator[int]:
    yield from (item for item in items)
