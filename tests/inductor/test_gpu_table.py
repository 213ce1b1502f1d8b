"""The op table on a GPU: which rows have no form there, and that the others compile ahead of time."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dyncomp.device import Device
from dyncomp.errors import LoweringError
from dyncomp.inductor.compile import emit_steps
from dyncomp.inductor.fusion.epilogue import touched
from dyncomp.inductor.gpu.gpu_plan import DevicePlanner
from dyncomp.inductor.gpu.join_kernels import join_steps
from dyncomp.inductor.gpu.wrapper import Wrapper
from dyncomp.inductor.lowering.kinds import Lowering
from dyncomp.inductor.memory import plan_memory
from dyncomp.inductor.render.triton.unit import TritonKernel
from dyncomp.prims.opdef import Extern, OpDef
from dyncomp.prims.table import TABLE
from tests.inductor.harness import graph_of
from tests.inductor.test_render_triton import COMPILE, TARGETS, run_script
from tests.prims.framework import rows, samples_of, type_of

pytest.importorskip("triton")

CUDA = Device("cuda", 0)

# Rows without a form for complex numbers (functions, and orders that only NumPy has).
_NAMES = (
    "arccos arccosh arcsin arcsinh arctan arctanh clip cos cosh cummax cummin cumprod exp2 expm1 fmax fmin"
    " log log10 log1p log2 maximum minimum power reduce_max reduce_min reduce_prod rint sign sin sinh sqrt"
    " tan tanh argmax argmin index_put"
)
COMPLEX = frozenset(_NAMES.split())
LIBRARY = ("convolution", "convolution_transpose")
# Made for processors alone (`inductor/fusion/half_operands.py`).
NOT_MADE = ("wide_convolution",)
# Functions that Triton's library for a kind of device has not.
WITHOUT = {"hip": ("cbrt",)}
# Without an atomic instruction for some types and combiners.
ATOMIC = frozenset(("index_put",))


def is_expected(row: OpDef, dtypes: list[Any]) -> bool:
    """Whether a row may be left to the library (or the original program)."""
    if isinstance(row.lower, Extern) or row.name in (*LIBRARY, *NOT_MADE):
        return True
    if row.name in COMPLEX and any(d.is_complex for d in dtypes):
        return True
    return row.name in ATOMIC


def combinations(row: OpDef) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Types and parameters of one sample, the largest, for each combination of element types."""
    largest: dict[Any, Any] = {}
    for sample in samples_of(row.name):
        arrays = [np.asarray(a) for a in sample.args]
        key = tuple(a.dtype for a in arrays)
        size = sum(a.size for a in arrays)
        if size > largest.get(key, (0,))[0]:
            types = [replace(type_of(a), device=CUDA) for a in arrays]
            largest[key] = (size, types, dict(sample.params))
    for _, types, params in largest.values():
        yield types, params


def rendered(name: str, types: list[Any], params: dict[str, Any]) -> Wrapper:
    """The module of a graph of one node."""
    graph = graph_of(name, types, params)
    lowering = Lowering(graph, TABLE).run()
    items = join_steps(emit_steps(lowering), graph.env)
    memory = plan_memory([touched(item) for item in items])
    planned = DevicePlanner(lowering, memory, None).run(items)
    wrapper = Wrapper(planned.module, planned.plan, CUDA)
    compile(wrapper.source(), name, "exec")
    return wrapper


def test_every_row_has_a_form_on_a_gpu() -> None:
    """But for those that are known to have none; these have none indeed."""
    without: dict[str, str] = {}
    unexpected: dict[str, str] = {}
    for row in rows("prim"):
        for types, params in combinations(row):
            try:
                rendered(row.name, types, params)
            except LoweringError as error:
                expected = is_expected(row, [t.dtype for t in types])
                (without if expected else unexpected)[row.name] = f"{types}: {error}"
    assert not unexpected
    found = {name for name in without if not isinstance(TABLE[name].lower, Extern)} - {*LIBRARY, *NOT_MADE}
    assert sorted({*COMPLEX, *ATOMIC}) == sorted(found)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t[1]))
def test_every_row_compiles(target: Any, tmp_path: Path) -> None:
    """For one element type of each kind."""
    kernels: list[Any] = []
    for row in rows("prim"):
        kinds = set()
        if row.name in WITHOUT.get(target[0], ()):
            continue
        for types, params in combinations(row):
            kind = tuple(t.dtype.kind for t in types)
            if kind in kinds:
                continue
            kinds.add(kind)
            try:
                found = rendered(row.name, types, params).kernels
            except LoweringError:
                continue
            kernels += [renamed(k, f"{row.name}_{len(kernels)}") for k in found.values() if not k.symbols]
    (tmp_path / "kernels.pickle").write_bytes(pickle.dumps(kernels))
    (tmp_path / "targets.json").write_text(json.dumps([target]))
    run_script(tmp_path, COMPILE, seconds=1500)
    report = json.loads((tmp_path / "report.json").read_text())
    assert len(report) > 150
    for name, _, size, shared, used in report:
        assert size > 500
        assert shared <= 65536, name
        # Triton 3.6 has a table of digits of pi there
        assert used.get("STACK", 0) <= 32, f"{name} spills registers"


def renamed(kernel: TritonKernel, name: str) -> TritonKernel:
    return replace(kernel, name=name, body=kernel.body.replace(f"def {kernel.name}(", f"def {name}("))
