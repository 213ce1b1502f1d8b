"""The shape of the code (DESIGN §3): layers, acyclic imports, file sizes, forbidden names, fast import."""

from __future__ import annotations

import ast
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "dyncomp"
MAX_LINES = 800
# A package imports packages of lower rank or its own; those of one rank never import each other.
RANK = {
    "graph": 1,
    "python_code": 1,
    "build": 1,
    "prims": 2,
    "scalar_loops": 2,
    "frontends": 3,
    "capture": 4,
    "aot_autograd": 4,
    "inductor": 4,
}
TOP_RANK = 5
LEAF_RANK = 0
LEAVES = (
    "collector",
    "comments",
    "dataclass",
    "errors",
    "faults",
    "notices",
    "options",
    "dtypes",
    "device",
    "hook",
    "symbolic",
    "runtime",
    "signals",
    "spans",
    "trusted",
    "wording",
)
_PARTS = "_dynamo|_inductor|_functorch|_decomp|_refs|_prims|_subclasses"
FORBIDDEN = re.compile(rf"torch\.({_PARTS}|compile\b|compiler\b|fx\b|export\b|jit\b)|\bfunctorch\b")


def _modules() -> dict[str, pathlib.Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


MODULES = _modules()


def _longest_known(name: str) -> Iterator[str]:
    while name:
        if name in MODULES:
            yield name
            return
        name = name.rpartition(".")[0]


def _statements(tree: ast.AST, typing: bool) -> Iterator[ast.AST]:
    """All that is in ``tree``; what stands under ``if TYPE_CHECKING:`` only for ``typing``."""
    nodes = list(ast.iter_child_nodes(tree))
    if isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING" and not typing:
        nodes = [*tree.orelse]
    for node in nodes:
        yield node
        yield from _statements(node, typing)


def _imported(name: str, path: pathlib.Path, typing: bool) -> Iterator[str]:
    """Modules of ours that ``name`` imports, function-level imports included, and those for ``typing``."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in _statements(ast.parse(path.read_text(encoding="utf-8")), typing):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _longest_known(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                above = parts[: len(parts) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield from [full] if full in MODULES else _longest_known(base)


# what layers are about; and the imports at run time, of which cycles are made
IMPORTS = {name: set(_imported(name, path, typing=True)) - {name} for name, path in MODULES.items()}
RUN_TIME_IMPORTS = {name: set(_imported(name, path, typing=False)) - {name} for name, path in MODULES.items()}


def _part(name: str) -> str:
    return (name.split(".") + [""])[1]


def _rank(name: str) -> int:
    part = _part(name)
    return LEAF_RANK if part in LEAVES else RANK.get(part, TOP_RANK)


def _code_lines(path: pathlib.Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        yield number, line.partition("#")[0]


def test_modules_are_found() -> None:
    assert "dyncomp.graph.ir" in MODULES
    assert "dyncomp.errors" in IMPORTS["dyncomp.graph.ir"]


def test_layers() -> None:
    wrong = []
    for name, targets in IMPORTS.items():
        for target in targets:
            if name == "dyncomp" or target == "dyncomp" or _part(name) == _part(target):
                continue
            if _rank(name) == TOP_RANK:
                continue
            if _rank(target) > _rank(name) or (_rank(target) == _rank(name) and _rank(name) != LEAF_RANK):
                wrong.append(f"{name} imports {target}")
    assert not wrong, "\n".join(wrong)


def _find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """A cycle of imports, or nothing."""
    done: set[str] = set()
    for start in graph:
        path: list[str] = []
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(sorted(graph[start])))]
        if start in done:
            continue
        path.append(start)
        while stack:
            name, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                done.add(name)
                stack.pop()
                path.pop()
            elif target in path:
                return [*path[path.index(target) :], target]
            elif target not in done:
                stack.append((target, iter(sorted(graph[target]))))
                path.append(target)
    return []


def test_imports_have_no_cycles() -> None:
    assert _find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    cycle = _find_cycle(RUN_TIME_IMPORTS)
    assert "dyncomp.capture.tracer" in IMPORTS["dyncomp.capture.values.base"]  # only there to name its type
    assert "dyncomp.capture.tracer" not in RUN_TIME_IMPORTS["dyncomp.capture.values.base"]
    assert not cycle, " -> ".join(cycle)


@pytest.mark.parametrize("suffixes", [(".py",), (".c", ".cpp", ".h")])
def test_files_are_short(suffixes: tuple[str, ...]) -> None:
    long = []
    for path in PACKAGE.rglob("*"):
        if path.suffix in suffixes:
            lines = path.read_text(encoding="utf-8").count("\n")
            if lines > MAX_LINES:
                long.append(f"{path.relative_to(ROOT)}: {lines} lines")
    assert not long, "\n".join(long)


def test_python_versions_are_known_in_one_place() -> None:
    wrong = []
    for path in MODULES.values():
        if "python_code" in path.parts:
            continue
        wrong += [f"{path}:{n}" for n, code in _code_lines(path) if "sys.version_info" in code]
    assert not wrong, "\n".join(wrong)


def test_torch_is_imported_in_one_place_and_lazily() -> None:
    wrong = []
    for name, path in MODULES.items():
        for number, code in _code_lines(path):
            match = re.match(r"(\s*)(import|from) torch\b", code)
            if match and (not name.startswith("dyncomp.frontends.torch") or not match.group(1)):
                wrong.append(f"{path}:{number}: {code.strip()}")
    assert not wrong, "\n".join(wrong)


def test_tests_are_collected_without_extras() -> None:
    """The core suite runs with the core alone: an extra is asked for with ``pytest.importorskip``."""
    extras = {"torch", "scipy", "sklearn", "skimage", "numba", "jax", "cupy", "dask", "timm"}
    wrong = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wrong += [f"{path}:{node.lineno}: {name}" for name in names if name.split(".")[0] in extras]
    assert not wrong, "\n".join(wrong)


def test_no_forbidden_names() -> None:
    assert FORBIDDEN.search("torch." + "_dynamo.config")
    wrong = []
    for path in MODULES.values():
        wrong += [f"{path}:{n}: {code.strip()}" for n, code in _code_lines(path) if FORBIDDEN.search(code)]
    assert not wrong, "\n".join(wrong)


def test_importing_dyncomp_is_light() -> None:
    """No torch, triton or sympy; the time is printed (``pytest -s``), not asserted, as machines differ."""
    names = ("torch", "triton", "sympy", "scipy", "cupy")
    command = f"import sys, numpy, dyncomp; print([m for m in {names} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for line in done.stderr.splitlines():
        columns = [column.strip() for column in line.split("|")]
        if columns[-1] in ("numpy", "dyncomp"):
            print(f"import {columns[-1]}: {int(columns[1]) / 1e6:.3f} s")
    assert done.stdout.strip() == "[]"


def _words(node: ast.AST) -> list[str]:
    """The strings of a literal collection, or of ``"a b c".split()``."""
    match node:
        case ast.Set(items) | ast.List(items) | ast.Tuple(items) | ast.Dict(items):
            values = [item.value for item in items if isinstance(item, ast.Constant)]
            return [value for value in values if isinstance(value, str)]
        case ast.Call(ast.Attribute(ast.Constant(str(text)), "split")):
            return text.split()
    return []


def test_what_is_said_of_ops_stands_in_their_rows() -> None:
    """A list of four ops or more outside of the rows drifts away from them. (Frontends list a library's own
    names.)"""
    from dyncomp.prims.table import TABLE

    found = []
    for name, path in MODULES.items():
        if {"prims", "frontends"} & set(name.split(".")):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            words = _words(node)
            if len(words) >= 4 and sum(word in TABLE for word in words) >= 0.8 * len(words):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {words}")  # type: ignore[attr-defined]
    assert not found
