"""Shrink a random program whose compiled form does something else than plain Python.

``python -m tools.reduce_program SEED [--backend NAME]`` takes the program of a seed of
``tests.capture.random_run`` and leaves out statements, blocks and parts of expressions as long as the
difference is of the same kind. Each trial runs in a child process, so that crashes and hangs can be shrunk
too. Prints the program, what differs and the arguments.
"""

from __future__ import annotations

import argparse
import ast
import copy
import itertools
import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from tests.capture.random_programs import seeded
from tests.capture.random_run import check_source

SECONDS = 60  # for one trial
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


# -- one trial ----------------------------------------------------------------------------------------
def shows(source: str, makers: list[Any], settings: dict[str, Any]) -> str:
    """The difference that a program shows, in words; empty for none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS)
        found = check_source(source, makers, settings) or ""
        os.write(writing, found.removeprefix("AssertionError\n" + source).encode()[:60000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    return f"the process died: status {status}" if status else text


def kind_of(found: str) -> str:
    """What must stay the same while a program shrinks: how the calls ended, or what kind of thing differs."""
    first = next((line for line in found.splitlines() if line.strip()), "")
    return first[:110] if first.startswith("plain") else first.split(":")[0].split("[")[0][:12]


# -- smaller programs -----------------------------------------------------------------------------------
def blocks(tree: ast.AST) -> list[tuple[ast.AST, str]]:
    """The lists of statements, handlers and cases in a program."""
    found = []
    for node in ast.walk(tree):
        for field in BLOCKS:
            if isinstance(getattr(node, field, None), list) and getattr(node, field):
                found.append((node, field))
    return found


def _without(tree: ast.Module, block: int, start: int, count: int) -> ast.Module | None:
    """The program without some statements of a block; ``None`` if that leaves it as it is."""
    smaller = copy.deepcopy(tree)
    node, field = blocks(smaller)[block]
    statements = getattr(node, field)
    if all(isinstance(s, ast.Pass) for s in statements[start : start + count]):
        return None
    del statements[start : start + count]
    if not statements and field == "body":
        statements.append(ast.Pass())
    return smaller


def _unwrapped(tree: ast.Module, block: int, place: int) -> ast.Module | None:
    """The program with the body of a compound statement in its place."""
    smaller = copy.deepcopy(tree)
    node, field = blocks(smaller)[block]
    statements = getattr(node, field)
    inner = getattr(statements[place], "body", None)
    if not isinstance(inner, list) or isinstance(statements[place], ast.FunctionDef | ast.ClassDef):
        return None
    statements[place : place + 1] = inner
    return smaller


def with_less_statements(tree: ast.Module) -> Iterator[ast.Module | None]:
    for block, (node, field) in enumerate(blocks(tree)):
        length = len(getattr(node, field))
        size = length
        while size:
            for start in range(0, length, size):
                yield _without(tree, block, start, size)
            size //= 2
        for place in range(length):
            yield _unwrapped(tree, block, place)


def expressions(tree: ast.AST) -> list[tuple[ast.AST, str, int | None]]:
    """The places of expressions that something simpler might stand for."""
    found: list[tuple[ast.AST, str, int | None]] = []
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            items = value if isinstance(value, list) else [value]
            for i, item in enumerate(items):
                if isinstance(item, ast.expr) and not isinstance(item, ast.Name | ast.Constant):
                    found.append((node, field, i if isinstance(value, list) else None))
    return found


def with_simpler_expressions(tree: ast.Module) -> Iterator[ast.Module]:
    """Each expression replaced by one of its parts, or by a number."""
    for place, (node, field, i) in enumerate(expressions(tree)):
        value = getattr(node, field) if i is None else getattr(node, field)[i]
        parts = [part for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr)]
        for part in [*parts, ast.Constant(1)]:
            smaller = copy.deepcopy(tree)
            owner, name, index = expressions(smaller)[place]
            if index is None:
                setattr(owner, name, copy.deepcopy(part))
            else:
                getattr(owner, name)[index] = copy.deepcopy(part)
            yield smaller


def text_of(tree: ast.Module) -> str | None:
    """Its source, if it is a program at all."""
    try:
        source = ast.unparse(ast.fix_missing_locations(tree))
        compile(source, "reduced", "exec")
    except (SyntaxError, ValueError, TypeError):
        return None
    return source


def _first(candidates: Any, tree: ast.Module, start: int, differs: Any) -> tuple[int | None, ast.Module]:
    """The first smaller program from a place on that still differs, and its place; ``None`` at the end."""
    for place, smaller in itertools.islice(enumerate(candidates(tree)), start, None):
        if differs(smaller):
            return place, smaller
    return None, tree


def reduced(source: str, makers: list[Any], settings: dict[str, Any], kind: str) -> str:
    """A small program that shows a difference of that kind."""

    def still_differs(tree: ast.Module | None) -> bool:
        text = None if tree is None else text_of(tree)
        if text is None:
            return False
        found = shows(text, makers, settings)
        return bool(found) and kind_of(found) == kind

    tree = ast.parse(source)
    before = ""
    while before != ast.unparse(tree):
        before = ast.unparse(tree)
        for candidates in (with_less_statements, with_simpler_expressions):
            place: int | None = 0
            while place is not None:
                place, tree = _first(candidates, tree, place, still_differs)
    return ast.unparse(tree)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--backend", default="eager")
    options = parser.parse_args(arguments)
    logging.getLogger("dyncomp").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    settings = {"backend": options.backend, "dynamic": True if options.seed % 5 == 0 else None}
    source, makers = seeded(options.seed)
    kind = kind_of(shows(source, makers, settings))
    if not kind:
        print("no difference")
        return 0
    alone = (m for m in makers if kind_of(shows(source, [m], settings)) == kind)
    makers = [m] if (m := next(alone, None)) is not None else makers
    small = reduced(source, makers, settings, kind)
    print(small, shows(small, makers, settings), sep="\n\n")
    for maker in makers:
        print([v if not hasattr(v, "strides") else (v.dtype, v.shape, v.strides) for v in maker()])
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
