"""The text of the Python function that runs a staged graph: its stages and what runs between them, in order.

Values are variables ``x0 x1 …`` and symbols are called as in the graph, so that what is known of them is an
expression of Python. What the text refers to beside them (``call0_0``, ``define2`` …) is in its names.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..comments import in_comment
from ..graph.ir import Graph
from ..symbolic.integers import SymGuard

# Routines in C import by what the function that calls them has for ``__import__``.
_BUILTINS: dict[str, Any] = {"__builtins__": builtins, "min": min, "max": max, "int": int}


class Writer:
    """Statements of a function of a graph's inputs and integers."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.lines: list[str] = []
        self.names: dict[str, Any] = dict(_BUILTINS)
        self.symbols: list[str] = []  # those that have values so far
        self._variables: dict[str, str] = {}
        self.inputs = [self.variable(var.name) for var in graph.input_vars]

    def variable(self, value: str) -> str:
        """The variable of a value of the graph."""
        return self._variables.setdefault(value, f"x{len(self._variables)}")

    def bind(self, name: str, value: object) -> str:
        """Let ``name`` mean ``value`` in the text."""
        self.names[name] = value
        return name

    def line(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def assign(self, targets: Sequence[str], value: str) -> None:
        """Give a value, of which there is one for each target, to variables."""
        self.line(f"{', '.join(targets)} = {value}" if targets else value)

    def symbol(self, name: str, value: str) -> None:
        """Give a symbol its value."""
        self.line(f"{name} = {value}")
        self.symbols.append(name)

    def choose(self, targets: Sequence[str], cases: Sequence[tuple[str, str]]) -> None:
        """Give the value of the first case whose condition holds; the last one has none."""
        *tested, (_, otherwise) = cases
        for number, (test, value) in enumerate(tested):
            self.line(f"{'elif' if number else 'if'} {test}:")
            self.assign_inside(targets, value)
        if not tested:
            self.assign(targets, otherwise)
            return
        self.line("else:")
        self.assign_inside(targets, otherwise)

    def assign_inside(self, targets: Sequence[str], value: str) -> None:
        """``assign`` in a block."""
        self.assign(targets, value)
        self.lines[-1] = f"    {self.lines[-1]}"

    def known(self) -> str:
        """A dict of the symbols that have values so far."""
        return "{" + ", ".join(f"{name!r}: {name}" for name in self.symbols) + "}"

    def function(self) -> Callable[..., Any]:
        """The function that the statements are the body of."""
        count = max((s.index + 1 for s in self.graph.symbols if s.kind == "int"), default=0)
        parameters = [*self.inputs, *(f"integer{k}" for k in range(count)), "*rest"]
        text = "\n".join([f"def run({', '.join(parameters)}):", *self.lines, ""])
        exec(compile(text, f"<stages of {in_comment(self.graph.name)}>", "exec"), self.names)
        run: Callable[..., Any] = self.names["run"]
        return run


def condition(guards: Iterable[SymGuard]) -> str:
    """The guards as an expression of Python; empty where there are none."""
    return " and ".join(f"{guard.expr} {guard.relation} 0" for guard in guards)


def sequence(items: Sequence[str]) -> str:
    """A tuple of variables."""
    return f"({', '.join(items)},)" if items else "()"
