"""The template of matrix products: values by Triton's interpreter, binaries and their resources for GPUs."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from dyncomp.dtypes import float16
from dyncomp.inductor.gpu.products import TILES, Tile, has_template, render_product
from dyncomp.inductor.schedule import CallBlas, Matrix
from tests.inductor.test_render_triton import COMPILE, INTERPRET, run_script

pytest.importorskip("triton")

SMALL = Tile(32, 32, 16, 4, 3)


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


def test_values(tmp_path: Path) -> None:
    steps = [product((), 64, 96, 32), product((), 50, 70, 40), product((3,), 33, 40, 20, a_turned=True)]
    steps.append(product((2,), 300, 33, 17, b_turned=True))
    jobs, arrays = [], []
    for number, step in enumerate(steps):
        assert has_template(step)
        kernel = render_product(step, SMALL)
        (tmp_path / f"job{number}_0.py").write_text(kernel.source)
        part = {"name": kernel.name, "grid": kernel.grid(), "buffers": [0, 1, 2], "symbols": []}
        part["blocks"] = kernel.blocks
        jobs.append({"kernels": [part], "workspaces": [], "dtypes": ["float16"] * 3, "origins": None})
        arrays.append(numbers(step))
        np.savez(tmp_path / f"job{number}.npz", **{f"a{n:02}": a for n, a in enumerate(arrays[-1])})
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    run_script(tmp_path, INTERPRET, TRITON_INTERPRET="1")
    for number, (step, (a, b, _)) in enumerate(zip(steps, arrays)):
        with np.load(tmp_path / f"done{number}.npz") as stored:
            np.testing.assert_allclose(stored["a02"], wanted(step, a, b), rtol=2e-3, atol=2e-2)


def compiled(tmp_path: Path, tiles, targets):
    kernels = [render_product(product((), 4096, 4096, 4096), tile) for tile in tiles]
    (tmp_path / "kernels.pickle").write_bytes(pickle.dumps(kernels))
    (tmp_path / "targets.json").write_text(json.dumps(targets))
    run_script(tmp_path, COMPILE)
    return json.loads((tmp_path / "report.json").read_text())


def check_resources(report, most_shared) -> None:
    for name, target, size, shared, used in report:
        assert size > 1000
        assert shared <= most_shared, name
        assert not used["STACK"], f"{name} spills registers on {target}"


def test_a_tile_fits_the_processor(tmp_path: Path) -> None:
    check_resources(compiled(tmp_path, TILES[:1], [("cuda", 90, 32)]), 232_448)


@pytest.mark.slow
def test_every_tile_fits_the_processors(tmp_path: Path) -> None:
    check_resources(compiled(tmp_path, TILES, [("cuda", 80, 32), ("cuda", 90, 32)]), 166_912)
