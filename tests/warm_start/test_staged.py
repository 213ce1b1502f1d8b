"""Functions whose sizes depend on the data, in a new process: from disk, with the stages that are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .zygote import Zygote

PROGRAM = """
import json
import warnings
import numpy as np
import dyncomp

@dyncomp.compile
def chosen(x):
    y = x[x > 0.5]
    z = y[y < 0.8]
    return np.sort(z) * 2 + np.sum(y)

@dyncomp.compile
def places(x):
    i = np.nonzero(x > 0.3)[0]
    return np.sin(x[i]) * i

@dyncomp.compile
def levels(x):
    found, counts = np.unique(np.round(x * 3), return_counts=True)
    return found / counts

@dyncomp.compile
def written(x, out):
    y = x[x > 0.5]
    out[: len(y)] = y
    return len(y)

@dyncomp.compile
def warns(x):
    y = x[x >= 0.0]
    return 1.0 / y

def main():
    found = []
    for size, high in json.load(open(__file__ + ".json")):
        x = np.linspace(0.0, high, size)
        out = np.zeros(size)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            ratio = warns(x)
        found += [chosen(x), places(x), levels(x), written(x, out), out, ratio]
        found.append([str(warning.message) for warning in seen])
    return found
"""


@pytest.fixture(scope="module")
def zygote() -> Any:
    process = Zygote()
    yield process
    process.close()


def test_stages_from_disk(zygote: Zygote, tmp_path: Path) -> None:
    folder, cache = tmp_path / "code", tmp_path / "cache"
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(PROGRAM)
    found = []
    for sizes in ([[50, 1.0]], [[50, 1.0]], [[50, 1.0], [30, 0.9]], [[30, 0.4], [50, 1.0], [7, 2.0]]):
        Path(f"{program}.json").write_text(str(sizes))
        answer = zygote.run(folder, cache)
        assert answer["outcome"] == zygote.run(folder, None)["outcome"]
        found.append((answer["stats"]["from_disk"], answer["stats"]["not_stored"]))
    assert found[0] == (0, 0)
    assert all(from_disk >= 5 for from_disk, _ in found[1:])
    assert not any(not_stored for _, not_stored in found)


def test_stages_are_not_compiled_again(zygote: Zygote, tmp_path: Path) -> None:
    """With the same sizes a new process compiles nothing."""
    folder, cache = tmp_path / "code", tmp_path / "cache"
    folder.mkdir()
    program = folder / "program.py"
    refuse = "\nimport dyncomp.pipeline as pipeline\n"
    refuse += "def refused(*args, **kwargs):\n    raise AssertionError('compiled again')\n"
    refuse += "if json.load(open(__file__ + '.refuse')):\n    pipeline.run_passes = refused\n"
    program.write_text(PROGRAM + refuse)
    Path(f"{program}.json").write_text("[[50, 1.0], [30, 0.9]]")
    Path(f"{program}.refuse").write_text("0")
    cold = zygote.run(folder, cache)
    Path(f"{program}.refuse").write_text("1")
    warm = zygote.run(folder, cache)
    assert warm["outcome"] == cold["outcome"]
    assert warm["stats"]["internal_errors"] == 0


ASSUMES = """
import json
import numpy as np
import dyncomp

@dyncomp.compile
def f(x):
    y = x[x > 0.5]
    return y + np.arange(3.0)      # as many, or one

def main():
    return [f(np.linspace(0.5, 1.0, size)) for size in json.load(open(__file__ + ".json"))]
"""


def test_assumptions_that_do_not_hold(zygote: Zygote, tmp_path: Path) -> None:
    """What one process assumed of the data does not hold in another: it is captured anew, and kept."""
    folder, cache = tmp_path / "code", tmp_path / "cache"
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(ASSUMES)
    found = []
    for sizes in ([4] * 3, [2] * 12, [2] * 12, [4] * 3):
        Path(f"{program}.json").write_text(str(sizes))
        answer = zygote.run(folder, cache)
        assert answer["outcome"] == zygote.run(folder, None)["outcome"]
        found.append(answer["stats"])
    assert found[0]["from_disk"] == 0 and found[0]["not_stored"] == 0
    assert 0 < found[1]["fallbacks"] < 6
    assert found[2]["fallbacks"] == 0 and found[2]["from_disk"] > 0
