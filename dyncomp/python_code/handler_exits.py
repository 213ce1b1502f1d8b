"""Where code that handles an exception gets back to code that does not."""

from __future__ import annotations

from .flow import Flow, successors
from .instr import CanonicalCode

# what may still run as it is on the way from a handler to where capture goes on: ``e = None; del e; goto``
_ON_THE_WAY = frozenset({"NOP", "POP_TOP", "LOAD_CONST", "STORE_FAST", "DELETE_FAST"})
# what is left of a loop's body where nothing but its result is given back
_RESULT = frozenset({"LOAD_FAST", "LOAD_CONST", "BUILD_TUPLE"})


def handler_exits(code: CanonicalCode, at: int) -> set[int]:
    """Instructions at which the handlers of instruction ``at``, and what they lead to, are through with every
    exception. Where the function then just returns there is none."""
    flow = Flow.of(code)
    handler = flow.handlers[at]
    if handler is None:
        return set()
    found: set[int] = set()
    seen: set[int] = set()
    work: list[tuple[int, int]] = [(handler.target, 0)]  # with how many exceptions are being handled
    while work:
        index, depth = work.pop()
        if index in seen:
            continue
        seen.add(index)
        instr = code.instructions[index]
        inner = flow.handlers[index]
        if inner is not None:
            work.append((inner.target, depth))
        depth += (instr.op == "PUSH_EXC_INFO") - (instr.op == "POP_EXCEPT")
        if instr.op == "POP_EXCEPT" and depth == 0 and not _raises_again(code, index + 1):
            found.add(_place_to_go_on(code, index + 1))
        else:
            work.extend((after, depth) for after in successors(instr))
    return found - {-1}


def _raises_again(code: CanonicalCode, index: int) -> bool:
    """Whether the exception is still on the stack and raised again."""
    while code.instructions[index].op in (*_ON_THE_WAY, "SWAP"):
        index += 1
    return code.instructions[index].op == "RERAISE"


def _place_to_go_on(code: CanonicalCode, index: int) -> int:
    """Behind the clean-up that follows a handler; -1 where the function just ends."""
    for _ in range(len(code.instructions)):
        instr = code.instructions[index]
        if instr.op in ("JUMP", "JUMP_NO_INTERRUPT"):
            index = instr.arg
        elif _just_returns(code, index):
            return -1
        elif instr.op in _ON_THE_WAY:
            index += 1
        else:
            return index
    return -1


def _just_returns(code: CanonicalCode, index: int) -> bool:
    while code.instructions[index].op in _RESULT:
        index += 1
    return code.instructions[index].op == "RETURN_VALUE"
