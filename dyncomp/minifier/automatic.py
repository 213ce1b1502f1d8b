"""``DYNCOMP_REPRO``: failures leave a shrunk script by themselves.

``after_capture``, ``after_aot`` and ``after_lowering`` say which form of a graph is written where dyncomp
cannot compile it for a fault of its own: as captured, after the graph passes, or as the inductor lowers it.
``accuracy`` compares every compiled form with plain Python at its first call (``verify="first"``), and
shrinks the call where they differ. Scripts go to ``DYNCOMP_REPRO_DIR`` (by default the folder
``dyncomp-repros`` of the working directory).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import faults
from ..api import SESSION
from ..errors import DyncompError
from ..frontends.base import ArrayOwner
from ..graph.ir import Graph
from ..notices import warn_once
from ..options import Options
from ..verification import isolated
from .case import Case
from .layers import final_graph, passed_graph
from .minify import minify, minify_case, written
from .shrink import Budget

LEVELS = ("after_capture", "after_aot", "after_lowering", "accuracy")
_SECONDS = 60.0
CompileGraph = Callable[[Graph, Options, tuple[Any, ...], Any, Any], Any]


def asked_level(environ: Mapping[str, str]) -> str:
    """What ``DYNCOMP_REPRO`` asks for; ``""`` for nothing. A wrong value is told of and ignored."""
    asked = environ.get("DYNCOMP_REPRO", "")
    if asked and asked not in LEVELS:
        warn_once(
            "variables", f"DYNCOMP_REPRO must be one of {', '.join(LEVELS)}, not {asked!r}: it is ignored"
        )
        return ""
    return asked


def folder_for(environ: Mapping[str, str]) -> Path:
    """Where scripts go."""
    return Path(environ.get("DYNCOMP_REPRO_DIR") or "dyncomp-repros")


def reproducing(compile_graph: CompileGraph, level: str) -> CompileGraph:
    """``compile_graph`` that leaves a script where it fails for a fault of dyncomp."""

    def compile_or_reproduce(
        graph: Graph,
        options: Options,
        examples: tuple[Any, ...] = (),
        owner: Any = None,
        on_status: Any = None,
    ) -> Any:
        try:
            return compile_graph(graph, options, examples, owner, on_status)
        except Exception as error:
            if faults.is_fault(error) and not isolated.is_child():
                _reproduce(graph, options, examples, owner, level)
            raise

    return compile_or_reproduce


def _reproduce(
    graph: Graph, options: Options, examples: Sequence[Any], owner: ArrayOwner | None, level: str
) -> None:
    folder = folder_for(os.environ)
    try:
        ending = isolated.run_isolated(
            lambda: _written(graph, options, examples, owner, level, folder), 4 * _SECONDS
        )
    except (isolated.CannotFork, OSError) as error:
        warn_once("repro", f"no script of the failure in {graph.name} was written: {error}")
        return
    said = ending.value if ending.kind == isolated.RETURNED else ending.text.strip().rpartition("\n")[2]
    warn_once("repro", f"{graph.name} cannot be compiled. {said}")


def _written(
    graph: Graph,
    options: Options,
    examples: Sequence[Any],
    owner: ArrayOwner | None,
    level: str,
    folder: Path,
) -> str:
    library = "" if owner is None else owner.type.__module__.partition(".")[0]
    inputs = tuple([_on_host(example, owner) for example in examples])
    integers = tuple(
        graph.env.symbols[s.name].hint
        for s in sorted(graph.symbols, key=lambda s: s.index)
        if s.kind == "int"
    )
    settings = {"mode": options.mode} if options.mode != "default" else {}
    case = Case(graph, inputs, integers, library, settings)
    if level == "after_aot":
        case = replace(case, graph=passed_graph(case))
    elif level == "after_lowering":
        case = replace(case, graph=final_graph(case))
    budget = Budget(_SECONDS)
    found = minify_case(case, budget)
    if found is None:
        return "No script was written: the graph compiles in a process of its own"
    return str(written(found, budget, folder))


def _on_host(example: Any, owner: ArrayOwner | None) -> Any:
    if owner is not None and isinstance(example, owner.type):
        example = example.detach() if hasattr(example, "detach") else example
        return np.array(owner.to_numpy(example))
    return np.array(example) if isinstance(example, np.ndarray) else example


def shrunk_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Write a script of a call that compiled code gets wrong; what to say of it."""
    try:
        found = minify(
            function, args, kwargs, folder=folder_for(os.environ), seconds=_SECONDS, progress="off"
        )
    except DyncompError as error:
        return f"No script was written: {error}"
    return "No script was written: the call goes well alone" if found is None else str(found)


def install(environ: Mapping[str, str]) -> None:
    """Do what ``DYNCOMP_REPRO`` asks for, in all of this process."""
    level = asked_level(environ)
    if level == "accuracy":
        SESSION.verify, SESSION.reproduce = 1, shrunk_call
    elif level:
        SESSION.compile_graph = reproducing(SESSION.compile_graph, level)
