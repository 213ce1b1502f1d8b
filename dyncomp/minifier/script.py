"""Reproduction scripts: one Python file that fails by itself, and passes once the fault is mended."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..graph.text import callees_of, print_graph
from .case import Case
from .layers import Fault
from .literals import CannotWrite, literal
from .source import Source

_SCRIPT = '''\
"""{about}

    python {name}

says what differs and exits with 1, as long as the fault is there. To shrink it further:

    dyncomp minify {name}
"""

{imports}

{body}

if __name__ == "__main__":
    raise SystemExit({call})
'''


def graph_script(case: Case, fault: Fault, note: str, path: Path, gradient: bool = False) -> str:
    """The text of a script for a graph; ``gradient``: its derivative is what is wrong."""
    if callees_of(case.graph):
        raise CannotWrite("the graph calls Python functions of the program")
    text = print_graph(case.graph)
    inputs = ",\n".join(textwrap.indent(literal(value), "        ") for value in case.inputs)
    returned = f"    return [\n{inputs},\n    ]" if case.inputs else "    return []"
    body = f'GRAPH = """\n{_quoted(text)}\n"""\n\n\ndef inputs():\n{returned}\n'
    more = []
    if case.integers:
        more.append(f"integers={case.integers!r}")
    run = "replay_gradient" if gradient else "replay"
    if case.library:
        more.append(f"library={case.library!r}")
    imports, settings = _settings(case.settings)
    if settings:
        more.append(f"settings={settings}")
    call = ", ".join(["GRAPH, inputs()", *more])
    return _whole(fault, note, path, imports, run, body, f"{run}({call})")


def source_script(source: Source, settings: Mapping[str, Any], fault: Fault, note: str, path: Path) -> str:
    """The text of a script for a function of the program."""
    calls = ",\n".join(textwrap.indent(_call_text(args, kwargs), "        ") for args, kwargs in source.calls)
    imports, text = _settings(settings)
    body = f"\n{source.text.rstrip()}\n\n\ndef calls():\n    return [\n{calls},\n    ]\n"
    more = f", settings={text}" if text else ""
    needed = [*imports, *source.imports]
    return _whole(
        fault, note, path, needed, "replay_calls", body, f"replay_calls({source.name}, calls(){more})"
    )


def _whole(
    fault: Fault, note: str, path: Path, imports: Sequence[str], run: str, body: str, call: str
) -> str:
    """The script. ``run``: the function of :mod:`.replay` that it calls, as ``call`` says."""
    needed = dict.fromkeys(["import numpy as np", *imports])
    if "ml_dtypes." in body:
        needed["import ml_dtypes"] = None
    helpers = [name for name in ("laid_out", "unpacked") if f"{name}(" in body]
    names = ", ".join(sorted([run, *helpers]))
    lines = [*sorted(needed), "", f"from dyncomp.minifier.replay import {names}"]
    return _SCRIPT.format(
        about=_about(fault, note), name=path.name, imports="\n".join(lines), body=body, call=call
    )


def _about(fault: Fault, note: str) -> str:
    text = f"Compiled code goes wrong. At fault: {fault.describe()}"
    lines = [*textwrap.wrap(text, 100), *textwrap.wrap(note, 100)]
    return "\n".join(lines).replace("\\", "/").replace('"""', "'''")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', '\\"""')


def _settings(settings: Mapping[str, Any]) -> tuple[list[str], str]:
    """Imports, and the settings as an expression."""
    imports, parts = [], []
    for key, value in settings.items():
        if callable(value):
            module, name = value.__module__, value.__qualname__
            if "<" in name or module == "__main__":
                raise CannotWrite(f"the backend {name} of {module} cannot be imported")
            imports.append(f"import {module}")
            parts.append(f"{key!r}: {module}.{name}")
        elif value not in ({}, None):
            parts.append(f"{key!r}: {value!r}")
    return imports, "{" + ", ".join(parts) + "}" if parts else ""


def _call_text(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    values = "".join(f"{literal(value)}, " for value in args)
    named = ", ".join(f"{key!r}: {literal(value)}" for key, value in kwargs.items())
    return f"(({values}), {{{named}}})"
