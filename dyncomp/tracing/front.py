"""What stands before and behind a graph: how arguments become its inputs, and its outputs a result."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ..archives.captured import WholeFunction, in_code_order
from ..capture.guards.guard import Kind, describe_failure
from ..capture.guards.program import lower_guards
from ..capture.guards.source import (
    AttrSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    Source,
)

_CHECKED_HERE = (Kind.ARRAY, Kind.TORCH_TENSOR, Kind.NO_OVERLAP)  # by ``arguments.py``


class Front:
    """``parameters``: what callers give; ``given``: the graph's inputs that come from it, by name; ``tree``:
    what the result is made of (``Signature.result``, with names of inputs)."""

    parameters: Sequence[inspect.Parameter]
    given: Sequence[str]
    tree: list[Any]

    def read(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """The values of ``given`` by name, and those of the graph's integers. Raises ``TypeError``."""
        raise NotImplementedError


class PlainFront(Front):
    """Inputs in order; the result is one output, or a tuple of all (``several``: also of one)."""

    def __init__(self, given: Sequence[str], outputs: int, several: bool, integers: int = 0) -> None:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.given = tuple(given)
        self.integers = tuple(f"integer_{k}" for k in range(integers))
        self.parameters = [inspect.Parameter(name, kind) for name in (*self.given, *self.integers)]
        results = [["output", k] for k in range(outputs)]
        self.tree = results[0] if outputs == 1 and not several else ["tuple", *results]

    def read(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[int]]:
        return {name: arguments[name] for name in self.given}, [arguments[name] for name in self.integers]


class CapturedFront(Front):
    """The signature of a captured function. ``names``: of the graph's inputs, in the order of the capture."""

    def __init__(self, whole: WholeFunction, names: Sequence[str]) -> None:
        sources = whole.signature.inputs
        arrays, numbers = sources[: len(names)], sources[len(names) :]
        self.name = whole.name
        self.parameters = whole.parameters()
        self.given = tuple(name for name, source in zip(names, arrays) if whole.is_given(source))
        self.tree = _with_names(whole.signature.result, names)
        self._signature = inspect.Signature(self.parameters)
        self._before = (None,) * whole.first
        self._numbers = [None if whole.is_given(source) else int(whole.read(source)) for source in numbers]
        guards = [guard for guard in whole.guards_of_arguments() if guard.kind not in _CHECKED_HERE]
        read = [source for source in sources if whole.is_given(source)]
        self._program = lower_guards(guards, read)

    def read(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[int]]:
        values = (*self._before, *in_code_order(self._signature, arguments))
        found = self._program.read(values, {}, {}, None)
        if found is None:
            problem = describe_failure(self._program, values, {}, {}, None)
            what = problem or "containers of another structure"
            raise TypeError(f"{self.name} was traced for other arguments: {what}")
        inputs = dict(zip(self.given, found))
        rest = iter(found[len(self.given) :])
        return inputs, [int(next(rest)) if number is None else number for number in self._numbers]


def _with_names(tree: list[Any], names: Sequence[str]) -> list[Any]:
    kind, *parts = tree
    if kind == "input":
        return [kind, names[parts[0]]]
    if kind in ("output", "constant"):
        return tree
    if kind == "mapping":
        return [kind, parts[0], *[[key, _with_names(item, names)] for key, item in parts[1:]]]
    return [kind, *[_with_names(item, names) for item in parts]]


def inputs_in(tree: list[Any]) -> set[str]:
    """The inputs that a result holds as they are."""
    kind, *parts = tree
    if kind == "input":
        return {parts[0]}
    if kind in ("output", "constant"):
        return set()
    items = [item for _, item in parts[1:]] if kind == "mapping" else parts
    return set().union(*map(inputs_in, items))


def assembled(tree: list[Any], outputs: Sequence[Any], inputs: Mapping[str, Any]) -> Any:
    """The result that a tree describes."""
    kind, *parts = tree
    if kind == "output":
        return outputs[parts[0]]
    if kind == "input":
        return inputs[parts[0]]
    if kind == "constant":
        return parts[0]
    if kind == "mapping":
        cls, *pairs = parts
        found = {key: assembled(item, outputs, inputs) for key, item in pairs}
        return found if cls is dict else cls(found)
    items = [assembled(item, outputs, inputs) for item in parts]
    return tuple(items) if kind == "tuple" else items


def constant_name(source: Source, first: int) -> str:
    """``layers.0.weight``, ``W``: what users call what is found at ``source``. ``first``: the number of the
    first argument that callers give; one before it is the object that the function belongs to."""
    return ".".join(_parts(source, first)) or source.expr()


_MODULE_PARTS = ("_modules", "_parameters", "_buffers")


def _parts(source: Source, first: int) -> list[str]:
    if isinstance(source, LocalSource):
        return [] if source.index < first else [source.local]
    base = source.parent
    if base is None:
        return [source.expr()]
    if isinstance(source, ItemSource):
        return [*_parts(base, first), str(source.key)]
    if isinstance(source, (AttrSource, InstanceDictSource)):
        return _parts(base, first) if source.attr in _MODULE_PARTS else [*_parts(base, first), source.attr]
    return [source.expr()]
