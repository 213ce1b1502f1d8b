"""Patches for graph breaks that have one mechanical remedy, which leaves alone what the program does."""

from __future__ import annotations

import ast
import builtins
import difflib
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Sequence

from ...capture.breaks import BreakRecord
from ...dataclass import dataclass
from .source_lines import is_users

# Modules of the standard library that do something when they are imported.
_NOT_QUIET = frozenset({"__future__", "antigravity", "this", "idlelib", "readline", "site"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True)
class Fix:
    """``diff`` turns the file ``path`` into ``after`` (``patch`` and ``git apply`` take it). ``why``: why it
    is safe."""

    title: str
    why: str
    path: str
    diff: str
    after: str


def fix_of(record: BreakRecord) -> Fix | None:
    """The patch that makes a break go away, where there is one that is safe."""
    make = _FIXES.get(record.id)
    if make is None or record.loc is None or not is_users(record.loc.file):
        return None
    lines = linecache.getlines(record.loc.file)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    edit = make(_Program(lines, tree), record.loc.line)
    if edit is None or not lines:
        return None
    title, why, after = edit
    try:
        ast.parse("".join(after))
    except SyntaxError:
        return None
    path = _shown(record.loc.file)
    diff = "".join(difflib.unified_diff(_ended(lines), _ended(after), path, path))
    return Fix(title, why, record.loc.file, diff, "".join(after))


def _shown(path: str) -> str:
    """Relative to the working directory, where the file is below it."""
    here = os.getcwd() + os.sep
    return path.removeprefix(here) if path.startswith(here) else path


def _ended(lines: Sequence[str]) -> list[str]:
    return [line if line.endswith("\n") else line + "\n" for line in lines]


class _Program:
    """A file: its lines and tree, what its names are, and which block each statement is in."""

    def __init__(self, lines: list[str], tree: ast.Module) -> None:
        self.lines, self.tree = lines, tree
        self.blocks: dict[ast.stmt, list[ast.stmt]] = {}
        self.owner: dict[ast.AST, ast.AST] = {}
        self.names: dict[str, str] = {}
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self.owner[child] = node
            for part in ("body", "orelse", "finalbody"):
                block = getattr(node, part, None)
                if isinstance(block, list):
                    self.blocks.update(dict.fromkeys(block, block))
        for node in tree.body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.names[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    self.names[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def dotted(self, node: ast.AST) -> str:
        """What an expression such as ``dc.disable`` is called, by the imports of the module."""
        if isinstance(node, ast.Attribute):
            return f"{self.dotted(node.value)}.{node.attr}"
        return self.names.get(node.id, "") if isinstance(node, ast.Name) else ""

    def at(self, line: int) -> Iterator[ast.stmt]:
        """Statements that lie on ``line``."""
        for node in self.blocks:
            if node.lineno <= line <= (node.end_lineno or node.lineno):
                yield node

    def without(self, statement: ast.stmt) -> list[str] | None:
        """The lines without a statement that has its lines to itself."""
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        sharing = [
            n
            for n in self.blocks
            if n is not statement and (n.lineno in (first, last) or n.end_lineno == first)
        ]
        if any(not isinstance(n, _SCOPES) and self.owner.get(statement) is not n for n in sharing):
            return None
        if any(n.lineno == first for n in sharing):
            return None
        left = self.lines[: first - 1]
        if len(self.blocks[statement]) == 1:
            left.append(" " * statement.col_offset + "pass\n")
        return left + self.lines[last:]


_Edit = tuple[str, str, list[str]]


# -- graph-break: the call does nothing else ---------------------------------------------------------------
def _drop_graph_break(program: _Program, line: int) -> _Edit | None:
    for node in program.at(line):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        call = node.value
        given = [*call.args, *(k.value for k in call.keywords)]
        if program.dotted(call.func) != "dyncomp.graph_break" or not all(
            isinstance(value, ast.Constant) for value in given
        ):
            continue
        after = program.without(node)
        if after is not None:
            return "Leave out graph_break()", "The call does nothing but end the graph.", after
    return None


# -- disabled: the mark does nothing else ------------------------------------------------------------------
def _drop_disable(program: _Program, line: int) -> _Edit | None:
    called = {
        node.func.id
        for statement in program.at(line)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.lineno <= line <= (node.end_lineno or line)
    }
    marked = []
    for node in program.tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in called:
            marked += [
                (node, mark)
                for mark in node.decorator_list
                if program.dotted(_head(mark)) == "dyncomp.disable"
            ]
    if len(marked) != 1:
        return None
    function, mark = marked[0]
    others = [d for d in function.decorator_list if d is not mark]
    first, last = mark.lineno, mark.end_lineno or mark.lineno
    if any(d.lineno <= last and (d.end_lineno or d.lineno) >= first for d in others):
        return None
    after = program.lines[: first - 1] + program.lines[last:]
    why = (
        "Compiled code does what plain Python does: the mark says no more than that it is not to be compiled."
    )
    return f"Have {function.name} compiled", why, after


def _head(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


# -- import: of the standard library, to the top of the module ----------------------------------------------
def _hoist_import(program: _Program, line: int) -> _Edit | None:
    for node in program.at(line):
        if not isinstance(node, (ast.Import, ast.ImportFrom)) or node.lineno != node.end_lineno:
            continue
        function = program.owner.get(node)
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or node not in function.body:
            return None  # under a condition, or where its failure is awaited
        if not _is_quiet(node) or not _is_free(program, node, function):
            return None
        left = program.without(node)
        place = _below_imports(program.tree)
        if left is None or place >= node.lineno:
            return None
        statement = program.lines[node.lineno - 1].strip().partition("#")[0].rstrip() + "\n"
        after = [*left[:place], statement, *left[place:]]
        why = (
            "The module is of the standard library and does nothing when it is imported, and nothing else in "
            "the file has the name."
        )
        return "Import at the top of the module", why, after
    return None


def _is_quiet(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        modules = [node.module or ""] if not node.level else [""]
        if any(alias.name == "*" for alias in node.names):
            return False
    else:
        modules = [alias.name for alias in node.names]
    heads = {name.partition(".")[0] for name in modules}
    return heads <= sys.stdlib_module_names - _NOT_QUIET


def _is_free(program: _Program, node: ast.stmt, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether nothing outside of ``function`` uses the names that ``node`` binds, and nothing binds them
    anew."""
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    names = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    if names & set(dir(builtins)):
        return False
    inside = set(ast.walk(function))
    for other in ast.walk(program.tree):
        if isinstance(other, ast.Name):
            if other.id in names and (other not in inside or not isinstance(other.ctx, ast.Load)):
                return False
            if other.id in ("locals", "vars", "dir", "eval", "exec", "globals"):
                return False
        elif isinstance(other, (ast.Import, ast.ImportFrom)) and other is not node:
            if names & {alias.asname or alias.name.partition(".")[0] for alias in other.names}:
                return False
        elif (
            isinstance(other, (ast.Global, ast.Nonlocal))
            and names & set(other.names)
            or isinstance(other, ast.arg)
            and other.arg in names
            or isinstance(other, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            and other.name in names
        ):
            return False
    return True


def _below_imports(tree: ast.Module) -> int:
    """After how many lines an import may come: behind the imports that the module begins with."""
    place = 0
    for number, node in enumerate(tree.body):
        is_text = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not isinstance(node, (ast.Import, ast.ImportFrom)):
            break
        place = node.end_lineno or node.lineno
    return place


_FIXES: dict[str, Callable[[_Program, int], _Edit | None]] = {
    "graph-break": _drop_graph_break,
    "disabled": _drop_disable,
    "import": _hoist_import,
}
