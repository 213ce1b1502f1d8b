"""The template of matrix products: values by Triton's interpreter, binaries and their resources for GPUs."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from dyncomp.dtypes import bfloat16, bool_, float16, float32, int64
from dyncomp.inductor.fusion.softmax import find_softmax
from dyncomp.inductor.gpu.attention import Block as AttentionBlock
from dyncomp.inductor.gpu.attention import candidates as attention_candidates
from dyncomp.inductor.gpu.attention import render_attention
from dyncomp.inductor.gpu.products import (
    DESCRIPTOR_TILES,
    HALF_TILES,
    PERSISTENT_TILES,
    Processor,
    Tile,
    candidates,
    has_descriptors,
    has_template,
    render_product,
)
from dyncomp.inductor.loops.loop_ir import Axis, Buffer, Index, Kernel, Stmt
from dyncomp.inductor.schedule import CallBlas, CallChain, Matrix, TileKernel
from dyncomp.symbolic.integers import ShapeEnv, SymbolInfo
from tests.inductor.test_render_triton import COMPILE, INTERPRET, run_script

pytest.importorskip("triton")

SMALL = Tile(32, 32, 16, 4, 3)
FORMS = ("plain", "persistent", "descriptor")


def product(batch, m, n, k, a_turned=False, b_turned=False):
    a = Matrix(0, 0, *((1, m) if a_turned else (k, 1)), (m * k,) * len(batch))
    b = Matrix(1, 0, *((1, k) if b_turned else (n, 1)), (k * n,) * len(batch))
    c = Matrix(2, 0, n, 1, (m * n,) * len(batch))
    return CallBlas(float16, m, n, k, a, b, c, batch)


def numbers(step):
    rng = np.random.default_rng(0)
    count = int(np.prod(step.batch))
    a = rng.standard_normal(count * step.m * step.k).astype(np.float16)
    b = rng.standard_normal(count * step.k * step.n).astype(np.float16)
    return a, b, np.zeros(count * step.m * step.n, np.float16)


def wanted(step, a, b):
    count = int(np.prod(step.batch))
    x = a.reshape(count, step.m, step.k)
    if step.a.row_stride == 1:
        x = a.reshape(count, step.k, step.m).swapaxes(1, 2)
    y = b.reshape(count, step.k, step.n)
    if step.b.row_stride == 1:
        y = b.reshape(count, step.n, step.k).swapaxes(1, 2)
    return (x.astype(np.float32) @ y.astype(np.float32)).reshape(-1)


def finished(step: CallBlas, keep: bool) -> CallBlas:
    """The product with ``relu(c + bias)`` as its epilogue, which is stored in bfloat16."""
    env = ShapeEnv({n: SymbolInfo(n, 8, 0) for n in ("number", "row", "rows", "col", "cols", "tile_row")})
    n, m = step.n, step.m
    at = (env.symbol("number") * (m * n)) + env.symbol("row") * n + env.symbol("col")
    buffers = (
        Buffer("b0", step.dtype, m * n, "in"),
        Buffer("b1", float32, n, "in"),
        Buffer("b2", float32, m * n, "out"),
    )
    tile = Index((("c", 1), ("r", env.symbol("tile_row"))), 0)
    body = (
        Stmt("x", "load", (), ("r", "c"), ("b0", tile), step.dtype),
        Stmt("w", "cast", ("x",), ("r", "c"), None, float32),
        Stmt("y", "load", (), ("c",), ("b1", Index((("c", 1),), env.symbol("col"))), float32),
        Stmt("z", "add", ("w", "y"), ("r", "c"), None, float32),
        Stmt("zero", "const", (), (), 0, float32),
        Stmt("t", "maximum", ("z", "zero"), ("r", "c"), None, float32),
        Stmt("", "store", ("t",), ("r", "c"), ("b2", Index((("r", n), ("c", 1)), at)), float32),
    )
    kernel = Kernel("k", (Axis("r", env.symbol("rows")), Axis("c", env.symbol("cols"))), buffers, body)
    return dataclasses.replace(step, c=step.c if keep else None, epilogue=TileKernel(kernel, (0, 3, 4), 0))


def job(folder: Path, number: int, kernel, arrays) -> dict:
    """Write a kernel and what it works on down."""
    (folder / f"job{number}_0.py").write_text(kernel.source)
    np.savez(folder / f"job{number}.npz", **{f"a{n:02}": a for n, a in enumerate(arrays)})
    part = {"name": kernel.name, "grid": kernel.grid(), "buffers": list(range(len(arrays))), "symbols": []}
    part["blocks"] = kernel.blocks
    dtypes = ["int8" if a.dtype == bool else a.dtype.name for a in arrays]
    return {"kernels": [part], "workspaces": [], "dtypes": dtypes, "origins": None}


def interpret(folder: Path, kernels, arrays):
    """The arrays of each kernel after its run."""
    jobs = [job(folder, k, *pair) for k, pair in enumerate(zip(kernels, arrays))]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    run_script(folder, INTERPRET, TRITON_INTERPRET="1")
    for k in range(len(jobs)):
        with np.load(folder / f"done{k}.npz") as stored:
            yield [stored[name] for name in sorted(stored.files)]


def test_values(tmp_path: Path) -> None:
    steps = [product((), 64, 96, 32), product((), 50, 70, 40), product((3,), 33, 40, 24, a_turned=True)]
    steps.append(product((2,), 300, 32, 17, b_turned=True))
    steps.append(product((2,), 40, 48, 24, a_turned=True, b_turned=True))
    kernels, arrays, wants = [], [], []
    for step in steps:
        assert has_template(step)
        for form in FORMS if has_descriptors(step) else FORMS[:2]:
            a, b, c = numbers(step)
            kernels.append(render_product(step, SMALL, form, 3))
            arrays.append((a, b, c))
            wants.append(wanted(step, a, b))
    assert sum("descriptor" in k.name for k in kernels) == 2
    for (*_, found), want in zip(interpret(tmp_path, kernels, arrays), wants):
        np.testing.assert_allclose(found, want, rtol=2e-3, atol=2e-2)


def test_tiles_are_finished(tmp_path: Path) -> None:
    kernels, arrays, wants = [], [], []
    for step in (product((), 50, 70, 40), product((2,), 40, 48, 24)):
        for form in FORMS[:2]:
            for keep in (False, True):
                a, b, c = numbers(step)
                bias = np.linspace(-3, 3, step.n, dtype=np.float32)
                made = np.zeros(c.size, np.float32)
                kernels.append(render_product(finished(step, keep), SMALL, form, 3))
                arrays.append((a, b, c, bias, made) if keep else (a, b, bias, made))
                plain = wanted(step, a, b)
                wants.append((plain, np.maximum(plain.reshape(-1, step.n) + bias, 0).reshape(-1)))
    for found, given, (plain, want) in zip(interpret(tmp_path, kernels, arrays), arrays, wants):
        np.testing.assert_allclose(found[-1], want, rtol=2e-3, atol=2e-2)
        if len(given) == 5:
            np.testing.assert_allclose(found[2], plain, rtol=2e-3, atol=2e-2)


def attention(batch, m, n, k, values, dtype=float16, causal=True) -> CallChain:
    """``softmax(q k^T / 8) v`` over a causal triangle."""
    env = ShapeEnv({name: SymbolInfo(name, 8, 0) for name in ("row", "rows", "col", "tile_row")})
    tile = Index((("c", 1), ("r", env.symbol("tile_row"))), 0)
    buffers = (Buffer("b0", float32, m * n, "in"), Buffer("b1", dtype, m * n, "out"))
    both = ("r", "c")
    body = [
        Stmt("x", "load", (), both, ("b0", tile), float32),
        Stmt("e", "const", (), (), 0.125, float32),
        Stmt("s", "multiply", ("x", "e"), both, None, float32),
    ]
    scores = "s"
    if causal:
        for name, symbol, axis in (("i", "row", "r"), ("j", "col", "c")):
            body.append(Stmt(f"{name}_from", "symbol", (), (), env.symbol(symbol), int64))
            body.append(Stmt(f"{name}_in", "axis", (), (axis,), axis, int64))
            body.append(Stmt(name, "add", (f"{name}_from", f"{name}_in"), (axis,), None, int64))
        body.append(Stmt("seen", "less_equal", ("j", "i"), both, None, bool_))
        body.append(Stmt("least", "const", (), (), float("-inf"), float32))
        body.append(Stmt("t", "where", ("seen", "s", "least"), both, None, float32))
        scores = "t"
    body += [
        Stmt("top", "reduce", (scores,), ("r",), ("max", ("c",)), float32),
        Stmt("d", "subtract", (scores, "top"), both, None, float32),
        Stmt("p", "exp", ("d",), both, None, float32),
        Stmt("l", "reduce", ("p",), ("r",), ("sum", ("c",)), float32),
        Stmt("w", "divide", ("p", "l"), both, None, float32),
        Stmt("h", "cast", ("w",), both, None, dtype),
        Stmt("", "store", ("h",), both, ("b1", tile), dtype),
    ]
    axes = (Axis("r", env.symbol("rows")), Axis("c", n, "reduce"))
    kernel = TileKernel(Kernel("k", axes, buffers, tuple(body)), (0, 0), 0, 1)
    lead = (len(batch) and 1) * (m * k,), (len(batch) and 1) * (n * k,), (len(batch) and 1) * (n * values,)
    q, keys, v = Matrix(0, 0, k, 1, lead[0]), Matrix(1, 0, 1, k, lead[1]), Matrix(2, 0, values, 1, lead[2])
    out = Matrix(3, 0, values, 1, (len(batch) and 1) * (m * values,))
    source = None if dtype is float32 else dtype
    first = CallBlas(float32, m, n, k, q, keys, None, batch, epilogue=kernel, source=source)
    return CallChain(first, CallBlas(dtype, m, values, n, q, v, out, batch))


def test_a_causal_softmax_is_recognised() -> None:
    tiled = attention((), 64, 64, 32, 32).first.epilogue
    assert tiled is not None
    found = find_softmax(tiled.kernel, tiled.sink)
    assert found is not None
    assert found.hidden_after == 0
    assert not found.empty_is_zero


def softmax_product(q, k, v, causal):
    scores = q.astype(np.float32) @ k.astype(np.float32).T / 8
    if causal:
        scores = np.where(np.tri(*scores.shape, dtype=bool), scores, -np.inf)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True) @ v.astype(np.float32)


@pytest.mark.parametrize("causal", [False, True])
def test_values_of_attention(tmp_path: Path, causal: bool) -> None:
    """Blocks that end within the keys, and such that a causal mask cuts."""
    rng = np.random.default_rng(1)
    kernels, arrays, wants = [], [], []
    for m, n in ((70, 70), (64, 96), (100, 33)):
        q, k, v = (rng.standard_normal((rows, 32)).astype(np.float16) for rows in (m, n, n))
        step = attention((), m, n, 32, 32, causal=causal)
        for described in (False, True):
            kernels.append(render_attention(step, AttentionBlock(32, 32, 4, 2, described)))
            arrays.append((q, k, v, np.zeros((m, 32), np.float16)))
            wants.append(softmax_product(q, k, v, causal))
    for (*_, found), want in zip(interpret(tmp_path, kernels, arrays), wants):
        np.testing.assert_allclose(found, want, rtol=5e-3, atol=5e-3)


def compiled(tmp_path: Path, kernels, targets):
    (tmp_path / "kernels.pickle").write_bytes(pickle.dumps(kernels))
    (tmp_path / "targets.json").write_text(json.dumps(targets))
    run_script(tmp_path, COMPILE, seconds=1500)
    return json.loads((tmp_path / "report.json").read_text())


def check_resources(report, most_shared) -> None:
    for name, target, size, shared, used in report:
        assert size > 1000
        assert shared <= most_shared, (name, target, shared)
        if used:
            assert not used["STACK"], f"{name} spills registers on {target}"


LARGE = product((), 4096, 4096, 4096)
HEADS = attention((64,), 2048, 2048, 64, 64)


def test_templates_fit_the_processor(tmp_path: Path) -> None:
    kernels = [
        render_product(finished(LARGE, False), HALF_TILES[2]),
        render_product(LARGE, DESCRIPTOR_TILES[1], "descriptor"),
        attention_candidates(HEADS, Processor())[0],
    ]
    check_resources(compiled(tmp_path, kernels, [("cuda", 90, 32)]), 232_448)


@pytest.mark.slow
def test_every_candidate_fits_the_processors(tmp_path: Path) -> None:
    kernels = candidates(LARGE, Processor()) + candidates(finished(LARGE, False), Processor())
    kernels += attention_candidates(HEADS, Processor())
    kernels += attention_candidates(attention((64,), 2048, 2048, 128, 128, bfloat16), Processor())
    check_resources(compiled(tmp_path, kernels, [("cuda", 80, 32)]), 166_912)
    check_resources(compiled(tmp_path, kernels, [("cuda", 90, 32)]), 232_448)


@pytest.mark.slow
def test_templates_compile_for_amd(tmp_path: Path) -> None:
    kernels = [
        render_product(finished(LARGE, False), HALF_TILES[2]),
        render_product(LARGE, PERSISTENT_TILES[2], "persistent"),
        render_attention(HEADS, AttentionBlock(128, 64, 4, 2)),
    ]
    check_resources(compiled(tmp_path, kernels, [("hip", "gfx942", 64)]), 65_536)
