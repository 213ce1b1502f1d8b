"""Random guard programs on random objects, against a model in Python; odd objects; nothing is kept."""

from __future__ import annotations

import contextlib
import gc
import random
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

import dyncomp
from dyncomp.hook import _hook

OPS = _hook.OPS
NAMES = ("a", "b", "c")
CODES = ("const", "symbol", "+", "-", "*", "neg", "//", "%", "min", "max", "==", "!=", "<", "<=", ">", ">=")


class Plain:
    pass


class Slots:
    __slots__ = ("a", "b", "c")


class GetAttr(Plain):
    def __getattr__(self, name):
        raise AssertionError("guards run no user code")


def random_object(rng, depth=0):
    small = depth > 2
    kind = rng.randrange(7 if small else 13)
    if kind < 3:
        return rng.choice([0, 1, -1, 7, True, 2.5, -0.0, 0.0, float("nan"), "a", "b", b"x", None, 10**30])
    if kind == 3:
        return rng.choice([int, Plain, SimpleNamespace, len])
    if kind == 4:
        return range(rng.randrange(4))
    if kind == 5:
        return np.float64(rng.randrange(3))
    if kind == 6:
        return frozenset(range(rng.randrange(3)))
    parts = [random_object(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 7:
        return parts
    if kind == 8:
        return tuple(parts)
    if kind == 9:
        return dict(zip(NAMES, parts))
    made = rng.choice([Plain, Slots, GetAttr])()
    for name, part in zip(NAMES, parts):
        setattr(made, name, part)
    return made


# -- the model --------------------------------------------------------------------------------------------
class Fails(Exception):
    pass


def equal(a, b):
    """As guards compare: type and value, every nan alike, zeros by sign."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (a != a and b != b) or (a == b and np.signbit(a) == np.signbit(b))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, range):
        return (a.start, a.stop, a.step) == (b.start, b.stop, b.step)
    return isinstance(a, (int, str, bytes, frozenset)) and a == b


def fields(obj):
    if isinstance(obj, Slots):
        return {name: getattr(obj, name) for name in NAMES if hasattr(obj, name)}
    return vars(obj) if type(obj) in (Plain, GetAttr, SimpleNamespace) else {}


def length(obj):
    if isinstance(obj, (list, tuple, dict, frozenset, str, bytes, range)):
        return len(obj)
    raise Fails


def evaluate(items, symbols):
    stack = []
    for code, value in zip(items[::2], items[1::2]):
        name = CODES[code]
        if name == "const":
            stack.append(value)
        elif name == "symbol":
            stack.append(symbols[value])
        elif name == "neg":
            stack.append(-stack.pop())
        else:
            b, a = stack.pop(), stack.pop()
            if name in ("//", "%") and b == 0:
                raise Fails
            known = {"min": min, "max": max}.get(name)
            stack.append(known(a, b) if known else int(eval(f"a {name} b", {}, {"a": a, "b": b})))
        if not -(2**63) <= stack[-1] < 2**63:
            raise Fails
    return stack[0]


def load(op, a, b, obj, regs, args):
    if op == "LOAD_ARG":
        return args[a]
    if op == "LOAD_CONST":
        return obj
    value = regs[a]
    if op == "TYPE":
        return type(value)
    if op in ("ATTR", "INSTANCE_ATTR"):
        found = {} if op == "INSTANCE_ATTR" and isinstance(value, Slots) else fields(value)
        if obj not in found:
            raise Fails
        return found[obj]
    if op == "ITEM":
        if isinstance(value, (list, tuple)) and 0 <= b < len(value):
            return value[b]
        if isinstance(value, dict) and obj in value:
            return value[obj]
        raise Fails
    if not isinstance(value, dict) or b >= len(value):
        raise Fails
    return list(value if op == "DICT_KEY" else value.values())[b]


def check(op, reg, a, b, obj, regs, symbols):
    value = regs[reg] if reg >= 0 else None
    if op in ("SAME", "NOT_SAME"):
        return (value is regs[a]) == (op == "SAME")
    if op in ("IS", "IS_NOT"):
        return (value is obj) == (op == "IS")
    if op == "TYPE_IS":
        return type(value) is obj
    if op == "EQUALS":
        return equal(value, obj)
    if op == "LEN":
        return type(value) is obj and length(value) == a
    if op in ("DICT_HAS", "DICT_LACKS"):
        return isinstance(value, dict) and (obj in value) == (op == "DICT_HAS")
    if op in ("INSTANCE_HAS", "INSTANCE_LACKS"):
        known = {} if isinstance(value, Slots) else fields(value)
        return (obj in known) == (op == "INSTANCE_HAS")
    if op == "SYMBOL":
        what = b & 15
        found = value if what == 0 and type(value) is int else length(value) if what == 4 else None
        if found is None or not -(2**63) <= found < 2**63:
            return False
        symbols.append(found)
        return True
    assert op == "CONDITION"
    number = evaluate(obj, symbols)
    return {"==": number == 0, "!=": number != 0, "<": number < 0, "<=": number <= 0}[CODES[a]]


def run_model(program, args):
    regs, symbols = [], []
    for index, (op, reg, a, b, obj) in enumerate(program):
        try:
            if op in LOADS:
                regs.append(load(op, a, b, obj, regs, args))
            elif not check(op, reg, a, b, obj, regs, symbols):
                return index
        except Fails:
            return index
    return None


# -- programs ---------------------------------------------------------------------------------------------
LOADS = ("LOAD_ARG", "LOAD_CONST", "ATTR", "INSTANCE_ATTR", "ITEM", "DICT_KEY", "DICT_VALUE", "TYPE")
CHECKS = ("IS", "IS_NOT", "TYPE_IS", "EQUALS", "LEN", "DICT_HAS", "DICT_LACKS", "INSTANCE_HAS")
CHECKS += ("INSTANCE_LACKS", "SAME", "NOT_SAME", "SYMBOL", "CONDITION")


def random_condition(rng, num_symbols):
    items, depth = [], 0
    for _ in range(rng.randrange(1, 9)):
        if depth >= 2 and rng.random() < 0.5:
            items += [rng.randrange(6, len(CODES)) if rng.random() < 0.5 else rng.randrange(2, 5), 0]
            depth -= 1
        elif depth and rng.random() < 0.2:
            items += [5, 0]
        elif num_symbols and rng.random() < 0.6:
            items += [1, rng.randrange(num_symbols)]
            depth += 1
        else:
            items += [0, rng.choice([0, 1, 2, -3, 2**62, -(2**63)])]
            depth += 1
    while depth > 1:
        items += [rng.randrange(2, 5), 0]
        depth -= 1
    return tuple(items)


def random_program(rng, args):
    """Mostly of instructions that hold, so that programs get far."""
    program, regs, symbols = [], [], []
    for _ in range(rng.randrange(1, 25)):
        holds = True
        for _ in range(12):
            op = rng.choice(LOADS if not regs or rng.random() < 0.4 else CHECKS)
            reg = len(regs) if op in LOADS else rng.randrange(len(regs))
            if op in ("ATTR", "INSTANCE_ATTR", "ITEM", "DICT_KEY", "DICT_VALUE", "TYPE") and not regs:
                continue
            a = rng.randrange(len(regs)) if regs else 0
            b = rng.randrange(3)
            obj = rng.choice(NAMES)
            if op == "LOAD_ARG":
                a = rng.randrange(len(args))
            elif op == "LOAD_CONST":
                obj = random_object(rng)
            elif op in ("IS", "IS_NOT", "EQUALS"):
                obj = regs[reg] if rng.random() < 0.7 else random_object(rng)
                if op == "EQUALS" and not isinstance(obj, (int, float, str, bytes, range, frozenset)):
                    continue
            elif op in ("TYPE_IS", "LEN"):
                obj, a = type(regs[reg]), rng.randrange(4)
                if op == "LEN" and not hasattr(obj, "__len__"):
                    continue
            elif op == "SYMBOL":
                a, b = len(symbols), rng.choice([0, 4])
            elif op == "CONDITION":
                reg, a = -1, rng.randrange(10, 14)
                obj = random_condition(rng, len(symbols))
            instruction = (op, reg, a, b, obj)
            try:
                if op in LOADS:
                    regs.append(load(op, a, b, obj, regs, args))
                else:
                    holds = check(op, reg, a, b, obj, regs, symbols)
                    if not holds and rng.random() < 0.95:
                        continue
            except Fails:
                continue
            program.append(instruction)
            break
        if not holds:
            break  # nothing behind it is run
    return program


def build(program):
    instructions = [(OPS[op], reg, a, b, obj, index) for index, (op, reg, a, b, obj) in enumerate(program)]
    return _hook.GuardProgram(instructions, sum(op in LOADS for op, *_ in program))


@pytest.mark.parametrize("seed", range(8))
def test_programs_equal_the_model(seed):
    rng = random.Random(seed)
    for _ in range(150):
        args = tuple(random_object(rng) for _ in range(rng.randrange(1, 4)))
        program = random_program(rng, args)
        made = build(program)
        others = [args] + [tuple(random_object(rng) for _ in args) for _ in range(3)]
        for values in others:
            expected = run_model(program, values)
            assert made.first_failure(values, {}, {}) == expected, (program, values)
            assert made.check(values, {}, {}) == (expected is None)


@pytest.mark.parametrize("seed", range(4))
def test_malformed_programs_are_refused_or_run(seed):
    rng = random.Random(seed)
    names = sorted(OPS)
    for _ in range(3000):
        instructions = []
        for index in range(rng.randrange(1, 5)):
            obj = rng.choice(
                [None, "a", 1, (), (1, 2), ((0,), (0,)), (0, 1, 0, 2), int, np.ndarray, [], "__code__"]
            )
            numbers = [rng.choice([-(2**31), -1, 0, 1, 2, 300, 2**31 - 1]) for _ in range(3)]
            instructions.append((OPS[rng.choice(names)], *numbers, obj, index))
        try:
            made = _hook.GuardProgram(instructions, rng.choice([-1, 0, 1, 2]))
        except (ValueError, TypeError, OverflowError):
            continue
        made.check(([1], {"a": 1}, Plain()), {"a": 1}, {})


# -- objects with a will of their own -----------------------------------------------------------------------
class EvilKey:
    """A key that hashes like a name, and does something when compared."""

    def __init__(self, name, act):
        self.name, self.act = name, act

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        self.act()
        return False


def test_keys_that_change_what_is_being_guarded():
    for op, extra in (("DICT_HAS", "a"), ("DICT_LACKS", "a"), ("DICT_KEYS", ("a", "b")), ("ITEM", "a")):
        for how in ("clear", "raise", "grow"):
            holder = {}

            def act(how=how, holder=holder):
                if how == "clear":
                    holder.clear()
                    gc.collect()
                elif how == "grow":
                    holder.update({str(i): object() for i in range(100)})
                else:
                    raise ValueError("not to be seen")

            holder[EvilKey("a", act)] = [object()]
            holder["b"] = [object()]
            program = [(OPS["LOAD_ARG"], 0, 0, 0, None, 0)]
            if op == "ITEM":
                program += [(OPS["ITEM"], 1, 0, 0, extra, 1), (OPS["TYPE_IS"], 1, 0, 0, list, 2)]
            else:
                program += [(OPS[op], 0, 0, 0, extra, 1)]
            made = _hook.GuardProgram(program, 1 + (op == "ITEM"))
            made.check((holder,), {}, {})
            made = _hook.GuardProgram([(OPS["LOAD_GLOBAL"], 0, 0, 0, "a", 0)], 1)
            made.check((), dict(holder), {})


def test_checks_that_drop_what_they_check():
    """A check in Python may clear the cache, the list it looks into, and the function itself."""
    values = [[object()], [object()]]

    def forget(value, expected):
        values.clear()
        dyncomp.reset()
        gc.collect()
        return True

    program = [
        (OPS["LOAD_ARG"], 0, 0, 0, None, 0),
        (OPS["ITEM"], 1, 0, 1, None, 1),
        (OPS["PYCHECK"], 1, 0, 0, (forget, None), 2),
        (OPS["TYPE_IS"], 1, 0, 0, list, 3),
        (OPS["LEN"], 1, 1, 0, list, 4),
    ]
    assert _hook.GuardProgram(program, 2).check((values,), {}, {})
    assert values == []


# -- nothing is kept ----------------------------------------------------------------------------------------
def growth(action, rounds=200):
    """Bytes per round that Python's allocators hold more after many rounds."""
    for _ in range(rounds):
        action()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(rounds):
            action()
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / rounds
    finally:
        tracemalloc.stop()


def hits(x, n):
    return x * 2 + n


def breaks(x, n):
    y = x + n
    print(end="")
    return y * 2


def loops(x, n):
    for i in range(n):
        x = x + i
        print(end="")
    return x


def raises(x, n):
    y = x + n
    return y.reshape(7, 7)


@pytest.mark.parametrize("function", [hits, breaks, loops, raises])
def test_calls_keep_nothing(function):
    compiled = dyncomp.compile(function, backend="eager")
    x = np.arange(5.0)

    def call():
        with contextlib.suppress(ValueError):
            compiled(x, 4)

    assert growth(call) < 8


def test_misses_keep_nothing():
    def f(x, n):
        return x + n

    compiled = dyncomp.compile(f, backend="eager", options={"recompile_limit": 2})
    calls = iter(range(10**6))
    assert growth(lambda: compiled(np.zeros(next(calls) % 9 + 1, "f4" if next(calls) % 3 else "i8"), 1)) < 16


def test_programs_and_entries_keep_nothing():
    rng = random.Random(1)
    made = []
    while len(made) < 20:
        args = tuple(random_object(rng) for _ in range(2))
        made.append((random_program(rng, args), args))

    def f(x, y):
        return x

    def again():
        config = _hook.HookConfig(None)
        for program, args in made:
            guards = build(program)
            guards.check(args, {}, {})
            _hook.add_entry(f.__code__, config, _hook.Entry(guards, f.__code__))
        _hook.Dispatcher(f, config)(*args)

    assert growth(again) < 64
