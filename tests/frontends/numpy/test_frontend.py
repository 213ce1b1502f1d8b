"""What the frontend accepts, and Python scalars known at run time only."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from dyncomp import dtypes
from dyncomp.errors import Unsupported
from dyncomp.frontends.base import ArrayRef, TraceContext
from dyncomp.frontends.numpy.frontend import NumpyFrontend
from dyncomp.graph.interp import Interpreter
from dyncomp.graph.ir import GraphBuilder, GraphOutput, array_type, verify
from dyncomp.prims.table import TABLE

FRONTEND = NumpyFrontend()


class Sub(np.ndarray):
    pass


def test_describe() -> None:
    x = np.arange(12.0).reshape(3, 4)
    facts = FRONTEND.describe(x[::-1, ::2])
    assert (facts.kind, facts.dtype, facts.shape, facts.strides) == ("array", dtypes.float64, (3, 2), (-4, 2))
    assert facts.writeable and facts.aligned
    scalar = FRONTEND.describe(np.float32(1))
    assert (scalar.kind, scalar.pytype, scalar.shape) == ("scalar", np.float32, ())
    x.flags.writeable = False
    assert not FRONTEND.describe(x).writeable
    raw = np.frombuffer(bytearray(17), np.uint8)[1:].view(np.float64)
    assert not FRONTEND.describe(raw).aligned


@pytest.mark.parametrize(
    ("obj", "reason"),
    [
        (np.array([None]), "object"),
        (np.zeros(2, [("a", "f8")]), "structured"),
        (np.zeros(2, ">f8"), "byte order"),
        (np.zeros(2, np.longdouble), "longdouble|float128"),
        (np.array(["a"]), "str"),
        (np.zeros(2, "M8[s]"), "datetime64"),
        (np.ma.array([1.0]), "MaskedArray"),
        (np.matrix([[1.0]]), "matrix"),
        (np.zeros(3).view(Sub), "Sub"),
        (np.zeros((2, 17), np.uint8)[:, :16].view("f8"), "strides"),
        ([1, 2], "list"),
        (np.str_("a"), "str_"),
        (np.longdouble(1), "longdouble|float128"),
    ],
)
def test_describe_refuses(obj: Any, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        FRONTEND.describe(obj)


def test_finding_rules() -> None:
    assert FRONTEND.find_function(np.add) is not None
    assert FRONTEND.find_function(np.add.reduce) is not None
    assert FRONTEND.find_function(np.linalg.norm) is not None
    assert FRONTEND.find_function(np.float32) is not None
    assert FRONTEND.find_function(np.save) is None
    assert FRONTEND.find_function(len) is None
    assert FRONTEND.find_function([]) is None
    assert FRONTEND.is_constant(np.dtype("f4")) and FRONTEND.is_constant(np.float64)
    assert not FRONTEND.is_constant(np.zeros(3))


def _python(tx: TraceContext, dtype: dtypes.DType) -> ArrayRef:
    return ArrayRef(tx.builder.add_input(array_type(dtype, ()), "scalar"), "python")


def _run(program: Any, *values: Any) -> Any:
    """A program over Python scalars (weak) and arrays."""
    tx = TraceContext(GraphBuilder(TABLE))
    refs = []
    for value in values:
        if isinstance(value, np.ndarray):
            facts = FRONTEND.describe(value)
            refs.append(ArrayRef(tx.builder.add_input(array_type(facts.dtype, facts.shape))))
        else:
            refs.append(
                _python(tx, {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64}[type(value)])
            )
    result = program(tx, *refs)
    graph = verify(tx.builder.finish((GraphOutput(result.var, result.kind),)), TABLE)
    return Interpreter(graph, TABLE).run(*values)[0]


def _operator(name: str) -> Any:
    rule = FRONTEND.find_operator(name)
    assert rule is not None
    return rule


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("add", 1.5, 2.25, 3.75),
        ("mul", 1.5, -2.0, -3.0),
        ("lt", 1.5, 2.0, True),
        ("eq", 3, 3, True),
        ("and_", True, False, False),
    ],
)
def test_python_scalars(name: str, a: Any, b: Any, expected: Any) -> None:
    found = _run(lambda tx, x, y: _operator(name)(tx, x, y), a, b)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("add", 1, 2),
        ("mul", 3, 4),
        ("truediv", 1.0, 2.0),
        ("pow", 2.0, 3.0),
        ("mod", 1.0, 2.0),
        ("lt", 1, 2.0),
    ],
)
def test_python_scalars_refused(name: str, a: Any, b: Any) -> None:
    """What may raise, or leave 64 bits, is left to Python."""
    with pytest.raises(Unsupported):
        _run(lambda tx, x, y: _operator(name)(tx, x, y), a, b)


def test_python_scalars_are_weak() -> None:
    f = np.ones(3, np.float32)
    assert _run(lambda tx, x, y: _operator("mul")(tx, x, y), f, 2.5).dtype == np.float32
    assert _run(lambda tx, x, y: _operator("add")(tx, x, y), f, 3).dtype == np.float32
    assert _run(lambda tx, x, y: _operator("add")(tx, x, y), np.ones(3, int), 2.5).dtype == np.float64
    with pytest.raises(Unsupported, match="may not fit"):
        _run(lambda tx, x, y: _operator("add")(tx, x, y), np.ones(3, np.uint8), 3)


def test_item_gives_python_numbers() -> None:
    for dtype, kind in (("f4", float), ("i2", int), ("?", bool)):
        x = np.ones(1, dtype)
        assert type(_run(lambda tx, x: FRONTEND.find_method(x, "item")(tx, x), x)) is kind


def test_errstate_is_assumed() -> None:
    def assumed(program: Any, dtype: dtypes.DType) -> bool:
        tx = TraceContext(GraphBuilder(TABLE))
        program(tx, ArrayRef(tx.builder.add_input(array_type(dtype, (3,)))))
        return "numpy-errstate" in tx.assumptions

    def call(function: Any, *more: Any) -> Any:
        return lambda tx, x: FRONTEND.find_function(function)(tx, x, *more)

    assert assumed(call(np.log), dtypes.float64)
    assert assumed(call(np.add, 1), dtypes.float32)
    assert assumed(call(np.floor_divide, 0), dtypes.int64)
    assert assumed(call(np.int64), dtypes.float64)
    assert not assumed(call(np.add, 1), dtypes.int64)
    assert not assumed(call(np.isnan), dtypes.float64)
    assert not assumed(call(np.equal, 1), dtypes.float64)
    assert not assumed(call(np.reshape, (3, 1)), dtypes.float64)


@pytest.mark.parametrize(
    "program",
    [
        lambda f, tx, x: f(np.einsum)(tx, "ij,ij->j", x),
        lambda f, tx, x: f(np.einsum)(tx, "i->ii", x),
        lambda f, tx, x: f(np.concatenate)(tx, []),
        lambda f, tx, x: f(np.add)(tx, x, "a"),
        lambda f, tx, x: f(np.add)(tx, x, None),
        lambda f, tx, x: f(np.add)(tx, x, 1, dtype="O"),
        lambda f, tx, x: f(np.add)(tx, x, 1, where=x),
        lambda f, tx, x: f(np.reshape)(tx, x, (2, 2)),
        lambda f, tx, x: f(np.zeros)(tx, -1),
        lambda f, tx, x: f(np.zeros)(tx, 3, dtype="O"),
        lambda f, tx, x: f(np.sum)(tx, x, axis=3),
        lambda f, tx, x: f(np.split)(tx, x, 2),
        lambda f, tx, x: f(np.array)(tx, [[1, 2], [3]]),
        lambda f, tx, x: f(np.matmul)(tx, x, 2),
        lambda f, tx, x: f(np.linalg.inv)(tx, x),
    ],
)
def test_refused_with_a_reason(program: Any) -> None:
    tx = TraceContext(GraphBuilder(TABLE))
    x = ArrayRef(tx.builder.add_input(array_type(dtypes.float64, (3,))))
    with pytest.raises(Unsupported) as caught:
        program(FRONTEND.find_function, tx, x)
    assert len(caught.value.reason) > 5


def test_import_pulls_in_no_other_library() -> None:
    code = (
        "import sys; from dyncomp.frontends.numpy.frontend import NumpyFrontend; NumpyFrontend().rules;"
        "assert not {'torch', 'sympy', 'triton', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_page_is_up_to_date() -> None:
    """``docs/numpy.md`` is generated with the NumPy of the main environment."""
    from pathlib import Path

    from dyncomp.frontends.numpy.doc import render

    page = Path(__file__).parents[3] / "docs" / "numpy.md"
    stated = set(page.read_text().split("`"))
    assert "solve" in "".join(stated)
    missing = [name for name in render().split("`")[1::2] if name not in stated]
    assert not missing or np.__version__ != "2.4.6"
