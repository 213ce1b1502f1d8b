"""``options={"tier": "fast-first"}``, builds in the background, and sources that are compiled in parts."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.build.background import Builder, builder
from dyncomp.build.kernel_cache import KernelCache
from dyncomp.build.toolchain import Runner, find_toolchain, parts_for
from dyncomp.errors import ToolchainError
from dyncomp.inductor.compile import compile_graph
from dyncomp.inductor.render.cpp import unit as cpp
from dyncomp.options import Options, make_options
from tests.inductor.harness import graph_of, type_of

ROOT = Path(__file__).parents[2]
FAST = {"tier": "fast-first"}


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def several(x: Any, y: Any) -> Any:
    """Four kernels: over rows, over columns, over elements of another size."""
    rows = np.exp(x).sum(axis=1) / 3.0
    columns = np.tanh(x * 1.5).max(axis=0) + np.sin(x).mean(axis=0)
    return rows, columns, np.log1p(y) * 2.0 + np.arctan2(y, 1.25), np.cumsum(y)


def inputs() -> tuple[Any, Any]:
    return np.linspace(-2.0, 3.0, 391).reshape(17, 23), np.linspace(0.1, 2.0, 101)


def tier_of(compiled: Any, *args: Any) -> Any:
    report = dyncomp.explain(compiled, options=FAST)(*args)
    (entry,) = [e for e in report.entries if e.graph is not None]
    return entry.compiled.artifact, report


def equal(found: Any, wanted: Any) -> bool:
    return all(f.tobytes() == w.tobytes() for f, w in zip(found, wanted, strict=True))


def test_optimised_code_takes_its_place() -> None:
    x, y = inputs()
    artifact, report = tier_of(several, x, y)
    assert artifact.tier.fast == ("-O0",)
    assert "code built with -O0" in report.details()
    first = artifact.call(x, y)
    assert builder().wait(120)
    assert artifact.tier.state == "best"
    assert "runs optimised code" in report.details()
    assert equal(artifact.call(x, y), first)
    assert equal(dyncomp.compile(several)(x, y), first)


def test_an_optimised_build_on_disk_is_taken() -> None:
    x, y = inputs()
    dyncomp.compile(several)(x, y)
    artifact, _ = tier_of(several, x, y)
    assert artifact.tier is None


def test_a_build_that_fails(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    load = KernelCache.load

    def refusing(self: Any, source: str, toolchain: Any = None, runner: Any = None) -> Any:
        if runner is not None:
            raise ToolchainError("no more memory\nfor the compiler")
        return load(self, source, toolchain)

    monkeypatch.setattr(KernelCache, "load", refusing)
    x, y = inputs()
    artifact, report = tier_of(several, x, y)
    assert builder().wait(120)
    assert artifact.tier.state == "failed"
    assert "failed: no more memory" in report.details()
    assert "keeps its first build" in caplog.text
    for found, wanted in zip(artifact.call(x, y), several(x, y), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_a_graph_that_is_gone_is_not_built(empty_cache: Path) -> None:
    hold = builder()
    gone = threading.Event()
    before: list[bool] = []
    hold.submit(lambda runner: before.append(gone.wait(120)))  # the build waits until the graph is gone
    x, y = inputs()
    compiled = dyncomp.compile(several, options=FAST)
    compiled(x, y)
    built = len(list(empty_cache.rglob("*.so")))
    assert built == 1
    del compiled
    dyncomp.reset()
    gc.collect()
    gone.set()
    assert hold.wait(120)
    assert before == [True]
    assert len(list(empty_cache.rglob("*.so"))) == built


def test_what_comes_first() -> None:
    big = np.zeros((1500, 901))
    x, y = inputs()
    assert tier_of(several, big, y)[0].tier.fast == ("-O1",)
    assert tier_of(lambda a: np.exp(a) + 1.0, x)[0].tier is None
    assert builder().wait(120)


def test_other_functions_than_the_plans_are_refused() -> None:
    x = np.ones(5)
    call = compile_graph(graph_of("exp", [type_of(x)], {}), Options()).call
    for wrong in ((0, ()), (0, (0,)), (1, (1,)), (0, ("a",)), (0, (1, 2))):
        with pytest.raises(ValueError, match="retarget"):
            call.retarget(*wrong, None)
    with pytest.raises(TypeError):
        call.retarget(0)
    np.testing.assert_allclose(call(x), np.exp(x))


def test_options(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="tier must be one of best, fast-first"):
        make_options(options={"tier": "slow"})
    monkeypatch.setenv("DYNCOMP_TIER", "fast-first")
    assert make_options().tier == "fast-first"


# -- processes --------------------------------------------------------------------------------
PROGRAM = """
import os, sys, time
import numpy as np, dyncomp
from dyncomp.build.background import builder
from tests.inductor.test_tiers import several, inputs, tier_of
"""


def run(program: str, tmp_path: Path, compiler: str = "") -> subprocess.CompletedProcess[str]:
    """A program in a process of its own; ``compiler``: a line of sh before the compiler's own."""
    real = shutil.which("g++")
    if real is None:
        pytest.skip("no g++")
    own = tmp_path / "g++"
    own.write_text(f'#!/bin/sh\n{compiler}\nexec {real} "$@"\n')
    own.chmod(0o755)
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "DYNCOMP_CXX": str(own)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program], env=environ, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done


def test_the_end_of_the_process_ends_the_compiler(tmp_path: Path, empty_cache: Path) -> None:
    mark = tmp_path / "pid"
    begin = f"echo $$ > {mark}.new; mv {mark}.new {mark}; sleep 600"
    slow = f'case "$*" in *-O0* | *--version | *-dumpmachine) ;; *) {begin};; esac'
    done = run(
        f"""
artifact, _ = tier_of(several, *inputs())
while not os.path.exists({str(mark)!r}):
    time.sleep(0.01)
print(artifact.tier.state)
""",
        tmp_path,
        slow,
    )
    assert done.stdout.split() == ["fast"]
    assert done.stderr == ""
    stat = Path(f"/proc/{mark.read_text().strip()}/stat")
    assert not stat.exists() or stat.read_text().split()[2] == "Z"
    assert not list(empty_cache.rglob(".build-*"))


def test_a_forked_child_goes_on(tmp_path: Path) -> None:
    done = run(
        """
held = []
builder().submit(lambda runner: held or time.sleep(1.5) or held.append(1))
artifact, _ = tier_of(several, *inputs())
child = os.fork()
if child == 0:
    held.append(1)
    good = builder().wait(60) and artifact.tier.state == "best"
    artifact.call(*inputs())
    os._exit(0 if good else 7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(builder().wait(60) and artifact.tier.state)
""",
        tmp_path,
    )
    assert done.stdout.split() == ["0", "best"]


def test_keys_at_the_terminal_do_not_reach_the_compiler(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    done = run(
        f"""
import signal
os.setpgrp()
artifact, _ = tier_of(several, *inputs())
while not os.path.exists({str(begun)!r}):
    time.sleep(0.01)
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.killpg(os.getpgrp(), signal.SIGINT)
print(builder().wait(60) and artifact.tier.state)
""",
        tmp_path,
        f'case "$*" in *-O0* | *--version* | *-dumpmachine*) ;; *) touch {begun}; sleep 0.3;; esac',
    )
    assert done.stdout.split() == ["best"]


def test_keys_do_not_reach_a_compiler_before_it_has_a_session() -> None:
    for background in (False, True):
        ((_, text),) = Runner(background).run([["grep", "SigBlk", "/proc/self/status"]])
        assert bool(int(text.split()[1], 16) >> (signal.SIGINT - 1) & 1) == background


def test_jobs_run_in_order_and_go_on_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    own = Builder()
    order: list[int] = []

    def job(number: int) -> Any:
        def run_job(runner: Runner) -> None:
            order.append(number)
            if number == 1:
                raise RuntimeError("broken")

        return run_job

    for number in range(4):
        own.submit(job(number))
    assert own.wait(30)
    assert order == [0, 1, 2, 3]
    assert "broken" in caplog.text
    own.close()
    own.submit(job(4))
    assert own.wait(30)
    assert order == [0, 1, 2, 3]


# -- parts ------------------------------------------------------------------------------------
@pytest.mark.parametrize("cores", (1, 2, 3))
def test_a_source_in_parts(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp, "SPLIT_FROM", 2000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(cores))
    commands: list[int] = []
    start = Runner._start
    monkeypatch.setattr(Runner, "_start", lambda self, c: (commands.append(1), start(self, c))[1])
    x, y = inputs()
    artifact, _ = tier_of(several, x, y)
    assert builder().wait(120)
    parts = re.findall(r"^#if DC_PART\((\d+)\)$", artifact.source, re.M)
    assert len(parts) >= 3
    assert len(commands) == (2 if cores == 1 else 2 * (cores + 1))
    assert equal(artifact.call(x, y), dyncomp.compile(several)(x, y))


def test_shares_cover_all_parts_once() -> None:
    text = "\n".join(f"#if DC_PART({k})\n{'x' * (10 << k)}\n#endif" for k in range(6))
    for cores in (2, 3, 8):
        masks = parts_for(text, cores)
        assert len(masks) == min(cores, 6)
        assert sum(masks) == 63
    assert parts_for(text, 1) == parts_for("int x;", 8) == []


def test_a_part_that_does_not_compile(tmp_path: Path) -> None:
    source = tmp_path / "unit.cpp"
    source.write_text(
        "#if DC_PART(0)\nint f() { return 1; }\n#endif\n#if DC_PART(1)\nint g() { return h; }\n#endif\n"
    )
    text = "#ifdef DC_PARTS\n#define DC_PART(k) (DC_PARTS >> (k) & 1)\n#else\n#define DC_PART(k) 1\n#endif\n"
    source.write_text(text + source.read_text())
    with pytest.raises(ToolchainError, match=r"unit\.cpp(.|\n)*h"):
        find_toolchain().compile(source, tmp_path / "unit.so")
