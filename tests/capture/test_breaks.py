"""Graph breaks: each id has a program that takes it, at the stated line and for the stated reason."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import dyncomp
from dyncomp.capture import break_docs
from dyncomp.capture.breaks import BREAKS, Break
from dyncomp.errors import GraphBreakError
from tests.capture.breaking_programs import GOLDEN
from tests.capture.comparing import check
from tests.capture.control_programs import two_deep
from tests.capture.programs import vec

# every instruction that a captured frame of these Python versions can hold has a meaning
NOT_REACHED = {"unsupported-opcode"}
ELSEWHERE = {"opaque"}  # needs another compiler: test_other_compilers


def marked_line(function) -> int:
    lines, first = inspect.getsourcelines(function)
    (offset,) = [i for i, line in enumerate(lines) if line.rstrip().endswith("# here")]
    return first + offset


def test_each_id_has_a_golden_program():
    assert set(GOLDEN) == set(BREAKS) - NOT_REACHED - ELSEWHERE


@pytest.mark.parametrize("break_id", sorted(GOLDEN))
def test_golden(break_id):
    function, reason = GOLDEN[break_id]
    records = check(function, lambda: (vec(),))
    found = [b for entry in records.entries for b in entry.breaks if b.id == break_id]
    assert found, [b for entry in records.entries for b in entry.breaks]
    assert reason in found[0].reason
    assert found[0].loc.line == marked_line(function)
    assert found[0].loc.file == __file__.replace("test_breaks", "breaking_programs")
    assert found[0].stack[-1] == found[0].loc
    text = found[0].describe()
    assert break_id in text and reason in text
    assert BREAKS[break_id].hint in " ".join(text.split())


@pytest.mark.parametrize("break_id", sorted(GOLDEN))
def test_fullgraph_names_the_place(break_id):
    function, reason = GOLDEN[break_id]
    compiled = dyncomp.compile(function, backend="eager", fullgraph=True)
    with pytest.raises(GraphBreakError) as raised:
        compiled(vec())
    message = str(raised.value)
    assert f"breaking_programs.py:{marked_line(function)}" in message
    assert "fullgraph=True" in message


@pytest.mark.parametrize("break_id", sorted(GOLDEN))
def test_explain_and_stats_tell_of_it(break_id, capsys):
    function, reason = GOLDEN[break_id]
    dyncomp.reset()
    try:
        report = dyncomp.explain(function, backend="eager")(vec())
    except (ValueError, ZeroDivisionError):
        report = None
    assert dyncomp.stats()["breaks"][break_id] >= 1
    if report is not None:
        assert break_id in [b.id for b in report.breaks]
        assert f"[{break_id}]" in report.details()
        assert reason in report.details()


def test_a_break_in_an_inlined_call_has_the_whole_stack():
    def outer(x):
        return two_deep(x) + 1

    records = check(outer, lambda: (vec(),))
    first = records.entries[0].breaks[0]
    assert [loc.function.rpartition(".")[2] for loc in first.stack] == [
        "outer",
        "two_deep",
        "shows_inside",
        "show",
    ]
    with pytest.raises(
        GraphBreakError, match=r"(?s)at .*control_programs.*shows_inside.*two_deep.*test_breaks.*outer"
    ):
        dyncomp.compile(outer, fullgraph=True, backend="eager")(vec())


def test_unknown_ids_are_refused():
    with pytest.raises(KeyError, match="unregistered"):
        Break("no-such-id", "why")


def test_hints_and_explanations_are_sentences():
    for kind in BREAKS.values():
        assert kind.explanation.endswith(".") and kind.hint.endswith(".")
        assert kind.id == kind.id.lower()


def test_the_page_is_current():
    page = Path(__file__).parents[2] / "docs" / "breaks.md"
    assert page.read_text(encoding="utf-8") == break_docs.render(), "run python -m dyncomp.capture.break_docs"


def test_the_command_writes_the_page(tmp_path):
    target = tmp_path / "breaks.md"
    subprocess.run([sys.executable, "-m", "dyncomp.capture.break_docs", str(target)], check=True, timeout=60)
    assert target.read_text(encoding="utf-8") == break_docs.render()
