"""The op table as a whole: names, kinds, documentation, cost of importing it."""

from __future__ import annotations

import inspect
import pathlib
import subprocess
import sys

import pytest

from dyncomp.prims.doc import render
from dyncomp.prims.opdef import OpDef, OpTableBuilder, Pointwise, Update, View
from dyncomp.prims.table import TABLE

from .framework import all_rows, rows, samples_of

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_there_are_enough_rows():
    assert len(rows("prim")) >= 100
    assert len(rows("composite")) >= 20


def test_the_table_is_read_only():
    with pytest.raises(TypeError):
        TABLE["add"] = None  # type: ignore[index]


def test_a_name_is_defined_once():
    builder = OpTableBuilder()
    row = TABLE["add"]
    builder.add(row)
    with pytest.raises(ValueError, match="twice"):
        builder.add(row)


def test_a_row_is_a_prim_or_a_composite():
    builder = OpTableBuilder()
    with pytest.raises(ValueError, match="exactly one"):
        builder.add(OpDef("neither", (), lambda: None, lambda: None))


@pytest.mark.parametrize("row", all_rows())
def test_row_is_complete(row):
    assert TABLE[row.name] is row
    assert row.doc and row.dtypes and (row.samples is not None or row.is_marker)
    assert len({s.label for s in samples_of(row.name)}) == len(samples_of(row.name)), "labels repeat"
    for sample in samples_of(row.name):
        assert set(sample.params) <= set(row.params)


@pytest.mark.parametrize("row", all_rows(View))
def test_scatter_of_a_view_exists(row):
    if row.lower.scatter:
        target = TABLE[row.lower.scatter]
        inverse_view = row.name == target.name
        assert inverse_view or (isinstance(target.lower, Update) and target.lower.view == row.name)
        assert inverse_view or target.params == row.params


@pytest.mark.parametrize("row", all_rows(Pointwise))
def test_expression_takes_the_params(row):
    accepted = inspect.signature(row.lower.expr).parameters.values()
    variadic = any(p.kind is p.VAR_POSITIONAL for p in accepted)
    assert variadic or {p.name for p in accepted} >= set(row.params)


def test_the_documentation_is_up_to_date():
    page = ROOT / "docs" / "prims.md"
    assert page.read_text(encoding="utf-8") == render(), "run: python -m dyncomp.prims.doc docs/prims.md"


IMPORT = """
import sys, types
package = types.ModuleType("dyncomp")  # without what the package itself imports
package.__path__ = ["dyncomp"]
sys.modules["dyncomp"] = package
import dyncomp.prims.table
print([m for m in ("torch", "sympy", "triton", "scipy", "ml_dtypes") if m in sys.modules])
"""


def test_importing_the_table_loads_nothing_heavy():
    command = [sys.executable, "-c", IMPORT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
