"""Which products and convolutions of a graph a library does faster: NumPy's BLAS, or torch's routine.

Under ``mode="max-autotune"`` each of them that has known sizes is compiled alone, in both ways, and timed on
made-up operands in its layout. What was found is kept for equal ones (layers of a model, other graphs, other
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

from ..graph.ir import Graph, GraphBuilder, GraphOutput, Node, OpTable
from ..graph.text import print_graph
from ..runtime import _launch, num_threads
from .choices import Choices, Tuning, key_of, machine_name
from .forms import DEFAULT, Form
from .lower_contract import OWN_DTYPES
from .lower_convolve import runs_own
from .made_up import laid_out, made_up
from .progress import Progress
from .timing import in_turn, is_faster

log = logging.getLogger("dyncomp.inductor")

FORMS = ("own", "library")
# Seconds for both forms of one site.
SITE_SECONDS = 0.25
# Multiplications of a site below which a library's call costs more than it could save.
LEAST_WORK = 50_000

Compile = Callable[[Graph, Form], Callable[..., Any]]


def library_sites(
    graph: Graph, table: OpTable, owner: Any, compile_form: Compile, choices: Choices, tuning: Tuning
) -> frozenset[str]:
    """The names of the values of ``graph`` that a library makes faster, as far as that is known or found out
    in the time of ``tuning``."""
    keys: dict[str, str] = {}
    unknown: dict[str, Graph] = {}
    for node in _sites(graph, owner):
        alone = _graph_of(node, table)
        key = keys[node.out.name] = _key(alone, owner)
        if choices.get(key, FORMS) is None:
            unknown[key] = alone
    end = time.perf_counter() + tuning.seconds
    with Progress(f"tuning the products of {graph.name}", len(unknown), tuning.progress) as bar:
        for key, alone in unknown.items():
            if time.perf_counter() >= end:
                break
            bar.step(f"{alone.name} to {alone.nodes[0].out.type}")
            _measure(alone, owner, compile_form, choices, key)
    return frozenset(name for name, key in keys.items() if choices.get(key, FORMS))


def _sites(graph: Graph, owner: Any) -> Iterator[Node]:
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


def _key(alone: Graph, owner: Any) -> str:
    """Equal where the same form is the faster one."""
    library = "numpy" if owner is None else owner.type.__module__.partition(".")[0]
    version = getattr(sys.modules.get(library), "__version__", "")
    runtime = os.stat(_launch.__file__)
    facts = (library, version, str(runtime.st_size), str(runtime.st_mtime_ns), str(num_threads()))
    return key_of([machine_name(), *facts, print_graph(alone, locations=False)])


def _measure(alone: Graph, owner: Any, compile_form: Compile, choices: Choices, key: str) -> None:
    """Find out which form is the faster one; nothing where one cannot be compiled or run."""
    arrays: list[Any] = [laid_out(made_up(i.var.type), i.var.type) for i in alone.inputs]
    if owner is not None:
        arrays = [owner.from_numpy(array) for array in arrays]
    library = Form(library=frozenset(node.out.name for node in alone.nodes))
    try:
        calls = [compile_form(alone, form) for form in (DEFAULT, library)]
        own, other = in_turn(calls[0], calls[1], arrays, SITE_SECONDS)
    except Exception as error:
        log.info("%s is not measured: %s", alone.name, error)
        return
    choices.put(key, FORMS, int(is_faster(other, own)), [min(own) * 1e3, min(other) * 1e3])
