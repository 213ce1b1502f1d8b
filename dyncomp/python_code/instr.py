"""Canonical instructions: one small bytecode for CPython 3.11, 3.12 and 3.13.

:func:`dyncomp.python_code.versions.decode` turns a code object into a :class:`CanonicalCode` and
:func:`dyncomp.python_code.versions.encode` turns it back. Everything above works on this set only.

The rules that make it small:

* **No NULL on the stack.** ``CALL`` takes ``[callable, arg1 … argn]``; the NULL or *self* slots of each
  version are made anew on encoding. So a break between any two instructions sees plain values only. The
  single exception: ``LOAD_FAST_AND_CLEAR`` (inlined comprehensions of 3.12+) pushes the *unbound* mark
  when the local was unbound; only ``SWAP`` and ``STORE_FAST`` (which unbinds the local again) ever touch it.
* **No superinstructions, no caches, no EXTENDED_ARG, no prologue.** ``COPY_FREE_VARS`` and the ``MAKE_CELL``
  of the function's own cells are implied by ``cellvars``/``freevars``: at entry every name of ``cellvars``
  gets a cell, holding the argument of that name if there is one.
* **Arguments are resolved:** names are ``str``, constants are objects, jump targets are indices into
  ``CanonicalCode.instructions``.
* **Truth tests are part of the jump:** ``POP_JUMP_IF_TRUE`` takes any object (``TO_BOOL`` of 3.13 is folded
  in where a jump or ``UNARY_NOT`` follows). ``a and b`` is ``COPY 1; POP_JUMP_IF_FALSE; POP_TOP``.
* Stack positions count from 1 = top.

Stack effects below read ``before -> after``, top of the stack to the right.

===========================  =============================  ==========================================
op                           arg                            stack
===========================  =============================  ==========================================
NOP, RESUME                  -, int                         (nothing)
POP_TOP                      -                              a ->
COPY                         n >= 1                         pushes the n-th value again
SWAP                         n >= 2                         exchanges top and n-th value
LOAD_CONST                   object                         -> v
LOAD_FAST                    name                           -> v (UnboundLocalError when unbound)
STORE_FAST                   name                           v -> (a cell's name: puts the cell itself back)
DELETE_FAST                  name                           (UnboundLocalError when unbound)
LOAD_FAST_AND_CLEAR          name                           -> v or unbound mark; the local becomes unbound
                                                            (a cell's name: the cell itself)
MAKE_CELL                    name                           wraps a local into a new cell (3.12+ inlined
                                                            comprehensions only; see "No … prologue")
LOAD_CLOSURE                 name                           -> cell
LOAD_DEREF, STORE_DEREF,     name                           cell contents: -> v; v ->; (nothing)
DELETE_DEREF
LOAD_GLOBAL, STORE_GLOBAL,   name                           -> v; v ->; (nothing)
DELETE_GLOBAL
LOAD_NAME, STORE_NAME,       name                           -> v; v ->; (nothing)   (class/module bodies)
DELETE_NAME
LOAD_LOCALS, LOAD_CLASSDEREF -, name                        -> v                     (class bodies)
LOAD_FROM_DICT_OR_GLOBALS,   name                           mapping -> v            (class bodies)
LOAD_FROM_DICT_OR_DEREF
LOAD_ATTR                    name                           obj -> attr
LOAD_METHOD                  name                           obj -> attr (LOAD_ATTR whose result is called)
LOAD_SUPER_ATTR              (name, two_arg: bool)          super, class, self -> attr (3.12+)
STORE_ATTR, DELETE_ATTR      name                           v, obj ->; obj ->
BINARY_SUBSCR                -                              obj, key -> v
STORE_SUBSCR, DELETE_SUBSCR  -                              v, obj, key ->; obj, key ->
UNARY_POSITIVE/NEGATIVE/     -                              a -> v
INVERT/NOT, TO_BOOL
BINARY_OP                    "+", "-", … "+=", "@=" …       a, b -> v
COMPARE_OP                   "<" "<=" "==" "!=" ">" ">="    a, b -> v
IS_OP, CONTAINS_OP           invert: bool                   a, b -> bool     (b is the container)
BUILD_TUPLE/LIST/SET/STRING  n                              v1 … vn -> container
BUILD_MAP                    n                              k1, v1 … kn, vn -> dict
BUILD_CONST_KEY_MAP          n                              v1 … vn, keys tuple -> dict
BUILD_SLICE                  2 or 3                         start, stop(, step) -> slice (BINARY_SLICE and
                                                            STORE_SLICE are split into this + SUBSCR)
LIST_APPEND, SET_ADD         i                              v ->    (container is the i-th after the pop)
MAP_ADD                      i                              k, v -> (dict is the i-th after the pops)
LIST_EXTEND, SET_UPDATE,     i                              v ->    (container is the i-th after the pop)
DICT_UPDATE, DICT_MERGE
LIST_TO_TUPLE                -                              list -> tuple
UNPACK_SEQUENCE              n                              seq -> vn … v1 (v1 on top)
UNPACK_EX                    (before, after)                seq -> after…, list, before… (first on top)
FORMAT_VALUE                 (conv, has_spec)               v(, spec) -> str; conv is "", "s", "r", "a"
CONVERT_VALUE                "s", "r" or "a"                v -> str
JUMP, JUMP_NO_INTERRUPT      target                         (nothing)
POP_JUMP_IF_FALSE/TRUE/      target                         v ->
NONE/NOT_NONE
GET_ITER, GET_LEN            -                              v -> iter;  v -> v, len
FOR_ITER                     target                         it -> it, item;  exhausted: it -> and jump
CALL                         (n, kwnames: tuple[str, ...])  f, a1 … an -> v; the last len(kwnames) args are
                                                            keywords
CALL_FUNCTION_EX             has_kwargs: bool               f, args(, kwargs) -> v
MAKE_FUNCTION                tuple of flag names            values in this order…, code -> function; flags
                                                            from "defaults", "kwdefaults", "annotations",
                                                            "closure"
LOAD_BUILD_CLASS,            -                              -> v
LOAD_ASSERTION_ERROR
IMPORT_NAME                  name                           level, fromlist -> module
IMPORT_FROM                  name                           module -> module, attr
IMPORT_STAR                  -                              module -> None  (POP_TOP follows)
RETURN_VALUE                 -                              v -> (ends)
RAISE_VARARGS                0, 1, 2                        (exc(, cause)) -> (ends)
RERAISE                      n                              exc -> (ends); n > 0: lasti is the n-th after
                                                            the pop
PUSH_EXC_INFO                -                              exc -> previous exc, exc
POP_EXCEPT                   -                              previous exc ->
CHECK_EXC_MATCH              -                              exc, type -> exc, bool
CHECK_EG_MATCH               -                              exc, type -> rest or None, match or None
PREP_RERAISE_STAR            -                              orig, list -> exc or None
BEFORE_WITH                  -                              ctx -> exit, entered value
WITH_EXCEPT_START            -                              exit, lasti, prev, exc -> same + result
RETURN_GENERATOR             -                              -> sent value (POP_TOP follows)
YIELD_VALUE                  int (kept as found)            v -> sent value
SEND                         target                         receiver, v -> receiver, yielded;
                                                            finished: receiver, result and jump
END_SEND                     -                              receiver, v -> v
CLEANUP_THROW                -                              receiver, last sent, exc -> None, value
GET_YIELD_FROM_ITER,         -, int                         v -> iter
GET_AWAITABLE
GET_AITER, GET_ANEXT         -                              v -> aiter;  aiter -> aiter, awaitable
END_ASYNC_FOR                -                              aiter, exc ->
BEFORE_ASYNC_WITH            -                              ctx -> exit, awaitable
MATCH_MAPPING/SEQUENCE       -                              v -> v, bool
MATCH_KEYS                   -                              v, keys -> v, keys, values or None
MATCH_CLASS                  n                              v, class, names -> attrs or None
CALL_INTRINSIC_1, _2         name                           a -> v;  a, b -> v
SETUP_ANNOTATIONS            -                              (nothing)
LASTI                        index                          -> int: the address of instruction ``index`` in
                                                            the encoded code (prologues of continuations)
===========================  =============================  ==========================================

Exceptions: when instruction ``i`` raises and a range ``(start, end, target, depth, lasti)`` covers ``i``, the
stack is cut to ``depth`` values, then the address of ``i`` is pushed if ``lasti``, then the exception, and
control goes to ``target``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ..dataclass import dataclass, field


class Loc(NamedTuple):
    """Where an instruction came from (lines from 1, columns in UTF-8 bytes from 0; None = unknown)."""

    line: int | None
    end_line: int | None
    col: int | None
    end_col: int | None


make_loc: Callable[[tuple[int | None, ...]], Loc] = functools.partial(tuple.__new__, Loc)
NO_LOC = Loc(None, None, None, None)


class Instr(NamedTuple):
    """One canonical instruction; ``index`` is its place in :attr:`CanonicalCode.instructions`."""

    op: str
    arg: Any
    loc: Loc
    index: int  # type: ignore[assignment]

    def __str__(self) -> str:
        shown = "" if self.arg is None and self.op != "LOAD_CONST" else repr(self.arg)
        return f"{self.index:4d} {self.op:<22} {shown}".rstrip()


# an instruction of its four fields in a tuple; a call of the class itself takes three times as long
make_instr: Callable[[tuple[str, Any, Loc, int]], Instr] = functools.partial(tuple.__new__, Instr)


class ExceptionRange(NamedTuple):
    """Instructions ``start <= i < end`` are handled at ``target`` (see the module's docstring)."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


CO_OPTIMIZED = 0x1
CO_NEWLOCALS = 0x2
CO_VARARGS = 0x4
CO_VARKEYWORDS = 0x8
CO_GENERATOR = 0x20
CO_COROUTINE = 0x80
CO_ITERABLE_COROUTINE = 0x100
CO_ASYNC_GENERATOR = 0x200


@dataclass(frozen=True, slots=True, eq=False)
class CanonicalCode:
    """A decoded code object. ``varnames`` starts with the arguments, as ``co_varnames`` does."""

    instructions: tuple[Instr, ...]
    exceptions: tuple[ExceptionRange, ...]
    argcount: int
    posonlyargcount: int
    kwonlyargcount: int
    flags: int
    varnames: tuple[str, ...]
    cellvars: tuple[str, ...]
    freevars: tuple[str, ...]
    name: str
    qualname: str
    filename: str
    firstlineno: int
    doc: Any = None
    """What the encoder puts first into ``co_consts`` (CPython reads a function's docstring there)."""
    known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    """What analyses found out, by their names; see :func:`~dyncomp.python_code.flow.remembered`."""

    @property
    def arg_names(self) -> tuple[str, ...]:
        """Every argument in ``varnames`` order: positional, keyword-only, ``*args``, ``**kwargs``."""
        return self.varnames[: self.arg_total]

    @property
    def arg_total(self) -> int:
        """How many locals are arguments, ``*args`` and ``**kwargs`` included."""
        star = bool(self.flags & CO_VARARGS)
        double_star = bool(self.flags & CO_VARKEYWORDS)
        return self.argcount + self.kwonlyargcount + star + double_star

    @property
    def is_generator(self) -> bool:
        """True for generators, coroutines and async generators."""
        return bool(self.flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))

    def text(self) -> str:
        """A listing, one instruction per line, then the exception table."""
        lines = [str(instr) for instr in self.instructions]
        for entry in self.exceptions:
            lasti = " lasti" if entry.lasti else ""
            lines.append(f"  [{entry.start}, {entry.end}) -> {entry.target} depth {entry.depth}{lasti}")
        return "\n".join(lines)


BINARY_OPERATORS = (
    "+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^",
    "+=", "&=", "//=", "<<=", "@=", "*=", "%=", "|=", "**=", ">>=", "-=", "/=", "^=",
)  # fmt: skip
"""``BINARY_OP`` spellings; the position is CPython's operand, the same in 3.11-3.13."""

COMPARE_OPERATORS = ("<", "<=", "==", "!=", ">", ">=")
"""``COMPARE_OP`` spellings; the position is CPython's rich-comparison number."""

CONDITIONAL_JUMPS = frozenset(
    {"POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "FOR_ITER", "SEND"}
)
UNCONDITIONAL_JUMPS = frozenset({"JUMP", "JUMP_NO_INTERRUPT"})
JUMPS = CONDITIONAL_JUMPS | UNCONDITIONAL_JUMPS
"""Every op whose argument is a target."""

ENDS = frozenset({"RETURN_VALUE", "RAISE_VARARGS", "RERAISE"})
"""Ops after which the frame ends or control goes to a handler."""

NO_FALLTHROUGH = ENDS | UNCONDITIONAL_JUMPS
"""Ops on fast locals (see the table for what they mean with a cell's name)."""

SUSPENDS = frozenset({"YIELD_VALUE", "SEND", "RETURN_GENERATOR"})
"""Ops found only in generators and coroutines."""

NEVER_RAISES = frozenset(
    {
        "NOP",
        "POP_TOP",
        "COPY",
        "SWAP",
        "LOAD_CONST",
        "STORE_FAST",
        "LOAD_FAST_AND_CLEAR",
        "LOAD_CLOSURE",
        "MAKE_CELL",
        "LASTI",
        "JUMP_NO_INTERRUPT",
        "RETURN_VALUE",
        "PUSH_EXC_INFO",
        "POP_EXCEPT",
        "IS_OP",
        "END_SEND",
        "LOAD_ASSERTION_ERROR",
    }
)
"""Ops that raise nothing themselves (destructors and signals aside)."""

FIXED_EFFECTS: dict[str, tuple[int, int]] = {
    "NOP": (0, 0),
    "RESUME": (0, 0),
    "POP_TOP": (1, 0),
    "LOAD_CONST": (0, 1),
    "LOAD_FAST": (0, 1),
    "STORE_FAST": (1, 0),
    "DELETE_FAST": (0, 0),
    "LOAD_FAST_AND_CLEAR": (0, 1),
    "MAKE_CELL": (0, 0),
    "LOAD_CLOSURE": (0, 1),
    "LOAD_DEREF": (0, 1),
    "STORE_DEREF": (1, 0),
    "DELETE_DEREF": (0, 0),
    "LOAD_GLOBAL": (0, 1),
    "STORE_GLOBAL": (1, 0),
    "DELETE_GLOBAL": (0, 0),
    "LOAD_NAME": (0, 1),
    "STORE_NAME": (1, 0),
    "DELETE_NAME": (0, 0),
    "LOAD_LOCALS": (0, 1),
    "LOAD_CLASSDEREF": (0, 1),
    "LOAD_FROM_DICT_OR_GLOBALS": (1, 1),
    "LOAD_FROM_DICT_OR_DEREF": (1, 1),
    "LOAD_ATTR": (1, 1),
    "LOAD_METHOD": (1, 1),
    "LOAD_SUPER_ATTR": (3, 1),
    "STORE_ATTR": (2, 0),
    "DELETE_ATTR": (1, 0),
    "BINARY_SUBSCR": (2, 1),
    "STORE_SUBSCR": (3, 0),
    "DELETE_SUBSCR": (2, 0),
    "UNARY_POSITIVE": (1, 1),
    "UNARY_NEGATIVE": (1, 1),
    "UNARY_INVERT": (1, 1),
    "UNARY_NOT": (1, 1),
    "TO_BOOL": (1, 1),
    "BINARY_OP": (2, 1),
    "COMPARE_OP": (2, 1),
    "IS_OP": (2, 1),
    "CONTAINS_OP": (2, 1),
    "LIST_APPEND": (1, 0),
    "SET_ADD": (1, 0),
    "MAP_ADD": (2, 0),
    "LIST_EXTEND": (1, 0),
    "SET_UPDATE": (1, 0),
    "DICT_UPDATE": (1, 0),
    "DICT_MERGE": (1, 0),
    "LIST_TO_TUPLE": (1, 1),
    "CONVERT_VALUE": (1, 1),
    "JUMP": (0, 0),
    "JUMP_NO_INTERRUPT": (0, 0),
    "POP_JUMP_IF_FALSE": (1, 0),
    "POP_JUMP_IF_TRUE": (1, 0),
    "POP_JUMP_IF_NONE": (1, 0),
    "POP_JUMP_IF_NOT_NONE": (1, 0),
    "GET_ITER": (1, 1),
    "GET_LEN": (1, 2),
    "LOAD_BUILD_CLASS": (0, 1),
    "LOAD_ASSERTION_ERROR": (0, 1),
    "IMPORT_NAME": (2, 1),
    "IMPORT_FROM": (1, 2),
    "IMPORT_STAR": (1, 1),
    "RETURN_VALUE": (1, 0),
    "RERAISE": (1, 0),
    "PUSH_EXC_INFO": (1, 2),
    "POP_EXCEPT": (1, 0),
    "CHECK_EXC_MATCH": (2, 2),
    "CHECK_EG_MATCH": (2, 2),
    "PREP_RERAISE_STAR": (2, 1),
    "BEFORE_WITH": (1, 2),
    "WITH_EXCEPT_START": (4, 5),
    "RETURN_GENERATOR": (0, 1),
    "YIELD_VALUE": (1, 1),
    "END_SEND": (2, 1),
    "CLEANUP_THROW": (3, 2),
    "GET_YIELD_FROM_ITER": (1, 1),
    "GET_AWAITABLE": (1, 1),
    "GET_AITER": (1, 1),
    "GET_ANEXT": (1, 2),
    "END_ASYNC_FOR": (2, 0),
    "BEFORE_ASYNC_WITH": (1, 2),
    "MATCH_MAPPING": (1, 2),
    "MATCH_SEQUENCE": (1, 2),
    "MATCH_KEYS": (2, 3),
    "MATCH_CLASS": (3, 1),
    "CALL_INTRINSIC_1": (1, 1),
    "CALL_INTRINSIC_2": (2, 1),
    "SETUP_ANNOTATIONS": (0, 0),
    "LASTI": (0, 1),
}
"""How many values each op takes off the stack and puts on, where neither its argument nor its way matters."""

_COUNTED: dict[str, Callable[[Any], tuple[int, int]]] = {
    "COPY": lambda n: (n, n + 1),
    "SWAP": lambda n: (n, n),
    "BUILD_TUPLE": lambda n: (n, 1),
    "BUILD_LIST": lambda n: (n, 1),
    "BUILD_SET": lambda n: (n, 1),
    "BUILD_STRING": lambda n: (n, 1),
    "BUILD_MAP": lambda n: (2 * n, 1),
    "BUILD_CONST_KEY_MAP": lambda n: (n + 1, 1),
    "BUILD_SLICE": lambda n: (n, 1),
    "UNPACK_SEQUENCE": lambda n: (1, n),
    "UNPACK_EX": lambda arg: (1, arg[0] + 1 + arg[1]),
    "FORMAT_VALUE": lambda arg: (2 if arg[1] else 1, 1),
    "CALL": lambda arg: (arg[0] + 1, 1),
    "CALL_FUNCTION_EX": lambda has_kwargs: (3 if has_kwargs else 2, 1),
    "MAKE_FUNCTION": lambda flags: (len(flags) + 1, 1),
    "RAISE_VARARGS": lambda n: (n, 0),
}

OPS = frozenset(FIXED_EFFECTS) | frozenset(_COUNTED) | {"FOR_ITER", "SEND"}
"""Every canonical op."""


def pops_pushes(op: str, arg: object, jump: bool = False) -> tuple[int, int]:
    """How many values ``op`` takes off the stack and how many it puts on.

    ``jump`` says which way a conditional jump goes. ``COPY``, ``SWAP`` count the values they reach.
    Raises KeyError for an op outside the set.
    """
    fixed = FIXED_EFFECTS.get(op)
    if fixed is not None:
        return fixed
    if op == "FOR_ITER":
        return (1, 0) if jump else (1, 2)
    if op == "SEND":
        return (2, 2)
    return _COUNTED[op](arg)
