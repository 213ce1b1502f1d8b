"""A stand-in for compiled loops: interprets the loop's instructions in Python, and stops now and then.

What is tested with it is how loops are entered and left: gates, restored locals and stacks, exceptions.
"""

from __future__ import annotations

import builtins
import copy
import operator
import random

import numpy as np

from dyncomp.python_code.gates import gateable_loops
from dyncomp.python_code.instr import JUMPS
from dyncomp.python_code.loops import UNBOUND

_BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "@": operator.matmul,
}  # fmt: skip
_IN_PLACE = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow, "<<=": operator.ilshift,
    ">>=": operator.irshift, "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor,
}  # fmt: skip
_COMPARE = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip
_UNARY = {
    "UNARY_NEGATIVE": operator.neg, "UNARY_POSITIVE": operator.pos, "UNARY_INVERT": operator.invert,
    "UNARY_NOT": operator.not_, "TO_BOOL": bool,
}  # fmt: skip
_ITERATORS = tuple(type(iter(items)) for items in (range(0), [], (), np.zeros(1)))


class Unknown(Exception):
    """An instruction that is not interpreted."""


class FakeLoop:
    """What ``config.make_native`` makes. ``chance``: of stopping at a place where that is allowed."""

    has_paused = True

    is_stale = False

    def __init__(self, code, loop, names, namespace, record, seed=0, chance=0.02):
        facts = next(f for f in gateable_loops(code) if f.loop.header == loop.header)
        self.code, self.loop, self.names, self.namespace, self.record = code, loop, names, namespace, record
        self.depth_of = dict(zip(facts.places, facts.depths))
        self.random = random.Random(seed)
        self.chance = chance
        self.problem, self.is_hopeless = "", False

    def prepare(self, *values):
        known = self.loop.kind != "for" or type(values[0]) in _ITERATORS
        if not known or self.random.random() < 0.1:
            return None
        self.record.versions = 1
        return [values, None]

    def execute(self, state):
        state[1] = self._run(list(state[0]))

    def results(self, state):
        return state[1]

    def _run(self, values):
        is_for = self.loop.kind == "for"
        stack = [copy.copy(values[0])] if is_for else []
        local = dict(zip(self.names, values[is_for:]))
        at = self.loop.header
        kept = (at, list(stack), dict(local))
        while True:
            if at in self.depth_of and len(stack) == self.depth_of[at]:
                kept = (at, [copy.copy(item) for item in stack], dict(local))
                if at not in self.loop.body or self.random.random() < self.chance:
                    break
            try:
                at = self._step(self.code.instructions[at], local, stack)
            except Exception:
                break
        place, stack, local = kept
        return (place, *stack, *[local[name] for name in self.names])

    def _step(self, instr, local, stack):
        op, arg, _, index = instr
        following = index + 1
        if op in ("NOP", "RESUME"):
            pass
        elif op == "LOAD_FAST":
            if local[arg] is UNBOUND:
                raise Unknown
            stack.append(local[arg])
        elif op == "STORE_FAST":
            local[arg] = stack.pop()
        elif op == "LOAD_CONST":
            stack.append(arg)
        elif op == "LOAD_GLOBAL":
            stack.append(self.namespace[arg] if arg in self.namespace else getattr(builtins, arg))
        elif op == "POP_TOP":
            stack.pop()
        elif op == "COPY":
            stack.append(stack[-arg])
        elif op == "SWAP":
            stack[-1], stack[-arg] = stack[-arg], stack[-1]
        elif op == "BINARY_OP":
            b, a = stack.pop(), stack.pop()
            stack.append((_BINARY | _IN_PLACE)[arg](a, b))
        elif op == "COMPARE_OP":
            b, a = stack.pop(), stack.pop()
            stack.append(_COMPARE[arg](a, b))
        elif op == "IS_OP":
            b, a = stack.pop(), stack.pop()
            stack.append((a is b) is not arg)
        elif op in _UNARY:
            stack.append(_UNARY[op](stack.pop()))
        elif op == "BINARY_SUBSCR":
            key, owner = stack.pop(), stack.pop()
            stack.append(owner[key])
        elif op == "STORE_SUBSCR":
            key, owner, value = stack.pop(), stack.pop(), stack.pop()
            owner[key] = value
        elif op in ("LOAD_ATTR", "LOAD_METHOD"):
            stack.append(getattr(stack.pop(), arg))
        elif op == "BUILD_TUPLE":
            items = tuple(stack[len(stack) - arg :])
            del stack[len(stack) - arg :]
            stack.append(items)
        elif op == "UNPACK_SEQUENCE":
            stack.extend(reversed(list(stack.pop())))
        elif op == "GET_ITER":
            stack.append(iter(stack.pop()))
        elif op == "CALL":
            count, names = arg
            if names:
                raise Unknown
            args = stack[len(stack) - count :]
            del stack[len(stack) - count :]
            function = stack.pop()
            if not callable(function) or getattr(function, "__module__", "") not in (
                "builtins",
                "math",
                None,
            ):
                raise Unknown
            stack.append(function(*args))
        elif op in JUMPS:
            following = self._jump(op, arg, index, stack)
        else:
            raise Unknown(op)
        return following

    def _jump(self, op, target, index, stack):
        if op in ("JUMP", "JUMP_NO_INTERRUPT"):
            return target
        if op == "FOR_ITER":
            for item in stack[-1]:
                stack.append(item)
                return index + 1
            stack.pop()
            return target
        value = stack.pop()
        taken = {
            "POP_JUMP_IF_TRUE": lambda: bool(value),
            "POP_JUMP_IF_FALSE": lambda: not value,
            "POP_JUMP_IF_NONE": lambda: value is None,
            "POP_JUMP_IF_NOT_NONE": lambda: value is not None,
        }[op]()
        return target if taken else index + 1
