"""Generated code for other processors: AVX2, x86-64 without vectors beyond SSE2, and AArch64 with NEON.

AArch64 needs a cross compiler (``aarch64-linux-gnu-g++``, or ``DYNCOMP_CROSS_CXX``; Debian's
g++-aarch64-linux-gnu), and values an emulator (``qemu-aarch64``, of qemu-user); tests are skipped without.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dyncomp.build.toolchain import Toolchain, find_toolchain, flags_for
from dyncomp.inductor.compile import compile_graph
from dyncomp.inductor.render.cpp.unit import render_module
from dyncomp.inductor.schedule import CallBlas, CallChain
from tests.inductor.harness import OPTIONS, Reference, copies
from tests.inductor.test_code_rows import graph_of_samples
from tests.prims.framework import all_rows, check_values, run_ref, some_samples

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "dyncomp/runtime/csrc"
ROWS = [parameters.values[0] for parameters in all_rows("prim")]
# One of each kind: pointwise, halves, complex, checks of positions, reductions, scans, sorting, views.
SOME = (
    "exp",
    "power",
    "convert",
    "sin",
    "floor_divide",
    "index",
    "reduce_sum",
    "reduce_max",
    "cumsum",
    "argmax",
)
SOME += ("multiply", "where", "index_put", "transpose", "tanh", "minimum")
FEW = ("exp", "convert", "power", "reduce_sum", "index")


def rows(names: tuple[str, ...] = SOME) -> list[Any]:
    return [pytest.param(row, id=row.name) for row in ROWS if row.name in names]


def compiler() -> str:
    named = os.environ.get("DYNCOMP_CROSS_CXX", "")
    found = named or shutil.which("aarch64-linux-gnu-g++")
    if not found:
        pytest.skip("no compiler for AArch64")
    return found


def cross() -> Toolchain:
    path, *words = shlex.split(compiler())
    return Toolchain(path, (*words, *flags_for("armv8-a")), "aarch64")


def samples(row: Any, count: int) -> list[Any]:
    return [] if row.name == "empty" else some_samples(row, count)


class Emulated(Reference):
    """A planned graph whose kernels run in an emulator."""

    def __init__(self, graph: Any, folder: Path, emulator: list[str]) -> None:
        super().__init__(graph)
        self.folder = folder
        self.emulator = emulator
        source = folder / "unit.cpp"
        source.write_text(render_module(self.planned.module))
        cross().compile(source, folder / "unit.so")

    def _launch(self, step: Any) -> None:
        """All kernels of the one segment at its first one."""
        (segment,) = self.planned.module.segments
        if step is not segment.steps[0]:
            return
        file = self.folder / "buffers"
        with open(file, "wb") as out:
            out.write(np.int64(len(self.memory)).tobytes())
            for memory in self.memory:
                facts = np.array([memory.data.nbytes, memory.origin * memory.data.itemsize], np.int64)
                out.write(facts.tobytes() + memory.data.tobytes())
        subprocess.run(
            [*self.emulator, str(self.folder / "unit.so"), segment.symbol, str(file)], check=True, timeout=60
        )
        found = file.read_bytes()
        assert np.frombuffer(found[:8], np.int64)[0] == 0
        place = 8
        for memory in self.memory:
            now = np.frombuffer(found, memory.data.dtype, memory.data.size, place)
            if memory.data.flags.writeable:
                memory.data[...] = now
            else:
                assert now.tobytes() == memory.data.tobytes()
            place += memory.data.nbytes


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    runner = tmp_path_factory.mktemp("emulated") / "emulated"
    path, *words = shlex.split(compiler())
    found = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if found is None:
        pytest.skip("no emulator of AArch64")
    include = [f"-I{RUNTIME}", f"-I{sysconfig.get_path('include')}"]
    command = [path, *words, "-O1", *include, str(HERE / "emulated.cpp"), "-o", str(runner), "-ldl"]
    subprocess.run(command, check=True)
    return [found, "-L", "/usr/aarch64-linux-gnu", str(runner)]


def compare(row: Any, taken: list[Any], found: list[Any]) -> None:
    for sample in taken:
        for theirs in run_ref(row, sample):
            scale = 1.0 if np.asarray(theirs).dtype.kind in "fc" else 0.0
            check_values(np.asarray(found.pop(0)), np.asarray(theirs), row.tolerance.eps, scale=scale)


@pytest.mark.parametrize("march", ("x86-64", "x86-64-v3", "x86-64-v4"))
def test_instruction_sets(march: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Values of rows compiled for less than this processor has."""
    machine = os.uname().machine
    flags = Path("/proc/cpuinfo").read_text() if machine == "x86_64" else ""
    if machine != "x86_64" or (march == "x86-64-v4" and "avx512bw" not in flags):
        pytest.skip(f"this processor does not run {march}")
    monkeypatch.setenv("DYNCOMP_MARCH", march)
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path / "cache"))
    assert f"-march={march}" in find_toolchain().flags
    for (row,) in (parameters.values for parameters in rows(FEW)):
        taken = samples(row, 12)
        graph, args = graph_of_samples(row, taken)
        found = compile_graph(graph, OPTIONS).call(*copies(args))
        compare(row, taken, list(found) if isinstance(found, tuple) else [found])


def check_unit(row: Any, folder: Path) -> None:
    taken = samples(row, 24)
    if not taken:
        return
    planned = Reference(graph_of_samples(row, taken)[0]).planned
    if planned.module.segments:
        source = folder / f"{row.name}.cpp"
        source.write_text(render_module(planned.module))
        cross().compile(source, folder / f"{row.name}.so")


@pytest.mark.slow
@pytest.mark.parametrize("row", rows(tuple(row.name for row in ROWS)))
def test_every_row_compiles_for_aarch64(row: Any, tmp_path: Path) -> None:
    check_unit(row, tmp_path)


@pytest.mark.parametrize("row", rows(("convert", "power", "index")))
def test_rows_compile_for_aarch64(row: Any, tmp_path: Path) -> None:
    check_unit(row, tmp_path)


def test_loops_use_neon(tmp_path: Path) -> None:
    (row,) = [row for row in ROWS if row.name == "multiply"]
    check_unit(row, tmp_path)
    tool = compiler().replace("g++", "objdump")
    if shutil.which(tool) is None:
        pytest.skip("no disassembler for AArch64")
    text = subprocess.run(
        [tool, "-d", tmp_path / "multiply.so"], capture_output=True, text=True, check=True
    ).stdout
    assert ".4s" in text
    assert "fmul" in text


@pytest.mark.parametrize("row", rows())
def test_values_on_aarch64(row: Any, tmp_path: Path, emulator: list[str]) -> None:
    taken = samples(row, 8)
    graph, args = graph_of_samples(row, taken)
    run = Emulated(graph, tmp_path, emulator)
    assert len(run.planned.module.segments) == 1
    assert not any(isinstance(s, (CallBlas, CallChain)) for s in run.planned.module.segments[0].steps)
    compare(row, taken, run.run(*args))


RUNTIME_FILES = (
    "pool",
    "threads",
    "limits",
    "watch",
    "kept",
    "memory",
    "blas",
    "select",
    "gemm/portable",
    "gemm/dispatch",
)


@pytest.mark.parametrize("name", RUNTIME_FILES)
def test_the_runtime_compiles_for_aarch64(name: str, tmp_path: Path) -> None:
    path, *words = shlex.split(compiler())
    include = [f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}"]
    command = [path, *words, "-O0", "-std=c++17", "-fPIC", *include]
    done = subprocess.run(
        [*command, "-c", str(RUNTIME / f"{name}.cpp"), "-o", str(tmp_path / "x.o")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
