"""Input that cannot be compiled, and machines on which nothing can: plain results and a stated reason."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call, check, differences
from tests.capture.programs import vec

ROOT = Path(__file__).parents[2]


def program(x, y):
    z = x + y
    w = z * 2
    return z, w, w.shape


def reasons(records) -> str:
    breaks = [b.reason for e in records.entries for b in e.breaks]
    return "\n".join(breaks + [reason for _, _, reason in records.skipped])


class Tagged(np.ndarray):
    """A subclass with an attribute."""

    tag = "none"

    def __array_finalize__(self, parent):
        self.tag = getattr(parent, "tag", "none")


def tagged():
    x = vec().view(Tagged)
    x.tag = "mine"
    return x


class Duck:
    """Not an array, but NumPy's protocol makes it take part."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return f"duck {ufunc.__name__}"


pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass")

UNUSUAL = {
    "object": lambda: np.array([1, 2.5, 3], dtype=object),
    "longdouble": lambda: np.array([1, 2, 3], dtype=np.longdouble),
    "clongdouble": lambda: np.array([1, 2j, 3], dtype=np.clongdouble),
    "datetime": lambda: np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"),
    "big endian": lambda: np.arange(3, dtype=">f8"),
    "subclass": tagged,
    "matrix": lambda: np.asmatrix(np.eye(2)),
    "masked": lambda: np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
    "recarray": lambda: np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "structured": lambda: np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]),
    "string": lambda: np.array(["a", "b"]),
    "bytes": lambda: np.array([b"a", b"b"]),
    "void": lambda: np.zeros(2, "V4"),
    "string dtype": lambda: np.array(["a", "bb"], dtype=np.dtypes.StringDType()),
    "unaligned": lambda: np.frombuffer(b"x" + np.arange(3.0).tobytes(), dtype="f8", offset=1),
    "misaligned field": lambda: np.zeros(3, dtype=[("a", "i1"), ("b", "f8")])["b"],
    "strides not of items": lambda: np.zeros(4, dtype=[("a", "f8"), ("b", "i4")])["a"],
    "memmap": lambda: np.memmap(os.devnull.replace("null", "zero"), dtype="f8", mode="r", shape=(3,)),
    "list": lambda: [1.0, 2.0],
    "none": lambda: None,
    "string object": lambda: "text",
    "duck": Duck,
    "memoryview": lambda: memoryview(b"abc"),
    "fraction": lambda: __import__("fractions").Fraction(1, 3),
    "decimal": lambda: __import__("decimal").Decimal("1.5"),
    "set": lambda: {1, 2},
    "range": lambda: range(3),
}
BUT_FLOATS = {"list": lambda: [1.0, 2.0, 3.0], "range": lambda: range(3)}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_operands(name):
    make = UNUSUAL[name]
    records = check(program, lambda: (make(), make()), lambda: (vec(3), make()), lambda: (make(), 2))
    assert records.counters["internal_errors"] == 0


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_operands_in_a_loop_and_after_usual_ones(name):
    make = UNUSUAL[name]

    def f(x):
        total = 0
        for i in range(12):
            total = total + np.sum(x) * i
        return total, np.asarray(x).ndim

    check(f, lambda: (vec(),), lambda: (make(),), lambda: (vec(),), repeats=1)


@pytest.mark.parametrize("name", ["object", "longdouble", "structured", "subclass", "datetime", "string"])
def test_the_reason_is_stated(name):
    make = UNUSUAL[name]

    def f(x):
        return np.ones(3) + 1, x[0:1]

    report = dyncomp.explain(f, backend="eager")(make())
    text = report.details()
    assert "dtype" in text or "subclass" in text, text
    with pytest.raises(dyncomp.errors.GraphBreakError, match=r"test_bad_input\.py"):
        dyncomp.compile(f, fullgraph=True)(make())


SHAPES = [(), (1,), (0,), (0, 3), (3, 0), (1, 1), (1, 5), (2, 0, 3)]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_empty_and_zero_dimensional(backend):
    def f(x):
        y = x * 2 + 1
        return (
            y,
            y.sum(),
            y.sum(axis=-1) if y.ndim else None,
            y.T,
            np.sort(y, axis=None),
            y.mean(axis=0, keepdims=True) if y.ndim else 0,
        )

    shapes = SHAPES if backend == "eager" else SHAPES[:4]
    check(f, *[lambda s=s: (np.ones(s),) for s in shapes], backend=backend)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_reductions_without_identity_of_nothing(backend):
    def f(x):
        return x.max()

    check(f, lambda: (np.ones(0),), lambda: (np.ones(3),), lambda: (np.ones(0),), backend=backend)


def test_array_scalars_and_zero_dimensional_arrays_differ():
    def f(x):
        return x + 1, x[()], type(x).__name__, x * np.float32(2)

    check(
        f,
        lambda: (np.float64(2),),
        lambda: (np.array(2.0),),
        lambda: (np.int8(5),),
        lambda: (2.0,) if 0 else (np.bool_(True),),
    )


def test_scalars_that_overflow():
    def f(a, b):
        return a + b, a * b, -a

    check(
        f,
        lambda: (np.int8(100), np.int8(100)),
        lambda: (np.uint8(200), np.uint8(100)),
        lambda: (np.int64(2**62), np.int64(4)),
    )


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_overlapping_out(backend):
    def f(x):
        np.add(x[1:], x[:-1], out=x[1:])
        np.multiply(x[::-1], 2.0, out=x)
        return x

    check(f, lambda: (vec(),), lambda: (np.arange(64.0),), backend=backend)


@pytest.mark.parametrize(
    "out",
    [
        lambda: np.zeros(4),
        lambda: np.zeros((2, 5)),
        lambda: np.zeros(5, "i4"),
        lambda: np.zeros(5, "f4"),
        lambda: np.zeros(5)[::-1],
        lambda: np.broadcast_to(np.zeros(1), (5,)),
        lambda: None,
        lambda: [0.0] * 5,
        lambda: np.zeros(5).view(Tagged),
    ],
    ids=["short", "long", "integer", "float32", "reversed", "read-only", "none", "list", "subclass"],
)
def test_out_of_all_kinds(out):
    def f(x, out):
        y = np.add(x, 1.0, out=out)
        return y is out, y

    check(f, lambda: (vec(), out()))


def test_wrong_arguments_raise_as_plain_python_does():
    def f(x, axis, keyword):
        y = x + 1
        if keyword:
            return np.sum(y, axis=axis, nonsense=keyword)
        return y.sum(axis=axis), y.reshape(axis)

    check(
        f, *[lambda a=a, k=k: (vec(6), a, k) for a in (0, 1, -2, "x", (0, 0), 2.5, None) for k in (None, 3)]
    )


def test_values_that_lie_about_themselves():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError("no comparing")

        def __bool__(self):
            raise RuntimeError("no truth")

        def __hash__(self):
            raise RuntimeError("no hash")

    def f(x, odd):
        y = x + 1
        z = [odd, y]
        return z, odd is z[0]

    check(f, lambda: (vec(), Odd()))

    def g(x, odd):
        y = x + 1
        return y if odd else x

    check(g, lambda: (vec(), Odd()))

    def h(x, odd):
        y = x + 1
        return y, {odd: 1}

    check(h, lambda: (vec(), Odd()))


def test_getattr_that_raises():
    class Strange:
        def __getattribute__(self, name):
            if name.startswith("__"):
                return object.__getattribute__(self, name)
            raise LookupError(name)

    class Computed:
        def __getattr__(self, name):
            if name == "gain":
                return 3.0
            raise AttributeError(name)

    def f(x, s):
        y = x + 1
        return y * s.gain

    check(f, lambda: (vec(), Strange()), lambda: (vec(), Computed()), lambda: (vec(), object()))


# -- machines -----------------------------------------------------------------------------------------
SCRIPT = """
import numpy as np, dyncomp, logging, sys
logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
def f(x):
    return (x * 2 + 1).sum(axis=0), x - 1
x = np.arange(6.0).reshape(2, 3)
for _ in range(2):
    a, b = dyncomp.compile(f)(x)
    assert np.array_equal(a, f(x)[0]) and np.array_equal(b, f(x)[1])
report = dyncomp.explain(f)(x)
print(report)
print("graphs", dyncomp.stats()["graphs"], "internal", dyncomp.stats()["internal_errors"])
"""


def run_script(script=SCRIPT, **environ):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout, done.stderr


def test_no_compiler(tmp_path):
    out, err = run_script(DYNCOMP_CXX="/nonexistent/c++", DYNCOMP_CACHE_DIR=str(tmp_path))
    assert "/nonexistent/c++" in out + err
    assert "internal 0" in out


def test_a_compiler_that_fails(tmp_path):
    broken = tmp_path / "broken-c++"
    broken.write_text("#!/bin/sh\necho cannot compile today >&2\nexit 1\n")
    broken.chmod(0o755)
    out, err = run_script(DYNCOMP_CXX=str(broken), DYNCOMP_CACHE_DIR=str(tmp_path / "cache"))
    assert "cannot compile today" in out + err
    assert "internal 0" in out


def test_cache_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    out, _ = run_script(DYNCOMP_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert "internal 0" in out


def test_cache_full_of_rubbish(tmp_path):
    run_script(DYNCOMP_CACHE_DIR=str(tmp_path))
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert files
    for path in files:
        path.chmod(0o600)
        path.write_bytes(b"\x7fELF rubbish" * 3)
    out, _ = run_script(DYNCOMP_CACHE_DIR=str(tmp_path))
    assert "internal 0" in out
    for path in files:
        if path.exists():
            path.chmod(0o600)
            path.write_bytes(path.read_bytes()[:100])
    out, _ = run_script(DYNCOMP_CACHE_DIR=str(tmp_path))
    assert "internal 0" in out and "graphs" in out


def test_two_processes_with_one_empty_cache(tmp_path):
    environ = {**os.environ, "DYNCOMP_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SCRIPT]
    both = [
        subprocess.Popen(
            command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for process in both:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err[-3000:]
        assert "internal 0" in out


def test_no_cache_at_all(tmp_path):
    out, _ = run_script(DYNCOMP_CACHE="0", DYNCOMP_CACHE_DIR=str(tmp_path))
    assert "internal 0" in out


def test_logs_say_why(tmp_path):
    script = """
    import numpy as np, dyncomp
    def f(x):
        y = x + 1
        print("between", flush=True)
        return y * 2
    dyncomp.compile(f, backend="eager")(np.ones(3))
    dyncomp.compile(lambda x: x + 1)(np.ones(3, object))
    """
    _, err = run_script(script, DYNCOMP_LOGS="capture")
    assert "graph break" in err and "[print]" in err
    assert "object" in err


def test_a_backend_that_fails():
    def explode(graph, examples):
        raise dyncomp.errors.LoweringError("cannot do this")

    def f(x):
        return x + 1

    compiled = dyncomp.compile(f, backend=explode)
    assert np.array_equal(compiled(vec()), vec() + 1)
    assert "cannot do this" in reasons(compiled.config.records)


def test_a_graph_that_raises_at_run_time_falls_back():
    def bad_backend(graph, examples):
        def run(*args):
            raise RuntimeError("from the kernel")

        return run

    def f(x, log):
        log.append(1)
        x[0] = 5
        return x + 1

    dyncomp.reset()
    expected = call(f, (vec(), []))
    found = call(dyncomp.compile(f, backend=bad_backend), (vec(), []))
    assert differences(expected, found) == []
    assert dyncomp.stats()["fallbacks"] == 1
