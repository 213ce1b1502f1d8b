"""All that a loop may do to a container, for every kind of container: no internal error, same answers."""

import copy

import numpy as np
import pytest

import dyncomp
from dyncomp.python_code.loops import UNBOUND
from tests.scalar_loops import grid as grid
from tests.scalar_loops.runs import Run, shown

ALL = [(statement, kind) for statement in grid.STATEMENTS for kind in grid.containers()]


class Built(Exception):
    """In place of compiling: the source text was made."""


def not_built(source, symbol):
    raise Built


def render(statement, kind):
    """Whether C++ was made of a loop; it is not compiled. Internal errors are raised."""
    run = Run(grid.function_of(statement))
    run.native.build = not_built
    local = dict(zip(run.code.arg_names, grid.arguments(kind)))
    values = [local.get(name, UNBOUND) for name in run.names]
    try:
        run.native.prepare(iter(local["it"]), *values)
    except Built:
        return True
    return False


def failures(cases):
    built, failed = 0, []
    for statement, kind in cases:
        try:
            built += render(statement, kind)
        except Exception as error:
            failed.append(f"{statement!r} of {kind}: {type(error).__name__}: {error}")
    assert built > len(cases) // 20
    return failed


def test_loops_are_described_without_errors():
    failed = failures(grid.sample(0, 700))
    assert not failed, "\n".join(failed[:20])


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(8))
def test_loops_are_described_without_errors_slow(part):
    failed = failures(ALL[part::8])
    assert not failed, "\n".join(failed[:20])


def outcome(function, kind):
    """Result or exception, and the container afterwards."""
    args = grid.arguments(kind)
    copied = copy.deepcopy(args[1]) if kind not in ("memoryview", "keys") else args[1]
    try:
        with np.errstate(all="ignore"):
            result = shown(function(args[0], copied, *args[2:]))
    except Exception as error:
        result = type(error).__name__, str(error)
    return result, repr(copied) if kind not in ("memoryview", "keys") else list(copied)


def differences(cases):
    options = {
        "native_loop_us": 0,
        "unroll_limit": 0,
        "debug_verify": True,
        "patience_us": 0,
        "measure": False,
    }
    found = []
    for statement, kind in cases:
        function = grid.function_of(statement)
        wanted = outcome(function, kind)
        dyncomp.reset()
        compiled = dyncomp.compile(function, options=options)
        for _ in range(2):
            given = outcome(compiled, kind)
            if repr(given) != repr(wanted) or dyncomp.stats()["internal_errors"]:
                found.append(f"{statement!r} of {kind}: {given} is not {wanted}")
    return found


def test_same_answers():
    found = differences(grid.sample(1, 40))
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(2, 8))
def test_same_answers_slow(seed):
    found = differences(grid.sample(seed, 300))
    assert not found, "\n".join(found)
