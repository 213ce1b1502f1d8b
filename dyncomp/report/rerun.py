"""Runs a dumped graph again: ``python run.py`` in a folder that ``options={"dump": directory}`` made.

The kernels are built as they lie there, edited or not, called with the inputs that were seen at capture,
compared with the graph's reference, and timed beside the code that dyncomp generates.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..device import CPU
from ..frontends.base import ArrayOwner
from ..graph.interp import as_callable
from ..graph.ir import Graph
from ..graph.text import parse
from ..inductor.tuning.stand_ins import copied, laid_out, made_up
from ..options import make_options
from ..prims.table import table_with
from ..trusted import UntrustedError, opened, read

# What inputs may hold together to be kept.
LIMIT_BYTES = 64 << 20
# Of a result's largest value, in units of its type's precision; integers must be equal.
TOLERANCE = 1000.0
SCRIPT = '''\
"""Builds the kernels of this folder, compares their results with the graph's reference, and times them.

Edit {kernels} (or a copy of it called edited{suffix}, which is used by later runs of the program too), then
run this file: python run.py [--calls N]
"""

import sys

from dyncomp.report.rerun import main

sys.exit(main(__file__, graph={graph!r}, kernels={kernels!r}, library={library!r}, options={options!r}))
'''


def main(script: str, *, graph: str, kernels: str, library: str = "", options: str = "{}") -> int:
    """What the script ``run.py`` does; the exit status: 1 where a result is wrong."""
    try:
        return _run(script, graph, kernels, library, options)
    except UntrustedError as error:
        print(f"{error.filename} is not used: {error.strerror}", file=sys.stderr)
        return 1


def _run(script: str, graph: str, kernels: str, library: str, options: str) -> int:
    parser = argparse.ArgumentParser(description="Run the kernels of this folder.")
    parser.add_argument("--calls", type=int, default=50, help="how many calls are timed")
    calls = parser.parse_args().calls
    owner = owner_of(library)
    table = table_with(() if owner is None else owner.routines)
    edited = f"edited{Path(kernels).suffix}"
    with opened(Path(script).parent) as folder:
        found = parse(read(folder, graph).decode(), table)
        arguments = _inputs(folder, found, owner)
        name = edited if edited in os.listdir(folder) else kernels
        text = read(folder, name).decode().rstrip("\n")
    generated: list[str] = []

    def choose(made: str) -> str:
        generated.append(made.rstrip("\n"))
        return text

    print(f"{name}:")
    call = _compiled(found, owner, options, choose)
    good = _compare(found, table, owner, call, arguments)
    calls_by_name = {name: call}
    if text != generated[0]:
        calls_by_name["as generated"] = _compiled(found, owner, options, lambda made: made)
    for name, best in _times(calls_by_name, arguments, owner, found, calls).items():
        print(f"  {name}: {best * 1e3:.4f} ms, the best of {calls} calls")
    return 0 if good else 1


def owner_of(library: str) -> ArrayOwner | None:
    """How the arrays of a library are read and made; ``None`` for NumPy's (``""``)."""
    if not library:
        return None
    owner: ArrayOwner = importlib.import_module(f"dyncomp.frontends.{library}.owner").OWNER
    return owner


def _compiled(
    graph: Graph, owner: ArrayOwner | None, options: str, edit: Callable[[str], str]
) -> Callable[..., Any]:
    from ..inductor.compile import compile_graph

    return compile_graph(graph, make_options(options=json.loads(options), environ={}), owner, (), edit).call


# -- inputs -----------------------------------------------------------------------------------
def kept_inputs(graph: Graph, examples: Sequence[Any], owner: ArrayOwner | None) -> bytes:
    """The example inputs as a file, as far as they can be kept; others are made up again by their types."""
    kept: dict[str, Any] = {}
    for number, (given, example) in enumerate(zip(graph.inputs, examples)):
        array = _on_host(example, owner) if given.kind == "array" else np.asarray(example)
        if isinstance(array, np.ndarray) and array.dtype.kind in "biufc":
            kept[f"in{number}"] = array
    file = io.BytesIO()
    if kept and sum(array.nbytes for array in kept.values()) <= LIMIT_BYTES:
        np.savez(file, **kept)
    return file.getvalue()


def _inputs(folder: int, graph: Graph, owner: ArrayOwner | None) -> list[Any]:
    """The graph's arguments, then its integers, as at capture."""
    try:
        kept = dict(np.load(io.BytesIO(read(folder, "inputs.npz"))))
    except FileNotFoundError:
        kept = {}
    made: list[Any] = []
    for number, given in enumerate(graph.inputs):
        value = kept.get(f"in{number}")
        if value is None:
            print(f"  in{number} ({given.label or given.var.type}) was not kept: made up")
            value = made_up(given.var.type)
        made.append(value.item() if given.kind != "array" else laid_out(value, given.var.type))
    integers = sorted((s for s in graph.symbols if s.kind == "int"), key=lambda s: s.index)
    return made + [graph.env.symbols[s.name].hint for s in integers]


def _copies(arguments: Sequence[Any]) -> list[Any]:
    """Copies with the same strides: each call may write into its own."""
    return [copied(a) if isinstance(a, np.ndarray) else a for a in arguments]


def for_library(arguments: Sequence[Any], graph: Graph, owner: ArrayOwner | None) -> list[Any]:
    if owner is None:
        return [*arguments]
    if graph.device == CPU:
        return [owner.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]
    assert owner.devices is not None
    upload = owner.devices.upload
    return [upload(a, graph.device) if isinstance(a, np.ndarray) else a for a in arguments]


# -- results ----------------------------------------------------------------------------------
def _on_host(value: object, owner: ArrayOwner | None) -> Any:
    """An array of a library as NumPy's; anything else as it is."""
    if owner is None or not isinstance(value, owner.type):
        return value
    for name in ("detach", "cpu", "get"):
        value = getattr(value, name)() if hasattr(value, name) else value
    return value if isinstance(value, np.ndarray) else owner.to_numpy(value)


def _results(value: object, owner: ArrayOwner | None) -> list[Any]:
    several = value if isinstance(value, (tuple, list)) else (value,)
    return [np.asarray(_on_host(v, owner)) for v in several]


def _compare(
    graph: Graph, table: Any, owner: ArrayOwner | None, call: Callable[..., Any], arguments: list[Any]
) -> bool:
    """Prints how far results, and inputs written, are from the reference's; whether all are near."""
    own, theirs = _copies(arguments), _copies(arguments)
    given = for_library(own, graph, owner)
    found = _results(call(*given), owner)
    wanted = _results(as_callable(graph, table)(*theirs), None)
    names = [f"result {k}" for k in range(len(wanted))]
    for index, _ in graph.mutations:
        names.append(f"input {index}, written")
        found += _results(given[index], owner)
        wanted.append(theirs[index])
    good = True
    for name, mine, reference in zip(names, found, wanted, strict=True):
        error, near = _error(mine, reference)
        good &= near
        print(f"  {name}: {reference.dtype}{list(reference.shape)}, {error}{'' if near else ': WRONG'}")
    return good


def _error(mine: Any, reference: Any) -> tuple[str, bool]:
    if mine.shape != reference.shape:
        return f"shape {mine.shape} instead of {reference.shape}", False
    if mine.dtype.kind not in "fc":
        different = int((mine != reference).sum())
        return f"{different} elements differ", not different
    with np.errstate(all="ignore"):
        wide = np.complex128 if reference.dtype.kind == "c" else np.float64
        apart = np.abs(mine.astype(wide) - reference.astype(wide))
        finite = np.isfinite(reference)
        same = np.array_equal(np.isnan(mine), np.isnan(reference))
        same &= bool((mine == reference)[~finite & ~np.isnan(reference)].all())
        scale = float(np.abs(reference[finite]).max(initial=0.0)) or 1.0
        error = float(apart[finite].max(initial=0.0)) / scale
    if not same:
        return "NaN or infinity at other places", False
    return f"error {error:.1e} of the largest value", error <= TOLERANCE * np.finfo(mine.dtype).eps


def _times(
    calls: dict[str, Callable[..., Any]],
    arguments: list[Any],
    owner: ArrayOwner | None,
    graph: Graph,
    count: int,
) -> dict[str, float]:
    """Seconds of the best call of each, called in turns. On a GPU with copying the results to the host."""
    best = dict.fromkeys(calls, float("inf"))
    given = for_library(_copies(arguments), graph, owner)
    for _ in range(max(count, 1)):
        for name, call in calls.items():
            start = time.perf_counter()
            results = call(*given)
            if graph.device != CPU:
                _results(results, owner)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    sys.exit("run the script run.py of a dumped graph's folder")
