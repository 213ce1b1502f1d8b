"""Loads across rows: tiles that are transposed in registers."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
import dyncomp.inductor.compile as inductor
from dyncomp.build.library import load_vector_math
from dyncomp.build.toolchain import find_toolchain
from dyncomp.inductor.render.cpp import stage

pytestmark = pytest.mark.skipif(
    not (load_vector_math() and find_toolchain().calls_vectors),
    reason="the runtime has no transposition for this compiler or processor",
)


@pytest.fixture
def sources(monkeypatch):
    """The C++ of what is compiled."""
    found: list[str] = []
    render = inductor.render_module
    monkeypatch.setattr(inductor, "render_module", lambda *a: found.append(render(*a)) or found[-1])
    return found


def numbers(dtype, *shape: int, stride: int = 0) -> np.ndarray:
    """An array whose rows are ``stride`` bytes apart."""
    width = stride // np.dtype(dtype).itemsize or shape[-1]
    whole = np.random.default_rng(3).integers(-1000, 1000, (*shape[:-1], width)).astype(dtype)
    return whole[..., : shape[-1]]


def add_transposed(x, y):
    return x.T + y


@pytest.mark.parametrize("dtype", ("f4", "f8", "i4", "i8", "u4"))
@pytest.mark.parametrize("shape", ((128, 128), (129, 200), (200, 129), (143, 151)), ids=str)
def test_edges(dtype, shape, sources):
    x = numbers(dtype, *shape, stride=4096)
    y = numbers(dtype, *shape[::-1])
    out = dyncomp.compile(add_transposed, fullgraph=True)(x, y)
    assert "dcv_transpose_" in sources[0]
    assert out.dtype == x.dtype
    np.testing.assert_array_equal(out, x.T + y)


def batched(x, y):
    return np.where(x.transpose(0, 2, 1) > 0, y, -x.transpose(0, 2, 1)) * 2


def test_batches_and_selections(sources):
    x, y = numbers("f4", 3, 140, 131, stride=1024), numbers("f4", 3, 131, 140)
    np.testing.assert_array_equal(dyncomp.compile(batched)(x, y), batched(x, y))
    assert sources[0].count("dcv_transpose_32(m_") == 1


def mixed(x, y):
    return x.T.astype(np.float64) * y.T + 1


def test_types_of_different_sizes(sources):
    x, y = numbers("f4", 150, 140, stride=4096), numbers("f8", 150, 140, stride=4096)
    z = np.zeros((140, 150))
    program = lambda x, y, z: mixed(x, y) + z + z[::-1] + np.sqrt(np.abs(z - 1))  # noqa: E731
    np.testing.assert_array_equal(dyncomp.compile(program)(x, y, z), program(x, y, z))


def test_sizes_unknown_when_compiling(sources):
    compiled = dyncomp.compile(add_transposed, dynamic=True)
    for rows, columns in ((256, 256), (300, 256), (3, 5), (1, 256), (257, 512)):
        x, y = numbers("f4", rows, columns), numbers("f4", columns, rows)
        np.testing.assert_array_equal(compiled(x, y), x.T + y)
    assert "dcv_transpose_32" in sources[0]


def into(x, y):
    y += x.T
    return y


def test_written_in_place(sources):
    x, y = numbers("f8", 160, 130, stride=4096), numbers("f8", 130, 160)
    expected = into(x, y.copy())
    assert dyncomp.compile(into)(x, y) is y
    np.testing.assert_array_equal(y, expected)


def symmetric(x):
    return 0.5 * (x + x.T)


def test_an_array_read_both_ways(sources):
    x = numbers("f8", 512, 512)
    np.testing.assert_array_equal(dyncomp.compile(symmetric)(x), symmetric(x))
    assert "dcv_transpose_64" in sources[0]


def test_nothing_is_staged_where_rows_stay_in_the_cache(sources):
    x = numbers("f8", 150, 150)
    np.testing.assert_array_equal(dyncomp.compile(symmetric)(x), symmetric(x))
    assert "dcv_transpose" not in sources[0]


def transposed(x):
    return x.T.copy()


@pytest.fixture
def large(monkeypatch):
    """Every copy is taken to be large."""
    monkeypatch.setattr(stage, "TURNED_FROM", -1)


@pytest.mark.parametrize("dtype", ("f4", "f8", "u8", "c8"))
@pytest.mark.parametrize("shape", ((128, 128), (128, 1029), (1040, 143), (528, 544)), ids=str)
def test_copies(dtype, shape, large, sources):
    """From one array straight into the other, wherever their rows begin."""
    whole = numbers(dtype, *shape, stride=16384)
    for first in (0, 3):
        x = whole[:, first:]
        found = [dyncomp.compile(transposed, options={"num_threads": n})(x) for n in (1, 2)]
        assert f"dcv_turn_{8 * x.itemsize}(m_" in sources[-1]
        for out in found:
            assert out.dtype == x.dtype
            np.testing.assert_array_equal(out, x.T)


def filled(y, x):
    y[...] = x.T


@pytest.mark.parametrize("first", (0, 1, 5, 16))
def test_copies_into_what_is_there(first, large, sources):
    """The rows of the target begin anywhere."""
    x, y = numbers("i4", 160, 130), numbers("i4", 130, 320)
    expected = y.copy()
    filled(expected[:, first : first + 160], x)
    dyncomp.compile(filled)(y[:, first : first + 160], x)
    np.testing.assert_array_equal(y, expected)
    assert "dcv_turn_32" in sources[0]


def batches(x):
    return np.ascontiguousarray(x.transpose(0, 2, 1))


def test_copies_of_batches(large, sources):
    x = numbers("f4", 3, 144, 176, stride=1024)
    np.testing.assert_array_equal(dyncomp.compile(batches)(x), batches(x))
    assert "dcv_turn_32" in sources[0]


def test_copies_of_sizes_unknown_when_compiling(large, sources):
    compiled = dyncomp.compile(transposed, dynamic=True)
    for rows, columns in ((256, 512), (300, 512), (3, 5), (0, 256), (1, 256), (257, 1030)):
        x = numbers("f8", rows, columns)
        np.testing.assert_array_equal(compiled(x), x.T)
    assert "dcv_turn_64" in sources[0]


def test_rows_that_share_cache_lines_are_not_turned(large, sources):
    x = numbers("f4", 145, 150)
    np.testing.assert_array_equal(dyncomp.compile(transposed)(x), x.T)
    assert "dcv_turn" not in sources[0]


def test_what_is_not_a_number_keeps_its_bits(large, sources):
    x = np.random.default_rng(1).integers(0, 1 << 32, (256, 272), dtype=np.uint32).view(np.float32)
    assert dyncomp.compile(transposed)(x).tobytes() == x.T.copy().tobytes()


@pytest.mark.parametrize("threads", (1, 2))
def test_threads(threads, sources):
    x, y = numbers("f4", 1100, 1030, stride=8192), numbers("f4", 1030, 1100)
    compiled = dyncomp.compile(add_transposed, options={"num_threads": threads})
    np.testing.assert_array_equal(compiled(x, y), x.T + y)
