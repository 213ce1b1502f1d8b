"""Stores past the caches: the same bits as plain stores, at every size, alignment and number of threads."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dyncomp
import dyncomp.inductor.compile as inductor
from dyncomp.build.library import load_vector_math
from dyncomp.build.toolchain import find_toolchain
from dyncomp.inductor.render.cpp import ahead, stream
from dyncomp.inductor.render.cpp import kernel as cpp_kernel

pytestmark = pytest.mark.skipif(
    not (load_vector_math() and find_toolchain().calls_vectors),
    reason="the runtime has no such copies for this compiler or processor",
)


@pytest.fixture
def sources(monkeypatch):
    """The C++ of what is compiled, which takes everything to be large."""
    monkeypatch.setattr(stream, "STREAM_BYTES", -1)
    monkeypatch.setattr(stream, "STREAM_TILES_BYTES", -1)
    found: list[str] = []
    render = inductor.render_module
    monkeypatch.setattr(inductor, "render_module", lambda *a: found.append(render(*a)) or found[-1])
    return found


def numbers(dtype, *shape: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 100, shape).astype(dtype)


def scaled(x):
    return x + x


def clipped(x):
    return np.clip(x, 3, 50)


def copied(x):
    return x.copy()


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def jacobi(u):
    return 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])


def two_results(x):
    return x * 2, (x > 30)


def joined(x):
    return np.concatenate([x * 2, x + 1], axis=1)


def waves(x):
    return np.sin(x) + 1


def same(found, expected, rtol):
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol)


@pytest.mark.parametrize("dtype", ("f4", "f8", "f2", "i1", "i2", "u8", "c8", "c16"))
@pytest.mark.parametrize("size", (512, 600, 1023, 5001))
def test_dtypes_and_tails(dtype, size, sources):
    x = numbers(dtype, size)
    for function in (scaled, copied):
        out = dyncomp.compile(function, fullgraph=True)(x)
        assert out.dtype == x.dtype
        np.testing.assert_array_equal(out, function(x))
    assert "dcv_stream_copy" in "".join(sources)


@pytest.mark.parametrize("function", (clipped, softmax, jacobi, two_results, joined, waves))
@pytest.mark.parametrize("shape", ((9, 257), (40, 1021), (130, 520)), ids=str)
def test_rows(function, shape, sources):
    x = numbers("f8", *shape)
    found = [dyncomp.compile(function, options={"num_threads": n})(x) for n in (1, 2)]
    outs = [f if isinstance(f, tuple) else (f,) for f in found]
    for one, two in zip(*outs, strict=True):
        np.testing.assert_array_equal(one, two)
    expected = function(x)
    same(outs[0], expected if isinstance(expected, tuple) else (expected,), 1e-13)
    assert "dcv_stream_copy" in "".join(sources)


def test_sizes_that_change(sources):
    compiled = dyncomp.compile(clipped, dynamic=True)
    for size in (2000, 0, 1, 7, 513, 4099):
        x = numbers("f8", size)
        np.testing.assert_array_equal(compiled(x), clipped(x))
    assert "dcv_stream_copy" in "".join(sources)


def in_place(x, y):
    x += y
    y[...] = 3.0


def test_what_is_read_too_is_stored_as_usual(sources):
    x, y = numbers("f8", 3000), numbers("f8", 3000)
    dyncomp.compile(in_place)(x, y)
    np.testing.assert_array_equal(x, 2 * numbers("f8", 3000))
    assert (y == 3.0).all()


def test_small_kernels_are_as_they_were(monkeypatch):
    found: list[str] = []
    render = inductor.render_module
    monkeypatch.setattr(inductor, "render_module", lambda *a: found.append(render(*a)) or found[-1])
    dyncomp.compile(clipped)(numbers("f8", 100_000))
    assert "dcv_stream" not in found[0]


def layernorm(x):
    centered = x - np.mean(x, axis=1, keepdims=True)
    return centered / np.sqrt(np.mean(centered * centered, axis=1, keepdims=True) + 1e-5)


def doubled_maximum(x):
    return x.max(axis=1) * 2


@pytest.fixture
def large(monkeypatch):
    """Arrays and rows of any size are taken to be too large for the caches."""
    monkeypatch.setattr(ahead, "KEPT_BYTES", 0)


def asked(source: str) -> list[str]:
    """Where what is asked for begins, once for each request."""
    assert source.count("const auto* const next = ") <= source.count("__builtin_prefetch(next + ")
    return re.findall(r"const auto\* const next = (.*);", source)


@pytest.fixture(params=(False, True), ids=("any", "AMD"))
def amd(request, monkeypatch) -> bool:
    """Whether the processor is taken for one of AMD's."""
    monkeypatch.setattr(ahead, "is_amd", lambda: request.param)
    return request.param


@pytest.mark.parametrize("program", [softmax, layernorm])
@pytest.mark.parametrize("shape", [(7, 512), (5, 1000), (3, 4095)])
def test_the_next_row_is_asked_for(sources, large, program, shape, monkeypatch) -> None:
    """By every pass over a row, a share each; the last row's included, where nothing lies behind."""
    monkeypatch.setattr(ahead, "is_amd", lambda: False)
    x = numbers(np.float32, *shape) / 10
    np.testing.assert_allclose(dyncomp.compile(program)(x), program(x), rtol=1e-5, atol=1e-6)
    assert asked(sources[0])
    assert all(line.endswith(f"+ {shape[1]}") for line in asked(sources[0]))
    assert f"+ 1 * {shape[1]}) / " in sources[0]


@pytest.mark.parametrize("program", [scaled, doubled_maximum])
def test_what_is_read_once_is_asked_for_a_little_ahead(sources, large, program, amd) -> None:
    x = numbers(np.float32, 7, 512)
    np.testing.assert_array_equal(dyncomp.compile(program)(x), program(x))
    assert asked(sources[0])
    assert all(line.endswith(f"+ {128 if amd else 1024}") for line in asked(sources[0]))


@pytest.mark.parametrize("program", [softmax, layernorm])
def test_processors_that_look_ahead_are_asked_by_the_first_pass(sources, large, program, monkeypatch) -> None:
    monkeypatch.setattr(ahead, "is_amd", lambda: True)
    x = numbers(np.float32, 7, 513) / 10
    np.testing.assert_allclose(dyncomp.compile(program)(x), program(x), rtol=1e-5, atol=1e-6)
    assert asked(sources[0])
    assert all(line.endswith("+ 128") for line in asked(sources[0]))
    second = sources[0].index("omp simd", sources[0].index("= acc_"))
    assert "__builtin_prefetch" not in sources[0][second:]


@pytest.mark.parametrize("text, size", [("32768K\n", 32 << 20), ("16M\n", 16 << 20), ("", 0), ("many\n", 0)])
def test_the_size_of_the_last_cache(text, size, monkeypatch) -> None:
    monkeypatch.setattr(stream.Path, "read_text", lambda *_: text)
    assert stream.last_level_bytes.__wrapped__() == size


def test_a_small_last_cache_is_left_early(monkeypatch, sources) -> None:
    monkeypatch.setattr(stream, "STREAM_BYTES", 48 << 20)
    for size in (1 << 20, 1 << 40, 0):
        monkeypatch.setattr(stream, "last_level_bytes", lambda size=size: size)
        dyncomp.compile(lambda x: clipped(x))(numbers("f8", 100_000))
    assert ["dcv_stream" in source for source in sources] == [True, False, False]


def test_of_neighbours_the_first_to_read_a_line_asks_for_it(sources, large, amd) -> None:
    """A page ahead: what is read in several places at once the processor does not look far ahead of."""
    x = numbers(np.float32, 12, 3000)
    np.testing.assert_allclose(dyncomp.compile(jacobi)(x), jacobi(x), rtol=1e-6)
    (line,) = asked(sources[0])
    assert line.endswith("+ 1024")


def increased(x, y):
    x += y


def test_what_is_stored_as_usual_is_asked_for_too(sources, large, amd) -> None:
    x, y = numbers(np.float32, 4099), numbers(np.float32, 4099)
    dyncomp.compile(increased)(x, y)
    np.testing.assert_array_equal(x, 2 * y)
    assert asked(sources[0])


def affine(x, w):
    return x * w


def test_what_stays_in_the_caches_is_not_asked_for(sources) -> None:
    x, w = numbers(np.float32, 7, 512), numbers(np.float32, 512)
    np.testing.assert_array_equal(dyncomp.compile(affine)(x, w), affine(x, w))
    assert not asked(sources[0])


@pytest.mark.parametrize("rows", [65, 72, 203])
def test_more_rows_at_once_have_the_same_bits(rows, sources, monkeypatch):
    """Sums and maxima of columns in kernels that touch much go through eight rows at a time."""
    x = np.random.default_rng(rows).standard_normal((rows, 260)).astype(np.float32)
    x[rows // 2, 3] = np.nan

    def columns(x):
        return x.sum(axis=0), (x * 2 + 1).max(axis=0)

    found = []
    for most in (1 << 30, -1):
        monkeypatch.setattr(cpp_kernel, "STREAM_TILES_BYTES", most)
        found.append(dyncomp.compile(lambda x: columns(x))(x))
    assert ["at_row + 8 <= end_of_rows" in source for source in sources] == [False, True]
    for near, far, expected in zip(*found, columns(x), strict=True):
        assert near.tobytes() == far.tobytes()
        np.testing.assert_allclose(far, expected, rtol=1e-4, atol=1e-4)
