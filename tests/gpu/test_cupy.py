"""CuPy's arrays on a GPU: compiled programs against CuPy itself."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import dyncomp

cupy = pytest.importorskip("cupy")
pytest.importorskip("triton")

from dyncomp.frontends.cupy.ufuncs import _AGREE  # noqa: E402
from tests.inductor.cupy_programs import CASES, EXPRESSIONS, LEFT, expression, operands  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cupy.cuda.is_available(), reason="no GPU"),
]
CLOSE = {"e": 4e-3, "f": 1e-5, "d": 1e-12, "F": 1e-5, "D": 1e-12}


def moved(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """On the device, laid out as on the host."""
    return tuple(_moved(a) for a in arguments)


def _moved(array: Any) -> Any:
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    whole = cupy.array(base, order="K")
    assert whole.strides == base.strides
    offset = array.ctypes.data - base.ctypes.data
    return cupy.ndarray(array.shape, array.dtype, whole.data + offset, strides=array.strides)


def same(got: Any, want: Any) -> None:
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want) and len(got) == len(want)
        for a, b in zip(got, want):
            same(a, b)
        return
    assert type(got) is type(want)
    if not isinstance(want, cupy.ndarray):
        assert got == pytest.approx(want, rel=1e-5)
        return
    assert got.dtype == want.dtype and got.shape == want.shape
    sizes = [n for n, size in enumerate(want.shape) if size > 1]
    assert not want.size or [got.strides[n] for n in sizes] == [want.strides[n] for n in sizes]
    close = CLOSE.get(want.dtype.char, 0)
    cupy.testing.assert_allclose(got, want, rtol=10 * close, atol=10 * close)


def compiled_for_gpu() -> int:
    """How many modules of kernels have been made."""
    return sum(name.startswith("<dyncomp ") for name in linecache.cache)


@pytest.mark.parametrize("program, make", CASES, ids=[p.__name__ for p, _ in CASES])
def test_program(program: Any, make: Any) -> None:
    before = compiled_for_gpu()
    compiled = dyncomp.compile(program, fullgraph=True)
    for _ in range(2):
        mine, theirs = moved(make()), moved(make())
        same(compiled(cupy, *mine), program(cupy, *theirs))
        for a, b in zip(mine, theirs):
            same(a, b)
    assert compiled_for_gpu() > before


@pytest.mark.parametrize("text", EXPRESSIONS + LEFT)
def test_expression(text: str) -> None:
    program = expression(text)
    compiled = dyncomp.compile(program, fullgraph=text in EXPRESSIONS)
    same(compiled(cupy, *moved(operands())), program(cupy, *moved(operands())))


def values(dtype: str) -> Any:
    if dtype == "?":
        return np.array([True, False, True, True, False])
    kind = np.dtype(dtype).kind
    if kind in "iu":
        info = np.iinfo(dtype)
        return np.array([0, 1, 2, 5, 7, info.max, info.min, 3], dtype)
    ends = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 3.7, np.inf, -np.inf, np.nan]
    if kind == "c":
        return np.array([complex(a, b) for a in ends[:8] for b in ends[:8]], dtype)
    return np.array(ends, dtype)


@pytest.mark.parametrize("dtype", "?bBhHiIlLefdFD")
@pytest.mark.parametrize("name", sorted(_AGREE))
def test_elementwise_function(name: str, dtype: str) -> None:
    """Where the graph does not break, the answer is CuPy's, at the ends of what the types hold too."""
    ufunc = getattr(cupy, name)

    def f(x: Any, y: Any) -> Any:
        return ufunc(x) if ufunc.nin == 1 else ufunc(x, y)

    x = values(dtype)
    if name in ("left_shift", "right_shift"):
        x = np.clip(x, 0, 7)  # C++ leaves other counts undefined
    a, b = (cupy.array(part.ravel()) for part in np.meshgrid(x, x))
    if not b.all() and name in ("floor_divide", "remainder"):
        b[b == 0] = 1
    try:
        want = f(a, b)
    except (TypeError, cupy.cuda.compiler.CompileException):
        pytest.skip("CuPy has no such function")
    same(dyncomp.compile(f)(a, b), want)


@pytest.mark.parametrize("dtype", "bHilfd")
def test_python_numbers_are_weak(dtype: str) -> None:
    def f(x: Any) -> Any:
        return x + 1, x * 2, 3 - x, x / 2, x > 1, x == 2, x * 0.5, x**2, np.float32(2) * x, x + True

    x = cupy.arange(9).astype(dtype)
    same(dyncomp.compile(f)(x), f(x))


def test_work_goes_to_the_current_stream() -> None:
    def f(x: Any) -> Any:
        return cupy.tanh(x) + 1

    compiled = dyncomp.compile(f, fullgraph=True)
    x = cupy.random.standard_normal((512, 512))
    compiled(x)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        y = cupy.zeros((2048, 2048))
        for _ in range(50):
            y = y @ y
        z = compiled(x + y[:512, :512])
        want = f(x)
    stream.synchronize()
    same(z, want)


def test_sizes_become_symbols() -> None:
    def f(x: Any, y: Any) -> Any:
        return cupy.tanh(x) * 2 - y.sum(axis=0), x.T, x @ y.T

    compiled = dyncomp.compile(f, fullgraph=True, dynamic=True)
    for rows, columns in ((3, 40), (5, 41), (700, 300)):
        x, y = cupy.random.random((2, rows, columns))
        same(compiled(x, y), f(x, y))
        same(compiled(x[::-1], y), f(x[::-1], y))


def test_max_autotune() -> None:
    def f(x: Any, w: Any, b: Any) -> Any:
        return cupy.maximum(x @ w + b, 0)

    arguments = [
        cupy.random.standard_normal(shape).astype("float32") for shape in ((512, 256), (256, 384), 384)
    ]
    got = dyncomp.compile(f, fullgraph=True, mode="max-autotune")(*arguments)
    cupy.testing.assert_allclose(got, f(*arguments), rtol=1e-3, atol=1e-3)


def test_memory_is_cupys() -> None:
    """Results are allocated by CuPy's allocator, and given back."""

    def f(x: Any) -> Any:
        return x * 2 + 1

    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        x = cupy.ones(1 << 20)
        compiled = dyncomp.compile(f, fullgraph=True)
        before = pool.used_bytes()
        y = compiled(x)
        assert pool.used_bytes() == before + y.nbytes
        del y
        assert pool.used_bytes() == before


def test_breaks_go_on_in_cupy() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        z = y[y > 1]
        return z + 1, cupy.percentile(y, 30), y // 2

    x = cupy.random.standard_normal(100)
    same(dyncomp.compile(f)(x), f(x))


def test_errors_are_cupys() -> None:
    def f(x: Any, y: Any) -> Any:
        return x + y

    with pytest.raises(ValueError) as mine:
        dyncomp.compile(f)(cupy.ones(3), cupy.ones(4))
    with pytest.raises(ValueError) as theirs:
        f(cupy.ones(3), cupy.ones(4))
    assert str(mine.value) == str(theirs.value)
