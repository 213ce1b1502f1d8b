"""``mode="max-autotune"`` on CPUs: a graph compiled in several forms, the fastest on the first inputs kept.

First how its steps are cut: which products and convolutions a library does and how the runtime cuts the
others (:mod:`.sites`), how far products are joined with the kernels around them. Then how the best of these
is built: how loops are written (stores past the caches, tiles of transposes, rows at once, strips), vector
width and unrolling of the compiler, elementary functions inlined or called, kernels on one thread. Each form
is timed beside the best one so far, in turn, and has to be clearly faster; the next builds upon it. What is
found in the end has to be clearly faster than the default form once more. Only a library's results,
convolutions made in another way, and products that are not joined where they would be, can differ in their
last bits: contraction and reassociation stay forbidden, and what is added up together does not change.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ... import faults
from ...dataclass import dataclass, field
from ...errors import LoweringError, ToolchainError
from ...frontends.base import ArrayOwner
from ...graph.ir import Graph
from ...runtime import num_threads
from ..launch import PyCallStep
from .choices import Choices, Tuning, key_of, machine_name
from .forms import DEFAULT, Form, Made, joins_of
from .progress import Progress
from .sites import Compile, Sites, tuned_sites
from .stand_ins import copied
from .timing import in_turn, is_faster

log = logging.getLogger("dyncomp.inductor")


def _knob(**values: Any) -> Callable[[Form], Form]:
    return lambda form: replace(form, knobs=replace(form.knobs, **values))


# How a form is built, by name.
BUILDS: dict[str, Callable[[Form], Form]] = {
    "inlined": lambda form: replace(form, inlined=True),
    "256 bits": lambda form: replace(form, flags=("-mprefer-vector-width=256",)),
    "past the caches": _knob(streams=True),
    "through the caches": _knob(streams=False),
    "tiles": _knob(staged=True),
    "no tiles": _knob(staged=False),
    "tiles of 256 bytes": _knob(side=256),
    "tiles of 1024 bytes": _knob(side=1024),
    "blocks of 32": _knob(block=32),
    "blocks of 64": _knob(block=64),
    "2 rows": _knob(rows=2),
    "4 rows": _knob(rows=4),
    "8 rows": _knob(rows=8),
    "strips of 1024": _knob(strip=1024),
    "-O3": lambda form: replace(form, flags=("-O3",)),
    "unrolled": lambda form: replace(form, flags=("-O3", "-mprefer-vector-width=512", "-funroll-loops")),
    "one thread": lambda form: replace(form, serial=True),
}
# What is spent on the sites of a graph, and on one form, of the time for a graph.
SITES_SHARE = 0.5
FORM_SHARE = 0.25


@dataclass
class Tuner:
    """``make``: a form of ``graph``, compiled; ``alone``: of another graph."""

    graph: Graph
    table: Any
    owner: ArrayOwner | None
    make: Callable[[Form], Made]
    alone: Compile
    choices: Choices
    fingerprint: str
    tuning: Tuning
    end: float = 0.0
    best_ms: dict[str, float] = field(default_factory=dict)

    def fastest(self, default: Made, examples: Sequence[Any]) -> Made:
        """The fastest form; ``default`` where inputs cannot be had, or none is faster beyond noise."""
        arguments = _arguments(self.graph, examples, self.owner)
        if arguments is None:
            return default
        self.end = time.perf_counter() + self.tuning.seconds
        builds = self._builds(default)
        cuts = {"default": DEFAULT}
        if default.source == default.generated:  # not edited by hand
            cuts |= {
                "products": DEFAULT,
                **{f"joined: {joined}": Form(joined) for joined in joins_of(default.items)},
            }
        key = self._key(default, examples, [*cuts, *builds])
        text = self.choices.text(key) or ""
        cut, *chosen = text.split(", ")
        known = cut in cuts and set(chosen) <= set(builds)
        if "products" in cuts:
            sites = self._sites(0.0 if known else SITES_SHARE)
            cuts["products"] = Form(library=sites.library, tilings=sites.tilings)
            for name, form in cuts.items():
                if name.startswith("joined"):
                    cuts[name] = replace(form, tilings=sites.tilings)
        if not known:
            cut, *chosen = self._search(default, cuts, builds, arguments).split(", ")
            if not self.best_ms:
                return default  # there was no time
            self.choices.put_text(key, ", ".join([cut, *chosen]), self.best_ms)
        form = cuts[cut]
        for build in chosen:
            form = BUILDS[build](form)
        return default if form == DEFAULT else self._made(form) or default

    # -- what there is to choose --------------------------------------------------------------
    def _sites(self, share: float) -> Sites:
        """How products are made, as far as that is known, or found out in a share of the time."""
        tuning = replace(self.tuning, seconds=share * self.tuning.seconds)
        return tuned_sites(self.graph, self.table, self.owner, self.alone, self.choices, tuning)

    def _builds(self, default: Made) -> list[str]:
        """The ways to build it that are not the default one."""
        edited = default.source != default.generated
        left_out = ("inlined", "one thread") if edited else ("one thread",) if num_threads() == 1 else ()
        return [name for name in BUILDS if name not in left_out]

    def _key(self, default: Made, examples: Sequence[Any], names: Sequence[str]) -> str:
        """Equal where the same of these forms is the fastest."""
        shapes = [str(tuple(getattr(example, "shape", ()))) for example in examples]
        facts = (machine_name(), self.fingerprint, str(num_threads()), default.source)
        return key_of([*facts, *shapes, *names])

    # -- measuring ----------------------------------------------------------------------------
    def _search(self, default: Made, cuts: dict[str, Form], builds: list[str], arguments: list[Any]) -> str:
        """The name of the fastest form: the best cut, then what of builds makes it faster, each upon the
        ones before."""
        title = f"tuning {self.graph.name}"
        with Progress(title, len(cuts) + len(builds), self.tuning.progress) as bar:
            bar.step("default")
            best, made, form = "default", default, DEFAULT
            for name, other in [*cuts.items()][1:]:
                bar.step(name)
                best, made = self._better(best, made, name, other, arguments)
            form = cuts[best]
            for build in builds:
                bar.step(build)
                other = BUILDS[build](form)
                name, made = self._better(best, made, f"{best}, {build}", other, arguments)
                form, best = (form if name == best else other), name
        if made is not default and not self._beats(made, default, arguments):
            return "default"
        return best

    def _better(self, best: str, made: Made, name: str, form: Form, arguments: list[Any]) -> tuple[str, Made]:
        """The faster one of the best form so far and another one, for which there may be no time."""
        if time.perf_counter() >= self.end:
            return best, made
        other = self._made(form)
        if other is None or other.is_same(made) or time.perf_counter() >= self.end:
            return best, made
        try:
            times = _in_turn(made, other, arguments, FORM_SHARE * self.tuning.seconds)
        except Exception as error:
            self._note(name, error)
            log.info("%s: the form %s is not measured: %s", self.graph.name, name, error)
            return best, made
        for title, found in zip((best, name), times):
            self.best_ms[title] = min(self._ms(title), min(found) * 1e3)
        return (name, other) if is_faster(times[1], times[0]) else (best, made)

    def _beats(self, made: Made, default: Made, arguments: list[Any]) -> bool:
        """Whether a form is clearly faster than the default one when both are timed once more."""
        usual, mine = _in_turn(default, made, arguments, FORM_SHARE * self.tuning.seconds)
        return is_faster(mine, usual)

    def _made(self, form: Form) -> Made | None:
        try:
            return self.make(form)
        except (LoweringError, ToolchainError) as error:
            self._note(form.describe(), error)
            log.info("%s: a form is left out: %s", self.graph.name, error)
            return None

    def _note(self, form: str, error: Exception) -> None:
        if faults.is_fault(error):
            faults.note(f"{self.graph.name} is not measured in the form {form}", error, self.tuning.strict)

    def _ms(self, name: str) -> float:
        return self.best_ms.get(name, float("inf"))


def _in_turn(
    first: Made, second: Made, arguments: list[Any], seconds: float
) -> tuple[list[float], list[float]]:
    alone = not any(_calls_library(made) for made in (first, second))
    return in_turn(first.call, second.call, arguments, seconds, alone=alone)


def _calls_library(made: Made) -> bool:
    """Whether threads other than those of the runtime may do some of the work."""
    return bool(made.form.library) or any(isinstance(step, PyCallStep) for step in made.planned.plan.steps)


def _arguments(graph: Graph, examples: Sequence[Any], owner: ArrayOwner | None) -> list[Any] | None:
    """The example inputs, those that the graph writes to as copies, then the integers' values at capture."""
    if len(examples) != len(graph.inputs):
        return None
    written = {index for index, _ in graph.mutations}
    given: list[Any] = []
    for number, (inp, example) in enumerate(zip(graph.inputs, examples)):
        array = _plain(example, owner) if inp.kind == "array" else None
        if array is not None:
            array = copied(array) if number in written else array
            given.append(array if owner is None else owner.from_numpy(array))
        elif inp.kind != "array" and isinstance(example, (bool, int, float, complex, np.generic)):
            given.append(example)
        else:
            return None
    integers = sorted((s for s in graph.symbols if s.kind == "int"), key=lambda s: s.index)
    return given + [graph.env.symbols[s.name].hint for s in integers]


def _plain(example: object, owner: ArrayOwner | None) -> np.ndarray[Any, Any] | None:
    """An array over the memory of an example."""
    if owner is not None and isinstance(example, owner.type):
        example = owner.to_numpy(example)
    return example if type(example) is np.ndarray else None
