"""``dyncomp bench``: a call of a program, plain and compiled side by side."""

from __future__ import annotations

import argparse
import copy
import functools
import importlib
import json
import sys
from collections.abc import Callable

from .answers import Answer, text_table
from .functions import Wanted
from .script import NoScript, run_script
from .timing import Arguments, Times, cells, compare

_ABOUT = (
    "Medians of calls made in turn, each on fresh copies of its arguments; ratio: plain by compiled (and the "
    "middle half of the turns). The first call compiles."
)


class _First:
    """A function and the arguments of its first call, copied before it."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.arguments: Arguments | None = None

    def watched(self) -> Callable[..., object]:
        """The function, which notes how it is called."""

        @functools.wraps(self.function)
        def call(*args: object, **kwargs: object) -> object:
            if self.arguments is None:
                self.arguments = copy.deepcopy((args, kwargs))
            return self.function(*args, **kwargs)

        return call


def bench(options: argparse.Namespace) -> int:
    """0 if all were compiled and gave the same, 1 if not, 2 for wrong arguments."""
    try:
        if options.target.endswith(".py") or options.compile:
            calls, status = calls_in_script(options)
        else:
            calls, status = [_named_call(options.target, options.setup)], 0
    except (ValueError, NoScript) as error:
        print(f"dyncomp: {error}", file=sys.stderr)
        return 2
    if status:
        print(f"dyncomp: the script ended with status {status}: nothing is timed", file=sys.stderr)
        return status
    times = []
    for name, function, arguments in calls:
        try:
            times.append(compare(function, arguments, name, options.seconds))
        except Exception as error:  # noqa: BLE001 - the program's own, or what copies cannot be made of
            print(f"dyncomp: {name} raised {type(error).__name__}: {error}", file=sys.stderr)
            return 1
    answer = _answer(times)
    text = json.dumps(answer.facts, indent=2) if options.json else "\n".join(answer.lines)
    print(text)
    return 0 if answer.good else 1


def _answer(times: list[Times]) -> Answer:
    lines = [*text_table(cells(times), numbers=range(1, 6)), _ABOUT]
    lines += [f"{t.name}: nothing was compiled; `dyncomp explain` says why" for t in times if not t.graphs]
    good = all(t.same for t in times)
    return Answer({"calls": [t.facts() for t in times], "good": good}, lines, good)


def _named_call(target: str, setup: str) -> tuple[str, Callable[..., object], Arguments]:
    """``module:function`` and the arguments that ``setup`` makes."""
    module, colon, name = target.partition(":")
    if not colon or not name:
        raise ValueError(f"{target!r}: say module:function, or a script.py and --compile NAME")
    if sys.path[0] != "":
        sys.path.insert(0, "")  # as `python -m` would find it
    try:
        function: object = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{target!r}: {error}") from error
    if not callable(function):
        raise ValueError(f"{target!r} is not callable")
    namespace: dict[str, object] = {"__name__": "__setup__"}
    exec(compile(setup, "<setup>", "exec"), namespace)
    args, kwargs = namespace.get("args", ()), namespace.get("kwargs", {})
    if not isinstance(args, tuple) or not isinstance(kwargs, dict):
        raise ValueError("--setup must make `args`, a tuple, and may make `kwargs`, a dict")
    return target, function, (args, kwargs)


def calls_in_script(
    options: argparse.Namespace,
) -> tuple[list[tuple[str, Callable[..., object], Arguments]], int]:
    """The first calls of the functions named, as the script makes them."""
    if not options.compile:
        raise ValueError("say which functions of the script are to be timed: --compile NAME")
    seen: list[_First] = []

    def watch(function: Callable[..., object]) -> object:
        seen.append(_First(function))
        return seen[-1].watched()

    wanted = Wanted(options.compile, watch)
    ended = run_script(options.target, options.arguments, wanted)
    if ended.status:
        return [], ended.status
    if wanted.missing:
        raise ValueError(f"no function of this name was defined: {', '.join(wanted.missing)}")
    called = []
    for first in seen:
        name = getattr(first.function, "__qualname__", "function")
        if first.arguments is None:
            raise ValueError(f"{name} was not called")
        called.append((name, first.function, first.arguments))
    return called, 0
