"""The choice between templates and several steps: measured on the GPU, or by what is usual.

Under ``mode="max-autotune"`` the candidates of a step are timed at its first call, by events of the device,
and what is fastest is kept for equal steps: in the process, and on disk for this kind of GPU. Else the caller
names one. A candidate that cannot be compiled or launched is left out, with a logged reason.
"""

from __future__ import annotations

import logging
import statistics
from collections.abc import Callable, Sequence

from ...dataclass import dataclass
from ...frontends.base import DeviceLibrary
from ..render.triton.unit import TritonKernel
from ..tuning.choices import Choices, Tuning, key_of
from ..tuning.progress import Progress
from .launch import ALIGNMENT, Driver, Variants, load_module

log = logging.getLogger("dyncomp.gpu")

REPEATS = 9
# A measurement runs a candidate until this much time has gone by, and no candidate more often than MOST_RUNS.
SPAN_MS = 2.0
MOST_RUNS = 200
# How much slower than the best a first run may be to be measured on.
HOPELESS = 3.0
PLAIN = -1
PLAIN_NAME = "plain"


@dataclass
class Device:
    """A GPU as choices need it. ``tuning``: how candidates are measured, if they are."""

    library: DeviceLibrary
    driver: Driver
    index: int
    tuning: Tuning | None
    choices: Choices

    def key(self, kernels: Sequence[TritonKernel], plain: str) -> str:
        """Equal for steps among which the same candidate is the fastest."""
        import triton

        texts = [self.library.facts(self.index)[0], triton.__version__, plain]
        for kernel in (part for whole in kernels for part in whole.all):
            texts += [kernel.source, str((kernel.programs, kernel.num_warps, kernel.num_stages))]
        return key_of(texts)


class Choice:
    """``choice(plain, stream, *addresses)`` runs one of ``kernels`` or ``plain()``.

    ``usual``: the number of the kernel that is taken unmeasured, or ``PLAIN``. ``repeatable``: running the
    step twice is as running it once (it may be timed on the program's own arrays). ``needs_alignment``: which
    kernels ask for addresses divisible by 16. ``symbols``: sizes whose values follow the addresses."""

    def __init__(
        self,
        kernels: Sequence[TritonKernel],
        device: Device,
        plain: str,
        usual: int,
        repeatable: bool,
        needs_alignment: Sequence[bool],
        symbols: Sequence[str] = (),
    ) -> None:
        self.kernels = list(kernels)
        self.names = [kernel.name for kernel in kernels]
        self.device = device
        self.usual = usual
        self.tuned = device.tuning is not None and repeatable
        self.key = device.key(kernels, plain)
        self.needs_alignment = list(needs_alignment)
        self.variants: list[list[Variants]] = [[] for _ in self.kernels]
        self.works: set[tuple[int, bool]] = set()
        self.symbols = symbols
        self.best: int | None = None if self.tuned else usual

    def __call__(self, plain: Callable[[], None], stream: int, *places: int) -> None:
        best = self.best
        if best is None:
            best = self.best = self._find(plain, stream, places)
        if best == PLAIN or not self._runs(best, stream, places):
            plain()

    def _runs(self, number: int, stream: int, places: Sequence[int]) -> bool:
        """Run a kernel; false if it cannot."""
        aligned = self._are_aligned(places)
        if not aligned and self.needs_alignment[number]:
            return False
        if (number, aligned) in self.works:
            self._launch(number, aligned, stream, places)
            return True
        try:
            self._launch(number, aligned, stream, places)
        except Exception as error:
            log.warning("%s cannot run, steps run one by one: %s", self.names[number], error)
            self.best = PLAIN
            return False
        self.works.add((number, aligned))
        return True

    def _launch(self, number: int, aligned: bool, stream: int, places: Sequence[int]) -> None:
        values = dict(zip(self.symbols, places[len(places) - len(self.symbols) :])) if self.symbols else None
        for variants in self._variants(number):
            variants.get(aligned)(variants.kernel.grid(values), stream, *places)

    def _are_aligned(self, places: Sequence[int]) -> bool:
        together = 0
        for place in places[: len(places) - len(self.symbols)]:
            together |= place
        return not together % ALIGNMENT

    def _variants(self, number: int) -> list[Variants]:
        """Of a candidate's kernels, in order."""
        found = self.variants[number]
        if not found:
            for kernel in self.kernels[number].all:
                module = load_module(kernel.name, kernel.source)
                found.append(Variants(module, kernel, self.device.driver, self.device.index))
        return found

    # -- measuring ----------------------------------------------------------------------------
    def _find(self, plain: Callable[[], None], stream: int, places: Sequence[int]) -> int:
        names = [PLAIN_NAME, *self.names]
        known = self.device.choices.get(self.key, names)
        if known is not None:
            return known + PLAIN
        aligned = self._are_aligned(places)
        able = [k for k in range(len(self.kernels)) if aligned or not self.needs_alignment[k]]
        jobs = [(v.function, v.kernel) for k in able for v in self._variants(k)]
        self.device.driver.prepare(jobs, aligned)
        tuning = self.device.tuning or Tuning()
        left = tuning.seconds * 1e3
        best = float("inf")
        times: list[float] = []
        with Progress(f"tuning {self.names[0]}", len(names), tuning.progress) as bar:
            for number, name in enumerate(names, PLAIN):
                bar.step(name)
                run = plain if number == PLAIN else self._candidate(number, stream, places)
                found, spent = _time(run, self.device.library.milliseconds, left, best)
                left -= spent
                times.append(found)
                best = min(best, found)
        number = times.index(best)
        log.info("%s: %s takes %.4f ms", self.names[0], names[number], best)
        return self.device.choices.put(self.key, names, number, times) + PLAIN

    def _candidate(self, number: int, stream: int, places: Sequence[int]) -> Callable[[], None]:
        aligned = self._are_aligned(places)

        def run() -> None:
            if self.needs_alignment[number] and not aligned:
                raise ValueError("addresses are not aligned")
            self._launch(number, aligned, stream, places)

        return run


def _time(
    run: Callable[[], None],
    milliseconds: Callable[[Callable[[], None]], float],
    budget: float,
    best: float,
) -> tuple[float, float]:
    """Median milliseconds of a run, and those that measuring took; infinite for what cannot run here (too
    much shared memory) or is not worth the time."""
    try:
        run()
        once = milliseconds(run)
        spent = once
        if once > HOPELESS * best or budget <= 0:
            return (once if budget > 0 else float("inf")), spent
        count = max(min(int(SPAN_MS / max(once, 1e-3)), MOST_RUNS), 1)
        times: list[float] = []

        def several() -> None:
            for _ in range(count):
                run()

        while len(times) < REPEATS and (not times or spent < budget / 4):
            taken = milliseconds(several)
            spent += taken
            times.append(taken / count)
    except Exception as error:
        log.info("a candidate cannot run: %s", error)
        return float("inf"), 0.0
    return statistics.median(times), spent
