"""Compile collections of PyTorch models and compare each with eager torch: results, gradients, buffers.

    python -m tests.models [timm …] [--only REGEX] [--backend eager|inductor] [--inference] [--where]
        [--list] [--write]

A row per model: graphs and breaks of the first call, of a training step, what was compiled again at a second
call, seconds. Each model runs in a process forked from one that has imported the collection. ``--write`` puts
the totals into ``RESULTS.md``. Exit status 1 if an answer is wrong or a process died.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import select
import signal
import sys
import traceback
import warnings
from pathlib import Path

import torch

from .case import COLLECTIONS, Case, cases
from .check import Verdict, check

LIMIT = 180  # seconds for one model: machines are shared
RESULTS = Path(__file__).parent / "RESULTS.md"


def in_a_process(case: Case, backend: str, training: bool) -> Verdict:
    """What ``check`` says, or how its process ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        try:
            answer = json.dumps(dataclasses.asdict(check(case, backend, training)))
        except BaseException:  # noqa: BLE001  (told in the row)
            answer = json.dumps(dataclasses.asdict(Verdict(case.name, wrong=traceback.format_exc()[-300:])))
        with os.fdopen(writing, "w") as file:
            file.write(answer)
        os._exit(0)
    os.close(writing)
    text, ended = b"", True
    while True:
        ready, _, _ = select.select([reading], [], [], LIMIT)
        if not ready:
            os.kill(child, signal.SIGKILL)
            ended = False
            break
        chunk = os.read(reading, 1 << 16)
        if not chunk:
            break
        text += chunk
    os.close(reading)
    status = os.waitpid(child, 0)[1]
    if not ended:
        return Verdict(case.name, wrong=f"took more than {LIMIT} s")
    if not text:
        return Verdict(case.name, wrong=f"its process died: {status}")
    return Verdict(**json.loads(text))


def row(v: Verdict) -> str:
    if v.skipped:
        return f"{v.name}: not tried, {v.skipped}"
    text = f"{v.name}: {v.graphs}+{v.training_graphs} graphs, {v.seconds:.1f}+{v.training_seconds:.1f} s"
    if v.again:
        text += f", {v.again} graphs again"
    if v.plain or v.fallbacks:
        text += f", {v.plain} frames plain, {v.fallbacks} fallbacks"
    for word, breaks in (("breaks", v.breaks), ("breaks in training", v.training_breaks)):
        if breaks:
            text += f", {word} {breaks}"
    return text + (f"  WRONG: {v.wrong}" if v.wrong else "")


def totals(collection: str, found: list[Verdict]) -> str:
    """A line of the table in RESULTS.md."""
    tried = [v for v in found if not v.skipped]
    trained = [v for v in tried if v.training_graphs or v.training_breaks]
    forward = sum(v.one_graph for v in tried)
    both = sum(v.trains_in_one_graph for v in trained)
    wrong = sum(bool(v.wrong) for v in tried)
    again = sum(bool(v.again) for v in tried)
    return f"| {collection} | {len(tried)} | {wrong} | {forward} | {len(trained)} | {both} | {again} |"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.models")
    parser.add_argument("collections", nargs="*")
    parser.add_argument("--only", default="", help="a regular expression that names contain")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--inference", action="store_true", help="no training steps")
    parser.add_argument("--where", action="store_true", help="what capture said of breaks and recompilations")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    lines, wrong = [], 0
    for collection in options.collections or COLLECTIONS:
        try:
            named = cases(collection)
        except ImportError as absent:
            print(f"{collection}: {absent}")
            continue
        found = []
        for case in named.values():
            if not re.search(options.only, case.name):
                continue
            if options.list:
                print(case.name)
                continue
            found.append(in_a_process(case, options.backend, not options.inference))
            print(row(found[-1]), flush=True)
            for line in dict.fromkeys(found[-1].where if options.where else ()):
                print(f"    {line}", flush=True)
        lines.append(totals(collection, found))
        print(lines[-1], flush=True)
        wrong += sum(bool(v.wrong) for v in found)
    if options.write:
        RESULTS.write_text(page(lines, " ".join(["python -m tests.models", *arguments])), encoding="utf-8")
    return int(bool(wrong))


def page(lines: list[str], command: str) -> str:
    from bench import machine

    head = [
        "# Models of public packages, compiled and trained beside eager torch",
        "",
        machine.headline(command, 1),
        "",
        "“One graph”: no break, no frame left plain, no fallback at a first call. “Again”: models for which",
        "something was compiled at a second call with the same sizes, or at a third batch size.",
        "",
        "| collection | models | wrong | one graph | trained | one graph | again |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    return "\n".join([*head, *lines, ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
