"""Shrinking the source of a function: for faults that show before there is a graph, or between graphs.

Candidates come from the syntax tree: statements left out, branches and loops replaced by their bodies,
expressions by parts of themselves, functions cut short, and arguments made smaller. Whether a candidate is a
program at all is found out by running it in plain Python.
"""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..errors import DyncompError
from .literals import CannotWrite, literal
from .program import Arguments, Program
from .shrink import Budget, Search, simpler

_numbers = count()
_MOST_LINES = 4000


class NoSource(DyncompError):
    """The function cannot be written as a file of its own; the text says why."""


@dataclass(frozen=True)
class Source:
    """The functions and constants that a program needs, as text. ``name``: the function that is called;
    ``imports``: lines that come before."""

    text: str
    name: str
    imports: tuple[str, ...]
    calls: tuple[Arguments, ...]

    def function(self) -> Callable[..., Any]:
        """The function, made anew."""
        file = f"<dyncomp candidate {next(_numbers)}>"
        whole = "\n".join([*self.imports, self.text]) + "\n"
        linecache.cache[file] = (len(whole), None, whole.splitlines(keepends=True), file)
        namespace: dict[str, Any] = {"__name__": "candidate"}
        exec(compile(whole, file, "exec"), namespace)  # noqa: S102 - the program's own source
        made: Callable[..., Any] = namespace[self.name]
        return made

    @property
    def tokens(self) -> int:
        """Nodes of the syntax tree."""
        return sum(1 for _ in ast.walk(ast.parse(self.text)))

    @property
    def operations(self) -> int:
        """Calls, operators, subscripts and stores: what does something."""
        kinds = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.AugAssign, ast.Subscript, ast.Attribute)
        return sum(isinstance(node, kinds) for node in ast.walk(ast.parse(self.text)))


def source_of(function: Callable[..., Any], calls: Sequence[Arguments]) -> Source:
    """The text of a Python function with what it refers to. Raises :class:`NoSource`."""
    if not isinstance(function, types.FunctionType):
        raise NoSource(f"{function!r} is no Python function")
    writer = _Writer()
    writer.add(function)
    text = "\n\n".join([*writer.constants, *reversed(writer.functions)])
    if function.__name__ == "<lambda>":
        raise NoSource("a lambda has no source of its own")
    return Source(text, function.__name__, tuple(writer.imports), tuple(calls))


class _Writer:
    def __init__(self) -> None:
        self.imports: dict[str, None] = {"import numpy as np": None}
        self.constants: list[str] = []
        self.functions: list[str] = []
        self.known: dict[str, object] = {"np": np}

    def add(self, function: types.FunctionType) -> None:
        self.known[function.__name__] = function
        try:
            text = textwrap.dedent(inspect.getsource(function))
            tree = ast.parse(text)
        except (OSError, TypeError, SyntaxError, IndentationError) as error:
            raise NoSource(f"the source of {function.__qualname__} is not at hand: {error}") from error
        definition = tree.body[0]
        if not isinstance(definition, ast.FunctionDef):
            raise NoSource(f"{function.__qualname__} is not made by def")
        definition.decorator_list = []
        self.functions.append(ast.unparse(definition))
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        for name in sorted({n.id for n in ast.walk(definition) if isinstance(n, ast.Name)}):
            if name in cells:
                self.bind(name, cells[name].cell_contents)
            elif name in function.__globals__ and name not in function.__code__.co_varnames:
                self.bind(name, function.__globals__[name])

    def bind(self, name: str, value: object) -> None:
        if name in self.known:
            if self.known[name] is not value:
                raise NoSource(f"two things are called {name}")
            return
        self.known[name] = value
        if isinstance(value, types.ModuleType):
            self.imports[
                f"import {value.__name__} as {name}" if value.__name__ != name else f"import {name}"
            ] = None
        elif isinstance(value, types.FunctionType) and value.__name__ == name and _is_users(value):
            self.add(value)
        elif callable(value) and getattr(value, "__module__", None) and hasattr(value, "__qualname__"):
            if "<" in value.__qualname__ or value.__module__ == "__main__":
                raise NoSource(f"{name} cannot be imported")
            first = value.__qualname__.partition(".")[0]
            alias = "" if first == name else f" as {name}"
            self.imports[f"from {value.__module__} import {first}{alias}"] = None
        else:
            try:
                self.constants.append(f"{name} = {literal(value)}")
            except CannotWrite as error:
                raise NoSource(f"{name}: {error}") from error


def _is_users(function: types.FunctionType) -> bool:
    return "site-packages" not in function.__code__.co_filename


Keeps = Callable[[Source], bool]


def shrink_source(source: Source, fails: Keeps, budget: Budget) -> Source:
    """The smallest source found for which ``fails`` says ``True``, as it does for ``source``."""
    return _SourceSearch(source, fails, lambda found: found.operations, budget).search()


class _SourceSearch(Search[Source]):
    def accept(self, candidate: Source | None) -> bool:
        if candidate is None or (candidate.calls is self.best.calls and candidate.tokens >= self.best.tokens):
            return False
        return super().accept(candidate)

    def run(self) -> None:
        before = None
        while before is not self.best and self.budget.left > 0:
            before = self.best
            self.repeat(_cut_short)
            self.statements()
            self.repeat(_renamed)
            self.repeat(_unwrapped)
            self.repeat(_parts)
            while any(map(self.accept, _smaller_calls(self.best))):
                pass

    def repeat(self, reductions: Callable[[ast.Module], Iterator[ast.Module]]) -> None:
        """Accept such reductions as long as there are any."""
        while any(map(self.accept, _made(self.best, reductions(ast.parse(self.best.text))))):
            pass

    def statements(self) -> None:
        """Leave out runs of statements, long ones first."""
        size = max((len(body) for body in _lengths(self.best)), default=1)
        while size and self.budget.left > 0:
            while any(map(self.accept, _made(self.best, _without_runs(ast.parse(self.best.text), size)))):
                pass
            size //= 2


def _lengths(source: Source) -> Iterator[list[ast.stmt]]:
    for holder, field in _bodies(ast.parse(source.text)):
        yield getattr(holder, field)


def _made(source: Source, trees: Iterator[ast.Module]) -> Iterator[Source]:
    for tree in trees:
        text = ast.unparse(ast.fix_missing_locations(tree))
        if text != source.text:
            yield replace(source, text=text)


def _bodies(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, field, None), list) and not isinstance(node, ast.Module):
                yield node, field


def _edited(tree: ast.Module, at: int, edit: Callable[[Any], bool]) -> ast.Module | None:
    """A copy of the tree in which the node number ``at`` of a walk was edited; ``None`` where it was not."""
    made = copy.deepcopy(tree)
    for number, node in enumerate(ast.walk(made)):
        if number == at:
            return made if edit(node) else None
    return None


def _cut_short(tree: ast.Module) -> Iterator[ast.Module]:
    """Functions that return what one of their statements assigned."""
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.FunctionDef):
            length = len(node.body)
            for at in sorted(
                {length // 8, length // 4, length // 2, 3 * length // 4, length - 2, length - 3}
            ):
                if 0 <= at < length - 1:
                    made = _edited(tree, number, lambda f, at=at: _cut(f, at))  # type: ignore[misc]
                    if made is not None:
                        yield made


def _cut(function: ast.FunctionDef, at: int) -> bool:
    last = function.body[at]
    if not isinstance(last, (ast.Assign, ast.AugAssign)):
        return False
    target = last.targets[0] if isinstance(last, ast.Assign) else last.target
    value = copy.deepcopy(target)
    for part in ast.walk(value):
        if hasattr(part, "ctx"):
            part.ctx = ast.Load()
    function.body[at + 1 :] = [ast.Return(value)]  # type: ignore[arg-type]
    return True


def _without_runs(tree: ast.Module, size: int) -> Iterator[ast.Module]:
    """Runs of ``size`` statements left out. What they assigned is then what was assigned before them."""
    for number, node in enumerate(ast.walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                for start in range(0, len(body), size):
                    yield from _without(tree, number, field, slice(start, start + size))


def _without(tree: ast.Module, number: int, field: str, gone: slice) -> Iterator[ast.Module]:
    """The tree without some statements of the node ``number`` of a walk."""

    def drop(node: Any) -> bool:
        items = getattr(node, field)
        before = _assigned(items[: gone.start])
        if not before and isinstance(node, ast.FunctionDef):
            before = [argument.arg for argument in node.args.args]
        lost = _assigned(items[gone])
        del items[gone]
        if not items and field == "body" and not isinstance(node, ast.Module):
            items.append(ast.Pass())
        if before:
            _rename(items[gone.start :], dict.fromkeys(lost, before[-1]))
        return True

    made = _edited(tree, number, drop)
    if made is not None and made.body:
        yield made


def _assigned(statements: Sequence[ast.stmt]) -> list[str]:
    """Names that statements assign, in order."""
    found = []
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.append(node.id)
    return found


def _rename(statements: Sequence[ast.stmt], names: Mapping[str, str]) -> None:
    """Read other variables, up to where these are assigned."""
    live = dict(names)
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in live:
                node.id = live[node.id]
        for name in _assigned([statement]):
            live.pop(name, None)


def _renamed(tree: ast.Module) -> Iterator[ast.Module]:
    """``a = b`` left out, ``b`` in the place of ``a`` after it."""
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.FunctionDef):
            for at, statement in enumerate(node.body):
                if (
                    isinstance(statement, ast.Assign)
                    and isinstance(statement.value, ast.Name)
                    and isinstance(statement.targets[0], ast.Name)
                ):
                    old, new = statement.targets[0].id, statement.value.id

                    def rename(f: Any, at: int = at, old: str = old, new: str = new) -> bool:
                        del f.body[at]
                        _rename(f.body[at:], {old: new})
                        return True

                    made = _edited(tree, number, rename)
                    if made is not None:
                        yield made


def _unwrapped(tree: ast.Module) -> Iterator[ast.Module]:
    """Compound statements replaced by what is inside."""
    for number, (_, field) in enumerate(list(_bodies(tree))):
        made = copy.deepcopy(tree)
        holder, field = list(_bodies(made))[number]
        items = getattr(holder, field)
        for at, statement in enumerate(items):
            for inner in ("body", "orelse"):
                found = getattr(statement, inner, None)
                if isinstance(found, list) and found and not isinstance(statement, ast.FunctionDef):
                    other = copy.deepcopy(made)
                    there, name = list(_bodies(other))[number]
                    getattr(there, name)[at : at + 1] = copy.deepcopy(found)
                    yield other


def _parts(tree: ast.Module) -> Iterator[ast.Module]:
    """Expressions replaced by parts of themselves, outer ones first, and numbers by smaller ones."""
    for number, node in enumerate(ast.walk(tree)):
        for field, value in ast.iter_fields(node):
            values = value if isinstance(value, list) else [value]
            for at, item in enumerate(values):
                if isinstance(item, ast.expr) and not isinstance(getattr(item, "ctx", None), ast.Store):
                    for part in _smaller_expressions(item):

                        def put(n: Any, field: str = field, at: int = at, part: ast.expr = part) -> bool:
                            new = copy.deepcopy(part)
                            if isinstance(getattr(n, field), list):
                                getattr(n, field)[at] = new
                            else:
                                setattr(n, field, new)
                            return True

                        made = _edited(tree, number, put)
                        if made is not None:
                            yield made


def _smaller_expressions(item: ast.expr) -> Iterator[ast.expr]:
    if isinstance(item, ast.Constant):
        if type(item.value) is int and item.value > 2:
            yield ast.Constant(2)
            yield ast.Constant(item.value // 2)
        return
    for child in ast.iter_child_nodes(item):
        if isinstance(child, ast.expr) and not isinstance(child, (ast.Starred, ast.Slice)):
            yield child
        elif isinstance(child, ast.keyword):
            yield child.value


def _smaller_calls(source: Source) -> Iterator[Source]:
    """Calls left out, and arguments made smaller and simpler."""
    for number in range(len(source.calls)):
        if len(source.calls) > 1:
            yield replace(source, calls=(*source.calls[:number], *source.calls[number + 1 :]))
    sizes = {
        n
        for args, kwargs in source.calls
        for value in (*args, *kwargs.values())
        if isinstance(value, np.ndarray)
        for n in value.shape
        if n > 1
    }
    for size in sorted(sizes, reverse=True):
        for to in dict.fromkeys((1, 2, 3, 4, size // 4, size // 2)):
            if 0 < to < size:
                yield replace(source, calls=_mapped(source.calls, partial(_cut_array, size=size, to=to)))
    for number, (args, kwargs) in enumerate(source.calls):
        for at, value in enumerate(args):
            if isinstance(value, np.ndarray) and value.size:
                for simple in simpler(value):
                    if np.array_equal(simple, value):
                        break
                    changed = (*args[:at], simple, *args[at + 1 :])
                    calls = (*source.calls[:number], (changed, kwargs), *source.calls[number + 1 :])
                    yield replace(source, calls=calls)


def _cut_array(value: object, size: int, to: int) -> object:
    if not isinstance(value, np.ndarray):
        return value
    return value[tuple(slice(0, to if n == size else n) for n in value.shape)].copy()


def _mapped(calls: Sequence[Arguments], change: Callable[[object], object]) -> tuple[Arguments, ...]:
    return tuple(
        (tuple(map(change, args)), {k: change(v) for k, v in kwargs.items()}) for args, kwargs in calls
    )


def program_of(source: Source, like: Program) -> Program:
    """The source as a program. Raises what the source raises when it is run."""
    return replace(like, function=source.function(), calls=source.calls)
