"""Products of 8-bit integers in graphs: which go to the runtime's routine, and that they are right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.archives.processors import levels_here
from dyncomp.runtime import _launch, num_threads, set_num_threads
from tests.runtime.test_gemm import SETS
from tests.warm_start.zygote import Zygote

RNG = np.random.default_rng(0)
STEP = "summed in int32 matrix product"


def r(*shape: int, dtype: str = "int8") -> Any:
    low, high = (0, 256) if dtype == "uint8" else (-128, 128)
    return RNG.integers(low, high, shape).astype(dtype)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def plain(a, w):
    return a.astype(np.int32) @ w.astype(np.int32)


def turned(a, w):
    return a.astype(np.int32).T @ w.T.astype(np.int32)


def long_sums(a, w):
    return a.astype(np.int64) @ w.astype(np.int64)


def scaled(a, w, scale, bias):
    return np.maximum((a.astype(np.int32) @ w.astype(np.int32)).astype(np.float32) * scale + bias, 0)


def rounded(x, w):
    q = np.clip(np.rint(x / np.float32(0.02)), -127, 127).astype(np.int8)
    return (q.astype(np.int32) @ w.astype(np.int32)).astype(np.float32)


def shifted(a, w):
    """The weight is made of bytes by arithmetic on these."""
    return a.astype(np.int32) @ (w ^ np.int8(5)).astype(np.int32)


def einsum(a, w):
    return np.einsum("bij,bjk->bik", a.astype(np.int32), w.astype(np.int32))


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "plain": (plain, (r(40, 64), r(64, 50))),
    "uint8 by int8": (plain, (r(33, 65, dtype="uint8"), r(65, 17))),
    "int8 by uint8": (plain, (r(9, 129), r(129, 300, dtype="uint8"))),
    "one row": (plain, (r(1, 300), r(300, 513))),
    "a vector": (plain, (r(1025, dtype="uint8"), r(1025, 257))),
    "by a vector": (plain, (r(300, 700), r(700, dtype="uint8"))),
    "turned": (turned, (r(64, 40), r(50, 64))),
    "few turned rows": (turned, (r(640, 3), r(50, 640, dtype="uint8"))),
    "int64": (long_sums, (r(40, 64), r(64, 50))),
    "scaled": (scaled, (r(20, 128, dtype="uint8"), r(128, 300), floats(300), floats(300))),
    "scaled row": (scaled, (r(1, 256, dtype="uint8"), r(256, 300), floats(300), floats(300))),
    "rounded": (rounded, (floats(30, 64), r(64, 40))),
    "much rounded": (rounded, (floats(600, 1024), r(1024, 300))),  # as the product reads it
    "made": (shifted, (r(30, 64), r(64, 40))),
    "batched": (einsum, (r(3, 20, 30), r(3, 30, 40, dtype="uint8"))),
}


@pytest.mark.parametrize("level", SETS)
@pytest.mark.parametrize("name", sorted(CASES))
def test_products(name: str, level: str) -> None:
    function, arguments = CASES[name]
    compiled = dyncomp.compile(function, fullgraph=True)
    expected = function(*arguments)
    try:
        _launch.use_products(level)
        for _ in range(5):  # with packed weights that are kept, too
            found = compiled(*arguments)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(found, expected)
    finally:
        _launch.use_products(None)
    assert dyncomp.explain(function)(*arguments).details().count(STEP) == 1


def test_what_follows_is_done_on_finished_tiles() -> None:
    function, arguments = CASES["scaled"]
    assert "each tile finished by" in dyncomp.explain(function)(*arguments).details()


def test_int64_sums_that_do_not_fit_int32_stay() -> None:
    a, w = np.full((8, 40000), 255, np.uint8), np.full((40000, 9), 255, np.uint8)
    compiled = dyncomp.compile(long_sums, fullgraph=True)
    np.testing.assert_array_equal(compiled(a, w), long_sums(a, w))
    assert STEP not in dyncomp.explain(long_sums)(a, w).details()


def test_int32_sums_wrap() -> None:
    a, w = np.full((8, 40000), 255, np.uint8), np.full((40000, 9), 255, np.uint8)
    compiled = dyncomp.compile(plain, fullgraph=True)
    np.testing.assert_array_equal(compiled(a, w), plain(a, w))


def test_symbolic_sizes() -> None:
    compiled = dyncomp.compile(scaled, fullgraph=True, dynamic=True)
    for m, k, n in ((2, 40, 300), (1, 256, 301), (65, 7, 90), (30, 64, 2)):
        arguments = r(m, k, dtype="uint8"), r(k, n), floats(n), floats(n)
        np.testing.assert_array_equal(compiled(*arguments), scaled(*arguments))


def by_bytes(x, w, scale):
    return x @ w.astype(np.float32) * scale


@pytest.mark.parametrize("level", SETS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("rows", [1, 2, 4, None])
def test_float_rows_by_bytes(rows: int | None, layout: str, dtype: str, level: str) -> None:
    x = floats(*(() if rows is None else (rows,)), 300)
    w, scale = r(300, 401, dtype=dtype), floats(401)
    w = np.asfortranarray(w) if layout == "columns" else w
    compiled = dyncomp.compile(by_bytes, fullgraph=True)
    expected = by_bytes(x.astype(np.float64), w, scale)
    bound = np.abs(x).astype(np.float64) @ np.abs(w.astype(np.float64)) * np.abs(scale) * 300 * 2.0**-23
    try:
        _launch.use_products(level)
        for _ in range(4):
            assert (np.abs(compiled(x, w, scale) - expected) <= bound).all()
    finally:
        _launch.use_products(None)
    assert f"float32 by {dtype}, summed in float32" in dyncomp.explain(by_bytes)(x, w, scale).details()


def test_threads_give_equal_bits() -> None:
    x, w, scale = floats(1, 2000), r(2000, 3000), floats(3000)
    compiled = dyncomp.compile(by_bytes, fullgraph=True)
    before = num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            found.append(compiled(x, w, scale))
    finally:
        set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("rows", [1, 20])
def test_weights_that_change_are_read_again(rows: int) -> None:
    a, w = r(rows, 512), r(512, 300)
    compiled = dyncomp.compile(plain, fullgraph=True)
    for number in range(12):
        if number % 5 == 4:
            w[number, number] += 1
        np.testing.assert_array_equal(compiled(a, w), plain(a, w))


@pytest.mark.parametrize("name", ["scaled", "scaled row", "much rounded", "by bytes"])
def test_archives(name: str, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    if not levels_here():
        pytest.skip("no level of x86-64")
    rows = by_bytes, (floats(2, 300), r(300, 401), floats(401))
    function, arguments = CASES.get(name, rows)
    dyncomp.export(function, arguments, processors=levels_here()[-1:]).save(tmp_path / "f.dcp")
    found = dyncomp.load(tmp_path / "f.dcp")(*arguments)
    np.testing.assert_array_equal(found, dyncomp.compile(function)(*arguments))


PROGRAM = """
import numpy as np
import dyncomp

@dyncomp.compile(fullgraph=True)
def product(a, w):
    return a.astype(np.int32) @ w.astype(np.int32)

@dyncomp.compile(fullgraph=True)
def by_bytes(x, w):
    return x @ w.astype(np.float32)

def main():
    w = np.arange(90000).astype(np.int8).reshape(300, 300)
    a = np.arange(6000).astype(np.uint8).reshape(20, 300)
    found = product(a, w), by_bytes(a[:1].astype(np.float32), w)
    assert np.array_equal(found[0], a.astype(np.int64) @ w), "wrong"
    return found
"""


def test_from_disk_in_a_new_process(tmp_path: Path) -> None:
    zygote = Zygote()
    try:
        folder, cache = tmp_path / "code", tmp_path / "cache"
        folder.mkdir()
        (folder / "program.py").write_text(PROGRAM)
        first, second = zygote.run(folder, cache), zygote.run(folder, cache)
    finally:
        zygote.close()
    assert first["outcome"] == second["outcome"]
    assert "wrong" not in str(first["outcome"]) and "Error" not in str(first["outcome"])
    assert second["stats"]["from_disk"] == 2
