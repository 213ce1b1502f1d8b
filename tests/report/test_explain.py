"""The report of ``explain``: breaks (golden texts), recompilations, sizes, errors; as HTML."""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import dyncomp
from dyncomp.autodiff import iterations
from dyncomp.capture.breaks import BREAKS
from dyncomp.errors import GraphBreakError
from tests.capture.breaking_programs import GOLDEN
from tests.capture.programs import vec

FOLDER = Path(__file__).parent / "golden"
HERE = Path(__file__).parent


def explain(function, **settings):
    return dyncomp.explain(function, backend="eager", **settings)


# -- golden texts: DYNCOMP_UPDATE_GOLDEN=1 writes them anew ------------------------------------------------
def normalised(text, function):
    """Lines counted from the program's first, no folders, no names of test functions' scopes."""
    first = function.__code__.co_firstlineno
    folder = re.escape(str(Path(function.__code__.co_filename).parent))
    text = re.sub(rf"{folder}/(\w+\.py):(\d+)", rf"\1:{{\2-{first}}}", text)
    text = re.sub(r"\{(\d+)-(\d+)\}", lambda m: f"+{int(m[1]) - int(m[2])}", text)
    return re.sub(r"0x[0-9a-f]+", "0x", text) + "\n"


def golden_file(break_id):
    """The expected text; one of the Python version's own where it differs."""
    own = FOLDER / f"{break_id}.{sys.version_info[0]}{sys.version_info[1]}.txt"
    return own if own.exists() else FOLDER / f"{break_id}.txt"


@pytest.mark.parametrize("break_id", sorted(GOLDEN))
def test_golden_text(break_id):
    function, _ = GOLDEN[break_id]
    report = explain(function)(vec())
    text = normalised(report.breaks_text(), function)
    if os.environ.get("DYNCOMP_UPDATE_GOLDEN"):
        golden_file(break_id).write_text(text, encoding="utf-8")
    assert text == golden_file(break_id).read_text(encoding="utf-8"), "see DYNCOMP_UPDATE_GOLDEN"
    assert f"[{break_id}]" in text


def test_each_id_has_a_golden_text_and_a_section_and_is_raised_somewhere():
    stems = {path.name.split(".")[0] for path in FOLDER.glob("*.txt")}
    assert stems == set(GOLDEN)
    page = (HERE.parents[1] / "docs" / "breaks.md").read_text(encoding="utf-8")
    package = Path(dyncomp.__file__).parent
    sources = [p for p in package.rglob("*.py") if p.name not in ("breaks.py", "break_docs.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    for break_id in BREAKS:
        assert f"## {break_id}\n" in page
        assert f'"{break_id}"' in code


# -- what else it says ------------------------------------------------------------------------------------
def recompiling(x):
    y = x + 1
    first = scaled(y, 1.5)
    return scaled(y, 2.5) + first * 2


@dyncomp.disable(recursive=False, reason="to be called, not inlined")
def scaled(x, k):
    return inner(x, k)


def inner(x, k):
    return x * k


def test_recompilations_and_their_reasons():
    report = explain(recompiling)(vec())
    assert [e.name for e in report.recompiles] == ["inner"]
    assert "recompiled because: expected k == 1.5" in report.details()


def test_symbolic_sizes_and_their_bounds():
    def f(x, n):
        return x[1:] * n

    report = explain(f, dynamic=True)(vec(), 7)
    text = report.details()
    assert "symbolic sizes and integers:" in text
    assert "dim 0 of x, 2 <= s" in text
    assert "integer argument 0" in text


def test_functions_that_raise_are_reported():
    def f(x):
        y = x + 1
        dyncomp.graph_break()
        raise LookupError(f"nothing of {y.shape}")

    report = explain(f)(vec())
    assert report.result is None
    assert type(report.error) is LookupError and report.error.__traceback__ is None
    assert "the call raised LookupError: nothing of (5,)" in report.details()
    assert report.graphs and report.breaks


def test_calls_that_fail_are_reported():
    report = explain(lambda x: x)()
    assert isinstance(report.error, TypeError)
    with pytest.raises(GraphBreakError):
        explain(breaks_at_once, fullgraph=True)(vec())


def breaks_at_once(x):
    dyncomp.graph_break("at once")
    return x + 1


def test_stance_and_fallbacks():
    with dyncomp.set_stance("force_eager"):
        report = explain(breaks_at_once)(vec())
    assert "the stance was 'force_eager'" in report.details()
    assert not report.entries
    report = explain(lambda x: x[np.array([100])] * 2)(vec())
    assert report.fallbacks == 1 and "graphs raised 1 time:" in report.details()


def test_skipped_functions():
    def looks(x):
        return x * len(locals())

    report = explain(looks)(vec())
    assert "plain Python: " in report.details() and "looks at its own frame" in report.details()


def test_text_is_wrapped():
    for function, _ in GOLDEN.values():
        record = explain(function)(vec()).breaks[0]
        explained = record.describe().splitlines()[1:]
        assert all(len(line) <= 110 for line in explained if " at " not in line)


def test_the_lines_are_the_users():
    function, _ = GOLDEN["graph-break"]
    lines, first = inspect.getsourcelines(function)
    (record,) = explain(function)(vec()).breaks
    assert lines[record.loc.line - first].rstrip().endswith("# here")


# -- at a glance --------------------------------------------------------------------------------------------
def heat(c, n):
    u = np.sin(np.linspace(0, np.pi, 2000))
    for _ in range(n):
        u[1:-1] += c * (u[2:] - 2 * u[1:-1] + u[:-2])
    return (u**2).sum()


def test_overview_is_short_and_names_what_is_not_compiled():
    def f(x, weights):
        for k in range(300):
            x = x + weights[k % 7]
            print(k if float(x.sum()) > 1e9 else "", end="")
        return x

    report = dyncomp.explain(f)(vec(), [vec() for _ in range(7)])
    text = str(report)
    assert len(text.splitlines()) <= 60 and len(report.details().splitlines()) > 60
    assert report.summary() in text
    for record in report.breaks:
        assert f"{record.id}" in text
    assert str(dyncomp.explain(f, verbose=True)(vec(), [vec() for _ in range(7)])).startswith(
        report.summary()[:5]
    )


def test_overview_of_what_is_compiled_whole():
    text = str(dyncomp.explain(lambda x: np.sin(x) + 1)(vec()))
    assert text.startswith("All of the call is compiled.")
    assert "x: ndarray float64 (5,)" in text


def test_tapes_are_explained(monkeypatch):
    monkeypatch.setattr(iterations, "PATIENCE", 0.0)
    text = str(dyncomp.explain(dyncomp.grad(heat, memory_budget=10**6))(0.3, 400))
    assert "not one graph: " in text and "400 iterations of a loop of heat" in text
    assert "its body compiled" in text and re.search(r"\d+ iterations in \d+ segments run again", text)


def layer(w, x):
    return np.sin(np.tanh(x @ w))


def test_gradients_of_one_graph_say_what_they_keep():
    def loss(v, w, x):
        return (layer(v, layer(w, x)) ** 2).mean()

    rng = np.random.default_rng(0)
    arguments = rng.random((8, 8)), rng.random((8, 8)), rng.random((40, 8))
    text = str(dyncomp.explain(dyncomp.grad(loss, argnums=(0, 1)))(*arguments))
    line = inspect.getsourcelines(layer)[1] + 1
    assert len(text.splitlines()) <= 60
    size, arrays = re.search(r"([\d,]+) bytes in (\d+) arrays are kept", text).groups()
    assert int(arrays) >= 2 and int(size.replace(",", "")) == int(arrays) * 40 * 8 * 8
    assert re.search(rf"2,560 bytes  \w+ of layer at {__file__}:{line}", text)
    assert re.search(rf"k\w+: .*gradient of layer at {__file__}:{line}", text)
    assert "are kept for them" not in str(dyncomp.explain(loss)(*arguments))
