"""The raw layer loses nothing; the canonical layer keeps what code does."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from dyncomp.errors import Unsupported
from dyncomp.python_code.flow import Flow, stack_depths
from dyncomp.python_code.instr import COMPARE_OPERATORS, OPS, pops_pushes
from dyncomp.python_code.versions import decode, encode
from dyncomp.python_code.versions.encode import ENCODED
from dyncomp.python_code.versions.raw import assemble, disassemble
from tests.capture.resume_programs import PROGRAMS, calls_of, outcome
from tests.python_code.reencoded_suite import reencode

LIBRARY = Path(os.__file__).parent
SAMPLE = """abc argparse ast bisect calendar codecs collections/__init__ configparser contextlib copy csv
dataclasses datetime decimal difflib dis enum fractions functools heapq http/client inspect json/decoder
json/encoder logging/__init__ numbers operator optparse pathlib pickle random re/_parser shutil socket
statistics string subprocess tarfile textwrap threading tokenize traceback types typing unittest/mock
asyncio/tasks asyncio/streams zipfile test/test_patma test/test_grammar test/test_listcomps""".split()  # noqa: SIM905


def walk(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from walk(constant)


def codes_of(path):
    try:
        top = compile(path.read_bytes(), str(path), "exec")
    except (SyntaxError, ValueError):
        return
    yield from walk(top)


def sample_codes():
    for name in SAMPLE:
        for path in (LIBRARY / f"{name}.py", LIBRARY / name / "__init__.py"):
            if path.exists():
                yield from codes_of(path)


def library_codes():
    for path in sorted(LIBRARY.rglob("*.py")):
        if "site-packages" not in path.parts and "lib2to3" not in path.parts:
            yield from codes_of(path)


def assert_lossless(code):
    instructions, exceptions = disassemble(code)
    made = assemble(instructions, exceptions, code.co_firstlineno)
    assert made.code == code.co_code, (code.co_filename, code.co_qualname)
    assert made.linetable == code.co_linetable, (code.co_filename, code.co_qualname)
    assert made.exceptiontable == code.co_exceptiontable, (code.co_filename, code.co_qualname)


def comparable(code):
    out = []
    for instr in code.instructions:
        arg = instr.arg
        if instr.op == "LOAD_CONST" and not isinstance(arg, (int, str, bytes)):
            arg = id(arg)
        op = "LOAD_ATTR" if instr.op == "LOAD_METHOD" else instr.op
        out.append((op, arg, instr.loc))
    return out


def assert_same_meaning(code):
    """decode(encode(decode(code))) must be decode(code); returns False for code that is not understood."""
    try:
        first = decode(code)
        again = encode(first)
    except Unsupported:
        return False
    depths = stack_depths(first)
    assert max(depths) <= code.co_stacksize + 1
    second = decode(again)
    if any(instr.op in ("IMPORT_STAR", "CALL_INTRINSIC_1") for instr in first.instructions):
        return True
    assert comparable(first) == comparable(second), (code.co_filename, code.co_qualname)
    assert first.exceptions == second.exceptions, (code.co_filename, code.co_qualname)
    assert again.co_flags == code.co_flags
    assert again.co_varnames == code.co_varnames
    assert again.co_cellvars == code.co_cellvars
    assert again.co_freevars == code.co_freevars
    return True


def test_raw_round_trip_of_a_sample():
    count = 0
    for code in sample_codes():
        assert_lossless(code)
        count += 1
    assert count > 3000


def test_canonical_round_trip_of_a_sample():
    understood = total = 0
    for code in sample_codes():
        total += 1
        understood += assert_same_meaning(code)
    assert understood > 0.995 * total


@pytest.mark.slow
def test_raw_round_trip_of_the_standard_library():
    count = 0
    for code in library_codes():
        assert_lossless(code)
        count += 1
    assert count > 50_000


@pytest.mark.slow
def test_canonical_round_trip_of_the_standard_library():
    understood = total = 0
    for code in library_codes():
        total += 1
        understood += assert_same_meaning(code)
    assert understood > 0.999 * total


def run_suite(*names):
    command = [sys.executable, "-m", "tests.python_code.reencoded_suite", *names]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_reencoded_library_passes_its_tests():
    run_suite("test.test_textwrap", "test.test_json", "test.test_fractions", "test.test_listcomps")


@pytest.mark.slow
def test_reencoded_language_tests():
    names = """test_generators test_with test_exceptions test_grammar test_fstring test_patma test_extcall
    test_scope test_coroutines test_except_star test_super test_unpack_ex test_contextlib test_traceback
    test_bool test_statistics test_dataclasses test_functools test_copy""".split()  # noqa: SIM905
    run_suite(*(f"test.{name}" for name in names))


@pytest.mark.parametrize("function, argument_tuples", PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_reencoded_programs(function, argument_tuples):
    code = reencode(function.__code__)
    assert list(code.co_positions()) != []
    made = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    for make in calls_of(function, argument_tuples):
        assert outcome(made, *make()) == outcome(function, *make())


def reencoded(function):
    return types.FunctionType(
        reencode(function.__code__), function.__globals__, function.__name__, function.__defaults__
    )


def test_every_canonical_op_has_an_effect_and_an_encoding():
    args = {"UNPACK_EX": (1, 1), "FORMAT_VALUE": ("", False), "CALL": (1, ()), "MAKE_FUNCTION": ()}
    for op in OPS:
        pops, pushes = pops_pushes(op, args.get(op, 1))
        assert pops >= 0 and pushes >= 0
    missing = OPS - ENCODED
    assert not missing


@pytest.mark.parametrize("operator", COMPARE_OPERATORS)
def test_compare_operands_are_cpythons(operator):
    code = compile(f"def f(a, b): return a {operator} b", "f", "exec").co_consts[0]
    mine, _ = disassemble(encode(decode(code)))
    theirs, _ = disassemble(code)
    assert [i.arg for i in mine if i.op == "COMPARE_OP"] == [i.arg for i in theirs if i.op == "COMPARE_OP"]


def test_truth_test_stays_in_its_try_range():
    class Refuses:
        def __bool__(self):
            raise KeyError("no truth")

        def __eq__(self, other):
            return self

    def program(x):
        try:
            if x:
                return 1
        except KeyError:
            return "caught"
        return 2

    def compares(x):
        try:
            if x == 1:
                return 1
        except KeyError:
            return "caught"
        return 2

    def negates(x):
        try:
            return not x
        except KeyError:
            return "caught"

    for function in (program, compares, negates):
        assert function(Refuses()) == "caught"
        assert reencoded(function)(Refuses()) == "caught"


def test_unbound_locals_raise():
    def program(x):
        if x:
            y = 1
        del x
        return y, x  # noqa: F821

    made = reencoded(program)
    with pytest.raises(UnboundLocalError, match="'y'"):
        made(0)
    with pytest.raises(UnboundLocalError, match="'x'"):
        made(1)


def test_comprehension_variable_stays_unbound():
    def program(flag):
        if flag:
            x = 1
        squares = [x * x for x in range(3)]
        return squares, x

    made = reencoded(program)
    assert made(True) == ([0, 1, 4], 1)
    with pytest.raises(UnboundLocalError, match="'x'"):
        made(False)


def test_duplicate_keyword_error_names_the_function():
    def program(f, a, b):
        return f(1, **a, **b)

    def target(x, **rest):
        return x, rest

    made = reencoded(program)
    assert made(target, {"a": 1}, {"b": 2}) == (1, {"a": 1, "b": 2})
    with pytest.raises(TypeError) as theirs:
        program(target, {"a": 1}, {"a": 2})
    with pytest.raises(TypeError) as mine:
        made(target, {"a": 1}, {"a": 2})
    assert str(mine.value) == str(theirs.value)


def test_code_larger_than_one_byte_operands():
    names = [f"name{k}" for k in range(400)]
    body = "\n".join(f"        {name} = {k * 1000} + x" for k, name in enumerate(names))
    total = "+".join(names)
    source = f"def f(x):\n    out = 0\n    for i in range(3):\n{body}\n        out += {total}\n    return out"
    scope: dict = {}
    exec(source, scope)
    function = scope["f"]
    assert len(function.__code__.co_code) > 2000
    assert reencoded(function)(3) == function(3)


def test_jumps_over_more_than_two_bytes():
    lines = "\n".join("            x = g(x, 1) + g(x, 2)" for _ in range(4000))
    start = "def f(x, g):\n    for i in range(2):\n        if i == 1:\n"
    source = f"{start}{lines}\n        x += 1\n    return x % 97"
    scope: dict = {}
    exec(source, scope)
    function = scope["f"]
    assert len(function.__code__.co_code) > 0x20000
    give = lambda x, k: (x * 3 + k) % 101  # noqa: E731
    assert reencoded(function)(1, give) == function(1, give)


def test_metadata_survives():
    def program(a, /, b, *rest, c=1, **more):
        "documented"
        return a, b, c, rest, more

    code = reencode(program.__code__)
    made = types.FunctionType(code, globals())
    assert made.__doc__ == "documented"
    assert code.co_name == "program"
    assert code.co_qualname == program.__code__.co_qualname
    assert str(inspect.signature(made)) == "(a, /, b, *rest, c, **more)"


def test_assigned_and_live():
    def program(a, b):
        if a:
            c = b
        else:
            d = b
        e = a
        return c, d, e

    code = decode(program.__code__)
    flow = Flow.of(code)
    last = next(i.index for i in code.instructions if i.op == "STORE_FAST" and i.arg == "e")
    assert flow.members(flow.assigned()[last]) == ("a", "b")
    assert flow.members(flow.maybe_assigned()[last]) == ("a", "b", "c", "d")
    assert set(flow.members(flow.live()[last])) == {"c", "d"}
    assert set(flow.members(flow.live()[0])) == {"a", "b", "c", "d"}


def test_listing_is_readable():
    text = decode(test_listing_is_readable.__code__).text()
    assert "LOAD_GLOBAL" in text
    assert "'decode'" in text
