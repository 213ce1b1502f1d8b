"""Canonical instructions to real bytecode of the running version.

The calling convention's NULLs are made right at each call. A call with arguments needs none at all: all
versions accept ``[callable, first argument, …]`` in the slots of ``[method, self, …]``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from dyncomp.errors import Unsupported, VerifyError
from dyncomp.python_code.flow import Flow, stack_depths
from dyncomp.python_code.instr import (
    BINARY_OPERATORS,
    CO_OPTIMIZED,
    COMPARE_OPERATORS,
    NO_FALLTHROUGH,
    NO_LOC,
    CanonicalCode,
    Instr,
    Loc,
)
from dyncomp.python_code.versions.raw import Assembled, RawException, assemble
from dyncomp.python_code.versions.tables import (
    BREAK_ID,
    CONVERSIONS,
    FUNCTION_FLAGS,
    INTRINSICS_1,
    INTRINSICS_2,
    VERSION,
)

_SPARE_STACK = 4
"""Room for the values that an expansion pushes on top of the canonical depth."""

_COMPARE_MASKS = {"<": 2, "<=": 10, "==": 8, "!=": 7, ">": 4, ">=": 12}
"""Low bits of COMPARE_OP's operand (3.12+): which outcomes the specialised forms call true."""

_INVERTED = {
    "POP_JUMP_IF_FALSE": "POP_JUMP_IF_TRUE",
    "POP_JUMP_IF_TRUE": "POP_JUMP_IF_FALSE",
    "POP_JUMP_IF_NONE": "POP_JUMP_IF_NOT_NONE",
    "POP_JUMP_IF_NOT_NONE": "POP_JUMP_IF_NONE",
}


class Encoder:
    """One run of :func:`encode`. Labels: canonical indices, and negative numbers for the encoder's own."""

    def __init__(self, code: CanonicalCode) -> None:
        self.code = code
        cells = tuple(name for name in code.cellvars if name not in code.varnames)
        slots = code.varnames + cells + code.freevars
        self.slot_of = {name: k for k, name in enumerate(slots)}
        if len(self.slot_of) != len(slots):
            raise VerifyError(f"{code.qualname}: a local variable is named twice")
        self.raw: list[tuple[str, int, int | None, Loc, int]] = []  # see raw.RawInstr
        self.places: dict[int, int] = {}
        self.names: dict[str, int] = {}
        self.consts: list[Any] = [code.doc]
        self.const_index: dict[Any, int] = {self.const_key(code.doc): 0}
        self.lasti: list[tuple[int, int]] = []
        self.own_labels = 0
        self.loc = NO_LOC
        self.index = 0
        self.are_sure = VERSION < (3, 12)  # no load has to be told apart
        self.unsure: Callable[[int, str], bool] = lambda index, name: False
        self.pads = {i.arg: i.loc for i in code.instructions if i.op == "FOR_ITER" and i.arg > i.index}
        self.pad_label: dict[int, int] = {}

    # -- what handlers use

    def emit(self, op: str, arg: int = 0) -> None:
        self.raw.append((op, arg, None, self.loc, 0))

    def jump(self, op: str, label: int) -> None:
        self.raw.append((op, 0, label, self.loc, 0))

    def label(self) -> int:
        self.own_labels -= 1
        return self.own_labels

    def place(self, label: int) -> None:
        self.places[label] = len(self.raw)

    def name(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    @staticmethod
    def const_key(value: object) -> Any:
        return id(value)  # equal constants may be several objects, and programs can tell

    def const(self, value: object) -> int:
        key = self.const_key(value)
        found = self.const_index.get(key)
        if found is None:
            found = self.const_index[key] = len(self.consts)
            self.consts.append(value)
        return found

    def is_backward(self, target: int) -> bool:
        return target <= self.index

    # -- the run

    def run(self) -> CodeType:
        code = self.code
        depths = stack_depths(code)
        self.find_unsure_loads()
        self.prologue()
        previous = "JUMP"
        pads, places, raw = self.pads, self.places, self.raw
        for instr in code.instructions:
            op, arg, self.loc, self.index = instr
            if self.index in pads:
                self.loc = pads[self.index]
                self.exhausted_pad(self.index, previous)
                self.loc = instr.loc
            places[self.index] = len(raw)
            if op in _SAME:
                raw.append((op, 0, None, self.loc, 0))
            elif op == "LOAD_CONST":
                raw.append((op, self.const(arg), None, self.loc, 0))
            elif op in _SAME_LOCAL or (op == "LOAD_FAST" and self.are_sure):
                raw.append((op, self.slot_of[arg], None, self.loc, 0))
            else:
                HANDLERS[op](self, instr)
            previous = op
        self.place(len(code.instructions))
        assembled = self.assemble()
        for slot, index in self.lasti:
            self.consts[slot] = assembled.addresses[self.places[index + 1] - 1]
        return self.build(assembled, self.stack_size(depths))

    def find_unsure_loads(self) -> None:
        """3.12+ has a fast load that crashes on an unbound local: only for surely bound ones."""
        if self.are_sure:
            return
        flow = Flow.of(self.code)
        assigned = flow.assigned()
        bit = flow.bit
        self.unsure = lambda index, name: not assigned[index] & bit[name]

    def prologue(self) -> None:
        code = self.code
        if code.freevars:
            self.emit("COPY_FREE_VARS", len(code.freevars))
        for slot in sorted(self.slot_of[name] for name in code.cellvars):
            self.emit("MAKE_CELL", slot)

    def exhausted_pad(self, target: int, previous: str) -> None:
        """END_FOR before the place where an exhausted loop goes on (3.12+)."""
        if VERSION < (3, 12):
            self.pad_label[target] = target
            return
        if previous not in NO_FALLTHROUGH:
            self.jump("JUMP_FORWARD", target)
        self.place(self.pad(target))
        self.end_for()

    def pad(self, target: int) -> int:
        if VERSION < (3, 12):
            return target
        if target not in self.pad_label:
            self.pad_label[target] = self.label()
        return self.pad_label[target]

    def end_for(self) -> None:
        if VERSION >= (3, 12):
            self.emit("END_FOR")
        if VERSION >= (3, 13):
            self.emit("POP_TOP")

    def assemble(self) -> Assembled:
        places = self.places
        exceptions = [
            RawException(places[e.start], places[e.end], places[e.target], e.depth, e.lasti)
            for e in sorted(self.code.exceptions)
            if places[e.start] < places[e.end]
        ]
        return assemble(self.raw, exceptions, self.code.firstlineno, merge=True, places=places)

    def stack_size(self, depths: list[int]) -> int:
        handlers = [e.depth + e.lasti + 1 for e in self.code.exceptions]
        pushed = [
            instr.arg if instr.op == "UNPACK_SEQUENCE" else sum(instr.arg) if instr.op == "UNPACK_EX" else 0
            for instr in self.code.instructions
            if instr.op in ("UNPACK_SEQUENCE", "UNPACK_EX")
        ]
        return max([*depths, *handlers, 0]) + max([*pushed, 0]) + _SPARE_STACK

    def build(self, assembled: Assembled, stack_size: int) -> CodeType:
        code = self.code
        if not code.flags & CO_OPTIMIZED and code.varnames and VERSION >= (3, 12):
            raise Unsupported("class body with hidden locals", break_id=BREAK_ID)
        return CodeType(
            code.argcount,
            code.posonlyargcount,
            code.kwonlyargcount,
            len(code.varnames),
            stack_size,
            code.flags,
            assembled.code,
            tuple(self.consts),
            tuple(self.names),
            code.varnames,
            code.filename,
            code.name,
            code.qualname,
            code.firstlineno,
            assembled.linetable,
            assembled.exceptiontable,
            code.freevars,
            code.cellvars,
        )


Handler = Callable[[Encoder, Instr], None]
HANDLERS: dict[str, Handler] = {}
"""Canonical op to what emits it in this version."""


def on(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for canonical ops."""

    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return register


def encode(code: CanonicalCode) -> CodeType:
    """A code object of the running version that does what ``code`` says.

    Constants are taken as they are, so any object may be one. Raises VerifyError for canonical code with an
    inconsistent stack, Unsupported for what this version cannot say.
    """
    return Encoder(code).run()


# ---------------------------------------------------------------------------------------------------------
# handlers


def _words(text: str) -> list[str]:
    return text.split()


def _same_count(e: Encoder, instr: Instr) -> None:
    e.emit(instr.op, instr.arg)


def _name(e: Encoder, instr: Instr) -> None:
    e.emit(instr.op, e.name(instr.arg))


_PLAIN = _words("""NOP POP_TOP BINARY_SUBSCR STORE_SUBSCR DELETE_SUBSCR UNARY_NEGATIVE UNARY_INVERT
GET_ITER GET_LEN LOAD_BUILD_CLASS LOAD_ASSERTION_ERROR PUSH_EXC_INFO POP_EXCEPT RETURN_VALUE
CHECK_EXC_MATCH CHECK_EG_MATCH BEFORE_WITH WITH_EXCEPT_START RETURN_GENERATOR CLEANUP_THROW
GET_YIELD_FROM_ITER GET_AITER GET_ANEXT END_ASYNC_FOR BEFORE_ASYNC_WITH MATCH_MAPPING MATCH_SEQUENCE
MATCH_KEYS SETUP_ANNOTATIONS LOAD_LOCALS""")
_PLAIN_COUNT = _words("""RESUME COPY SWAP BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_STRING BUILD_MAP
BUILD_CONST_KEY_MAP BUILD_SLICE UNPACK_SEQUENCE GET_AWAITABLE MATCH_CLASS RAISE_VARARGS RERAISE LIST_APPEND
SET_ADD MAP_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE""")
_PLAIN_LOCAL = _words("""STORE_FAST DELETE_FAST LOAD_FAST_AND_CLEAR LOAD_DEREF STORE_DEREF DELETE_DEREF
LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF MAKE_CELL""")
_PLAIN_NAME = _words("""STORE_GLOBAL DELETE_GLOBAL LOAD_NAME STORE_NAME DELETE_NAME
LOAD_FROM_DICT_OR_GLOBALS STORE_ATTR DELETE_ATTR IMPORT_NAME IMPORT_FROM""")

_SAME = frozenset(_PLAIN)
_SAME_LOCAL = frozenset(_PLAIN_LOCAL)
on(*_PLAIN_COUNT)(_same_count)
on(*_PLAIN_NAME)(_name)


@on("LOAD_CONST")
def _load_const(e: Encoder, instr: Instr) -> None:
    e.emit("LOAD_CONST", e.const(instr.arg))


@on("LASTI")
def _lasti(e: Encoder, instr: Instr) -> None:
    e.lasti.append((len(e.consts), instr.arg))
    e.emit("LOAD_CONST", len(e.consts))
    e.consts.append(None)


@on("LOAD_FAST")
def _load_fast(e: Encoder, instr: Instr) -> None:
    op = "LOAD_FAST_CHECK" if e.unsure(instr.index, instr.arg) else "LOAD_FAST"
    e.emit(op, e.slot_of[instr.arg])


@on("LOAD_CLOSURE")
def _load_closure(e: Encoder, instr: Instr) -> None:
    e.emit("LOAD_CLOSURE" if VERSION < (3, 13) else "LOAD_FAST", e.slot_of[instr.arg])


@on("LOAD_GLOBAL")
def _load_global(e: Encoder, instr: Instr) -> None:
    e.emit("LOAD_GLOBAL", e.name(instr.arg) << 1)


@on("LOAD_ATTR", "LOAD_METHOD")
def _load_attr(e: Encoder, instr: Instr) -> None:
    index = e.name(instr.arg)
    e.emit("LOAD_ATTR", index if VERSION < (3, 12) else index << 1)


@on("LOAD_SUPER_ATTR")
def _load_super_attr(e: Encoder, instr: Instr) -> None:
    if VERSION < (3, 12):
        raise Unsupported("LOAD_SUPER_ATTR on Python 3.11", break_id=BREAK_ID)
    name, two_arg = instr.arg
    e.emit("LOAD_SUPER_ATTR", (e.name(name) << 2) | (two_arg << 1))


@on("UNARY_POSITIVE", "LIST_TO_TUPLE")
def _unary_intrinsic(e: Encoder, instr: Instr) -> None:
    if VERSION < (3, 12):
        e.emit(instr.op)
    else:
        e.emit("CALL_INTRINSIC_1", INTRINSICS_1.index(instr.op))


@on("UNARY_NOT")
def _unary_not(e: Encoder, instr: Instr) -> None:
    if VERSION >= (3, 13):
        e.emit("TO_BOOL")
    e.emit("UNARY_NOT")


@on("TO_BOOL")
def _to_bool(e: Encoder, instr: Instr) -> None:
    if VERSION >= (3, 13):
        e.emit("TO_BOOL")
    else:
        e.emit("UNARY_NOT")
        e.emit("UNARY_NOT")


@on("BINARY_OP")
def _binary_op(e: Encoder, instr: Instr) -> None:
    e.emit("BINARY_OP", BINARY_OPERATORS.index(instr.arg))


@on("COMPARE_OP")
def _compare_op(e: Encoder, instr: Instr) -> None:
    index = COMPARE_OPERATORS.index(instr.arg)
    if VERSION < (3, 12):
        e.emit("COMPARE_OP", index)
    elif VERSION < (3, 13):
        e.emit("COMPARE_OP", (index << 4) | _COMPARE_MASKS[instr.arg])
    else:
        e.emit("COMPARE_OP", (index << 5) | _COMPARE_MASKS[instr.arg])


@on("IS_OP", "CONTAINS_OP")
def _inverting(e: Encoder, instr: Instr) -> None:
    e.emit(instr.op, int(instr.arg))


@on("UNPACK_EX")
def _unpack_ex(e: Encoder, instr: Instr) -> None:
    before, after = instr.arg
    e.emit("UNPACK_EX", before | (after << 8))


@on("FORMAT_VALUE")
def _format_value(e: Encoder, instr: Instr) -> None:
    conversion, has_spec = instr.arg
    if VERSION < (3, 13):
        e.emit("FORMAT_VALUE", CONVERSIONS.index(conversion) | (4 if has_spec else 0))
        return
    if conversion:
        _convert_below(e, CONVERSIONS.index(conversion), has_spec)
    e.emit("FORMAT_WITH_SPEC" if has_spec else "FORMAT_SIMPLE")


def _convert_below(e: Encoder, conversion: int, has_spec: bool) -> None:
    if has_spec:
        e.emit("SWAP", 2)
    e.emit("CONVERT_VALUE", conversion)
    if has_spec:
        e.emit("SWAP", 2)


@on("CONVERT_VALUE")
def _convert_value(e: Encoder, instr: Instr) -> None:
    if VERSION < (3, 13):
        raise Unsupported("CONVERT_VALUE before Python 3.13", break_id=BREAK_ID)
    e.emit("CONVERT_VALUE", CONVERSIONS.index(instr.arg))


@on("IMPORT_STAR")
def _import_star(e: Encoder, instr: Instr) -> None:
    if VERSION < (3, 12):
        e.emit("IMPORT_STAR")
        e.emit("LOAD_CONST", e.const(None))
    else:
        e.emit("CALL_INTRINSIC_1", INTRINSICS_1.index("IMPORT_STAR"))


@on("PREP_RERAISE_STAR")
def _prep_reraise_star(e: Encoder, instr: Instr) -> None:
    if VERSION < (3, 12):
        e.emit("PREP_RERAISE_STAR")
    else:
        e.emit("CALL_INTRINSIC_2", INTRINSICS_2.index("PREP_RERAISE_STAR"))


@on("CALL_INTRINSIC_1")
def _intrinsic_1(e: Encoder, instr: Instr) -> None:
    if VERSION >= (3, 12):
        e.emit("CALL_INTRINSIC_1", INTRINSICS_1.index(instr.arg))
    elif instr.arg == "ASYNC_GEN_WRAP":
        e.emit("ASYNC_GEN_WRAP")
    elif instr.arg == "PRINT":
        e.emit("PRINT_EXPR")
        e.emit("LOAD_CONST", e.const(None))
    else:
        raise Unsupported(f"intrinsic {instr.arg} on Python 3.11", break_id=BREAK_ID)


@on("CALL_INTRINSIC_2")
def _intrinsic_2(e: Encoder, instr: Instr) -> None:
    e.emit("CALL_INTRINSIC_2", INTRINSICS_2.index(instr.arg))


# -- calls


@on("CALL")
def _call(e: Encoder, instr: Instr) -> None:
    count, kwnames = instr.arg
    if count == 0:
        e.emit("PUSH_NULL")
        if VERSION < (3, 13):
            e.emit("SWAP", 2)
        _emit_call(e, 0)
    elif kwnames and VERSION >= (3, 13):
        e.emit("LOAD_CONST", e.const(kwnames))
        e.emit("CALL_KW", count - 1)
    else:
        if kwnames:
            e.emit("KW_NAMES", e.const(kwnames))
        _emit_call(e, count - 1)


def _emit_call(e: Encoder, count: int) -> None:
    if VERSION < (3, 12):
        e.emit("PRECALL", count)
    e.emit("CALL", count)


@on("CALL_FUNCTION_EX")
def _call_function_ex(e: Encoder, instr: Instr) -> None:
    """Slide a NULL under the callable (before 3.13) or under the arguments."""
    values = 2 if instr.arg else 1
    if VERSION < (3, 13):
        values += 1
    e.emit("PUSH_NULL")
    for k in range(values + 1, 1, -1):
        e.emit("SWAP", k)
    e.emit("CALL_FUNCTION_EX", int(instr.arg))


@on("DICT_MERGE")
def _dict_merge(e: Encoder, instr: Instr) -> None:
    """``f, args, kwargs, update``: for its error message 3.13 looks for ``f`` one place further down."""
    if VERSION < (3, 13):
        e.emit("DICT_MERGE", instr.arg)
        return
    if instr.arg != 1:
        raise Unsupported("DICT_MERGE away from the top of the stack", break_id=BREAK_ID)
    e.emit("LOAD_CONST", e.const(None))
    for k in (4, 3, 2):
        e.emit("SWAP", k)
    e.emit("DICT_MERGE", 1)
    e.emit("SWAP", 3)
    e.emit("POP_TOP")
    e.emit("SWAP", 2)


@on("MAKE_FUNCTION")
def _make_function(e: Encoder, instr: Instr) -> None:
    bits = [bit for bit, name in FUNCTION_FLAGS for flag in instr.arg if flag == name]
    order = {name: bit for bit, name in FUNCTION_FLAGS}
    if VERSION < (3, 13):
        if [order[flag] for flag in instr.arg] != bits:
            raise Unsupported("MAKE_FUNCTION with flags out of order", break_id=BREAK_ID)
        e.emit("MAKE_FUNCTION", sum(bits))
        return
    e.emit("MAKE_FUNCTION")
    for flag in reversed(instr.arg):
        e.emit("SET_FUNCTION_ATTRIBUTE", order[flag])


# -- jumps


@on("JUMP")
def _jump(e: Encoder, instr: Instr) -> None:
    e.jump("JUMP_BACKWARD" if e.is_backward(instr.arg) else "JUMP_FORWARD", instr.arg)


@on("JUMP_NO_INTERRUPT")
def _jump_no_interrupt(e: Encoder, instr: Instr) -> None:
    e.jump("JUMP_BACKWARD_NO_INTERRUPT" if e.is_backward(instr.arg) else "JUMP_FORWARD", instr.arg)


@on("POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE")
def _pop_jump(e: Encoder, instr: Instr) -> None:
    op = instr.op
    backward = e.is_backward(instr.arg)
    if VERSION < (3, 12):
        way = "POP_JUMP_BACKWARD" if backward else "POP_JUMP_FORWARD"
        e.jump(way + op.removeprefix("POP_JUMP"), instr.arg)
        return
    if VERSION >= (3, 13) and not op.endswith("NONE"):
        e.emit("TO_BOOL")
    if not backward:
        e.jump(op, instr.arg)
        return
    over = e.label()
    e.jump(_INVERTED[op], over)
    e.jump("JUMP_BACKWARD", instr.arg)
    e.place(over)


@on("FOR_ITER")
def _for_iter(e: Encoder, instr: Instr) -> None:
    if not e.is_backward(instr.arg):
        e.jump("FOR_ITER", e.pad(instr.arg))
        return
    exhausted, over = e.label(), e.label()
    e.jump("FOR_ITER", exhausted)
    e.jump("JUMP_FORWARD", over)
    e.place(exhausted)
    e.end_for()
    e.jump("JUMP_BACKWARD", instr.arg)
    e.place(over)


@on("SEND")
def _send(e: Encoder, instr: Instr) -> None:
    if e.is_backward(instr.arg) or e.code.instructions[instr.arg].op != "END_SEND":
        raise Unsupported("SEND that does not go to END_SEND", break_id=BREAK_ID)
    e.jump("SEND", instr.arg if VERSION >= (3, 12) else instr.arg + 1)


@on("END_SEND")
def _end_send(e: Encoder, instr: Instr) -> None:
    if VERSION >= (3, 12):
        e.emit("END_SEND")
    else:
        e.emit("SWAP", 2)
        e.emit("POP_TOP")


@on("YIELD_VALUE")
def _yield_value(e: Encoder, instr: Instr) -> None:
    e.emit("YIELD_VALUE", instr.arg if VERSION >= (3, 12) else 0)


ENCODED = _SAME | _SAME_LOCAL | HANDLERS.keys()
"""Every canonical op that can be encoded."""
