"""A program under suspicion: a function and calls of it that go wrong, run plain and compiled in children."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import cloudpickle
import numpy as np

from ..api import compile as compile_function
from ..api import reset
from ..dataclass import dataclass, field
from ..graph.interp import Interpreter
from ..graph.ir import Graph
from ..graph.text import callees_of, parse, print_graph
from ..verification import isolated
from ..verification.calls import Call, call_and_observe
from ..verification.observe import Observation, differences
from .case import Case, table_of
from .layers import CRASHES, HANGS, RAISES, WRONG, Fault

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Check = Callable[[Any], object]
_MOST_GRAPHS, _MOST_CALLS = 64, 2


@dataclass(frozen=True)
class Program:
    """``calls``: arguments of one call after another, in one process. ``settings``: of ``dyncomp.compile``.
    ``check``: says of what a call returned whether it is good (``None``: it is compared with plain Python's).
    ``seconds``: what a run may take."""

    function: Callable[..., Any]
    calls: tuple[Arguments, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    check: Check | None = None
    seconds: float = 60.0

    def plainly(self) -> isolated.Ending:
        """Plain Python's observations, one for each call."""
        return isolated.run_isolated(lambda: _observations(self, self.function), self.seconds)

    def compiled(self, **settings: Any) -> isolated.Ending:
        """Those of compiled code, with these ``settings`` in place of the program's own."""
        given = {**self.settings, **settings}
        return isolated.run_isolated(
            lambda: _observations(self, _compiled(self.function, given)), self.seconds
        )

    def problem(
        self, wanted: isolated.Ending | None = None, layer: str = "", **settings: Any
    ) -> Fault | None:
        """How compiled code goes wrong, if it does. ``wanted``: what :meth:`plainly` gave."""
        wanted = self.plainly() if wanted is None else wanted
        if wanted.kind != isolated.RETURNED:
            return None
        ending = self.compiled(**settings)
        if ending.kind == isolated.CRASHED:
            return Fault(layer, CRASHES, ending.text)
        if ending.kind == isolated.HANGS:
            return Fault(layer, HANGS, ending.text)
        if ending.kind == isolated.RAISED:
            return Fault(layer, RAISES, ending.text.strip().rpartition("\n")[2])
        for number, (mine, other) in enumerate(zip(wanted.value, ending.value, strict=True)):
            if isinstance(other, str):
                found = [f"the check says {other}"] if other else []
            else:
                found = differences(mine, other)
            if found:
                where = f"call {number + 1}: " if len(self.calls) > 1 else ""
                return Fault(layer, WRONG, where + found[0])
        return None

    def graphs(self) -> list[Case]:
        """The graphs of the program with inputs that each was called with, as captured."""
        ending = isolated.run_isolated(lambda: _recorded(self), self.seconds)
        if ending.kind != isolated.RETURNED:
            return []
        cases = []
        for data in ending.value:
            text, callees, inputs, integers, library = cloudpickle.loads(data)
            try:
                graph = parse(text, table_of(library), callees)
            except Exception:  # what cannot be printed cannot be shrunk alone
                continue
            cases.append(Case(graph, inputs, integers, library, _graph_settings(self.settings)))
        return cases

    def with_function(
        self, function: Callable[..., Any], calls: Sequence[Arguments] | None = None
    ) -> Program:
        return replace(self, function=function, calls=self.calls if calls is None else tuple(calls))


def interpreted(graph: Graph, examples: Sequence[Any]) -> Callable[..., Any]:
    """A backend: the graph as it was captured, by the references of its ops."""
    return Interpreter(graph, table_of("torch" if "torch" in sys.modules else "")).run


def _graph_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key in ("mode", "backend", "options")}


def _compiled(function: Callable[..., Any], settings: Mapping[str, Any]) -> Callable[..., Any]:
    reset()
    options = {"strict": True, "warm_start": False, "measure": False, "patience_us": 0}
    given = {**settings, "options": {**options, **settings.get("options", {})}}
    compiled: Callable[..., Any] = compile_function(function, **given)
    return compiled


def _observations(program: Program, function: Callable[..., Any]) -> list[Observation | str]:
    found: list[Observation | str] = []
    for args, kwargs in program.calls:
        if program.check is not None:
            verdict = program.check(function(*args, **kwargs))
            found.append("" if verdict else f"{verdict!r}")
            continue
        call = _call(program.function, args, kwargs)
        found.append(call_and_observe(lambda: function(*args, **kwargs), call))  # noqa: B023
    return found


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    plain: object = function
    if isinstance(plain, types.MethodType):
        args = (plain.__self__, *args)
        plain = plain.__func__
    if isinstance(plain, types.FunctionType):
        return Call.to(plain, args, kwargs)
    assert isinstance(_stand_in, types.FunctionType)
    return Call.to(_stand_in, (function, *args), kwargs)  # an object: what it holds is looked at, too


def _stand_in(self: object, *args: object) -> None:
    """Names the parameters of callable objects."""


def _recorded(program: Program) -> list[bytes]:
    """Run the program with a backend that keeps its graphs and their inputs."""
    found: list[bytes] = []

    def backend(graph: Graph, examples: Sequence[Any]) -> Callable[..., Any]:
        text, callees = print_graph(graph), callees_of(graph)
        run = interpreted(graph, examples)
        library = _library(program)
        calls = 0

        def call(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls <= _MOST_CALLS and len(found) < _MOST_GRAPHS:
                count = len(graph.inputs)
                inputs = tuple([np.array(a) if isinstance(a, np.ndarray) else a for a in args[:count]])
                integers = tuple(int(a) for a in args[count:])
                found.append(cloudpickle.dumps((text, callees, inputs, integers, library)))
            return run(*args)

        return call

    function = _compiled(program.function, {**program.settings, "backend": backend})
    for args, kwargs in program.calls:
        try:
            function(*args, **kwargs)
        except Exception:  # noqa: S112 - the program's own; its graphs up to there are known
            continue
    return found


def _library(program: Program) -> str:
    """Whose arrays the program works on."""
    torch = sys.modules.get("torch")
    if torch is None:
        return ""
    module = isinstance(program.function, torch.nn.Module)
    given = [value for args, kwargs in program.calls for value in (*args, *kwargs.values())]
    tensors = any(isinstance(value, (torch.Tensor, torch.nn.Module)) for value in given)
    arrays = any(isinstance(value, np.ndarray) for value in given)
    return "torch" if module or tensors or not arrays else ""
