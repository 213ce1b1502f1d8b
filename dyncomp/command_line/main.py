"""Arguments of the command ``dyncomp``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from . import cache, doctor


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status. ``arguments``: those of the process by default."""
    options = _parser().parse_args(arguments)
    answer = options.run(options)
    print(json.dumps(answer.facts, indent=2) if options.json else "\n".join(answer.lines))
    return 0 if answer.good else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dyncomp", description="A compiler for NumPy and PyTorch programs.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print one JSON object")

    about = "say what dyncomp needs, what is there, and how to mend what is missing"
    command = commands.add_parser("doctor", help=about, description=about, parents=[shared])
    command.set_defaults(run=lambda options: doctor.examine())

    about = "the compiled code on disk"
    command = commands.add_parser("cache", help=about, description=about)
    actions = command.add_subparsers(required=True, metavar="ACTION")
    for name, function, about in (
        ("info", cache.info, "say where it is and how large"),
        ("clear", cache.clear, "delete all of it"),
        ("verify", cache.verify, "check every library as it is checked before it is loaded"),
    ):
        action = actions.add_parser(name, help=about, description=about, parents=[shared])
        action.set_defaults(run=lambda options, function=function: function())
    return parser
