"""The examples in docstrings, as functions: compiled against plain Python.

    python -m tests.packages.examples [--backend inductor] [--seconds 300] numpy numpy.ma scipy.signal …

The examples of one docstring become the body of one function, which returns its variables and the values of
its expressions. What differs from call to call in plain Python (uninitialised memory, the time) is left out.
"""

from __future__ import annotations

import argparse
import ast
import doctest
import importlib
import inspect
import linecache
import random
import re
import textwrap
import time
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import dyncomp
from tests.capture.comparing import Outcome, call, differences

_RTOL = 1e-6
_CALLS = 3
# plots, files, other processes, and settings of the whole process
_LEFT_OUT = re.compile(
    r"plt|matplotlib|fig\.|ax\.|tempfile|open\(|time\.|save|load|memmap|Pool|jit|cuda|compile|sys\.|os\.|set_|seterr"
    r"|import \*|fetch_|profiler|export|empty|\bdel\b"
)
_NO_VALUES = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.GeneratorType, type)


@dataclass
class Report:
    """How many examples were compared, and what was found."""

    compared: int
    found: list[str]


def docstrings(module: types.ModuleType) -> Iterator[tuple[str, str]]:
    """Of the public members of a module and the methods of its classes, each text once."""
    seen = set()
    for name in getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]:
        member = getattr(module, name, None)
        own = vars(member) if inspect.isclass(member) else {}
        methods = [(f"{name}.{key}", value) for key, value in own.items() if not key.startswith("_")]
        for known_as, value in [(name, member), *methods]:
            text = getattr(value, "__doc__", None)
            if isinstance(text, str) and ">>>" in text and text not in seen:
                seen.add(text)
                yield f"{module.__name__}.{known_as}", text


def body_of(text: str) -> str | None:
    """The statements of a docstring's examples; ``None`` where they are no program to compare."""
    lines = []
    try:
        sources = [example.source for example in doctest.DocTestParser().get_examples(text)]
        trees = [ast.parse(source.replace("default_rng()", "default_rng(0)")) for source in sources]
    except (SyntaxError, ValueError):
        return None
    for number, tree in enumerate(trees):
        first = tree.body[0] if tree.body else None
        if isinstance(first, ast.Expr) and len(tree.body) == 1:
            lines.append(f"value{number} = ({ast.unparse(first.value)})")
        else:
            lines.append(ast.unparse(tree))
    body = "\n".join(lines)
    return body if body.strip() and not _LEFT_OUT.search(body) else None


def function_of(name: str, body: str, module: str) -> Callable[[], dict[str, Any]] | None:
    """A function with that body among the names that the module's documentation takes for granted."""
    source = f"def example():\n{textwrap.indent(body, '    ')}\n    return dict(locals())\n"
    file = f"<examples of {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {"__name__": "examples", "np": np}
    library = importlib.import_module(module.partition(".")[0])
    namespace[library.__name__] = library
    namespace.update(
        {key: value for key, value in vars(importlib.import_module(module)).items() if key[0] != "_"}
    )
    try:
        exec(compile(source, file, "exec"), namespace)
    except SyntaxError:
        return None
    made: Callable[[], dict[str, Any]] = namespace["example"]
    return made


def run(function: Callable[[], dict[str, Any]]) -> Outcome:
    random.seed(0)
    np.random.seed(0)
    outcome = call(function, ())
    args, kwargs, result = outcome.world
    if isinstance(result, dict):
        result = {key: value for key, value in result.items() if not isinstance(value, _NO_VALUES)}
    outcome.world = (args, kwargs, result)
    return outcome


def compare(function: Callable[[], dict[str, Any]], backend: str) -> list[str] | None:
    """The differences; ``None`` where plain Python differs from itself."""
    expected = run(function)
    if differences(expected, run(function), _RTOL):
        return None
    compiled = dyncomp.compile(function, backend=backend)
    for _ in range(_CALLS):
        found = differences(expected, run(compiled), _RTOL)
        if found:
            return found
    return [f"internal error: {error}" for error in compiled.config.records.internal_errors]


def compare_module(module: str, backend: str = "eager", seconds: float = 300.0, step: int = 1) -> Report:
    """Compare every ``step``-th docstring's examples, until the time is up."""
    report = Report(0, [])
    end = time.monotonic() + seconds
    for name, text in list(docstrings(importlib.import_module(module)))[::step]:
        body = body_of(text)
        function = None if body is None else function_of(name, body, module)
        if function is None or time.monotonic() > end:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = compare(function, backend)
        if found is not None:
            report.compared += 1
            report.found += [f"{name}: {line}" for line in found]
        dyncomp.reset()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--seconds", type=float, default=300.0, help="for each module")
    options = parser.parse_args()
    for module in options.modules:
        report = compare_module(module, options.backend, options.seconds)
        print(f"{module}: {report.compared} compared, {len(report.found)} differences", flush=True)
        for line in report.found:
            print(f"    {line:.500}")


if __name__ == "__main__":
    main()
