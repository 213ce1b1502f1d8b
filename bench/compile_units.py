"""``python -m bench.compile_units [collection ...]``: what g++ needs for each unit of models' code.

Models and modules are those of ``tests/models`` (``transformers``, ``timm``, ``torchvision``, ``written`` …);
``modules`` are single blocks of torchvision and random ones. The forward graphs are compiled with small
inputs; each source is compiled alone, in one run of g++ and on one core, and the processor time of that run
is taken (user and system, with what it starts). A source above the bound is compiled again part by part, as
:class:`dyncomp.build.toolchain.Toolchain` does with large ones.

A shared machine is slower than a quiet one: all seconds are divided by what a fixed source takes here and now
beside what it takes on a quiet core (``QUIET_SECONDS``).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dyncomp.build import toolchain
from dyncomp.build.toolchain import Toolchain, find_toolchain
from dyncomp.dataclass import dataclass, field

# Seconds of g++ that no unit may take.
BOUND = 1.5
# What the fixed source takes on a quiet core of the machine of COMPILE.md (AMD EPYC, Zen 4).
QUIET_SECONDS = 0.12
# Modules of random steps on images.
RANDOM_MODULES = 60
# Seconds for one model or module, compilation included.
LIMIT = 240
_FUNCTION = re.compile(
    r"^static i64 (kernel_\w+)\(|^static void (tile_\w+)\(|^DC_SHARED \w+ (\w+)\(.*\{$", re.M
)
_PART = re.compile(r"^#if DC_PART\((\d+)\)$", re.M)


@dataclass(frozen=True)
class Unit:
    """What one run of g++ takes: ``seconds`` of a quiet core, the program, the functions in it."""

    seconds: float
    program: str
    functions: str
    characters: int


@dataclass
class Collected:
    """The units of programs; ``texts`` have been measured."""

    scale: float
    keep: Path
    units: list[Unit] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)
    program: str = ""

    def compile(self, chain: Toolchain, source: Path, output: Path, runner: object = None) -> None:
        """In the place of ``Toolchain.compile``: builds, and measures."""
        text = source.read_text()
        seconds = cpu_seconds(chain, source, output) / self.scale
        if text in self.texts:
            return
        self.texts.add(text)
        parts = [int(found[1]) for found in _PART.finditer(text)]
        if len(parts) < 2 or seconds < BOUND:
            self.add(seconds, text, text)
            return
        spans = [found.start() for found in _PART.finditer(text)] + [len(text)]
        for number, (begin, end) in zip(parts, itertools.pairwise(spans)):
            with tempfile.TemporaryDirectory() as folder:
                more = ("-c", f"-DDC_PARTS={1 << number}ull")
                part = cpu_seconds(chain, source, Path(folder, "part.o"), more) / self.scale
            self.add(part, text[begin:end], text)

    def add(self, seconds: float, part: str, whole: str) -> None:
        found = [next(filter(None, names)) for names in _FUNCTION.findall(part)]
        shown = ", ".join(found[:4]) + (f", {len(found) - 4} more" if len(found) > 4 else "")
        self.units.append(Unit(seconds, self.program, shown, len(part)))
        if seconds > BOUND:
            name = re.sub(r"\W+", "_", self.program)
            (self.keep / f"{name}_{len(self.units)}_{seconds:.1f}s.cpp").write_text(whole)


def cpu_seconds(chain: Toolchain, source: Path, output: Path, more: Sequence[str] = ()) -> float:
    """Seconds of the processor that compiling takes. Raises ``ToolchainError`` as ``Toolchain`` does."""
    libraries = () if "-c" in more else toolchain.LIBRARIES
    command = [chain.compiler, *chain.flags, *more, str(source), "-o", str(output), *libraries]
    child = os.posix_spawn(chain.compiler, command, os.environ)
    _, status, used = os.wait4(child, 0)
    if status:
        raise toolchain.ToolchainError(f"{chain.compiler} failed ({status}) on {source}")
    return used.ru_utime + used.ru_stime


def fixed_source(functions: int = 12) -> str:
    """Loops over arrays, some with reductions: a text that never changes."""
    lines = ["typedef long long i64;"]
    for k in range(functions):
        lines.append(
            f'extern "C" float f{k}(const float* a, const float* b, float* c, i64 n, i64 m) {{\n'
            f"  float sum = 0;\n  for (i64 i = 0; i < n; ++i) {{\n    float row = 0;\n"
            f"    for (i64 j = 0; j < m; ++j) {{\n      const float x = a[i * m + j] * {k + 2}.0f + b[j];\n"
            f"      const float y = x > 0 ? x * x : -x / {k + 3}.0f;\n      c[i * m + j] = y + b[i];\n"
            "      row = y > row ? y : row;\n    }\n    sum += row;\n  }\n  return sum;\n}"
        )
    return "\n".join(lines) + "\n"


def slowness(chain: Toolchain, repeats: int = 3) -> float:
    """How many times as long as on a quiet core g++ takes here."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "fixed.cpp")
        source.write_text(fixed_source())
        took = [cpu_seconds(chain, source, Path(folder, "fixed.so")) for _ in range(repeats)]
    return sorted(took)[len(took) // 2] / QUIET_SECONDS


# -- programs ---------------------------------------------------------------------------------
Built = tuple[Any, tuple[Any, ...], dict[str, Any]]


def programs(collection: str) -> Iterator[tuple[str, Callable[[], Built]]]:
    from tests.models import vision_operators
    from tests.models.case import cases

    assert vision_operators.LIBRARY
    if collection == "modules":
        yield from _modules()
        return
    for case in cases(collection).values():
        if case.method == "forward" and not case.whole:
            yield case.name, case.build


def _modules() -> Iterator[tuple[str, Callable[[], Built]]]:
    """Blocks of torchvision at sizes where joins and pooled windows are inside of a kernel."""
    import torch
    from torchvision.models import densenet, inception, shufflenetv2, squeezenet

    def of(make: Callable[[], Any], *shape: int) -> Callable[[], Built]:
        return lambda: (make().eval(), (torch.randn(shape),), {})

    yield "InceptionA", of(lambda: inception.InceptionA(4, 4), 4, 4, 64, 64)
    yield "InceptionB", of(lambda: inception.InceptionB(4), 2, 4, 32, 32)
    yield "InceptionC", of(lambda: inception.InceptionC(8, 4), 2, 8, 24, 24)
    yield "InceptionD", of(lambda: inception.InceptionD(8), 2, 8, 24, 24)
    yield "InceptionE", of(lambda: inception.InceptionE(8), 2, 8, 16, 16)
    yield "Fire", of(lambda: squeezenet.Fire(8, 4, 8, 8), 2, 8, 32, 32)
    yield "densenet._DenseBlock", of(lambda: densenet._DenseBlock(4, 8, 2, 4, 0.0), 2, 8, 32, 32)
    yield "shufflenet", of(lambda: shufflenetv2.InvertedResidual(16, 16, 1), 2, 16, 32, 32)
    for mode in ("reflect", "replicate", "circular", "constant"):
        yield f"chain of pads, {mode}", of(lambda mode=mode: _pads(mode), 2, 3, 40, 40)
    for times in (2, 3, 4):
        yield f"{times} pools of windows", of(lambda times=times: _pools(times), 2, 4, 40, 40)
    yield "windows of joins", of(_windows_of_joins, 2, 4, 32, 32)
    for seed in range(RANDOM_MODULES):
        yield f"random {seed}", of(lambda seed=seed: _random(seed), 2, 4, 20, 24)


def _pads(mode: str) -> Any:
    from torch import nn
    from torch.nn.functional import pad

    class Pads(nn.Module):
        def forward(self, x: Any) -> Any:
            for _ in range(3):
                x = pad(x, (1, 2, 2, 1), mode=mode).sigmoid()
            return x[..., 1:] - x[..., :-1]

    return Pads()


def _pools(times: int) -> Any:
    from torch import nn

    return nn.Sequential(*[nn.Sequential(nn.AvgPool2d(3, 1, 1), nn.GELU()) for _ in range(times)])


def _windows_of_joins() -> Any:
    import torch
    from torch import nn
    from torch.nn.functional import avg_pool2d, max_pool2d

    class Windows(nn.Module):
        def forward(self, x: Any) -> Any:
            y = torch.cat([x.relu(), avg_pool2d(x, 3, 1, 1), max_pool2d(x, 5, 1, 2)], 1)
            z = torch.cat([y, y.roll(1, 2), avg_pool2d(y, 3, 1, 1)], 1)
            return avg_pool2d(z.tanh(), 3, 1, 1) + z

    return Windows()


def _random(seed: int) -> Any:
    """A module of steps on images, most of which need a neighbourhood or join parts."""
    import random

    import torch
    from torch import nn
    from torch.nn import functional as F

    chosen = random.Random(seed)
    edges = ("reflect", "replicate", "circular", "constant")
    steps: list[Callable[[Any], Any]] = [
        lambda x: F.avg_pool2d(x, 3, 1, 1),
        lambda x: F.avg_pool2d(x, 5, 1, 2, count_include_pad=False),
        lambda x: F.max_pool2d(x, 3, 1, 1),
        lambda x: F.max_pool2d(x, 5, 1, 2),
        *[lambda x, mode=mode: F.pad(x, (2, 1, 1, 2), mode=mode)[..., 1:-2, 1:-2] for mode in edges],
        lambda x: torch.cat([x, x.roll(1, 3), x.roll(-1, 2)], 1)[:, 1::3] + x[:, :1],
        lambda x: torch.cat([x[..., ::2], x[..., 1::2].tanh()], 3),
        lambda x: torch.stack([x, x.sigmoid()], 2).flatten(1, 2)[:, 1 : 1 + x.shape[1]],
        lambda x: x - x.roll((1, -1), (2, 3)),
        lambda x: x[..., 1:, :].diff(dim=3, prepend=x[..., 1:, :1]).cumsum(2),
        lambda x: F.interpolate(F.interpolate(x, scale_factor=0.5), size=x.shape[2:], mode="bilinear"),
        lambda x: F.interpolate(x, size=(x.shape[2] + 3, x.shape[3] - 2), mode="bicubic"),
        lambda x: x.softmax(1) * x.logsumexp((2, 3), keepdim=True),
        lambda x: F.layer_norm(x, x.shape[2:]).transpose(2, 3),
        lambda x: F.unfold(x, 3, padding=1).view(x.shape[0], x.shape[1], 9, *x.shape[2:]).amax(2),
        lambda x: torch.where(x > 0, F.pad(x, (1, -1, 0, 0)), F.pad(x, (-1, 1, 0, 0))),
        lambda x: F.gelu(x) * F.softplus(-x),
        lambda x: x.flip(3).var(2, keepdim=True) + x,
        lambda x: F.pixel_shuffle(torch.cat([x, x, x.neg(), x.exp()], 1), 2)[..., ::2, 1::2],
    ]
    picked = chosen.choices(steps, k=chosen.randint(4, 9))

    class Steps(nn.Module):
        def forward(self, x: Any) -> Any:
            for step in picked:
                x = step(x)
            return x

    return Steps()


# -- running ----------------------------------------------------------------------------------
class _TooLongError(Exception):
    pass


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _TooLongError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def collect(found: Collected, name: str, build: Callable[[], Built]) -> str:
    """Compile one program, with its units added to ``found``; what went wrong, if anything."""
    import torch

    import dyncomp

    found.program = name
    try:
        with limited(LIMIT), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            model, args, kwargs = build()
            dyncomp.compile(model.eval())(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        dyncomp.reset()
    return ""


def report(units: Sequence[Unit], scale: float, most: int = 10) -> str:
    lines = [f"{len(units)} units; {sum(u.seconds > BOUND for u in units)} above {BOUND} s; here g++ takes "]
    lines[0] += f"{scale:.2f} times as long as on a quiet core, by which seconds are divided."
    lines += ["", "| s | program | functions | characters |", "| ---: | --- | --- | ---: |"]
    for unit in sorted(units, key=lambda each: -each.seconds)[:most]:
        lines.append(f"| {unit.seconds:.2f} | {unit.program} | {unit.functions} | {unit.characters:,} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("collections", nargs="*", default=["modules", "torchvision", "timm", "written"])
    parser.add_argument("--keep", type=Path, default=None, help="where sources above the bound are written")
    parser.add_argument("--every", type=int, default=1, help="each so manieth program only")
    parser.add_argument("--from", type=int, default=0, dest="start")
    given = parser.parse_args()
    os.environ.update(DYNCOMP_WARM_START="0", DYNCOMP_FORCE_DISABLE_CACHES="1")
    keep = given.keep or Path(tempfile.mkdtemp(prefix="compile-units-"))
    keep.mkdir(parents=True, exist_ok=True)
    scale = slowness(find_toolchain())
    found = Collected(scale, keep)
    original = Toolchain.compile
    Toolchain.compile = lambda self, *args: found.compile(self, *args)  # type: ignore[method-assign]
    try:
        for collection in given.collections:
            for name, build in list(programs(collection))[given.start :: given.every]:
                start, before = time.perf_counter(), len(found.units)
                wrong = collect(found, f"{collection}/{name}", build)
                slowest = max((unit.seconds for unit in found.units[before:]), default=0.0)
                text = f"{collection}/{name}: {len(found.units) - before} units, slowest {slowest:.2f} s"
                print(
                    f"{text}, {time.perf_counter() - start:.0f} s in all {wrong}", file=sys.stderr, flush=True
                )
    finally:
        Toolchain.compile = original  # type: ignore[method-assign]
    found.scale = (scale + slowness(find_toolchain())) / 2
    print(report(found.units, scale))
    if any(unit.seconds > BOUND for unit in found.units):
        print(f"\nsources above the bound: {keep}")


if __name__ == "__main__":
    main()
