"""Every rule against torch: values, dtypes, shapes, strides."""

from __future__ import annotations

import pytest

import dyncomp

torch = pytest.importorskip("torch")

from . import expressions as ex  # noqa: E402
from .harness import FLOATS, INTS, arguments, check, inputs, same  # noqa: E402


def _cases(table, dtypes):
    return [
        pytest.param(table[name], dtype, id=f"{name}-{str(dtype).removeprefix('torch.')}")
        for name in table
        for dtype in dtypes
    ]


@pytest.mark.parametrize(("f", "dtype"), _cases(ex.ARITHMETIC, (*FLOATS, *INTS)))
def test_arithmetic(f, dtype):
    check(f, *arguments(f, inputs(dtype)))


@pytest.mark.parametrize(("f", "dtype"), _cases(ex.REAL, FLOATS))
def test_real(f, dtype):
    check(f, *arguments(f, inputs(dtype)))


@pytest.mark.parametrize(("f", "dtype"), _cases(ex.PLAIN, (torch.float32,)))
def test_plain(f, dtype):
    check(f, *arguments(f, inputs(dtype)))


@pytest.mark.parametrize(("f", "dtype"), _cases(ex.VIEWS, (torch.float32, torch.int64)))
def test_views(f, dtype):
    check(f, *arguments(f, inputs(dtype)))


# -- the same as machine code, many expressions in one graph -----------------------------------------
CHUNK = 16


def _combined(functions, values):
    """One function of all of ``values`` that computes a tuple of all ``functions``."""
    names = sorted(values)
    calls = []
    for k, f in enumerate(functions):
        parameters = f.__code__.co_varnames[: f.__code__.co_argcount]
        calls.append(f"f{k}({', '.join(parameters)})")
    namespace = {f"f{k}": f for k, f in enumerate(functions)}
    exec(f"def program({', '.join(names)}):\n    return ({', '.join(calls)},)", namespace)
    return namespace["program"], [values[n] for n in names]


def _chunks():
    tables = [
        (ex.ARITHMETIC, (torch.float32, torch.bfloat16, torch.float16, torch.int64)),
        (ex.REAL, (torch.float32, torch.float64, torch.bfloat16)),
        (ex.PLAIN, (torch.float32,)),
        (ex.VIEWS, (torch.float32,)),
    ]
    found = []
    for table, dtypes in tables:
        names = list(table)
        for start in range(0, len(names), CHUNK):
            part = names[start : start + CHUNK]
            for dtype in dtypes:
                label = f"{part[0]}-{str(dtype).removeprefix('torch.')}"
                found.append(pytest.param(table, part, dtype, id=label))
    return found


@pytest.mark.parametrize(("table", "names", "dtype"), _chunks())
def test_compiled(table, names, dtype):
    program, args = _combined([table[n] for n in names], inputs(dtype))
    before = dyncomp.stats()["fallbacks"]
    found = dyncomp.compile(program, fullgraph=True)(*args)
    assert dyncomp.stats()["fallbacks"] == before, "the graph raised, the original ran"
    for name, a, b in zip(names, found, program(*args)):
        same(a, b, name)
