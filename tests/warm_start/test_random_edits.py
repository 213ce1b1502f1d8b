"""Real modules, edited at random between two processes: results are always those of plain Python.

A copy of a public module runs once with an empty cache; then numbers, operators, comparisons and defaults in
it are changed, one at a time, and each form runs in a fresh process with the cache that the first one filled.
"""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path
from typing import Any

import pytest

from .zygote import Zygote

MAIN = """
import dyncomp

def main():
    found = []
    for call, args in calls():
        compiled = dyncomp.compile(call)
        try:
            found.append(compiled(*args))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found
"""

# by the module's name: what it calls
MODULES = {
    "scipy.signal.windows._windows": """
def calls():
    for name in ("hann", "hamming", "blackman", "nuttall", "bohman", "triang", "parzen", "cosine", "tukey"):
        yield globals()[name], (17,)
    yield gaussian, (17, 3.0)
    yield kaiser, (17, 8.6)
    yield general_gaussian, (17, 1.5, 3.0)
    yield exponential, (17, None, 3.0)
""",
    "skimage.color.colorconv": """
def calls():
    image = np.linspace(0.05, 0.95, 4 * 5 * 3).reshape(4, 5, 3)
    for name in ("rgb2hsv", "rgb2xyz", "rgb2lab", "rgb2gray", "rgb2ycbcr", "rgb2yuv", "rgb2hed", "hsv2rgb"):
        yield globals()[name], (image,)
    yield xyz2lab, (image,)
    yield lab2xyz, (image * 50,)
    yield rgb2luv, (image,)
""",
    "scipy.signal._waveforms": """
def calls():
    t = np.linspace(0.0, 2.0, 41)
    yield sawtooth, (t, 0.3)
    yield square, (t, 0.4)
    yield gausspulse, (t, 5.0)
    for method in ("linear", "quadratic", "logarithmic", "hyperbolic"):
        yield chirp, (t, 6.0, 2.0, 1.0, method)
    yield sweep_poly, (t, np.array([0.025, -0.36, 1.25, 2.0]))
""",
}


def source_of(name: str) -> str:
    """A public module's text that can lie anywhere: relative imports become absolute ones."""
    import importlib.util

    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    text = Path(spec.origin).read_text()

    def absolute(found: re.Match[str]) -> str:
        package = name.rsplit(".", len(found[1]))[0]
        return f"from {package}{'.' if found[2] else ''}{found[2]} import"

    return re.sub(r"from (\.+)([\w.]*) import", absolute, text)


def edits(text: str, count: int, seed: int) -> list[str]:
    """So many forms of a module's text, in each of which something else was changed at random."""
    lines = text.splitlines(keepends=True)
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.col_offset > 4:
            found.append((node, repr(node.value + 1) if node.value < 100 else "7"))
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult, ast.Sub, ast.Div)):
            other = random.Random(seed + node.lineno).choice(["+", "-", "*"])
            left, right = ast.get_source_segment(text, node.left), ast.get_source_segment(text, node.right)
            found.append((node, f"(({left}) {other} ({right}))"))
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Lt, ast.Gt)):
            left = ast.get_source_segment(text, node.left)
            right = ast.get_source_segment(text, node.comparators[0])
            found.append((node, f"(({left}) >= ({right}))"))
    chosen = random.Random(seed).sample(found, min(count, len(found)))
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    data, forms = text.encode(), []
    for node, new in chosen:
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        forms.append((data[:begin] + new.encode() + data[end:]).decode())
    return forms


@pytest.fixture(scope="module")
def zygote() -> Any:
    pytest.importorskip("scipy")
    pytest.importorskip("skimage")
    process = Zygote(*MODULES)
    yield process
    process.close()


@pytest.mark.parametrize("name", MODULES)
def test_a_few(zygote: Zygote, tmp_path: Path, name: str) -> None:
    check(zygote, tmp_path, name, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_many(zygote: Zygote, tmp_path: Path, name: str) -> None:
    check(zygote, tmp_path, name, 70)


def check(zygote: Zygote, folder: Path, name: str, count: int) -> None:
    text = source_of(name)
    program, cache = folder / "program.py", folder / "cache"
    program.write_text(text + MODULES[name] + MAIN)
    plain = zygote.run(folder, None)["outcome"]
    assert plain[0] == "list" and zygote.run(folder, cache)["outcome"] == plain
    warm = zygote.run(folder, cache)
    assert warm["outcome"] == plain
    assert warm["stats"]["from_disk"] > 3
    changed = 0
    for form in edits(text, count, seed=1):
        program.write_text(form + MODULES[name] + MAIN)
        expected = zygote.run(folder, None)["outcome"]
        changed += expected != plain
        assert zygote.run(folder, cache)["outcome"] == expected
    assert changed or count < 20  # few edits may all be where nothing runs
