"""Arguments of the command ``dyncomp``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from . import breaks, cache, doctor
from .answers import Answer

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status. ``arguments``: those of the process by default."""
    options = _parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dyncomp", description="A compiler for NumPy and PyTorch programs.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print one JSON object")
    _about_this_machine(commands, shared)
    _scripts(commands, shared)
    _minifier(commands, shared)
    _measurements(commands, shared)
    return parser


def _about_this_machine(commands: Commands, shared: argparse.ArgumentParser) -> None:
    about = "say what dyncomp needs, what is there, and how to mend what is missing"
    command = commands.add_parser("doctor", help=about, description=about, parents=[shared])
    command.set_defaults(run=_answering(doctor.examine))

    about = "the compiled code on disk"
    command = commands.add_parser("cache", help=about, description=about)
    actions = command.add_subparsers(required=True, metavar="ACTION")
    for name, function, about in (
        ("info", cache.info, "say where it is and how large"),
        ("clear", cache.clear, "delete all of it"),
        ("verify", cache.verify, "check every library as it is checked before it is loaded"),
    ):
        action = actions.add_parser(name, help=about, description=about, parents=[shared])
        action.set_defaults(run=_answering(function))

    about = "say what a graph break means, and what to do about it"
    command = commands.add_parser("breaks", help=about, description=about, parents=[shared])
    command.add_argument("id", nargs="?", help="the break's id, as reports and errors give it (default: all)")
    command.set_defaults(run=lambda options: _answering(lambda: breaks.explain(options.id))(options))


def _answering(function: Callable[[], Answer]) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        answer = function()
        print(json.dumps(answer.facts, indent=2) if options.json else "\n".join(answer.lines))
        return 0 if answer.good else 1

    return run


def _scripts(commands: Commands, shared: argparse.ArgumentParser) -> None:
    about = "run a script as Python would; functions that it decorates, or --compile names, are compiled"
    command = commands.add_parser("run", help=about, description=about, parents=[shared])
    _add_script(command)
    command.add_argument("--table", action="store_true", help="then say what became of each function")
    command.add_argument("--profile", action="store_true", help="then print a profile of compiled code")
    command.add_argument("--trace", metavar="FILE", help="write the profile as trace events (for Perfetto)")
    command.set_defaults(run=_run)

    about = "run a script, and print what was captured of each compiled function and what was not"
    command = commands.add_parser("explain", help=about, description=about, parents=[shared])
    _add_script(command)
    command.add_argument("--html", metavar="FILE", help="write the reports as pages, too")
    command.add_argument("--verbose", action="store_true", help="with guards, graphs, kernels and sources")
    command.set_defaults(run=_explain)


def _minifier(commands: Commands, shared: argparse.ArgumentParser) -> None:
    about = "shrink a program that compiled code gets wrong, and find the layer at fault"
    command = commands.add_parser("minify", help=about, description=about, parents=[shared])
    command.add_argument("--compile", metavar="NAME", action="append", default=[], help=_COMPILE)
    command.add_argument("--folder", metavar="DIRECTORY", help="where scripts go (beside the script)")
    command.add_argument("--seconds", type=float, default=120.0, help="how long to search (120)")
    command.add_argument("target", help="a script that minify made, or a program")
    command.add_argument("arguments", nargs="*", help="arguments of the program (options behind --)")
    command.set_defaults(run=_minify)


_COMPILE = "a function to compile: function or Class.method of the script, or module:function (repeatable)"


def _add_script(command: argparse.ArgumentParser) -> None:
    command.add_argument("--compile", metavar="NAME", action="append", default=[], help=_COMPILE)
    command.add_argument("--output", metavar="FILE", help="write the report there and not to standard output")
    command.add_argument("script", help="a Python file; what comes behind it are its own arguments")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")


def _measurements(commands: Commands, shared: argparse.ArgumentParser) -> None:
    about = "run a few small NumPy programs plain and compiled (15 seconds)"
    command = commands.add_parser("demo", help=about, description=about, parents=[shared])
    command.set_defaults(run=_demo)

    about = "time a call plain and compiled, side by side"
    command = commands.add_parser("bench", help=about, description=about, parents=[shared])
    command.add_argument("--compile", metavar="NAME", action="append", default=[], help=_COMPILE)
    command.add_argument(
        "--setup",
        default="",
        metavar="CODE",
        help="for module:function: makes `args`, a tuple",
    )
    command.add_argument("--seconds", type=float, default=2.0, help="how long to time each function (2)")
    command.add_argument("target", help="module:function, or a script whose first calls are timed")
    command.add_argument(
        "arguments", nargs="*", help="arguments of the script (options of its own behind --)"
    )
    command.set_defaults(run=_bench)


# what runs programs is imported where it is asked for
def _run(options: argparse.Namespace) -> int:
    from .programs import run

    return run(options)


def _explain(options: argparse.Namespace) -> int:
    from .programs import explain

    return explain(options)


def _minify(options: argparse.Namespace) -> int:
    from .minify import run

    return run(options)


def _demo(options: argparse.Namespace) -> int:
    from .demo import demo

    return demo(options)


def _bench(options: argparse.Namespace) -> int:
    from .bench import bench

    return bench(options)
