"""Loop structures of the C++ renderer against the loop IR's executable definition."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
import dyncomp.inductor.compile as inductor
from dyncomp import dtypes
from dyncomp.dtypes import BY_NAME, bool_, float32, float64, int64
from dyncomp.inductor.loops.loop_ir import Axis, Buffer, Index, Kernel, Stmt
from dyncomp.inductor.render.cpp.unit import render_module
from dyncomp.inductor.schedule import CallBlas, Matrix, Module, Segment
from dyncomp.symbolic.integers import ShapeEnv

from .render_util import compile_kernels, load_source, pointwise, reference


def affine(strides, names="ijkl", offset=0):
    return Index(tuple((n, s) for n, s in zip(names, strides) if s), offset)


def contiguous(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def axes_of(shape, reduced=()):
    names = "ijkl"[: len(shape)]
    return tuple(Axis(n, s, "reduce" if n in reduced else "parallel") for n, s in zip(names, shape))


def data(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        return rng.integers(-50 if dtype.kind == "int" else 0, 50, shape).astype(dtype.numpy)
    if dtype.is_complex:
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype.numpy)
    return rng.standard_normal(shape).astype(dtype.numpy)


def reduction(shape, reduced, combiner, dtype, strides=None):
    """``out = combine(x)`` over some axes of a contiguous array (or one with other strides)."""
    names = "ijkl"[: len(shape)]
    kept = tuple(n for n in names if n not in reduced)
    kept_shape = [s for n, s in zip(names, shape) if n in kept]
    result = int64 if combiner.startswith("arg") else dtype
    strides = strides or contiguous(shape)
    body = (
        Stmt("x0", "load", (), tuple(names), ("x", affine(strides)), dtype),
        Stmt("r", "reduce", ("x0",), kept, (combiner, tuple(reduced)), result),
        Stmt("", "store", ("r",), kept, ("y", affine(contiguous(kept_shape), kept)), result),
    )
    total = int(np.prod(kept_shape))
    buffers = (Buffer("x", dtype, int(np.prod(shape)), "in"), Buffer("y", result, max(total, 1), "out"))
    return Kernel(f"{combiner}_{dtype}", axes_of(shape, reduced), buffers, body, ("test",)), (
        max(total, 1),
        result,
    )


def check(kernel, arrays, symbols=(), values=None, rtol=2e-5, atol=1e-5, point_ns=1.0):
    compiled = compile_kernels([kernel], symbols, point_ns)
    check_compiled(compiled, "run", kernel, arrays, symbols, values or {}, rtol, atol)
    return compiled


def check_all(kernels, given, rtol=2e-5, atol=1e-5):
    """The same of several, which the compiler sees together: that is quicker."""
    compiled = compile_kernels(kernels)
    for k, (kernel, arrays) in enumerate(zip(kernels, given)):
        check_compiled(compiled, f"run_{k}", kernel, arrays, (), {}, rtol, atol)


def check_compiled(compiled, name, kernel, arrays, symbols, values, rtol, atol):
    want = reference(kernel, arrays, values)
    results = []
    for split in (True, False):
        got = [a.copy() for a in arrays]
        code, _ = compiled.run(got, name, [values[s] for s in symbols], split)
        assert code == 0
        for buffer, w, g in zip(kernel.buffers, want, got):
            if g.dtype.kind in "biu":
                np.testing.assert_array_equal(g, w, err_msg=f"{buffer.name}\n{compiled.source}")
            else:
                np.testing.assert_allclose(g, w, rtol, atol, err_msg=f"{buffer.name}\n{compiled.source}")
        results.append(got)
    for a, b in zip(*results):
        assert a.tobytes() == b.tobytes(), "the bits depend on how the loop was split"


SHAPES = [
    ((7,), "i"),
    ((100_003,), "i"),
    ((64, 1024), "j"),
    ((5, 3), "j"),
    ((1000, 3), "i"),
    ((100_000, 3), "i"),
    ((300, 700), "i"),
    ((40_000, 64), "i"),
    ((3, 50_000), "j"),
    ((6, 50, 8), "j"),
    ((4, 30, 600), "ik"),
    ((4, 30, 600), "j"),
    ((20, 30, 40), "ij"),
    ((20, 30, 40), "ijk"),
    ((1, 1, 5), "ij"),
]


@pytest.mark.parametrize("shape,reduced", SHAPES, ids=str)
def test_sums(shape, reduced):
    kernel, (total, result) = reduction(shape, reduced, "sum", float32)
    exact = data(shape, float32).astype(np.float64).sum(tuple("ijkl".index(a) for a in reduced))
    x, y = data(shape, float32), np.zeros(total, np.float32)
    check(kernel, [x, y], rtol=1e-4, atol=1e-3)
    compiled = compile_kernels([kernel])
    compiled.run([x, y])
    scale = np.abs(x).sum() / total
    assert np.abs(y - exact.reshape(-1)).max() <= 3e-6 * scale + 1e-6


@pytest.mark.parametrize("combiner", ["sum", "prod", "max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("name", ["int8", "int64", "uint16", "float16", "float32", "float64", "complex128"])
def test_reducers(combiner, name):
    dtype = BY_NAME[name]
    if dtype.is_complex and combiner.startswith("arg"):
        pytest.skip("complex numbers have no argmax kernel")
    kernels, given = [], []
    for shape, reduced in [((23, 130), "j"), ((130, 23), "i"), ((3000,), "i"), ((4, 5), "j")]:
        kernel, (total, result) = reduction(shape, reduced, combiner, dtype)
        x = data(shape, dtype)
        if combiner == "prod" and dtype.is_inexact:
            x = np.sign(x.real).astype(x.dtype) * np.exp(x.real / 50).astype(x.dtype)
        kernels.append(kernel)
        given.append([x, np.zeros(total, result.numpy)])
    tolerance = {"float16": 5e-3, "float32": 2e-4}.get(name, 1e-8)
    check_all(kernels, given, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("combiner", ["max", "min", "sum", "argmax", "argmin"])
@pytest.mark.parametrize("where", [0, 17, 129])
def test_nan_propagates(combiner, where):
    for shape, reduced in [((5, 130), "j"), ((130, 5), "i")]:
        kernel, (total, result) = reduction(shape, reduced, combiner, float32)
        x = data(shape, float32)
        np.moveaxis(x, "ij".index(reduced), 0)[where, 2] = np.nan
        np.moveaxis(x, "ij".index(reduced), 0)[129, 3] = np.inf
        np.moveaxis(x, "ij".index(reduced), 0)[3, 3] = -np.inf
        check(kernel, [x, np.zeros(total, result.numpy)])


def test_argmax_of_equal_values_is_the_first():
    for value in (0.0, -np.inf, np.nan, np.inf):
        kernel, (total, _) = reduction((3, 200), "j", "argmax", float32)
        x = np.full((3, 200), value, np.float32)
        y = np.full(total, 5, np.int64)
        compile_kernels([kernel]).run([x, y])
        assert y.tolist() == [0, 0, 0]


def test_any_and_all():
    for combiner in ("any", "all"):
        kernel, (total, _) = reduction((50, 300), "j", combiner, bool_)
        x = data((50, 300), bool_) & data((50, 1), bool_, 1) | data((50, 1), bool_, 2)
        check(kernel, [x, np.zeros(total, bool)])


def test_sum_of_negative_zeros():
    kernel, _ = reduction((4, 100), "j", "sum", float32)
    y = np.zeros(4, np.float32)
    compile_kernels([kernel]).run([np.full((4, 100), -0.0, np.float32), y])
    assert not np.signbit(y).any()


# -- several passes ---------------------------------------------------------------------------
def softmax(rows, columns, dtype=float32, along="j"):
    both = ("i", "j")
    kept = ("i",) if along == "j" else ("j",)
    at = Index((("i", columns), ("j", 1)))
    total = rows * columns
    body = (
        Stmt("x0", "load", (), both, ("x", at), dtype),
        Stmt("m", "reduce", ("x0",), kept, ("max", (along,)), dtype),
        Stmt("d", "subtract", ("x0", "m"), both, None, dtype),
        Stmt("e", "exp", ("d",), both, None, dtype),
        Stmt("s", "reduce", ("e",), kept, ("sum", (along,)), dtype),
        Stmt("r", "divide", ("e", "s"), both, None, dtype),
        Stmt("", "store", ("r",), both, ("y", at), dtype),
    )
    buffers = (Buffer("x", dtype, total, "in"), Buffer("y", dtype, total, "out"))
    axes = tuple(Axis(n, s, "reduce" if n == along else "parallel") for n, s in (("i", rows), ("j", columns)))
    return Kernel("softmax", axes, buffers, body, ("softmax",))


@pytest.mark.parametrize("rows,columns", [(64, 1024), (5, 7), (1, 30_000), (300, 33), (7, 9000)])
@pytest.mark.parametrize("along", ["i", "j"])
def test_softmax(rows, columns, along):
    x = data((rows, columns), float32)
    compiled = check(softmax(rows, columns, along=along), [x, np.zeros_like(x)])
    if (rows, columns, along) == (64, 1024, "j"):
        assert "kept" in compiled.source, "exp is computed once"


def centered(size):
    """``x - mean(x)`` over everything, with the mean stored too."""
    at = Index((("i", 1),))
    body = (
        Stmt("x0", "load", (), ("i",), ("x", at), float64),
        Stmt("s", "reduce", ("x0",), (), ("sum", ("i",)), float64),
        Stmt("n", "const", (), (), float(size), float64),
        Stmt("m", "divide", ("s", "n"), (), None, float64),
        Stmt("d", "subtract", ("x0", "m"), ("i",), None, float64),
        Stmt("", "store", ("d",), ("i",), ("y", at), float64),
        Stmt("", "store", ("m",), (), ("z", Index()), float64),
    )
    buffers = tuple(
        Buffer(n, float64, s, m) for n, s, m in (("x", size, "in"), ("y", size, "out"), ("z", 1, "out"))
    )
    return Kernel("centered", (Axis("i", size, "reduce"),), buffers, body)


@pytest.mark.parametrize("size", [1, 9, 1000, 200_001])
def test_full_reduction_with_epilogue(size):
    check(centered(size), [data((size,), float64), np.zeros(size), np.zeros(1)], rtol=1e-12, atol=1e-12)


def standardised(rows, columns):
    """``(x - mean) / sqrt(var)`` of every column: two dependent reductions and an epilogue."""
    both, at = ("i", "j"), Index((("i", columns), ("j", 1)))
    body = (
        Stmt("x0", "load", (), both, ("x", at), float64),
        Stmt("s", "reduce", ("x0",), ("j",), ("sum", ("i",)), float64),
        Stmt("n", "const", (), (), float(rows), float64),
        Stmt("m", "divide", ("s", "n"), ("j",), None, float64),
        Stmt("d", "subtract", ("x0", "m"), both, None, float64),
        Stmt("q", "multiply", ("d", "d"), both, None, float64),
        Stmt("t", "reduce", ("q",), ("j",), ("sum", ("i",)), float64),
        Stmt("v", "divide", ("t", "n"), ("j",), None, float64),
        Stmt("sd", "sqrt", ("v",), ("j",), None, float64),
        Stmt("r", "divide", ("d", "sd"), both, None, float64),
        Stmt("", "store", ("r",), both, ("y", at), float64),
    )
    buffers = (Buffer("x", float64, rows * columns, "in"), Buffer("y", float64, rows * columns, "out"))
    return Kernel("standardised", (Axis("i", rows, "reduce"), Axis("j", columns)), buffers, body)


@pytest.mark.parametrize("rows,columns", [(50, 3), (40, 700), (30_000, 8), (9000, 5)])
def test_standardised_columns(rows, columns):
    x = data((rows, columns), float64)
    check(standardised(rows, columns), [x, np.zeros_like(x)], rtol=1e-9, atol=1e-9)


# -- pointwise --------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(50, 70), (2, 100_000), (3, 4, 5), (1, 1), (200, 3)])
def test_broadcast_and_transpose(shape):
    names = tuple("ijk"[: len(shape)])
    turned = contiguous(shape[::-1])[::-1]
    total = int(np.prod(shape))
    body = (
        Stmt("a0", "load", (), names, ("a", affine(turned)), float32),
        Stmt("b0", "load", (), names[:1], ("b", affine((1,))), float32),
        Stmt("c0", "add", ("a0", "b0"), names, None, float32),
        Stmt("", "store", ("c0",), names, ("c", affine(contiguous(shape))), float32),
    )
    buffers = (
        Buffer("a", float32, total, "in"),
        Buffer("b", float32, shape[0], "in"),
        Buffer("c", float32, total, "out"),
    )
    kernel = Kernel("broadcast", axes_of(shape), buffers, body)
    check(kernel, [data(shape, float32), data(shape[:1], float32, 1), np.zeros(shape, np.float32)])


def test_stencil_and_negative_strides():
    rows, columns = 60, 130
    inner = (rows - 2, columns - 2)
    names = ("i", "j")
    loads = [(1, 1), (0, 1), (2, 1), (1, 0), (1, 2)]
    body = [
        Stmt(f"x{k}", "load", (), names, ("u", affine((columns, 1), offset=r * columns + c)), float64)
        for k, (r, c) in enumerate(loads)
    ]
    body.append(Stmt("t0", "add", ("x0", "x1"), names, None, float64))
    for k in range(2, 5):
        body.append(Stmt(f"t{k - 1}", "add", (f"t{k - 2}", f"x{k}"), names, None, float64))
    back = affine((-inner[1], -1), offset=inner[0] * inner[1] - 1)
    body.append(Stmt("", "store", ("t3",), names, ("v", back), float64))
    buffers = (Buffer("u", float64, rows * columns, "in"), Buffer("v", float64, inner[0] * inner[1], "out"))
    kernel = Kernel("stencil", axes_of(inner), buffers, tuple(body))
    check(kernel, [data((rows, columns), float64), np.zeros(inner)])


def test_zero_dimensional_kernel():
    body = (
        Stmt("x0", "load", (), (), ("x", Index()), float32),
        Stmt("y0", "exp", ("x0",), (), None, float32),
        Stmt("", "store", ("y0",), (), ("y", Index()), float32),
    )
    kernel = Kernel("scalar", (), (Buffer("x", float32, 1, "in"), Buffer("y", float32, 1, "out")), body)
    check(kernel, [np.array([0.5], np.float32), np.zeros(1, np.float32)])


def test_values_may_be_named_like_buffers():
    kernel = pointwise("exp", [float32], float32, 40)
    renamed = tuple(Buffer(n, b.dtype, b.size, b.mode) for n, b in zip(("x0", "y"), kernel.buffers))
    load, exp, store = kernel.body
    body = (
        Stmt("x0", "load", (), ("i",), ("x0", load.arg[1]), float32),
        exp,
        Stmt("", "store", ("y",), ("i",), ("y", store.arg[1]), float32),
    )
    check(Kernel("names", kernel.axes, renamed, body), [data((40,), float32), np.zeros(40, np.float32)])


def test_in_place_update():
    at = Index((("i", 1),))
    body = (
        Stmt("x0", "load", (), ("i",), ("x", at), int64),
        Stmt("p", "axis", (), ("i",), "i", int64),
        Stmt("y0", "multiply", ("x0", "p"), ("i",), None, int64),
        Stmt("", "store", ("y0",), ("i",), ("x", at), int64),
    )
    kernel = Kernel("scale", (Axis("i", 5000),), (Buffer("x", int64, 5000, "inout"),), body)
    check(kernel, [data((5000,), int64)])


# -- scans ------------------------------------------------------------------------------------
@pytest.mark.parametrize("combiner", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("shape,axis", [((1000,), "i"), ((20, 50), "j"), ((50, 20), "i"), ((9, 700), "i")])
def test_scans(combiner, shape, axis):
    names = tuple("ij"[: len(shape)])
    at = affine(contiguous(shape))
    total = int(np.prod(shape))
    body = (
        Stmt("x0", "load", (), names, ("x", at), float64),
        Stmt("c", "scan", ("x0",), names, (combiner, axis), float64),
        Stmt("", "store", ("c",), names, ("y", at), float64),
    )
    buffers = (Buffer("x", float64, total, "in"), Buffer("y", float64, total, "out"))
    kernel = Kernel("scan", axes_of(shape, axis), buffers, body)
    x = data(shape, float64)
    if combiner == "max":
        x.reshape(-1)[total // 2] = np.nan
    check(kernel, [x, np.zeros(shape)], rtol=1e-9)


# -- gather and scatter -----------------------------------------------------------------------
def gather_kernel(rows, columns, count):
    names = ("i", "j")
    body = (
        Stmt("k", "load", (), ("i",), ("index", Index((("i", 1),))), int64),
        Stmt("x0", "gather", ("k",), names, ("x", Index((("j", 1),)), (columns,), (rows,), (True,)), float32),
        Stmt("", "store", ("x0",), names, ("y", Index((("i", columns), ("j", 1)))), float32),
    )
    buffers = (
        Buffer("index", int64, count, "in"),
        Buffer("x", float32, rows * columns, "in"),
        Buffer("y", float32, count * columns, "out"),
    )
    return Kernel("gather", (Axis("i", count), Axis("j", columns)), buffers, body)


def test_gather_wraps_and_reports_bounds():
    kernel = gather_kernel(10, 33, 200)
    index = np.random.default_rng(0).integers(-10, 10, 200)
    x = data((10, 33), float32)
    compiled = check(kernel, [index, x, np.zeros((200, 33), np.float32)])
    for bad in (10, -11, 2**62, -(2**63)):
        index[150] = bad
        code, details = compiled.run([index, x, np.zeros((200, 33), np.float32)])
        assert code == 1
        assert details[:2] == [bad, 10]


@pytest.mark.parametrize("combiner", ["set", "add", "max", "multiply"])
def test_scatter(combiner):
    body = (
        Stmt("k", "load", (), ("i",), ("index", Index((("i", 1),))), int64),
        Stmt("v", "load", (), ("i",), ("value", Index((("i", 1),))), float32),
        Stmt("", "scatter", ("v", "k"), ("i",), ("y", Index(), (1,), (30,), (True,), combiner), float32),
    )
    buffers = (
        Buffer("index", int64, 100, "in"),
        Buffer("value", float32, 100, "in"),
        Buffer("y", float32, 30, "inout"),
    )
    kernel = Kernel("scatter", (Axis("i", 100),), buffers, body)
    index = np.random.default_rng(0).integers(-30, 30, 100)
    arrays = [index, data((100,), float32), data((30,), float32, 1)]
    compiled = check(kernel, arrays)
    index[99] = 30
    before = arrays[2].copy()
    assert compiled.run(arrays)[0] == 1
    np.testing.assert_array_equal(arrays[2], before, err_msg="nothing is written when an index is bad")


# -- symbolic sizes ---------------------------------------------------------------------------
def make_symbol():
    return ShapeEnv().new_symbol(100, low=0)


@pytest.mark.parametrize("n", [0, 1, 5, 100, 40_000])
def test_symbolic_sizes(n):
    size = make_symbol()
    kernel = pointwise("exp", [float32], float32, size)
    check(
        kernel, [data((max(n, 1),), float32), np.zeros(max(n, 1), np.float32)], (str(size),), {str(size): n}
    )


@pytest.mark.parametrize("n", [0, 1, 5, 100, 40_000])
@pytest.mark.parametrize("along", ["i", "j", "ij"])
def test_symbolic_reductions(n, along):
    size = make_symbol()
    names = ("i", "j")
    kept = tuple(a for a in names if a not in along)
    body = (
        Stmt("x0", "load", (), names, ("x", Index((("i", 3), ("j", 1)))), float32),
        Stmt("r", "reduce", ("x0",), kept, ("sum", tuple(along)), float32),
        Stmt("", "store", ("r",), kept, ("y", Index(tuple((a, 1) for a in kept))), float32),
    )
    axes = tuple(Axis(a, s, "reduce" if a in along else "parallel") for a, s in (("i", size), ("j", 3)))
    buffers = (Buffer("x", float32, size * 3, "in"), Buffer("y", float32, size + 3, "out"))
    kernel = Kernel("sum", axes, buffers, body)
    check(
        kernel, [data((n, 3), float32), np.zeros(n + 3, np.float32)], (str(size),), {str(size): n}, atol=1e-2
    )


# -- the module -------------------------------------------------------------------------------
def test_equal_kernels_share_a_function():
    first = pointwise("exp", [float32], float32, 100)
    second = Kernel("another", first.axes, first.buffers, first.body, ("elsewhere",))
    compiled = compile_kernels([first, second])
    assert compiled.source.count("static i64 kernel_") == 1


def test_origin_is_shown_and_cannot_break_the_comment():
    kernel = pointwise("exp", [float32], float32, 100)
    kernel = Kernel("k", kernel.axes, kernel.buffers, kernel.body, ("f at a.py:3\nreturn \\",))
    source = compile_kernels([kernel]).source
    assert "//   f at a.py:3 return /" in source


@pytest.mark.parametrize("dtype", [float32, float64, dtypes.complex64], ids=str)
def test_matrix_product_without_blas(dtype):
    """The process's BLAS is tested with the launcher; here the table has none."""
    call = CallBlas(
        dtype, 2, 3, 4, Matrix(0, 0, 4, 1, (8,)), Matrix(1, 0, 1, 4, (0,)), Matrix(2, 0, 3, 1, (6,)), (5,)
    )
    source = render_module(Module("m", (Segment("run", (call,)),), (), ()))
    assert "gemm(101, 111, 112, high, wide, k" in source
    a, b = data((5, 2, 4), dtype), data((3, 4), dtype, 1)
    c = np.zeros((5, 2, 3), dtype.numpy)
    load_source(source).run([a, b, c])
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-4)


def test_every_dtype_loads_and_stores():
    kernels = [pointwise("cast", [d], d, 77) for d in dtypes.ALL]
    compiled = compile_kernels(kernels)
    for k, d in enumerate(dtypes.ALL):
        x = data((77,), d)
        y = np.zeros(77, d.numpy)
        compiled.run([x, y], f"run_{k}")
        assert x.tobytes() == y.tobytes(), d


def test_elements_of_images_are_no_records(monkeypatch) -> None:
    """Of several elements of each image gcc would make records of whole images, in half a minute."""
    texts: list[str] = []
    render = inductor.render_module
    monkeypatch.setattr(inductor, "render_module", lambda *a: texts.append(render(*a)) or texts[-1])

    def corners(x):
        return (x[:, 0, 0] + x[:, 0, 1] + x[:, 1, 0] + x[:, 1, 1]) / 9.0

    x = np.linspace(-1.0, 1.0, 64 * 64 * 64, dtype=np.float32).reshape(64, 64, 64)
    np.testing.assert_allclose(dyncomp.compile(corners)(x), corners(x), rtol=1e-6)
    assert "omp simd" not in texts[0].partition("corners")[2]
