"""Functions that differ in sizes alone: one text for all, the same results."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dyncomp
from dyncomp.inductor.render.cpp import unit as cpp
from dyncomp.inductor.render.cpp.share import LEAST, LEAST_LOOP, MOST_NUMBERS, Function, share_functions

PARAMETERS = "(void* const* b, const i64* s, const Runtime* rt, i64* error)"


def kernel(number: int, *lines: str) -> Function:
    name = f"kernel_{number}"
    text = (
        "\n".join([f"// k{number}", f"static i64 {name}{PARAMETERS} {{", *lines, "  return 0;", "}"]) + "\n"
    )
    return Function(f"i64 {name}{PARAMETERS}", text)


def pair(template: str, first: object, second: object) -> list[Function]:
    return [kernel(k, template.format(value)) for k, value in enumerate((first, second))]


# lines in which a number may vary, and two values for it
VARYING = (
    ("  for (i64 i_x = 0; i_x < {}; ++i_x) {{ }}", LEAST_LOOP, 1000),
    ("    const float v_v0 = m_b0[{} * i_x + i_y];", LEAST, 999),
    ("    m_b2[i_x + {}] = v_v3;", 300, 64),
    ("    const i64 v_v1 = m_b1[{} * i_x];", 20, 21),
    ("  rt->parallel_for(&dc_call<decltype(body0)>, &body0, 64, {});", 1, 2000),
    ("  body0(0, {});", 100, 200),
    ("  __builtin_memcpy(m_b0, m_b1, {});", 64, 4096),
)
# numbers that belong to the form: short loops, small steps, values, sizes of arrays, pragmas
FIXED = (
    ("  for (i64 i_x = 0; i_x < {}; ++i_x) {{ }}", LEAST_LOOP - 1, 1000),
    ("    const float v_v0 = m_b0[{} * i_x];", LEAST - 1, 999),
    ("    const int v_v1 = v_v0 + {};", 100, 200),
    ("    const i64 v_v1 = (i64)(v_v0 * {});", 100, 200),
    ("    const float v_v1 = v_v0 + {}.0f;", 100, 200),
    ("  float acc_v_v1[{}];", 64, 128),
    ("  float m_a1[{}];", 64, 128),
    ("  #pragma GCC unroll {}", 64, 128),
    ("    error[1] = {};", 64, 128),
)


@pytest.mark.parametrize(("template", "first", "second"), VARYING)
def test_sizes_come_from_a_table(template: str, first: int, second: int) -> None:
    common, *calls = share_functions(pair(template, first, second))
    assert common.prototype.startswith("i64 sized_kernel_0(") and common.prototype.endswith("const i64* n)")
    assert template.format("n0") in common.text and "const i64 n0 = n[0];" in common.text
    for value, call in zip((first, second), calls, strict=True):
        assert f"n[] = {{{value}}};" in call.text and "sized_kernel_0(b, s, rt, error, n)" in call.text


@pytest.mark.parametrize(("template", "first", "second"), FIXED)
def test_other_numbers_make_other_functions(template: str, first: int, second: int) -> None:
    functions = pair(template, first, second)
    assert share_functions(functions) == functions


def test_equal_numbers_stay_and_are_counted_once() -> None:
    line = "    m_b2[{0} * i_x + 512 + {0} * i_y] = m_b0[{1} * i_x];"
    functions = [kernel(k, line.format(*sizes)) for k, sizes in enumerate([(100, 70), (200, 90)])]
    common, *calls = share_functions(functions)
    assert line.format("n0", "n1") in common.text
    assert [re.findall(r"n\[\] = \{(.*)\}", call.text) for call in calls] == [["100, 70"], ["200, 90"]]


def test_loop_bodies_have_copies_of_their_own() -> None:
    lines = ("  auto body0 = [&](i64 lo, i64 hi) {{", "    m_b0[{} * i_x] = 1;", "  }};")
    common, *_ = share_functions(pair("\n".join(lines), 100, 200))
    assert common.text.count("const i64 n0 = n[0];") == 2


def test_two_functions_in_one_text_are_left() -> None:
    lines = ("  m_b0[{}] = 1;", "  return 0;", "}}", "static void more() {{")
    functions = pair("\n".join(lines), 100, 200)
    assert share_functions(functions) == functions


def test_too_many_numbers_are_left() -> None:
    def lines(first: int) -> tuple[str, ...]:
        return tuple(f"    m_b0[{first + 3 * k * first}] = 1;" for k in range(MOST_NUMBERS + 1))

    functions = [kernel(k, *lines(first)) for k, first in enumerate((100, 211))]
    assert share_functions(functions) == functions


def layers(*arrays):
    """The same steps for arrays of several sizes, with sums between them so that they stay apart."""
    found = []
    for x in arrays:
        rows = (x * 3 - x // 7).sum(axis=1)
        found += [x * rows[:, None] + 1, np.sqrt(np.abs(x - rows[:, None])).max(axis=0)]
    return tuple(found)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "complex64"])
def test_layers_of_several_sizes(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    shapes = [(70, 100), (90, 333), (128, 1024), (300, 65)]
    arrays = [(random.standard_normal(shape) * 50).astype(dtype) for shape in shapes]
    function = scaled_layers if dtype == "complex64" else layers
    sources: list[str] = []
    plain_render = cpp.share_functions

    def note(functions: list[Function]) -> list[Function]:
        made = plain_render(functions)
        sources.extend(f.prototype for f in made)
        return made

    monkeypatch.setattr(cpp, "share_functions", note)
    found = dyncomp.compile(function)(*arrays)
    assert any("sized_" in prototype for prototype in sources)
    monkeypatch.setattr(cpp, "share_functions", list)
    apart = dyncomp.compile(function)(*arrays)
    for mine, other, expected in zip(found, apart, function(*arrays), strict=True):
        assert mine.dtype == expected.dtype and mine.tobytes() == other.tobytes()
        np.testing.assert_allclose(mine, expected, rtol=2e-4, atol=1e-3)


def scaled_layers(*arrays):
    return tuple(x * x.sum(axis=1)[:, None] + 1 for x in arrays)


def test_long_lists_of_steps_are_not_optimised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of complex numbers have loops of their own in the list; symbolic sizes have helpers."""
    monkeypatch.setattr(cpp, "LIST_STEPS", 0)

    def product(a, b):
        return (a @ b).sum(axis=0), a.reshape(-1, a.shape[0] // 2).sum(axis=1)

    compiled = dyncomp.compile(product, dynamic=True)
    random = np.random.default_rng(1)
    for n in (6, 64):
        a, b = (random.standard_normal((n, n)) + 1j * random.standard_normal((n, n)) for _ in range(2))
        for mine, expected in zip(compiled(a, b), product(a, b), strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-10)
