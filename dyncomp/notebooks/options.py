"""What stands on the line of ``%%dyncomp``."""

from __future__ import annotations

import ast
import shlex
from typing import Any

from ..dataclass import dataclass
from ..options import Options, make_options

USAGE = (
    "%%dyncomp [mode=MODE] [backend=BACKEND] [dynamic[=yes|no]] [fullgraph] [NAME=VALUE …] "
    "[report=FILE] [measure]\n"
    "NAME: an option of dyncomp.compile, such as unroll_limit=16; report: where the page goes; "
    "measure: time guards and kernels for it"
)
_WORDS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
# Words that stand alone or take one of these.
_SWITCHES = ("fullgraph", "dynamic", "measure")


class LineError(ValueError):
    """A wrong word on the line; the message says what is known."""


@dataclass
class CellOptions:
    """``compiled``: for ``dyncomp.compile``; ``report``: a path, empty for a temporary file."""

    compiled: Options
    report: str = ""
    measure: bool = False


def parse_line(line: str) -> CellOptions:
    """Raises :class:`LineError` for a word that is not known, or a value that is wrong."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        raise LineError(f"{error}: {line.strip()}\n{USAGE}") from error
    given: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if name in given:
            raise LineError(f"{name} is given twice\n{USAGE}")
        given[name] = _value(name, bool(equals), text)
    report = given.pop("report", "")
    measure = given.pop("measure", False)
    known = {name: given.pop(name) for name in ("mode", "backend", "fullgraph", "dynamic") if name in given}
    try:
        return CellOptions(make_options(**known, options=given), report, measure)
    except (ValueError, TypeError) as error:
        raise LineError(f"{error}\n{USAGE}") from error


def _value(name: str, has_value: bool, text: str) -> Any:
    if name in _SWITCHES:
        if not has_value:
            return True
        if text.lower() not in _WORDS:
            raise LineError(f"{name} is yes or no, not {text!r}\n{USAGE}")
        return _WORDS[text.lower()]
    if not has_value or not text:
        raise LineError(f"{name} wants a value: {name}=…\n{USAGE}")
    if name in ("mode", "backend", "report"):
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
