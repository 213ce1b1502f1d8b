"""CompiledGraph: values, kinds of inputs and results, views."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import dyncomp.inductor.launch as launch_module
from dyncomp import dtypes
from dyncomp.dtypes import bool_, complex128, float32, float64, int64, uint8
from dyncomp.inductor.launch import (
    BLAS_INDEX,
    BufferRef,
    ConstantResult,
    InputResult,
    InputSlot,
    KernelStep,
    OutputResult,
    OutputSlot,
    PyCallStep,
    SizeRef,
    SymbolSlot,
    ViewOutput,
    abi_declarations,
    build,
)
from tests.runtime.launch_plans import VECTOR, add_plan, launch_kernels, simple

CSRC = Path(launch_module.__file__).parents[1] / "runtime" / "csrc"


@pytest.fixture(scope="module")
def kernels():
    return launch_kernels()


def test_declarations_are_the_headers():
    text = (CSRC / "abi.h").read_text()
    assert "struct Runtime {" in abi_declarations() and "#" not in abi_declarations()
    entries = dict(re.findall(r"DYNCOMP_BLAS_([A-Z_]+) = (\d+)", text))
    entries.pop("COUNT")
    assert {name.lower(): int(index) for name, index in entries.items()} == BLAS_INDEX


def test_two_arrays(kernels):
    graph = build(add_plan(name="two"), kernels)
    x, y = np.arange(4.0), np.full(4, 10.0)
    result = graph(x, y)
    np.testing.assert_array_equal(result, x + y)
    assert type(result) is np.ndarray
    assert result.base is None
    assert result.flags.owndata
    assert result.flags.writeable
    assert result.flags.c_contiguous
    assert graph.name == "two"
    assert graph.num_inputs == 2


def test_released_gil_gives_the_same(kernels):
    graph = build(add_plan(release_gil=True), kernels)
    np.testing.assert_array_equal(graph(np.ones(4), np.ones(4)), np.full(4, 2.0))


class Derived(np.ndarray):
    pass


@pytest.mark.parametrize(
    "bad",
    [
        None,
        3.0,
        [1.0, 2.0, 3.0, 4.0],
        np.ones(4, np.float32),
        np.ones((2, 2)),
        np.ones(4).view(Derived),
        np.ones(4, ">f8"),
        np.frombuffer(bytes(33), np.uint8)[1:].view(np.float64),
        np.ones(4, object),
    ],
)
def test_wrong_array_is_refused(kernels, bad):
    graph = build(add_plan(), kernels)
    with pytest.raises(TypeError, match="argument 1"):
        graph(np.ones(4), bad)


def test_wrong_count_and_keywords(kernels):
    graph = build(add_plan(), kernels)
    with pytest.raises(TypeError, match="2 positional"):
        graph(np.ones(4))
    with pytest.raises(TypeError, match="2 positional"):
        graph(np.ones(4), np.ones(4), extra=1)


def test_shape_and_stride_checks(kernels):
    slot = InputSlot("array", float64, 1, shape=(4,), strides=(1,))
    plan = simple((slot, VECTOR), (OutputSlot(float64, (4,)),), (OutputResult(0),), (KernelStep("add4"),))
    graph = build(plan, kernels)
    graph(np.ones(4), np.ones(4))
    with pytest.raises(TypeError, match="shape"):
        graph(np.ones(5), np.ones(4))
    with pytest.raises(TypeError, match="strides"):
        graph(np.ones(8)[::2], np.ones(4))


def test_long_long_is_int64(kernels):
    slot = InputSlot("array", int64, 1)
    graph = build(simple((slot,), (), (InputResult(0),), (KernelStep("nothing"),)), kernels)
    x = np.ones(3, np.longlong)
    assert graph(x) is x


def test_writable_input(kernels):
    slot = InputSlot("array", float64, 1, writable=True)
    graph = build(simple((slot,), (), (InputResult(0),), (KernelStep("poke"),)), kernels)
    x = np.zeros(3)
    assert graph(x) is x
    assert x[0] == 42
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        graph(x)


@pytest.mark.parametrize(
    ("kind", "dtype", "value", "expected"),
    [
        ("float", float64, 1.5, 1.5),
        ("float", float64, np.float32(1.5), 1.5),
        ("float", float64, np.float64(-0.0), -0.0),
        ("float", float64, 3, 3.0),
        ("float", float32, 1e300, np.inf),
        ("float", dtypes.float16, 1.5, 1.5),
        ("float", dtypes.bfloat16, 1.5, 1.5),
        ("float", complex128, 1.5, 1.5 + 0j),
        ("int", int64, -7, -7),
        ("int", int64, np.int8(-7), -7),
        ("int", int64, True, 1),
        ("int", float64, 10**30, 1e30),
        ("int", dtypes.uint64, 2**64 - 1, 2**64 - 1),
        ("int", dtypes.int8, -128, -128),
        ("int", dtypes.uint16, 65535, 65535),
        ("bool", bool_, True, True),
        ("bool", bool_, np.bool_(False), False),
        ("bool", float64, True, 1.0),
        ("complex", complex128, 1 - 2j, 1 - 2j),
        ("complex", dtypes.complex64, np.complex64(1j), 1j),
        ("complex", complex128, 2.5, 2.5 + 0j),
    ],
)
def test_scalar_inputs(kind, dtype, value, expected):
    seen = []

    def keep(array):
        seen.append(array)
        return array

    plan = simple(
        (InputSlot(kind, dtype),),
        (OutputSlot(dtype, (), kind="numpy_scalar"),),
        (OutputResult(0),),
        (PyCallStep(keep, (BufferRef(0, dtype, ()),), (BufferRef(1, dtype, ()),)),),
    )
    result = build(plan)(value)
    assert result.dtype == dtype.numpy
    assert result == expected
    assert np.signbit(np.real(result).astype(float)) == np.signbit(np.real(expected))
    assert seen[0].flags.owndata


@pytest.mark.parametrize(
    ("kind", "dtype", "value", "error"),
    [
        ("float", float64, "x", TypeError),
        ("float", float64, np.ones(1), TypeError),
        ("float", float64, 10**400, OverflowError),
        ("int", int64, 1.5, TypeError),
        ("int", int64, 2**63, OverflowError),
        ("int", uint8, 256, OverflowError),
        ("int", uint8, -1, OverflowError),
        ("int", dtypes.uint64, -1, OverflowError),
        ("bool", bool_, 1, TypeError),
        ("complex", complex128, "1j", TypeError),
        ("symint", None, 1.0, TypeError),
        ("symint", None, 2**64, OverflowError),
    ],
)
def test_bad_scalars(kind, dtype, value, error):
    plan = simple((InputSlot(kind, dtype),), (), (InputResult(0),), ())
    with pytest.raises(error):
        build(plan)(value)


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_python_and_numpy_scalars(dtype):
    value = {"bool": True, "complex": 1 + 2j}.get(dtype.kind, 3)
    for kind, expected in (("python_scalar", value), ("numpy_scalar", value)):
        plan = simple(
            (),
            (OutputSlot(dtype, (), kind=kind),),
            (OutputResult(0), OutputResult(0)),
            (PyCallStep(lambda: np.asarray(value).astype(dtype.numpy), (), (BufferRef(0, dtype, ()),)),),
            single=False,
        )
        first, second = build(plan)()
        assert first == expected
        assert first is second
        plain = (bool, int, float, complex)
        assert isinstance(first, np.generic) if kind == "numpy_scalar" else type(first) in plain


def test_scalar_kernel(kernels):
    plan = simple(
        (InputSlot("float", float64),),
        (OutputSlot(float64, (), kind="python_scalar"),),
        (OutputResult(0),),
        (KernelStep("scalar_add"),),
    )
    result = build(plan, kernels)(1.25)
    assert type(result) is float
    assert result == 2.25


def test_symbols_and_sizes(kernels):
    plan = simple(
        (VECTOR,),
        (OutputSlot(float64, (SizeRef(0),)),),
        (OutputResult(0),),
        (KernelStep("twice"),),
        symbols=(SymbolSlot("shape", 0, 0), SymbolSlot("stride", 0, 0)),
        size_count=3,
    )
    graph = build(plan, kernels)
    for n in (0, 1, 5, 300_000):
        x = np.arange(float(n))
        np.testing.assert_array_equal(graph(x), 2 * x)
    x = np.arange(20.0)[::-3]
    np.testing.assert_array_equal(graph(x), 2 * x)


def test_stride_that_is_no_multiple_of_the_item(kernels):
    slot = InputSlot("array", complex128, 1)
    plan = simple((slot,), (), (InputResult(0),), (), symbols=(SymbolSlot("stride", 0, 0),), size_count=3)
    graph = build(plan, kernels)
    graph(np.zeros(3, complex))
    with pytest.raises(TypeError, match="between"):
        graph(np.zeros(3, np.dtype("c16,f8"))["f0"])


def test_symint_value(kernels):
    plan = simple(
        (VECTOR, InputSlot("symint")),
        (OutputSlot(float64, (SizeRef(2),)),),
        (OutputResult(0),),
        (),
        symbols=(SymbolSlot("value", 1),),
        size_count=3,
    )
    graph = build(plan, kernels)
    assert graph(np.ones(1), 5).shape == (4,)
    assert graph(np.ones(1), np.int32(9)).shape == (8,)
    with pytest.raises(ValueError, match="negative dimension"):
        graph(np.ones(1), 0)
    with pytest.raises((ValueError, MemoryError)):
        graph(np.ones(1), 2**62)


def test_layouts():
    plan = simple(
        (),
        (
            OutputSlot(float32, (2, 3, 4), (1, 2, 6)),
            OutputSlot(float32, (2, 3, 4), (4, 8, 1)),
            OutputSlot(float32, (0, 3)),
        ),
        (OutputResult(0), OutputResult(1), OutputResult(2)),
        (),
        single=False,
    )
    fortran, permuted, empty = build(plan)()
    assert fortran.strides == (4, 8, 24)
    assert fortran.flags.f_contiguous
    assert permuted.strides == (16, 32, 4)
    assert empty.shape == (0, 3)
    for array in (fortran, permuted, empty):
        assert array.flags.owndata
        assert array.base is None


@pytest.mark.parametrize(("shape", "strides"), [((4,), (2,)), ((4,), (-1,)), ((3, 3), (4, 1))])
def test_layouts_that_reach_outside(shape, strides):
    graph = build(simple((), (OutputSlot(float32, shape, strides),), (OutputResult(0),), ()))
    with pytest.raises(ValueError, match="outside"):
        graph()


def view_graph(**view):
    return build(simple((InputSlot("array", float64, 2),), (), (ViewOutput("input", 0, **view),), ()))


def test_view_of_input():
    graph = view_graph(dtype=float64, shape=(3, 2), strides=(1, 3))
    x = np.arange(6.0).reshape(2, 3).copy()
    result = graph(x)
    np.testing.assert_array_equal(result, x.T)
    assert result.base is x
    assert not result.flags.owndata
    result[0, 1] = -1
    assert x[1, 0] == -1
    x.flags.writeable = False
    assert not graph(x).flags.writeable


def test_view_base_chain_is_numpys():
    whole = np.arange(12.0)
    x = whole.reshape(4, 3)
    result = view_graph(dtype=float64, shape=(3,), strides=(-1,), offset=2)(x)
    np.testing.assert_array_equal(result, x[0, ::-1])
    assert result.base is x[0, ::-1].base is whole


def test_read_only_view():
    graph = view_graph(dtype=float64, shape=(5, 3), strides=(0, 1), writeable=False)
    x = np.arange(3.0).reshape(1, 3)
    result = graph(x)
    np.testing.assert_array_equal(result, np.broadcast_to(x, (5, 3)))
    assert not result.flags.writeable


def test_view_outside_its_base():
    graph = view_graph(dtype=float64, shape=(7,), strides=(1,))
    with pytest.raises(ValueError, match="outside"):
        graph(np.ones((2, 3)))
    graph(np.ones((7, 1)))


def test_view_of_another_dtype():
    slot = InputSlot("array", complex128, 1)
    plan = simple((slot,), (), (ViewOutput("input", 0, float64, (3,), (2,), 1),), ())
    x = np.array([1 + 2j, 3 - 4j, 5j])
    result = build(plan)(x)
    np.testing.assert_array_equal(result, x.imag)
    result[0] = 9
    assert x[0] == 1 + 9j


def test_view_of_output_shares_it(kernels):
    plan = simple(
        (VECTOR, VECTOR),
        (OutputSlot(float64, (4,)),),
        (OutputResult(0), ViewOutput("output", 0, float64, (2, 2), (2, 1)), ConstantResult("c")),
        (KernelStep("add4"),),
        single=False,
    )
    whole, view, constant = build(plan, kernels)(np.arange(4.0), np.zeros(4))
    assert view.base is whole
    assert view.tolist() == [[0, 1], [2, 3]]
    assert constant == "c"
