"""Random programs: compiled gives the plain results, output, effects and exceptions."""

from __future__ import annotations

import itertools
import linecache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dyncomp
from tests.capture.comparing import call, differences
from tests.capture.random_helpers import HELPERS
from tests.capture.random_programs import arguments, programs, seeded

_COUNT = itertools.count()
QUICK = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)
DEEP = settings(QUICK, max_examples=3000, derandomize=False, print_blob=True)


def load(source: str, filename: str):
    """The program as a function with globals of its own."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = {**HELPERS, "TOTAL": 0, "__name__": "random_program"}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["main"], namespace


def user_frames(outcome):
    """Function and line of each frame of the program and its helpers in the traceback."""
    frames = [(name, line) for file, name, line in outcome.frames if "random" in file]
    if outcome.error is not None and outcome.error[0] is UnboundLocalError:
        # CPython 3.11 tells the line before where its specializer has joined a store and the load
        frames[-1:] = [(name, None) for name, _ in frames[-1:]]
    return frames


def compare(source: str, makers, **settings) -> None:
    filename = f"/random/program_{next(_COUNT)}.py"
    plain, plain_world = load(source, filename)
    mine, my_world = load(source, filename)
    compiled = dyncomp.compile(mine, options={"debug_verify": True}, **settings)
    rtol = 1e-12 if settings.get("backend") == "eager" else 1e-9
    for maker in [m for m in makers for _ in range(2)]:
        expected = call(plain, maker())
        found = call(compiled, maker())
        notes = differences(expected, found, rtol)
        if plain_world["TOTAL"] != my_world["TOTAL"]:
            notes.append(f"TOTAL: plain {plain_world['TOTAL']}, compiled {my_world['TOTAL']}")
        if user_frames(expected) != user_frames(found):
            notes.append(f"traceback: plain {user_frames(expected)}, compiled {user_frames(found)}")
        assert not notes, source + "\n".join(notes)
    linecache.cache.pop(filename, None)


MAKERS = st.lists(arguments(), min_size=1, max_size=3)


@QUICK
@given(programs(), MAKERS)
def test_random_programs(source, makers):
    compare(source, makers, backend="eager")


@pytest.mark.parametrize("seed", range(40))
def test_seeded_programs(seed):
    compare(*seeded(seed), backend="eager", dynamic=True if seed % 5 == 0 else None)


@pytest.mark.slow
@DEEP
@given(programs(), MAKERS)
def test_many_random_programs(source, makers):
    compare(source, makers, backend="eager")


@pytest.mark.slow
@pytest.mark.parametrize("seed", (*range(40, 100), *range(1000, 3000)))
def test_many_seeded_programs(seed):
    compare(*seeded(seed), backend="eager", dynamic=True if seed % 5 == 0 else None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_seeded_programs_in_cpp(seed):
    compare(*seeded(seed), backend="inductor")
