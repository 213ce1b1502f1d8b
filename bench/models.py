"""``python -m bench.models [NAME ...]``: forward passes of public PyTorch models (``MODELS.md``).

The packages transformers, timm and torchvision are no dependencies; what is not installed is told.
Each model runs in a process of its own, on one thread, in eval mode without gradients; engines are called in
turn and the best call counts; torch.compile has a process of its own, beside eager torch. Results are
compared with eager torch's: type, dtypes, shapes, strides, values.
"""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import math
import os
import pathlib
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from . import machine
from .model_cases import cases
from .process import answer_of

REPORT = pathlib.Path(__file__).resolve().parent / "MODELS.md"
SECONDS = 1.5  # of calls, per engine
LIMIT = 300  # seconds per model


# -- in the worker ----------------------------------------------------------------------------
def _tensors(result: Any) -> list[Any]:
    """Those in a result, in order."""
    import torch

    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        return [t for value in result.values() for t in _tensors(value)]
    if isinstance(result, (list, tuple)):
        return [t for value in result for t in _tensors(value)]
    return []


def _difference(expected: Any, found: Any) -> tuple[float, str]:
    """The largest error relative to the largest value, and what else differs."""
    ours, theirs = _tensors(found), _tensors(expected)
    if type(expected) is not type(found) or len(ours) != len(theirs):
        return math.inf, "another type of result"
    worst, other = 0.0, ""
    for mine, their in zip(ours, theirs):
        if (mine.dtype, mine.shape, mine.stride()) != (their.dtype, their.shape, their.stride()):
            other = "other dtypes, shapes or strides"
        elif their.numel():
            scale = float(their.double().abs().max()) + 1e-9
            worst = max(worst, float((mine.double() - their.double()).abs().max()) / scale)
    return worst, other


def _best(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    best = dict.fromkeys(calls, math.inf)
    for name in [*calls] * 3:
        begin = time.perf_counter()
        while time.perf_counter() - begin < SECONDS / 3:
            start = time.perf_counter()
            calls[name]()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def _prepared(name: str) -> tuple[Callable[[], Any], Callable[[Callable[..., Any]], Callable[[], Any]], Any]:
    """The eager call, what makes the same call of another form of the model, and the model."""
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, args, kwargs = cases()[name]()
    model.eval()
    return lambda: model(*args, **kwargs), lambda other: lambda: other(*args, **kwargs), model


def _worker(name: str) -> dict[str, Any]:
    import torch

    import dyncomp

    logging.getLogger("dyncomp").setLevel(logging.ERROR)
    eager, call_of, model = _prepared(name)
    with torch.no_grad():
        expected = eager()
        compiled = call_of(dyncomp.compile(model, options={"num_threads": 1}))
        start = time.perf_counter()
        found = compiled()
        first = time.perf_counter() - start
        error, other = _difference(expected, found)
        best = _best({"eager": eager, "dyncomp": compiled})
        error = max(error, _difference(expected, compiled())[0])
        report = call_of(dyncomp.explain(model))()
    return {
        "error": error,
        "other": other,
        "breaks": len(report.breaks),
        "skipped": len(report.skipped),
        "first": first,
        "best": best,
    }


def _peer_worker(name: str) -> dict[str, Any]:
    """torch.compile, in a process without dyncomp."""
    import torch

    eager, call_of, model = _prepared(name)
    with torch.no_grad():
        eager()
        peer = call_of(torch.compile(model))
        start = time.perf_counter()
        peer()
        first = time.perf_counter() - start
        best = _best({"eager": eager, "peer": peer})
    return {"peer_first": first, "peer": best["eager"] / best["peer"]}


# -- in the parent ----------------------------------------------------------------------------
def _measured(name: str, with_compile: bool) -> dict[str, Any]:
    answer = _answer(name, False)
    if with_compile and "failed" not in answer:
        peer = _answer(name, True)
        answer.update({key: peer.get(key, math.nan) for key in ("peer", "peer_first")})
    return answer


def _answer(name: str, peer: bool) -> dict[str, Any]:
    words = [sys.executable, "-m", "bench.models", "--worker", name]
    if peer:
        words.append("--torch-compile")
    return answer_of(words, LIMIT)


def _row(name: str, answer: dict[str, Any], with_compile: bool) -> str:
    if "failed" in answer:
        return f"| {name} | {answer['failed']} |" + " |" * (8 if with_compile else 6)
    best = answer["best"]
    cells = [
        name,
        answer["other"] or f"{answer['error']:.0e}",
        str(answer["breaks"]),
        str(answer["skipped"]),
        f"{answer['first']:.1f}",
        f"{best['eager'] * 1e3:.2f}",
        f"{best['dyncomp'] * 1e3:.2f}",
        f"{best['eager'] / best['dyncomp']:.2f}x",
    ]
    if with_compile:
        cells += [f"{answer['peer_first']:.1f}", f"{answer['peer']:.2f}x"]
    return "| " + " | ".join(cells) + " |"


def _report(answers: dict[str, dict[str, Any]], with_compile: bool, load: str) -> str:
    now = datetime.datetime.now(datetime.UTC)
    titles = ["", "error", "breaks", "left plain", "first s", "eager ms", "dyncomp ms", "dyncomp"]
    titles += ["torch.compile first s", "torch.compile"] if with_compile else []
    rows = [_row(name, answer, with_compile) for name, answer in answers.items()]
    ratios = [a["best"]["eager"] / a["best"]["dyncomp"] for a in answers.values() if "best" in a]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
    lines = [
        "# Models, measured",
        "",
        f"`python -m bench.models --write`, {now:%Y-%m-%d %H:%M} UTC, on {machine.cores()} cores of "
        f"{machine.processor()} (load {load}). {machine.versions()}.",
        "",
        (__doc__ or "").split("\n\n", 1)[1].strip(),
        "“error” is relative to the largest value of a result; “left plain” counts frames.",
        "",
        "| " + " | ".join(titles) + " |",
        "| --- |" + " ---: |" * (len(titles) - 1),
        *rows,
        "",
        f"Geometric mean of {len(ratios)} models: {mean:.2f}x eager torch.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.models", description=__doc__)
    parser.add_argument("names", nargs="*", help="those whose name has one of these texts")
    parser.add_argument("--torch-compile", action="store_true", help="measure torch.compile, too")
    parser.add_argument("--worker", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=f"write {REPORT.name}")
    given = parser.parse_args()
    if given.worker:
        work = _peer_worker if given.torch_compile else _worker
        print(json.dumps(work(given.worker)))
        return 0
    load = f"{os.getloadavg()[0]:.1f}"
    chosen = [n for n in cases() if not given.names or any(text in n for text in given.names)]
    answers = {}
    for name in chosen:
        answers[name] = _measured(name, given.torch_compile)
        print(_row(name, answers[name], given.torch_compile), flush=True)
    if given.write:
        REPORT.write_text(_report(answers, given.torch_compile, load), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
