"""Real bytecode to canonical instructions: what each opcode of each version means."""

from __future__ import annotations

from types import CodeType

from dyncomp.errors import Unsupported
from dyncomp.python_code.instr import BINARY_OPERATORS, COMPARE_OPERATORS, CanonicalCode, pops_pushes
from dyncomp.python_code.versions.raw import RawInstr
from dyncomp.python_code.versions.tables import (
    BREAK_ID,
    CONVERSIONS,
    FUNCTION_FLAGS,
    INTRINSIC_OPS,
    INTRINSICS_1,
    INTRINSICS_2,
    NULL_BELOW,
    TESTS_TRUTH,
    VERSION,
)
from dyncomp.python_code.versions.walker import Decoder, Target, is_straight, on


def decode(code: CodeType) -> CanonicalCode:
    """The canonical form of ``code``.

    Instructions that control cannot reach are dropped. Raises Unsupported for bytecode that CPython's own
    compiler does not make.
    """
    return Decoder(code).run()


def _words(text: str) -> list[str]:
    return text.split()


@on("POP_TOP")
def _pop_top(d: Decoder, item: RawInstr) -> None:
    if d.index not in d.folded:
        d.emit_plain("POP_TOP")


def _same_count(d: Decoder, item: RawInstr) -> None:
    d.emit_plain(item.op, item.arg)


def _name(d: Decoder, item: RawInstr) -> None:
    d.emit_plain(item.op, d.code.co_names[item.arg])


def _position_after_pop(d: Decoder, item: RawInstr) -> None:
    pops = pops_pushes(item.op, item.arg)[0]
    d.emit_plain(item.op, d.position(item.arg + pops) - pops)


_PLAIN = _words("""NOP BINARY_SUBSCR STORE_SUBSCR DELETE_SUBSCR UNARY_POSITIVE UNARY_NEGATIVE
UNARY_INVERT UNARY_NOT GET_ITER GET_LEN LOAD_BUILD_CLASS LOAD_ASSERTION_ERROR LIST_TO_TUPLE PUSH_EXC_INFO
POP_EXCEPT
CHECK_EXC_MATCH CHECK_EG_MATCH PREP_RERAISE_STAR BEFORE_WITH WITH_EXCEPT_START RETURN_GENERATOR END_SEND
CLEANUP_THROW GET_YIELD_FROM_ITER GET_AITER GET_ANEXT END_ASYNC_FOR BEFORE_ASYNC_WITH MATCH_MAPPING
MATCH_SEQUENCE MATCH_KEYS SETUP_ANNOTATIONS LOAD_LOCALS""")
_PLAIN_COUNT = _words("""RESUME BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_STRING BUILD_MAP BUILD_CONST_KEY_MAP
BUILD_SLICE UNPACK_SEQUENCE GET_AWAITABLE MATCH_CLASS YIELD_VALUE""")
_PLAIN_LOCAL = _words("""STORE_FAST DELETE_FAST LOAD_FAST_AND_CLEAR LOAD_CLOSURE LOAD_DEREF STORE_DEREF
DELETE_DEREF LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF MAKE_CELL""")
_PLAIN_NAME = _words("""STORE_GLOBAL DELETE_GLOBAL LOAD_NAME STORE_NAME DELETE_NAME LOAD_FROM_DICT_OR_GLOBALS
STORE_ATTR DELETE_ATTR IMPORT_NAME IMPORT_FROM""")
_PLAIN_POSITION = _words("LIST_APPEND SET_ADD MAP_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE")

is_straight("", *_PLAIN)
is_straight("slots", *_PLAIN_LOCAL)
is_straight("names", *_PLAIN_NAME)
on(*_PLAIN_COUNT)(_same_count)
on(*_PLAIN_POSITION)(_position_after_pop)


@on("DICT_MERGE")
def _dict_merge(d: Decoder, item: RawInstr) -> None:
    if d.index in d.folded:
        return
    if item.arg != 1:
        raise Unsupported("DICT_MERGE away from the top of the stack", break_id=BREAK_ID)
    d.emit_plain("DICT_MERGE", 1)


@on("RERAISE")
def _reraise(d: Decoder, item: RawInstr) -> bool:
    d.emit_plain("RERAISE", d.position(item.arg + 1) - 1 if item.arg else 0)
    return False


@on("COPY")
def _copy(d: Decoder, item: RawInstr) -> None:
    d.emit("COPY", d.position(item.arg))
    d.push()


@on("SWAP")
def _swap(d: Decoder, item: RawInstr) -> None:
    if d.index in d.folded:
        return
    d.position(1)
    d.emit("SWAP", d.position(item.arg))


@on("PUSH_NULL")
def _push_null(d: Decoder, item: RawInstr) -> None:
    """Our own encoder slides the NULL down with ``SWAP k … SWAP 2``: fold that into one insertion."""
    below = d.swaps_from(1)
    for k in range(1, below + 1):
        d.folded.add(d.index + k)
    d.insert_null(below)


@on("LOAD_CONST")
def _load_const(d: Decoder, item: RawInstr) -> None:
    if VERSION >= (3, 13) and _is_part_of_another(d):
        return
    d.push()
    d.emit("LOAD_CONST", d.code.co_consts[item.arg])


def _is_part_of_another(d: Decoder) -> bool:
    """Whether a constant of 3.13 belongs to a call with keywords, or to our own encoder's DICT_MERGE."""
    if d.swaps_from(1) == 3 and d.raw_at(4) == "DICT_MERGE":
        _fold_dict_merge(d)
        return True
    if d.raw_at(1) == "CALL_KW":
        d.push()
        return True
    return False


def _fold_dict_merge(d: Decoder) -> None:
    """Our own encoder's DICT_MERGE for 3.13: const, SWAP 4 3 2, DICT_MERGE, SWAP 3, POP_TOP, SWAP 2."""
    d.folded.update(range(d.index + 1, d.index + 8))
    d.emit_plain("DICT_MERGE", 1)


@on("RETURN_CONST")
def _return_const(d: Decoder, item: RawInstr) -> bool:
    d.emit("LOAD_CONST", d.code.co_consts[item.arg])
    d.emit("RETURN_VALUE")
    return False


@on("RETURN_VALUE")
def _return_value(d: Decoder, item: RawInstr) -> bool:
    d.emit_plain("RETURN_VALUE")
    return False


@on("RAISE_VARARGS")
def _raise(d: Decoder, item: RawInstr) -> bool:
    d.emit_plain("RAISE_VARARGS", item.arg)
    return False


@on("LOAD_FAST", "LOAD_FAST_CHECK")
def _load_fast(d: Decoder, item: RawInstr) -> None:
    name = d.slots[item.arg]
    d.emit("LOAD_CLOSURE" if name in d.boxed else "LOAD_FAST", name)
    d.push()


@on("LOAD_FAST_LOAD_FAST")
def _load_two(d: Decoder, item: RawInstr) -> None:
    for slot in (item.arg >> 4, item.arg & 15):
        _load_fast(d, item._replace(arg=slot))


@on("STORE_FAST_LOAD_FAST")
def _store_load(d: Decoder, item: RawInstr) -> None:
    d.emit_plain("STORE_FAST", d.slots[item.arg >> 4])
    _load_fast(d, item._replace(arg=item.arg & 15))


@on("STORE_FAST_STORE_FAST")
def _store_two(d: Decoder, item: RawInstr) -> None:
    d.emit_plain("STORE_FAST", d.slots[item.arg >> 4])
    d.emit_plain("STORE_FAST", d.slots[item.arg & 15])


def _push_with_null(d: Decoder) -> None:
    """Push a callable and the NULL that goes with it, in this version's order."""
    if NULL_BELOW:
        d.push_null()
        d.push()
    else:
        d.push()
        d.push_null()


@on("LOAD_GLOBAL")
def _load_global(d: Decoder, item: RawInstr) -> None:
    d.emit("LOAD_GLOBAL", d.code.co_names[item.arg >> 1])
    if item.arg & 1:
        _push_with_null(d)
    else:
        d.push()


@on("LOAD_METHOD")
def _load_method(d: Decoder, item: RawInstr) -> None:
    d.emit("LOAD_METHOD", d.code.co_names[item.arg])
    d.pop(1)
    _push_with_null(d)


@on("LOAD_ATTR")
def _load_attr(d: Decoder, item: RawInstr) -> None:
    if VERSION < (3, 12):
        _name(d, item)
        return
    name = d.code.co_names[item.arg >> 1]
    if not item.arg & 1:
        d.emit_plain("LOAD_ATTR", name)
        return
    d.emit("LOAD_METHOD", name)
    d.pop(1)
    _push_with_null(d)


@on("LOAD_SUPER_ATTR")
def _load_super_attr(d: Decoder, item: RawInstr) -> None:
    d.emit("LOAD_SUPER_ATTR", (d.code.co_names[item.arg >> 2], bool(item.arg & 2)))
    d.pop(3)
    if item.arg & 1:
        _push_with_null(d)
    else:
        d.push()


@on("BINARY_OP")
def _binary_op(d: Decoder, item: RawInstr) -> None:
    d.emit_plain("BINARY_OP", BINARY_OPERATORS[item.arg])


def _truth_follows(d: Decoder) -> bool:
    return d.raw_at(1) in TESTS_TRUTH


@on("COMPARE_OP")
def _compare_op(d: Decoder, item: RawInstr) -> None:
    if VERSION < (3, 12):
        d.emit_plain("COMPARE_OP", COMPARE_OPERATORS[item.arg])
        return
    if VERSION < (3, 13):
        d.emit_plain("COMPARE_OP", COMPARE_OPERATORS[item.arg >> 4])
        return
    d.emit_plain("COMPARE_OP", COMPARE_OPERATORS[item.arg >> 5])
    if item.arg & 16 and not _truth_follows(d):
        d.emit("TO_BOOL")


@on("TO_BOOL")
def _to_bool(d: Decoder, item: RawInstr) -> None:
    if not _truth_follows(d):
        d.emit("TO_BOOL")


@on("IS_OP", "CONTAINS_OP")
def _inverting(d: Decoder, item: RawInstr) -> None:
    d.emit_plain(item.op, bool(item.arg))


@on("BINARY_SLICE")
def _binary_slice(d: Decoder, item: RawInstr) -> None:
    d.emit_plain("BUILD_SLICE", 2)
    d.emit_plain("BINARY_SUBSCR")


@on("STORE_SLICE")
def _store_slice(d: Decoder, item: RawInstr) -> None:
    d.emit_plain("BUILD_SLICE", 2)
    d.emit_plain("STORE_SUBSCR")


@on("UNPACK_EX")
def _unpack_ex(d: Decoder, item: RawInstr) -> None:
    d.emit_plain("UNPACK_EX", (item.arg & 0xFF, item.arg >> 8))


@on("FORMAT_VALUE")
def _format_value(d: Decoder, item: RawInstr) -> None:
    d.emit_plain("FORMAT_VALUE", (CONVERSIONS[item.arg & 3], bool(item.arg & 4)))


@on("FORMAT_SIMPLE", "FORMAT_WITH_SPEC")
def _format_split(d: Decoder, item: RawInstr) -> None:
    d.emit_plain("FORMAT_VALUE", ("", item.op == "FORMAT_WITH_SPEC"))


@on("CONVERT_VALUE")
def _convert_value(d: Decoder, item: RawInstr) -> None:
    d.emit_plain("CONVERT_VALUE", CONVERSIONS[item.arg])


@on("CALL_INTRINSIC_1", "CALL_INTRINSIC_2")
def _intrinsic(d: Decoder, item: RawInstr) -> None:
    names = INTRINSICS_1 if item.op == "CALL_INTRINSIC_1" else INTRINSICS_2
    name = names[item.arg]
    if name in INTRINSIC_OPS:
        d.emit_plain(name)
    else:
        d.emit_plain(item.op, name)


@on("ASYNC_GEN_WRAP")
def _async_gen_wrap(d: Decoder, item: RawInstr) -> None:
    d.emit_plain("CALL_INTRINSIC_1", "ASYNC_GEN_WRAP")


@on("PRINT_EXPR", "IMPORT_STAR")
def _statement_intrinsic(d: Decoder, item: RawInstr) -> None:
    if item.op == "IMPORT_STAR":
        d.emit_plain("IMPORT_STAR")
    else:
        d.emit_plain("CALL_INTRINSIC_1", "PRINT")
    d.emit_plain("POP_TOP")


# -- calls


@on("KW_NAMES", "PRECALL")
def _before_call(d: Decoder, item: RawInstr) -> None:
    """Folded into the CALL that follows."""


def _keyword_names(d: Decoder) -> tuple[str, ...]:
    for offset in (-1, -2):
        op = d.raw_at(offset)
        if op == "KW_NAMES":
            return d.code.co_consts[d.raw[d.index + offset].arg]
        if op != "PRECALL":
            break
    return ()


def _emit_call(d: Decoder, count: int, kwnames: tuple[str, ...]) -> None:
    """``count`` values lie above the two slots of callable and NULL (or callable and first argument)."""
    has_null = d.take_null(count + 2 if NULL_BELOW else count + 1)
    d.emit("CALL", (count if has_null else count + 1, kwnames))
    d.pop(count + 2)
    d.push()


@on("CALL")
def _call(d: Decoder, item: RawInstr) -> None:
    _emit_call(d, item.arg, _keyword_names(d))


@on("CALL_KW")
def _call_kw(d: Decoder, item: RawInstr) -> None:
    names = d.raw[d.index - 1]
    if names.op != "LOAD_CONST":
        raise Unsupported("CALL_KW with computed names", break_id=BREAK_ID)
    d.pop(1)
    _emit_call(d, item.arg, d.code.co_consts[names.arg])


@on("CALL_FUNCTION_EX")
def _call_function_ex(d: Decoder, item: RawInstr) -> None:
    has_kwargs = bool(item.arg & 1)
    values = 2 + has_kwargs
    if not d.take_null(values + 1 if NULL_BELOW else values):
        raise Unsupported("CALL_FUNCTION_EX with no NULL", break_id=BREAK_ID)
    d.emit("CALL_FUNCTION_EX", has_kwargs)
    d.pop(values + 1)
    d.push()


@on("MAKE_FUNCTION")
def _make_function(d: Decoder, item: RawInstr) -> None:
    if VERSION < (3, 13):
        flags = tuple(name for bit, name in FUNCTION_FLAGS if item.arg & bit)
        d.emit_plain("MAKE_FUNCTION", flags)
        return
    names = dict(FUNCTION_FLAGS)
    found: list[str] = []
    while d.raw_at(1 + len(found)) == "SET_FUNCTION_ATTRIBUTE":
        found.append(names[d.raw[d.index + 1 + len(found)].arg])
    d.emit("MAKE_FUNCTION", tuple(reversed(found)))
    d.pop(1)
    d.push()


@on("SET_FUNCTION_ATTRIBUTE")
def _set_function_attribute(d: Decoder, item: RawInstr) -> None:
    """Folded into the MAKE_FUNCTION before it."""
    d.pop(2)
    d.push()


# -- jumps


@on("JUMP_FORWARD", "JUMP_BACKWARD")
def _jump(d: Decoder, item: RawInstr) -> bool:
    d.emit("JUMP", Target(item.target))
    d.goto(item.target)
    return False


@on("JUMP_BACKWARD_NO_INTERRUPT")
def _jump_no_interrupt(d: Decoder, item: RawInstr) -> bool:
    d.emit("JUMP_NO_INTERRUPT", Target(item.target))
    d.goto(item.target)
    return False


def _pop_jump(d: Decoder, item: RawInstr) -> None:
    condition = item.op[item.op.index("IF_") :]
    d.emit("POP_JUMP_" + condition, Target(item.target))
    d.pop(1)
    d.goto(item.target)


for _condition in ("IF_TRUE", "IF_FALSE", "IF_NONE", "IF_NOT_NONE"):
    on(*(f"POP_JUMP_{way}{_condition}" for way in ("", "FORWARD_", "BACKWARD_")))(_pop_jump)


@on("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(d: Decoder, item: RawInstr) -> None:
    d.emit("COPY", 1)
    d.emit("POP_JUMP_IF_TRUE" if "TRUE" in item.op else "POP_JUMP_IF_FALSE", Target(item.target))
    d.emit("POP_TOP")
    d.goto(item.target)
    d.pop(1)


_AFTER_EXHAUSTED = {(3, 11): 0, (3, 12): 1, (3, 13): 2}[VERSION]
"""What an exhausted loop skips at FOR_ITER's target: END_FOR (3.12), END_FOR and POP_TOP (3.13)."""


@on("FOR_ITER")
def _for_iter(d: Decoder, item: RawInstr) -> None:
    target = item.target + _AFTER_EXHAUSTED
    d.emit("FOR_ITER", Target(target))
    d.goto(target, pops=1)
    d.push()


@on("SEND")
def _send(d: Decoder, item: RawInstr) -> None:
    d.emit("SEND", Target(item.target))
    if VERSION < (3, 12):
        d.send_targets[item.target] = item.loc
        d.goto(item.target, pops=1)
    else:
        d.goto(item.target)
