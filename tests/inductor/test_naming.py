"""Generated functions bear the names of the user's."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import dyncomp
from dyncomp.build.kernel_cache import kernel_key
from dyncomp.build.toolchain import find_toolchain
from dyncomp.graph.ir import Loc
from dyncomp.inductor.naming import MOST_CHARACTERS, MOST_NAMES, origin_of, suffix_of

PLACES = (
    (Loc("/a/b.py", 3, "softmax"), "softmax at /a/b.py:3", "_softmax"),
    (Loc("/a/b.py", 3, "f.<locals>.inner"), "inner at /a/b.py:3", "_inner"),
    (Loc("/a b/c at d.py", 3, "Norm.forward"), "Norm.forward at /a b/c at d.py:3", "_Norm_forward"),
    (Loc("x.py", 3, "f.<locals>.g").of_gradient(), "gradient of g at x.py:3", "_gradient_of_g"),
    (Loc("x.py", 1, "<lambda>"), "<lambda> at x.py:1", "_lambda"),
    (Loc("x.py", 1, ""), "x.py:1", ""),
    (Loc("x.py", 1, "größe"), "größe at x.py:1", "_gr_e"),
    (Loc("x.py", 1, "__"), "__ at x.py:1", ""),
    (Loc("x.py", 1, "static"), "static at x.py:1", "_static"),
    (Loc("x\n.py", 1, "f"), "f at x\n.py:1", ""),
)


@pytest.mark.parametrize(("loc", "origin", "suffix"), PLACES)
def test_names_of_places(loc: Loc, origin: str, suffix: str) -> None:
    assert origin_of(loc) == origin
    assert suffix_of((origin,)) == suffix


def test_several_places_have_each_function_once_and_not_too_many() -> None:
    names = ["f", "g", "f", "h", "i"]
    found = suffix_of(f"{name} at x.py:{k}" for k, name in enumerate(names))
    assert found == "_f_g_h" and found.count("_") == MOST_NAMES
    assert len(suffix_of([f"{'long_' * 40} at x.py:1"])) <= MOST_CHARACTERS + 1


def static(x):
    return np.tanh(x) * 2.0


def dc_exp(x):
    return np.exp(x).sum(axis=1)


def test_kernels_have_names_of_functions_whatever_these_are() -> None:
    """Also of functions called like words of C++ or like what generated code calls."""

    def both(x):
        y = static(x)
        return y, dc_exp(y)

    x = np.linspace(-1.0, 1.0, 60).reshape(4, 15)
    report = dyncomp.explain(both)(x)
    first, second = report.result
    np.testing.assert_allclose(first, static(x), rtol=1e-15)
    np.testing.assert_allclose(second, dc_exp(static(x)), rtol=1e-15)
    (entry,) = (e for e in report.entries if e.graph is not None)
    source = entry.compiled.artifact.source
    names = re.findall(r"^static i64 (kernel_\w+)\(", source, re.M)
    assert names and all("static" in name or "dc_exp" in name for name in names)
    assert any("static" in kernel.name or "dc_exp" in kernel.name for kernel in report.kernels)
    assert re.search(r"^//   dc_exp at .*test_naming.py:\d+$", source, re.M)


def test_lines_are_no_part_of_the_address() -> None:
    toolchain = find_toolchain()
    text = "// k0\n//   f at /a/b.py:{}\nint f() {{ return {}; }}\n"
    assert kernel_key(text.format(1, 5), toolchain) == kernel_key(text.format(22, 5), toolchain)
    assert kernel_key(text.format(1, 5), toolchain) != kernel_key(text.format(1, 6), toolchain)
    other = dataclasses.replace(toolchain, fingerprint="another")
    assert kernel_key(text.format(1, 5), toolchain) != kernel_key(text.format(1, 5), other)


NO_PLACES = ("//   a */ int y; /* at b.py:1", "//   x \\", "//   x at y", "// f at b.py:1")


@pytest.mark.parametrize("line", NO_PLACES)
def test_comments_that_are_no_places_count(line: str) -> None:
    toolchain = find_toolchain()
    assert kernel_key(f"{line}\nint x;\n", toolchain) != kernel_key("int x;\n", toolchain)
