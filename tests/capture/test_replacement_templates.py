"""Replacement code is put together from templates of its statements: it does what its source says."""

from __future__ import annotations

import gc
import sys
import types

import pytest

from dyncomp.capture.replacement import templates
from dyncomp.capture.replacement.templates import Variables, instantiate, statement
from dyncomp.errors import Unsupported
from dyncomp.hook import _hook
from dyncomp.python_code.edit import with_insertions
from dyncomp.python_code.instr import NO_LOC, CanonicalCode, Instr, make_instr
from dyncomp.python_code.versions import decode, encode

STATEMENTS = [
    ["return a + b * 2"],
    ["c = [a, *[b, 1] * 3, 'x, y', \"it's\", b'\\n']", "return c"],
    ["c = {'k': a, 2: b}", "c['z'] = (-5)", "return c"],
    ["c = f(a, b, key=a, other=(-1.5e-07))", "return c"],
    ["return f(*[a], b, key=a, **{'other': b})"],
    ["return f(*[a, b], key=a, other=b)"],
    ["return f(a, *[b], **{}, key=a, other=(-1))"],
    ["(c, d) = (a, b)", "return d - c"],
    ["c = __k0_list[0]", "return (c, a.real, a[1:2] if a is None else 7)"],
    ["if not a < b:", "    return -a", "return -b"],
    ["for i in [1, 2, 3]:", "    a = a + i", "    if a > 8: break", "else:", "    return 'all'", "return a"],
    ["while True:", "    a = a + 1", "    if a > b: break", "return a"],
    ["del b", "return a"],
    ["if not -10 <= a < 10: raise __k1_ValueError", "return 1e+16 + a"],
    ["return {**{'a': a}, 'b': [*[b], None, True, ...]}"],
    ["return None"],
]


def f(a, b, key, other):
    return a, b, key, other


def _grouped(lines):
    groups = []
    for line in lines:
        if groups and (line.startswith(" ") or line == "else:"):
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _made(lines, constants):
    found = [statement(group, [NO_LOC] * len(group)) for group in _grouped(lines)]
    local = {"a": "a", "b": "b"}
    for each in found:
        for number in each.template.written:
            local.setdefault(each.tokens[number], each.tokens[number])
    variables = Variables(local, (), constants, {})
    made = [make_instr(("RESUME", 0, NO_LOC, 0))]
    for each in found:
        instantiate(made, each, variables)
    names = tuple(dict.fromkeys(local.values()))
    code = CanonicalCode(tuple(made), (), 2, 0, 0, 3, names, (), (), "made", "made", "<made>", 1)
    return types.FunctionType(encode(code), {"f": f})


def _compiled(lines, constants):
    namespace = {"f": f, **constants}
    exec("def made(a, b):\n" + "\n".join("    " + line for line in lines), namespace)
    return namespace["made"]


@pytest.mark.parametrize("lines", STATEMENTS, ids=lambda lines: lines[0])
@pytest.mark.parametrize("given", [(1, 5), (6, 2)])
def test_statements_do_what_their_source_says(lines, given):
    constants = {"__k0_list": ["first"], "__k1_ValueError": ValueError}
    assert _made(lines, constants)(*given) == _compiled(lines, constants)(*given)


def test_statements_of_one_kind_share_a_template():
    one = statement(["x.first = f(y, 'text', key=1)"], [NO_LOC])
    other = statement(["__in3.second = __k2_g(5, z, name=(-2))"], [NO_LOC])
    assert one.template is other.template


def test_a_literal_is_the_object_that_it_stands_for():
    original = 10**12
    made = []
    variables = Variables({}, (), {}, {str(original): original})
    instantiate(made, statement([f"return {original}"], [NO_LOC]), variables)
    assert made[0].arg is original


def test_cells_are_loaded_as_such():
    made = []
    text = "return f(((lambda: cell).__closure__[0],), cell)"
    instantiate(made, statement([text], [NO_LOC]), Variables({}, ("cell",), {}, {}))
    assert [(i.op, i.arg) for i in made if i.arg == "cell"] == [
        ("LOAD_CLOSURE", "cell"),
        ("LOAD_DEREF", "cell"),
    ]


@pytest.mark.parametrize("text", ["f'{a}'", "x = lambda: a", "try: a\nexcept b: c", "x = r'a'"])
def test_other_statements_are_refused(text):
    with pytest.raises(Unsupported):
        statement(text.split("\n"), [NO_LOC] * 2)


def test_insertions_keep_jumps_and_handlers():
    def loop(items, fallback):
        total = 0
        for item in items:
            try:
                total += 1 // item
            except ZeroDivisionError:
                total += fallback
        return total

    code = decode(loop.__code__)
    stores = [i.index for i in code.instructions if i.op == "STORE_FAST"]
    longer = with_insertions(code, {index: [("LOAD_CONST", index), ("POP_TOP", None)] for index in stores})
    assert len(longer.instructions) == len(code.instructions) + 2 * len(stores)
    made = types.FunctionType(encode(longer), {})
    assert made([1, 0, -1], 10) == loop([1, 0, -1], 10)


def _instantiated(**changes):
    given = {
        "made": [],
        "instructions": (
            ("LOAD_GLOBAL", templates._LOAD, 0, 0),
            ("CALL", templates._KEYWORDS_OF_CALL, (1, (0,)), 0),
            ("JUMP", templates._JUMP, 1, -1),
        ),
        "tokens": ["a"],
        "places": [NO_LOC],
        "variables": {"a": ("LOAD_CONST", None)},
        "local": {},
        "instr": Instr,
        "no_place": NO_LOC,
    }
    given.update(changes)
    _hook.instantiate(*given.values())
    return given["made"]


def _inserted(**changes):
    code = (make_instr(("JUMP", 1, NO_LOC, 0)), make_instr(("NOP", None, NO_LOC, 1)))
    given = {
        "code": code,
        "after": {0: [("POP_TOP", None)]},
        "without": (),
        "jumps": frozenset({"JUMP"}),
        "instr": Instr,
    }
    given.update(changes)
    return _hook.insert(*given.values())


@pytest.mark.parametrize(
    "call",
    [
        lambda: _instantiated(tokens=[]),
        lambda: _instantiated(variables={}),
        lambda: _instantiated(variables={"a": None}),
        lambda: _instantiated(instructions=(("STORE_FAST", templates._WRITE, 0, 0),)),
        lambda: _instantiated(instructions=(("CALL", templates._KEYWORDS_OF_CALL, (1, (3,)), 0),)),
        lambda: _instantiated(instructions=(("CALL", templates._KEYWORDS_OF_CALL, (1, 0), 0),)),
        lambda: _instantiated(instructions=(("CALL", templates._KEYWORDS_OF_CALL, 0, 0),)),
        lambda: _instantiated(instructions=(("CALL", templates._KEYS, 0, 0),)),
        lambda: _instantiated(instructions=(("CALL", templates._KEYS, (0,)),)),
        lambda: _instantiated(instructions=("CALL",)),
        lambda: _instantiated(instr=int),
        lambda: _instantiated(made=()),
        lambda: _inserted(after={0: ()}),
        lambda: _inserted(after={0: ["POP_TOP"]}),
        lambda: _inserted(code=(make_instr(("JUMP", 7, NO_LOC, 0)),)),
        lambda: _inserted(code=(make_instr(("JUMP", "x", NO_LOC, 0)),)),
        lambda: _inserted(without=3),
        lambda: _inserted(jumps=()),
        lambda: _hook.insert(),
        lambda: _hook.instantiate(),
    ],
)
def test_what_c_cannot_use_is_refused_and_nothing_is_kept(call):
    def refused_often():
        for _ in range(50):
            with pytest.raises((TypeError, IndexError, KeyError, ValueError)):
                call()
        gc.collect()  # errors and frames refer to one another
        return [sys.getrefcount(obj) for obj in (NO_LOC, Instr, "POP_TOP", "JUMP")]

    before = refused_often()
    # fewer where what other tests left is collected meanwhile
    assert all(now < then + 50 for then, now in zip(before, refused_often(), strict=True))


def test_c_keeps_nothing_of_what_it_makes():
    constant = ["held by its list only"]
    before = sys.getrefcount(constant), sys.getrefcount(NO_LOC), sys.getrefcount(Instr)
    for _ in range(100):
        made = _instantiated(variables={"a": ("LOAD_CONST", constant)})
        assert made[1] == ("CALL", (1, ("a",)), NO_LOC, 1) and made[2].arg == 1
        longer, begins = _inserted(without=(1,), after={1: [("LOAD_CONST", constant)]})
        assert begins == [0, 1, 2] and longer[1] == ("LOAD_CONST", constant, NO_LOC, 1)
    del made, longer
    assert (sys.getrefcount(constant), sys.getrefcount(NO_LOC), sys.getrefcount(Instr)) == before
