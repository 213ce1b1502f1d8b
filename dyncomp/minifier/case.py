"""One graph with the inputs on which it fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dataclass import dataclass, field
from ..frontends.base import ArrayOwner
from ..graph.interp import Interpreter
from ..graph.ir import Graph, Node, OpTable
from ..inductor.tuning.stand_ins import copied
from ..options import Options, make_options
from ..prims.opdef import OpDef
from ..prims.table import table_with
from ..report.rerun import owner_of

Array = np.ndarray[Any, Any]
Backend = str | Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """``inputs``: NumPy arrays and scalars; ``integers``: those that follow them. ``library``: the package
    whose arrays the program has (``""``: NumPy's). ``settings``: arguments of ``dyncomp.compile``."""

    graph: Graph
    inputs: tuple[Any, ...]
    integers: tuple[int, ...] = ()
    library: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def owner(self) -> ArrayOwner | None:
        """How the library's arrays are read."""
        return owner_of(self.library)

    @property
    def table(self) -> Mapping[str, OpDef]:
        return table_of(self.library)

    def options(self, **more: Any) -> Options:
        """The options of the settings, and ``more``; variables of the environment play no part."""
        given = {
            **self.settings.get("options", {}),
            "strict": True,
            "cache": True,
            "warm_start": False,
            **more,
        }
        rest = {key: value for key, value in self.settings.items() if key in ("mode", "backend")}
        return make_options(**rest, options=given, environ={})

    def arguments(self) -> list[Any]:
        """Inputs and integers for one call, which may write into them."""
        return [*map(_own, self.inputs), *self.integers]


def table_of(library: str) -> Mapping[str, OpDef]:
    """The ops with the routines of a library."""
    owner = owner_of(library)
    return table_with(() if owner is None else owner.routines)


def _own(value: object) -> object:
    return copied(value) if isinstance(value, np.ndarray) else value


def results_of(case: Case, run: Callable[..., Any]) -> list[Array]:
    """Outputs of a call and its inputs afterwards, as arrays. ``run`` gives a list or tuple, or a bare value
    where there is one output."""
    arguments = case.arguments()
    found = run(*arguments)
    several = found if isinstance(found, (list, tuple)) else (found,)
    outputs = [np.array(value) for value in several]
    written = [value for value in arguments[: len(case.inputs)] if isinstance(value, np.ndarray)]
    return [*outputs, *written]


def expected(case: Case, graph: Graph | None = None) -> list[Array]:
    """The same by the reference of every op. Raises what the references raise."""
    interpreter = Interpreter(case.graph if graph is None else graph, case.table)
    with np.errstate(all="ignore"):
        return results_of(case, interpreter.run)


class _Recorder(Interpreter):
    """Keeps what every node gives."""

    def __init__(self, graph: Graph, table: OpTable) -> None:
        super().__init__(graph, table)
        self.seen: dict[str, Array] = {}

    def run_node(self, node: Node, inputs: list[Array], params: dict[str, Any]) -> Any:
        made = super().run_node(node, inputs, params)
        several = made if isinstance(made, (tuple, list)) else (made,)
        for var, value in zip(node.outputs, several, strict=True):
            self.seen[var.name] = copied(np.asarray(value))
        return made


def values_of(case: Case) -> dict[str, Array]:
    """The value of every node's outputs, by name."""
    recorder = _Recorder(case.graph, case.table)
    with np.errstate(all="ignore"):
        recorder.run(*case.arguments())
    return recorder.seen


def names_of(case: Case, results: Sequence[Array]) -> list[str]:
    """What :func:`results_of` gives, in words."""
    written = [
        f"input {inp.label or inp.var.name} afterwards"
        for inp, value in zip(case.graph.inputs, case.inputs)
        if isinstance(value, np.ndarray)
    ]
    outputs = len(results) - len(written)
    return [*("result" if outputs == 1 else f"result {k}" for k in range(outputs)), *written]
