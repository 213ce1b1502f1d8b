"""``python -m bench.modes [NAME ...]``: the modes beside each other (``MODES.md``).

The demo's programs and, where their packages are installed, the models of ``bench.models``: each in a
process of its own, compiled once in each mode, called in turn. Ratios are the default's best time over
the mode's: more is faster. `max-autotune` may never be slower than `default` beyond noise; how much noise
there was is seen from a second function compiled in the default mode ("again").
"""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import math
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dyncomp
from demo.catalog import select
from demo.runner import timed

from . import machine
from .process import answer_of

REPORT = Path(__file__).with_name("MODES.md")
MODES = {
    "default": "default",
    "again": "default",
    "reduce-overhead": "reduce-overhead",
    "max-autotune": "max-autotune",
}
ROUNDS = 6
SECONDS = 0.4  # for one mode in a round
WARM_UP = 12  # calls: trials are over then
LIMIT = 400  # seconds for a program
_PROGRAMS = [program.name for program in select([])]


def _calls(name: str) -> dict[str, Callable[[], float]]:
    """What calls the program once in each mode and says how many seconds it took."""
    if name in _PROGRAMS:
        (program,) = select([name])
        arguments = program.make_inputs(False)
        made = {title: dyncomp.compile(program.load(), mode=mode) for title, mode in MODES.items()}
        return {title: lambda f=f: timed(f, arguments)[0] for title, f in made.items()}  # type: ignore[misc]
    return _model_calls(name)


def _model_calls(name: str) -> dict[str, Callable[[], float]]:
    import torch

    from .model_cases import cases

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, args, kwargs = cases()[name]()
    model.eval()

    def seconds(compiled: Any) -> float:
        with torch.no_grad():
            start = time.perf_counter()
            compiled(*args, **kwargs)
            return time.perf_counter() - start

    options = {"num_threads": 1}
    made = {title: dyncomp.compile(model, mode=mode, options=options) for title, mode in MODES.items()}
    return {title: lambda f=f: seconds(f) for title, f in made.items()}  # type: ignore[misc]


def _worker(name: str) -> dict[str, float]:
    """The best seconds of a call in each mode."""
    warnings.simplefilter("ignore")
    logging.getLogger("dyncomp").setLevel(logging.ERROR)
    calls = _calls(name)
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    best = dict.fromkeys(calls, math.inf)
    for _ in range(ROUNDS):
        for title, call in calls.items():
            begin = time.perf_counter()
            while time.perf_counter() - begin < SECONDS:
                best[title] = min(best[title], call())
    return best


def _answer(name: str) -> dict[str, float] | str:
    words = [sys.executable, "-m", "bench.modes", "--worker", name]
    answer = answer_of(words, LIMIT)
    return str(answer["failed"]) if "failed" in answer else answer


def _row(name: str, answer: dict[str, float] | str) -> str:
    if isinstance(answer, str):
        return f"| {name} | {answer} | | | |"
    others = [f"{answer['default'] / answer[title]:.2f}x" for title in MODES if title != "default"]
    return f"| {name} | {answer['default'] * 1e3:.4g} | " + " | ".join(others) + " |"


def _report(answers: dict[str, dict[str, float] | str], load: str) -> str:
    now = datetime.datetime.now(datetime.UTC)
    others = [title for title in MODES if title != "default"]
    measured = [answer for answer in answers.values() if not isinstance(answer, str)]
    means = [
        math.exp(sum(math.log(answer["default"] / answer[title]) for answer in measured) / len(measured))
        for title in others
    ]
    return "\n".join(
        [
            "# Modes, measured",
            "",
            f"`python -m bench.modes --write`, {now:%Y-%m-%d %H:%M} UTC, on {machine.cores()} cores of "
            f"{machine.processor()} (load {load}). {machine.versions()}.",
            "",
            (__doc__ or "").split("\n\n", 1)[1].strip(),
            "",
            "|  | default ms | " + " | ".join(others) + " |",
            "| --- | ---: |" + " ---: |" * len(others),
            *(_row(name, answer) for name, answer in answers.items()),
            "| **geometric mean** | | " + " | ".join(f"**{mean:.2f}x**" for mean in means) + " |",
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.modes", description=__doc__)
    parser.add_argument("names", nargs="*", help="programs of the demo, models (default: the programs)")
    parser.add_argument("--worker", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=f"write {REPORT.name}")
    given = parser.parse_args()
    if given.worker:
        print(json.dumps(_worker(given.worker)))
        return 0
    load = f"{os.getloadavg()[0]:.1f}"
    answers = {}
    for name in given.names or _PROGRAMS:
        answers[name] = _answer(name)
        print(_row(name, answers[name]), flush=True)
    if given.write:
        REPORT.write_text(_report(answers, load), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
