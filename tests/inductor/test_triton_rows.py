"""Every prim's samples, lowered: each kernel by Triton's interpreter against the loop IR's definition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dyncomp.errors import LoweringError
from dyncomp.inductor.loops.loop_ir import Kernel
from dyncomp.inductor.loops.loop_reference import run_kernel
from dyncomp.inductor.render.triton.unit import render_triton
from dyncomp.inductor.schedule import LaunchKernel
from dyncomp.prims.opdef import Extern, OpDef
from tests.inductor.harness import Reference, copies, graph_of
from tests.inductor.test_render_triton import interpret
from tests.prims.framework import all_rows, samples_of, type_of

pytest.importorskip("triton")

SMALL = 3000
# Rows whose kernels Triton refuses, in whole or in part: complex functions, atomic operations on small types…
MOST_REFUSED = 0.35
# What the interpreter itself cannot run: libdevice functions without a NumPy counterpart, and 16-bit atomics.
NOT_INTERPRETED = frozenset(("erfc", "lgamma", "nextafter", "ldexp", "ndtri"))


@dataclass
class Jobs:
    """Kernels, what their buffers hold before and after, and where in it element 0 is."""

    kernels: list[Kernel] = field(default_factory=list)
    before: list[list[Any]] = field(default_factory=list)
    after: list[list[Any]] = field(default_factory=list)
    origins: list[list[int]] = field(default_factory=list)
    refused: int = 0


class Recorder(Reference):
    """Runs a graph by its loops' definition and keeps what each kernel got and made."""

    def __init__(self, graph: Any, jobs: Jobs) -> None:
        super().__init__(graph)
        self.jobs = jobs

    def _launch(self, step: LaunchKernel) -> None:
        kernel = step.kernel
        memory = [self._typed(slot, b.dtype) for b, slot in zip(kernel.buffers, step.slots)]
        before = [m.data.copy() for m in memory]
        run_kernel(kernel, {b.name: m for b, m in zip(kernel.buffers, memory)}, self.symbols)
        if any(s.op in NOT_INTERPRETED for s in kernel.body) or _is_split(kernel):
            return
        try:
            render_triton(kernel)
        except LoweringError:
            self.jobs.refused += 1
            return
        if any(b.dtype.name == "bfloat16" for b in kernel.buffers):
            return  # the interpreter does not round to it
        self.jobs.kernels.append(kernel)
        self.jobs.before.append(before)
        self.jobs.after.append([m.data.copy() for m in memory])
        self.jobs.origins.append([m.origin for m in memory])


def _is_split(kernel: Kernel) -> bool:
    """Whether buffers share memory, which jobs do not."""
    return len({b.name for b in kernel.buffers}) != len(kernel.buffers)


def record(rows: Iterable[OpDef], count: int) -> Jobs:
    jobs = Jobs()
    for row in rows:
        if isinstance(row.lower, Extern):
            continue
        samples = [s for s in samples_of(row.name) if all(np.asarray(a).size <= SMALL for a in s.args)]
        step = max(len(samples) // count, 1)
        for sample in samples[::step][:count]:
            args = [np.asarray(a) for a in sample.args]
            graph = graph_of(row.name, [type_of(a) for a in args], dict(sample.params))
            with np.errstate(all="ignore"):
                Recorder(graph, jobs).run(*copies(args))
    return jobs


def check(jobs: Jobs, folder: Path) -> None:
    results = interpret(folder, jobs.kernels, jobs.before, origins=jobs.origins)
    for kernel, wanted, found in zip(jobs.kernels, jobs.after, results):
        for buffer, want, got in zip(kernel.buffers, wanted, found):
            if buffer.mode == "in":
                continue
            message = "\n".join(part.source for part in render_triton(kernel).kernels)
            if got.dtype.kind in "biu":
                np.testing.assert_array_equal(got, want, err_msg=message)
                continue
            half = buffer.dtype.itemsize == 2
            rtol = 4e-3 if half else 2e-5
            np.testing.assert_allclose(got, want, rtol, 2e-3 if half else 1e-5, err_msg=message)


def test_samples_of_rows(tmp_path: Path) -> None:
    jobs = record([p.values[0] for p in all_rows("prim")], 3)
    assert len(jobs.kernels) > 200
    assert jobs.refused < MOST_REFUSED * len(jobs.kernels)
    check(jobs, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("row", all_rows("prim"))
def test_many_samples_of_row(row: OpDef, tmp_path: Path) -> None:
    jobs = record([row], 60)
    if jobs.kernels:
        check(jobs, tmp_path)
