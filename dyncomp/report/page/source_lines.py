"""The user's source, line by line, with what became of each line."""

from __future__ import annotations

import ast
import linecache
import re
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from ...capture.breaks import BREAKS, BreakRecord
from ...capture.entries.records import EntryRecord
from ...dataclass import dataclass, field
from ...graph.ir import GRADIENT_OF, Loc
from ...scalar_loops.entry.record import NativeLoopRecord

_PACKAGE = Path(__file__).resolve().parents[2]
_LIBRARIES = tuple(
    str(Path(path).resolve())
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_ORIGIN = re.compile(r"(?:.* at )?(.*):(\d+)$", re.S)


class State(StrEnum):
    """What became of a line. The value is the class of the page's style."""

    GRAPH = "graph"  # operations of it are in a graph
    BREAK = "break"  # the graph ended here
    PLAIN = "plain"  # it runs as plain Python
    NATIVE = "native"  # it is in a loop that is compiled whole
    FOLLOWED = "followed"  # capture executed it, nothing of it is left to compute
    UNREACHED = "unreached"  # neither capture nor plain Python came here
    NONE = "none"  # nothing to execute: comments, docstrings, empty lines


@dataclass
class SourceLine:
    """A line with its ``notes``: what is shown when it is unfolded."""

    number: int
    text: str
    state: State = State.NONE
    notes: list[str] = field(default_factory=list)


@dataclass
class SourceBlock:
    """A function, or a statement outside of functions."""

    name: str
    lines: list[SourceLine]

    @property
    def counts(self) -> Counter[State]:
        return Counter(line.state for line in self.lines if line.state is not State.NONE)


@dataclass
class SourceFile:
    """``missing``: why there is no source to show."""

    path: str
    is_users: bool
    blocks: list[SourceBlock]
    missing: str = ""

    @property
    def in_graphs(self) -> int:
        """How many lines are compiled into graphs."""
        return sum(block.counts[State.GRAPH] for block in self.blocks)


@dataclass
class _Facts:
    """What is known of the lines of one file."""

    ops: defaultdict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    backward: defaultdict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    kernels: defaultdict[int, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    breaks: defaultdict[int, list[BreakRecord]] = field(default_factory=lambda: defaultdict(list))
    skips: dict[int, str] = field(default_factory=dict)  # first lines of functions, and why
    loops: dict[int, NativeLoopRecord] = field(default_factory=dict)
    left: dict[int, str] = field(default_factory=dict)  # lines after which a function runs as plain Python
    reached: set[int] = field(default_factory=set)

    @property
    def lines(self) -> set[int]:
        return {*self.ops, *self.backward, *self.breaks, *self.skips, *self.loops, *self.left, *self.reached}


def source_files(
    entries: Sequence[EntryRecord],
    skipped: Sequence[tuple[str, Loc, str]],
    loops: Sequence[NativeLoopRecord],
    reached: frozenset[Loc],
    kernels: Sequence[tuple[str, Sequence[str]]],
) -> list[SourceFile]:
    """Every file and function involved, the user's own files first. ``kernels``: names and origins."""
    facts: defaultdict[str, _Facts] = defaultdict(_Facts)
    for entry in entries:
        _note_entry(facts, entry)
    for _, loc, reason in skipped:
        facts[loc.file].skips[loc.line] = reason
    for record in loops:
        facts[record.loc.file].loops[record.loc.line] = record
    for loc in reached:
        facts[loc.file].reached.add(loc.line)
    for name, origins in kernels:
        for origin in origins:
            found = _ORIGIN.match(origin)
            if found is not None and found[1] in facts:
                facts[found[1]].kernels[int(found[2])][name] = None
    files = [_file(path, known) for path, known in facts.items() if not _is_own(path)]
    shown = [f for f in files if f.blocks or f.missing]
    return sorted(shown, key=lambda f: (not f.is_users, bool(f.missing), -f.in_graphs))


def _note_entry(facts: defaultdict[str, _Facts], entry: EntryRecord) -> None:
    for node in () if entry.graph is None else entry.graph.nodes:
        if node.loc is not None:
            known = facts[node.loc.file]
            counted = known.backward if node.loc.function.startswith(GRADIENT_OF) else known.ops
            counted[node.loc.line][node.op] += 1
    for record in entry.breaks:
        if record.loc is None:
            continue
        known = facts[record.loc.file]
        known.breaks[record.loc.line].append(record)
        if record.id == "loop-not-extracted":
            known.left[record.loc.line] = record.reason
    if entry.resting:
        facts[entry.loc.file].skips[entry.loc.line] = entry.resting


def _is_own(path: str) -> bool:
    """Whether it is code of dyncomp itself, such as a polyfill."""
    return Path(path).is_absolute() and Path(path).is_relative_to(_PACKAGE)


def is_users(path: str) -> bool:
    """Whether a file is neither the standard library's, nor an installed package's, nor made by either."""
    if path.startswith("<") and not path.startswith("<ipython"):
        return False
    return not str(Path(path).resolve()).startswith(_LIBRARIES)


# -- one file -------------------------------------------------------------------------------------
def _file(path: str, facts: _Facts) -> SourceFile:
    texts = [line.rstrip("\n") for line in linecache.getlines(path)]
    users = is_users(path)
    if not texts:
        lines = ", ".join(map(str, sorted(facts.lines)))
        return SourceFile(path, users, [], f"its source cannot be found; lines involved: {lines}")
    try:
        tree = ast.parse("\n".join(texts))
    except (SyntaxError, ValueError):
        return SourceFile(path, users, [], "its source is no Python that can be parsed")
    if max(facts.lines, default=0) > len(texts):
        return SourceFile(path, users, [], "its source has changed since it ran: lines are missing")
    tops = [_extent(node, name) for node, name in _tops(tree.body, "")]
    blocks = []
    for first, last, name, node in tops:
        if any(first <= line <= last for line in facts.lines):
            shown = [SourceLine(n, texts[n - 1]) for n in range(first, last + 1)]
            _colour(shown, first, node, facts)
            blocks.append(SourceBlock(name, shown))
    return SourceFile(path, users, blocks)


def _tops(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[ast.stmt, str]]:
    """Functions outside of functions, and statements that are none."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _tops(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node, prefix + node.name
        elif isinstance(node, (ast.If, ast.Try, ast.With)) and any(
            isinstance(n, (ast.FunctionDef, ast.ClassDef)) for n in ast.walk(node)
        ):
            for part in ("body", "orelse", "finalbody"):
                yield from _tops(getattr(node, part, []), prefix)
            for handler in getattr(node, "handlers", []):
                yield from _tops(handler.body, prefix)
        else:
            yield node, "module"


def _extent(node: ast.stmt, name: str) -> tuple[int, int, str, ast.stmt]:
    return _first(node), node.end_lineno or node.lineno, name, node


def _first(node: ast.stmt | ast.ExceptHandler) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _colour(lines: list[SourceLine], first: int, top: ast.stmt, facts: _Facts) -> None:
    plain = _plain_lines(top, facts)
    native = _native_lines(top, facts)
    for start, end in _statements(top):
        own = range(start, end + 1)
        state = _state(own, facts, plain, native)
        for number in own:
            lines[number - first].state = state
    for line in lines:
        line.notes = _notes(line.number, facts)


def _state(own: range, facts: _Facts, plain: set[int], native: set[int]) -> State:
    if any(record.id != "loop" for n in own for record in facts.breaks.get(n, ())):
        return State.BREAK  # bodies of loops are compiled
    if any(n in facts.ops or n in facts.backward for n in own):
        return State.GRAPH
    if any(n in native for n in own):
        return State.NATIVE
    if any(n in facts.reached for n in own):
        return State.FOLLOWED
    return State.PLAIN if any(n in plain for n in own) else State.UNREACHED


def _statements(top: ast.stmt) -> Iterator[tuple[int, int]]:
    """Lines of simple statements, and of the headers of others; the inner after the outer. Documentation and
    declarations are none."""
    todo: list[ast.stmt | ast.ExceptHandler | ast.match_case] = [top]
    while todo:
        node = todo.pop()
        inner = [
            n
            for n in ast.iter_child_nodes(node)
            if isinstance(n, (ast.stmt, ast.ExceptHandler, ast.match_case))
        ]
        todo += inner
        if isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal, ast.match_case)) or _is_text(node):
            continue
        start = _first(node)
        bodies = [_first(n) for n in inner if isinstance(n, (ast.stmt, ast.ExceptHandler))]
        end = min(bodies) - 1 if bodies else node.end_lineno or start
        if node is top and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue  # its definition runs before the call that is explained
        yield start, max(start, end)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _functions_in(top: ast.stmt) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(top):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def _plain_lines(top: ast.stmt, facts: _Facts) -> set[int]:
    """Lines of functions that run as plain Python, of loops over single numbers that are not compiled, and of
    what comes after a loop that could not be made a function."""
    found: set[int] = set()
    for node in _functions_in(top):
        own = range(_first(node), (node.end_lineno or node.lineno) + 1)
        if any(line in facts.skips for line in range(own.start, node.lineno + 1)):
            found.update(own)
        after = [line for line in facts.left if line in own]
        if after:
            found.update(range(min(after), own.stop))
    for loop, record in _loops_in(top, facts):
        if not record.is_native:
            found.update(range(loop.lineno, (loop.end_lineno or loop.lineno) + 1))
    return found


def _native_lines(top: ast.stmt, facts: _Facts) -> set[int]:
    found: set[int] = set()
    for node, record in _loops_in(top, facts):
        if record.is_native:
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _loops_in(top: ast.stmt, facts: _Facts) -> Iterator[tuple[ast.stmt, NativeLoopRecord]]:
    for node in ast.walk(top):
        if isinstance(node, (ast.For, ast.While)) and node.lineno in facts.loops:
            yield node, facts.loops[node.lineno]


def _notes(number: int, facts: _Facts) -> list[str]:
    found = []
    if number in facts.ops:
        found.append("operations: " + _counted(facts.ops[number]))
    if number in facts.backward:
        found.append("in gradients: " + _counted(facts.backward[number]))
    if number in facts.kernels:
        found.append("kernels: " + ", ".join(facts.kernels[number]))
    for record in facts.breaks.get(number, ()):
        found.append(f"graph break [{record.id}]: {record.reason}. {BREAKS[record.id].hint}")
    if number in facts.skips:
        found.append(f"plain Python: {facts.skips[number]}")
    if number in facts.loops:
        found += facts.loops[number].describe().splitlines()
    return list(dict.fromkeys(found))


def _counted(ops: Counter[str]) -> str:
    return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in ops.most_common())
