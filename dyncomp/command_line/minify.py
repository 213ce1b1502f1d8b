"""``dyncomp minify``: a reproduction script is shrunk further, or what a program calls is shrunk to one."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..errors import DyncompError
from ..minifier.minify import Minified, minify, shrunk_further
from ..minifier.replay import is_repro
from .answers import Answer
from .bench import calls_in_script
from .script import NoScript

_NOTHING = "Nothing goes wrong: compiled code does what plain Python does."


def run(options: argparse.Namespace) -> int:
    """0 where nothing goes wrong, 1 where something does, 2 for wrong arguments."""
    path = Path(options.target)
    folder = Path(options.folder) if options.folder else path.parent
    found: list[Minified] = []
    try:
        if not options.compile:
            if not path.is_file() or not is_repro(path):
                raise ValueError(f"{options.target} is no reproduction script; name a function: --compile")
            result = shrunk_further(path, folder, options.seconds)
            found += [] if result is None else [result]
        else:
            calls, status = calls_in_script(options)
            if status:
                print(f"dyncomp: the script ended with status {status}", file=sys.stderr)
                return status
            for _, function, (args, kwargs) in calls:
                result = minify(function, args, kwargs, folder=folder, seconds=options.seconds)
                found += [] if result is None else [result]
    except (ValueError, NoScript, DyncompError, OSError) as error:
        print(f"dyncomp: {error}", file=sys.stderr)
        return 2
    answer = Answer(
        {"faults": [result.facts() for result in found]},
        [str(result) for result in found] or [_NOTHING],
        not found,
    )
    print(json.dumps(answer.facts, indent=2) if options.json else "\n".join(answer.lines))
    return 0 if answer.good else 1
