"""How products and convolutions of a graph are made fastest: by the runtime, cut as it would cut them or in
another way, or by a library (NumPy's BLAS, or torch's routine).

Under ``mode="max-autotune"`` each of them that has known sizes is compiled alone and timed on made-up
operands in its layout. What was found is kept for equal ones (layers of a model, other graphs, other
processes).
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ... import faults
from ...dataclass import dataclass
from ...frontends.base import ArrayOwner
from ...graph.ir import Graph, GraphBuilder, GraphOutput, Node, OpTable
from ...graph.text import print_graph
from ...runtime import _launch, num_threads
from ..lowering.contract import OWN_DTYPES
from ..lowering.convolve import runs_own
from .choices import Choices, Tuning, key_of, machine_name
from .forms import DEFAULT, Form, Made
from .progress import Progress
from .stand_ins import laid_out, made_up
from .tile_search import TileSearch
from .tilings import USUAL, Tiling, parse
from .timing import in_turn, is_faster

log = logging.getLogger("dyncomp.inductor")

# What stands for a library in the texts of choices; others are those of tilings.
LIBRARY = "library"
# Seconds for a pair of forms that may be far apart, for a pair of tilings, and for all of one site.
SITE_SECONDS = 0.25
PAIR_SECONDS = 0.04
ALL_SECONDS = 1.5
# Multiplications of a site below which a library's call costs more than it could save.
LEAST_WORK = 50_000

Compile = Callable[[Graph, Form], Made]


@dataclass(frozen=True)
class Sites:
    """``library``: the names of the values of a graph that a library makes faster; ``tilings``: how others
    are cut best where that is not as usual."""

    library: frozenset[str] = frozenset()
    tilings: tuple[tuple[str, Tiling], ...] = ()


def tuned_sites(
    graph: Graph,
    table: OpTable,
    owner: ArrayOwner | None,
    compile_form: Compile,
    choices: Choices,
    tuning: Tuning,
) -> Sites:
    """The best way to make each product and convolution of ``graph``, as far as that is known or found out in
    the time of ``tuning``."""
    keys: dict[str, str] = {}
    unknown: dict[str, Graph] = {}
    work: dict[str, int] = {}
    for node in _sites(graph, owner):
        alone = _graph_of(node, table)
        key = keys[node.out.name] = _key(alone, owner)
        work[key] = work.get(key, 0) + _work(node)
        if _known(choices, key) is None:
            unknown[key] = alone
    end = time.perf_counter() + tuning.seconds
    with Progress(f"tuning the products of {graph.name}", len(unknown), tuning.progress) as bar:
        for key, alone in sorted(unknown.items(), key=lambda item: -work[item[0]]):
            if time.perf_counter() >= end:
                break
            bar.step(f"{alone.name} to {alone.nodes[0].out.type}")
            _measure(alone, owner, compile_form, choices, key, end, tuning.strict)
    found = {name: _known(choices, key) for name, key in keys.items()}
    cut = {name: tiling for name, tiling in found.items() if isinstance(tiling, Tiling) and tiling != USUAL}
    return Sites(frozenset(name for name, way in found.items() if way == LIBRARY), tuple(cut.items()))


def _known(choices: Choices, key: str) -> str | Tiling | None:
    """What was chosen before: ``LIBRARY`` or a tiling."""
    text = choices.text(key)
    return text if text is None or text == LIBRARY else parse(text)


def _sites(graph: Graph, owner: ArrayOwner | None) -> Iterator[Node]:
    """The nodes that the runtime does and a library can do."""
    routines = {} if owner is None else dict((*owner.routines, *owner.own_routines))
    for node in graph.nodes:
        if node.op not in ("dot_general", "convolution") or not _is_known(node):
            continue
        if node.out.dtype not in OWN_DTYPES or _work(node) < LEAST_WORK:
            continue
        if node.op == "dot_general" or (runs_own(node) and node.op in routines):
            yield node


def _is_known(node: Node) -> bool:
    """Whether all sizes and strides are numbers."""
    types = [v.type for v in (*node.inputs, node.out)]
    return all(isinstance(d, int) for t in types for d in (*t.shape, *t.strides))


def _work(node: Node) -> int:
    """Multiplications: for each element of the result as many as an element of the second operand's outputs
    has terms."""
    x, w = node.inputs
    if node.op == "convolution":
        return _size(node.out.shape) * _size(w.shape[1:])
    contract, _ = node.kwargs["contract"]
    return _size(node.out.shape) * _size([x.shape[k] for k in contract])


def _size(shape: Any) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


def _graph_of(node: Node, table: OpTable) -> Graph:
    """A graph of the node alone."""
    builder = GraphBuilder(table, name=node.op)
    inputs = [builder.add_input(v.type) for v in node.inputs]
    out = builder.emit(node.op, *inputs, **node.kwargs)
    return replace(builder.finish((GraphOutput(out),)), functional=True)


def _key(alone: Graph, owner: ArrayOwner | None) -> str:
    """Equal where the same form is the faster one."""
    library = "numpy" if owner is None else owner.type.__module__.partition(".")[0]
    version = getattr(sys.modules.get(library), "__version__", "")
    runtime = os.stat(_launch.__file__)
    facts = (library, version, str(runtime.st_size), str(runtime.st_mtime_ns), str(num_threads()))
    return key_of([machine_name(), *facts, print_graph(alone, locations=False)])


def _measure(
    alone: Graph,
    owner: ArrayOwner | None,
    compile_form: Compile,
    choices: Choices,
    key: str,
    end: float,
    strict: bool,
) -> None:
    """Find out which form is the fastest one; nothing where one cannot be compiled or run."""
    arrays = [laid_out(made_up(i.var.type), i.var.type) for i in alone.inputs]
    given: list[Any] = arrays if owner is None else [owner.from_numpy(array) for array in arrays]
    library = Form(library=frozenset(node.out.name for node in alone.nodes))
    end = min(end, time.perf_counter() + ALL_SECONDS)
    times: dict[str, float] = {}
    try:
        own, other = compile_form(alone, DEFAULT), compile_form(alone, library)
        search = TileSearch(own, arrays, PAIR_SECONDS, end)
        tiling = search.best()
        if tiling != USUAL:
            (node,) = alone.nodes
            own = compile_form(alone, Form(tilings=((node.out.name, tiling),)))
        mine, others = in_turn(own.call, other.call, given, SITE_SECONDS)
    except Exception as error:
        if faults.is_fault(error):
            faults.note(f"{alone.name} is not measured", error, strict)
        log.info("%s is not measured: %s", alone.name, error)
        return
    times.update({text: seconds * 1e3 for text, seconds in search.seconds.items()})
    times[LIBRARY] = min(others) * 1e3
    choices.put_text(key, LIBRARY if is_faster(others, mine) else tiling.describe(), times)
