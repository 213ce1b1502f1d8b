"""Functions that differ in sizes alone become one: what the C++ compiler does once is not done again.

The layers of a model are the same kernel over other extents. Where the texts of functions differ only in
numbers that count or place elements, one function takes these numbers from a table, and each of the others
is a call of it. Small numbers stay as they are: short loops are written out, small steps are how vectors are
loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ....dataclass import dataclass

# The least step or size, the least number of iterations, and the least grain that may vary.
LEAST = 16
LEAST_LOOP = 64
LEAST_GRAIN = 1
# The longest table of numbers.
MOST_NUMBERS = 24

_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
# Lines that hold counts and positions only; what is in brackets behind an array's name is a position.
_LAUNCH = re.compile(r"\s*rt->parallel_for\(")
_LOOP = re.compile(r"\s*(?:for \(|body\d+\(|const i64 n_)")
_COUNTING = re.compile(
    r"\s*(?:const i64 (?!v_)|const auto\* const next = |i64 i_\w+ = at %|at /= |if \(\+\+i_|i64 row = 0"
    r"|part_end = |if \(\w+ < |__builtin_memcpy\(|__builtin_prefetch\(|dcv_stream_copy\("
    r"|dc_widen_f16\(|dc_narrow_f16\()"
)
_DECLARATION = re.compile(r"\s*(?:[\w()]+ )+\w+\[\d+\];")
_POSITION = re.compile(r"\bm_\w+\[[^][]*\]")
_NAME = re.compile(r"^static (i64|void) ((?:kernel|tile)_\d\w*)(\([^)]*\)) \{$", re.M)
_BODY = re.compile(r"^(\s*auto body\d+ = \[&\]\(i64 lo, i64 hi\) \{)$", re.M)
# Stands for a number in a function's form.
_HOLE = "\0"


@dataclass(frozen=True, slots=True)
class Function:
    """A C++ function: its ``prototype`` without "static", and ``text``, which defines it (and may define what
    it alone needs)."""

    prototype: str
    text: str


def share_functions(functions: Iterable[Function]) -> list[Function]:
    """``functions`` (kernels and tiles, with comments before them) where those of one form call a function
    that is made for them."""
    functions = [*functions]
    groups: dict[str, list[tuple[int, list[str]]]] = {}
    for place, function in enumerate(functions):
        form, numbers = _form(function.text)
        if form:
            groups.setdefault(form, []).append((place, numbers))
    made = [[function] for function in functions]
    for form, members in groups.items():
        names = _varying([numbers for _, numbers in members])
        if len(members) < 2 or len({*names}) > MOST_NUMBERS:
            continue
        first, numbers = members[0]
        common = _common(functions[first].text, form, names, numbers)
        for place, given in members:
            made[place] = [_call(functions[place], names, given, common.prototype)]
        made[first].insert(0, common)
    return [function for several in made for function in several]


def _form(text: str) -> tuple[str, list[str]]:
    """A function's text with holes for its sizes, and these; nothing where it is more than one function."""
    heads = [*_NAME.finditer(text)]
    if len(heads) != 1 or text.count("\n}\n") != 1:
        return "", []
    numbers: list[str] = []

    def take(least: int, text: str) -> str:
        def hole(found: re.Match[str]) -> str:
            if int(found[0]) < least:
                return found[0]
            numbers.append(found[0])
            return _HOLE

        return _NUMBER.sub(hole, text)

    lines = []
    for line in text[heads[0].start() :].replace(heads[0][2], "NAME").splitlines():
        if _LAUNCH.match(line):
            line = take(LEAST_GRAIN, line)
        elif _LOOP.match(line):
            line = take(LEAST_LOOP, line)
        elif _COUNTING.match(line):
            line = take(LEAST, line)
        elif not _DECLARATION.match(line):
            line = _POSITION.sub(lambda found: take(LEAST, found[0]), line)
        lines.append(line)
    return "\n".join(lines) + "\n", numbers


def _varying(tables: list[list[str]]) -> list[str]:
    """By hole: the name of its number, one for numbers that are equal in every function; "" for a number
    that is the same in all of them."""
    names: dict[tuple[str, ...], str] = {}
    found = []
    for column in zip(*tables):
        is_same = len({*column}) == 1
        found.append("" if is_same else names.setdefault(column, f"n{len(names)}"))
    return found


def _head(text: str) -> re.Match[str]:
    """Where a function's definition begins, with its result, name and parameters."""
    found = _NAME.search(text)
    assert found is not None
    return found


def _common(text: str, form: str, names: list[str], numbers: list[str]) -> Function:
    """The function that all members call. Each loop body has copies of the numbers of its own: what it
    writes cannot change them."""
    head = _head(text)
    result, name, parameters = head.groups()
    pieces = form.split(_HOLE)
    body = pieces[0] + "".join(
        (name or number) + piece for name, number, piece in zip(names, numbers, pieces[1:])
    )
    distinct = sorted({*names} - {""}, key=lambda name: int(name[1:]))
    copies = "".join(f"\n  const i64 {name} = n[{k}];" for k, name in enumerate(distinct))
    body = _BODY.sub(lambda found: found[1] + copies, body)
    rest = body[body.index(" {\n") + 3 :]
    prototype = f"{result} sized_{name}{parameters[:-1]}, const i64* n)"
    comments = text[: head.start()]
    declared = f"static {prototype} __attribute__((noinline));"
    return Function(prototype, f"{comments}{declared}\nstatic {prototype} {{{copies}\n{rest}")


def _call(function: Function, names: list[str], numbers: list[str], common: str) -> Function:
    text = function.text
    head = _head(text)
    result, _, parameters = head.groups()
    given = {name: number for name, number in zip(names, numbers) if name}
    table = ", ".join(number for _, number in sorted(given.items(), key=lambda item: int(item[0][1:])))
    arguments = ", ".join(word.split()[-1].lstrip("*") for word in parameters[1:-1].split(","))
    name = common[len(result) + 1 : common.index("(")]
    lines = [
        text[: text.index(" {\n", head.start())] + " {",
        f"  static const i64 n[] = {{{table or 0}}};",
        f"  {'' if result == 'void' else 'return '}{name}({arguments}, n);",
        "}",
    ]
    return Function(function.prototype, "\n".join(lines) + "\n")
