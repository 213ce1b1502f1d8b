"""Planted faults are located and shrunk, and the scripts fail as long as the fault is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.minifier.case import Case
from dyncomp.minifier.layers import examine
from dyncomp.minifier.literals import literal
from dyncomp.minifier.program import Program, interpreted

from .faults import FAULTS

# Where each is, and what it does there.
LAYERS = {
    "wrong spelling": ("code", "wrong"),
    "crash": ("code", "crashes"),
    "rejected": ("code", "rejected"),
    "hang": ("code", "hangs"),
    "wrong rewrite": ("simplify", "wrong"),
    "wrong cse": ("cse", "raises"),
    "lost write": ("functionalize", "wrong"),
    "wrong memory": ("memory plan", "wrong"),
    "wrong fusion": ("fusion", "wrong"),
    "wrong index": ("fusion", "raises"),
    "wrong reduction": ("code", "wrong"),
    "wrong rule": ("capture", "wrong"),
    "missing guard": ("guards", "wrong"),
    "misordered effects": ("capture", "wrong"),
    "wrong vjp": ("derivatives", "wrong"),
}
QUICK = ("wrong rewrite", "missing guard")


def minified(name: str, folder: Path, operations: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.minifier.faults", name, str(folder), str(operations)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found is not None, "nothing was found"
    assert isinstance(found, dict)
    return found


def check(name: str, folder: Path, operations: int) -> None:
    found = minified(name, folder, operations)
    assert (found["layer"], found["kind"]) == LAYERS[name], found
    assert found["operations"][1] <= 10, found
    script = found["path"]
    with_fault = [sys.executable, "-m", "tests.minifier.faults", name, "--run", script]
    done = subprocess.run(with_fault, capture_output=True, text=True, timeout=200)
    assert done.returncode == 1, done.stdout + done.stderr
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", QUICK)
def test_faults_in_programs_of_20_operations(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, 20)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", FAULTS)
def test_faults_in_programs_of_300_operations(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, 300)


def f(x: Any, y: Any) -> Any:
    z = np.exp(x) * y
    x[0] = 2.0
    return z.sum(axis=0), z[1:]


def arguments() -> tuple[Any, Any]:
    return np.arange(6.0).reshape(2, 3), np.ones((2, 3))


def test_nothing_is_found_where_nothing_is_wrong(tmp_path: Path) -> None:
    args = arguments()
    assert dyncomp.minify(f, args, folder=tmp_path, progress="off") is None
    assert args[0][0, 0] == 0.0  # all of it ran in copies of the process
    assert not list(tmp_path.iterdir())


def broken_backend(graph: Any, examples: Any) -> Any:
    """Adds one to the result of every graph with an exponential in it."""
    run = interpreted(graph, examples)

    def call(*args: Any) -> Any:
        results = run(*args)
        return [r + 1.0 for r in results] if any(node.op == "exp" for node in graph.nodes) else results

    return call


def test_backends_of_users(tmp_path: Path) -> None:
    found = dyncomp.minify(f, arguments(), folder=tmp_path, progress="off", backend=broken_backend)
    assert found is not None
    assert found.fault.layer == "backend"
    assert found.operations[1] == 1
    assert found.path is not None
    text = found.path.read_text()
    assert "tests.minifier.test_minify.broken_backend" in text
    assert "exp(in0)" in text


def test_a_check_of_the_users(tmp_path: Path) -> None:
    def negative(x: Any) -> Any:
        y = x * 2.0
        z = y + 1.0
        return z - 5.0

    good = dyncomp.minify(negative, (np.ones(3),), check=lambda result: True, folder=tmp_path, progress="off")
    assert good is None


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="check must be a function or 'gradient'"):
        dyncomp.minify(f, arguments(), check="values")
    with pytest.raises(ValueError, match="progress must be"):
        dyncomp.minify(f, arguments(), progress="loud")
    with pytest.raises(dyncomp.DyncompError, match="plain Python does not come through"):
        dyncomp.minify(_leaves, (), folder=tmp_path, progress="off")


def _leaves() -> None:
    import os

    os._exit(3)


def test_graphs_are_recorded_with_their_inputs() -> None:
    cases = Program(f, ((arguments(), {}),)).graphs()
    assert len(cases) == 1
    assert isinstance(cases[0], Case)
    assert np.array_equal(cases[0].inputs[0], arguments()[0])  # before they were written
    assert examine(cases[0], 60.0) is None


@pytest.mark.parametrize(
    "value",
    [
        np.arange(4.0),
        np.array(2.5, dtype="float32"),
        np.empty((0, 3)),
        np.full((3, 4), np.inf),
        np.array([np.nan, -0.0, 1.0]),
        np.arange(12).reshape(3, 4).T,
        np.arange(1000.0).reshape(10, 100)[::-1],
        np.array([1 + 2j, np.nan]),
        np.array([True, False]),
        np.float32(1.5),
        (1, [2.0, None], {"a": "b"}),
        float("nan"),
    ],
    ids=str,
)
def test_values_as_expressions(value: Any) -> None:
    from dyncomp.minifier.replay import laid_out, unpacked

    made = eval(literal(value), {"np": np, "laid_out": laid_out, "unpacked": unpacked})
    if isinstance(value, np.ndarray):
        assert made.dtype == value.dtype
        assert made.strides == value.strides or value.size == 0
    np.testing.assert_equal(made, value)
