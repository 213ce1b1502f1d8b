"""``dyncomp.grad`` and its like in a new process: used from disk, and never for another function."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from .zygote import Zygote

PROGRAM = """
import numpy as np
import dyncomp

RATE = 0.5

def hidden(w, x):
    return np.tanh(x @ w)

def loss(w, x):
    return np.sum(hidden(w, x) ** 2)

def with_global(w, x):
    return np.sum(np.sin(x @ w)) * RATE

@dyncomp.compile
def compiled(w, x):
    return np.sum(np.exp(-(x @ w) ** 2))

def scaled(by):
    def inner(w, x):
        return np.sum(np.sin(x @ w)) * by
    return inner

class Model:
    def __init__(self):
        self.w = np.linspace(0.0, 1.0, 3)
        self.bias = 0.25

    def loss(self, x):
        return np.mean((x @ self.w - self.bias) ** 2)

def loop(w, x):
    for k in range(5):
        w = w + 0.01 * np.cos(w * k)
    return np.sum(w)

def pair(w, x):
    return np.mean(x @ w) ** 3, x

def main():
    x, w = np.arange(12.0).reshape(4, 3) / 12, np.linspace(0.1, 0.3, 3)
    return [
        dyncomp.grad(loss)(w, x),
        dyncomp.grad(with_global)(w, x),
        dyncomp.grad(compiled)(w, x),
        dyncomp.grad(scaled(2.0))(w, x),
        dyncomp.grad(scaled(3.0))(w, x),
        dyncomp.value_and_grad(loss, argnums=(0, 1))(w, x),
        dyncomp.grad(pair, has_aux=True)(w, x),
        dyncomp.grad(Model.loss, wrt=("self.w", "self.bias"))(Model(), x),
        dyncomp.grad(loop)(w, x),
        dyncomp.grad(lambda w: np.sum(dyncomp.grad(loss)(w, x) ** 2))(w),
        dyncomp.jacobian(lambda w: hidden(w, x))(w),
        dyncomp.hessian(lambda w: loss(w, x))(w),
        dyncomp.vmap(lambda row: hidden(w, row))(x),
        dyncomp.vmap(dyncomp.grad(lambda w: loss(w, x)))(np.stack([w, 2 * w])),
    ]
"""

# what is edited, and which of the results differ then
EDITS = {
    ("RATE = 0.5", "RATE = 0.75"): (1,),
    ("np.tanh(x @ w)", "np.sinh(x @ w)"): (0, 5, 9, 10, 11, 12, 13),
    ("np.exp(-(x @ w) ** 2)", "np.log(1 + (x @ w) ** 2)"): (2,),
    ("scaled(2.0)", "scaled(5.0)"): (3,),
    ("self.bias) ** 2", "self.bias) ** 4"): (7,),
    ("range(5)", "range(6)"): (8,),
    ("** 3, x", "** 5, x"): (6,),
}


@pytest.fixture(scope="module")
def zygote() -> Any:
    process = Zygote()
    yield process
    process.close()


@pytest.fixture(scope="module")
def filled(zygote: Zygote, tmp_path_factory: Any) -> tuple[Path, Path]:
    """The program, and a cache that it has filled."""
    base = tmp_path_factory.mktemp("derivatives")
    folder, cache = base / "code", base / "cache"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    assert zygote.run(folder, cache)["stats"]["from_disk"] == 0
    return folder, cache


def captured_anew(zygote: Zygote, folder: Path, cache: Path, copy: Path) -> Any:
    """The outcome without entries on disk, but with their kernels."""
    shutil.copytree(cache, copy)
    shutil.rmtree(copy / "entries")
    answer = zygote.run(folder, copy)
    assert answer["stats"]["from_disk"] == 0
    return answer["outcome"]


def test_derivatives_are_warm(zygote: Zygote, filled: tuple[Path, Path], tmp_path: Path) -> None:
    folder, cache = filled
    warm = zygote.run(folder, cache)
    assert warm["outcome"] == captured_anew(zygote, folder, cache, tmp_path / "cache")
    assert warm["stats"]["from_disk"] == warm["stats"]["frames_captured"] >= 14


def test_edits_are_seen(zygote: Zygote, filled: tuple[Path, Path], tmp_path: Path) -> None:
    folder, cache = filled
    before = zygote.run(folder, cache)["outcome"]
    program = folder / "program.py"
    text = PROGRAM
    for old, new in EDITS:
        assert old in text
        text = text.replace(old, new)
    try:
        program.write_text(text)
        found = zygote.run(folder, cache)["outcome"]
        assert found == captured_anew(zygote, folder, cache, tmp_path / "cache")
    finally:
        program.write_text(PROGRAM)
    assert found[0] == before[0] == "list"
    changed = {k for k, (old, new) in enumerate(zip(before[1:], found[1:])) if old != new}
    assert changed == {k for each in EDITS.values() for k in each}
