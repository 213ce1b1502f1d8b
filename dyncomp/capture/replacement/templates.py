"""Statements of replacement code as canonical instructions, by templates.

Replacements consist of few kinds of statements with other names in them. CPython's own compiler translates
each kind once per process, with placeholders for names, numbers and texts; every further statement of the
kind takes the template's instructions and puts its own in. That is several times as quick as compiling the
source of each replacement and decoding what came of it.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from types import CodeType
from typing import Any, NamedTuple

from ...errors import Unsupported
from ...hook import _hook
from ...python_code.instr import JUMPS, NO_LOC, Instr, Loc
from ...python_code.versions import decode

_KEYWORDS = "False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally"
_KEYWORDS += "|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield"
_STRING = r"""b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*\""""
_NEGATIVE = r"(?<![\w\])}])\(-[\d.]+(?:e[+-]?\d+)?\)"
_NUMBER = r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?"
# the cell of a free variable is a token of its own: ``(lambda: name).__closure__[0]``
_CELL = r"\(lambda: \w+\)\.__closure__\[0\]"
_NAME = rf"\b(?!(?:{_KEYWORDS})\b)[^\W\d]\w*"
_split = re.compile(f"({_CELL}|{_STRING}|{_NEGATIVE}|{_NAME}|{_NUMBER})").split

_LONG = 200  # statements of more tokens are hardly ever of a kind that comes again
_HEAD = "def template():\n"
_INDENT = "    "
_SENTINEL = "_end_of_template"
_AT_THE_END = ["LOAD_GLOBAL", "POP_TOP", "LOAD_CONST", "RETURN_VALUE"]
_BY_NAME = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR"})
_LOADS = frozenset({"LOAD_FAST", "LOAD_GLOBAL"})
_WRITES = frozenset({"STORE_FAST", "DELETE_FAST"})
# what to do with the argument of a template's instruction; C counts them in this order, too
_AS_IT_IS, _LOAD, _WRITE, _NAME_ITSELF, _KEYWORDS_OF_CALL, _KEYS, _JUMP = range(7)


class Template(NamedTuple):
    """A statement, possibly of several lines: operations with what to do with their arguments and the number
    of their line, and which tokens are names that it assigns."""

    instructions: tuple[tuple[str, int, Any, int], ...]
    written: tuple[int, ...]


class Statement(NamedTuple):
    """A statement of a replacement: its template, what stands at the placeholders, and its lines' places."""

    template: Template
    tokens: list[str]
    places: list[Loc]


def statement(lines: list[str], places: list[Loc]) -> Statement:
    """The statement that stands on ``lines``, which are not indented."""
    parts = _split("\n".join(lines))
    between = tuple(parts[::2])
    find = _known_template if len(between) < _LONG else _template
    return Statement(find(between), parts[1::2], places)


def _template(between: tuple[str, ...]) -> Template:
    """The template of statements with these texts between their tokens."""
    if "" in between[1:-1]:
        raise Unsupported("a text with a prefix in replacement code")
    text = "".join(f"{piece}_{number}_" for number, piece in enumerate(between[:-1])) + between[-1]
    body = "\n".join(_INDENT + line for line in [*text.split("\n"), _SENTINEL])
    module = compile(_HEAD + body, "<template>", "exec", dont_inherit=True)
    function = next(const for const in module.co_consts if isinstance(const, CodeType))
    made = decode(function)
    if made.exceptions:
        raise Unsupported("a statement with handlers in replacement code")
    return _generalised(made.instructions, last=text.count("\n"))


def _generalised(instructions: tuple[Instr, ...], last: int) -> Template:
    """The template that these instructions are of: behind the first (``RESUME``), and with jumps to the end
    of it where the function would go on to its own end. ``last``: the number of the last line."""
    found: list[tuple[str, Any, int]] = []
    begins = []
    ending = 0
    for op, arg, loc, index in instructions[1:]:
        begins.append(len(found))
        line = -1 if loc.line is None else min(loc.line - 2, last)
        if arg == _SENTINEL:
            ending = len(_AT_THE_END)
            if [i.op for i in instructions[index : index + ending]] != _AT_THE_END:
                raise Unsupported("a statement in an unusual order in replacement code")
            if index + ending < len(instructions):
                found.append(("JUMP", len(instructions), line))
        if ending:
            ending -= 1
        else:
            found.append((op, arg, line))
    written = {arg for op, arg, _ in found if op in _WRITES}
    begins += [len(found)] * 2
    return Template(
        tuple([_with_placeholder(op, arg, line, begins) for op, arg, line in found]),
        tuple(map(_number, written)),
    )


_known_template = functools.lru_cache(maxsize=4096)(_template)


def _with_placeholder(op: str, arg: Any, line: int, begins: list[int]) -> tuple[str, int, Any, int]:
    """An instruction of a template; jumps go to what is at ``begins`` of their target."""
    if op in _LOADS:
        return op, _LOAD, _number(arg), line
    if op in _WRITES:
        return op, _WRITE, _number(arg), line
    if op in _BY_NAME:
        return op, _NAME_ITSELF, _number(arg), line
    if op in JUMPS:
        return op, _JUMP, begins[arg - 1], line
    if op == "CALL" and arg[1]:
        return op, _KEYWORDS_OF_CALL, (arg[0], tuple(map(_number, arg[1]))), line
    if op == "LOAD_CONST" and _is_placeholder(arg):  # beside * and ** keywords are keys of a dict
        return op, _NAME_ITSELF, _number(arg), line
    if op == "LOAD_CONST" and type(arg) is tuple and all(map(_is_placeholder, arg)):
        return op, _KEYS, tuple(map(_number, arg)), line
    if op == "MAKE_FUNCTION":
        raise Unsupported("a function in replacement code")
    return op, _AS_IT_IS, arg, line


def _number(name: str) -> int:
    return int(name[1:-1])


def _is_placeholder(constant: object) -> bool:
    return type(constant) is str and constant[:1] == "_" and constant[-1:] == "_" and constant[1:-1].isdigit()


class Variables(dict[str, tuple[str, Any]]):
    """What loads the object that a token stands for: an operation and its argument."""

    def __init__(
        self,
        local: dict[str, str],
        free: tuple[str, ...],
        constants: dict[str, Any],
        originals: dict[str, Any],
    ) -> None:
        """``local``: the variables that their names in the source stand for; ``originals``: the objects that
        literals stand for."""
        super().__init__()
        self.local = local
        self._free = free
        self._constants = constants
        self._originals = originals

    def __missing__(self, token: str) -> tuple[str, Any]:
        found = self[token] = self._find(token)
        return found

    def _find(self, token: str) -> tuple[str, Any]:
        if token.isidentifier():
            if token in self.local:
                return "LOAD_FAST", self.local[token]
            if token in self._constants:
                return "LOAD_CONST", self._constants[token]
            return "LOAD_DEREF" if token in self._free else "LOAD_GLOBAL", token
        if token.startswith("(lambda"):
            return "LOAD_CLOSURE", token[len("(lambda: ") : token.index(")")]
        literal = token.strip("()") if token[0] == "(" else token
        if literal in self._originals:
            return "LOAD_CONST", self._originals[literal]
        return "LOAD_CONST", _value(literal)


@functools.lru_cache(maxsize=1024)
def _value(literal: str) -> Any:
    value = ast.literal_eval(literal)
    return sys.intern(value) if type(value) is str and value.isidentifier() else value


def instantiate(made: list[Instr], found: Statement, variables: Variables) -> None:
    """Append the instructions of a statement to ``made``."""
    (instructions, _), tokens, places = found
    _hook.instantiate(made, instructions, tokens, places, variables, variables.local, Instr, NO_LOC)
