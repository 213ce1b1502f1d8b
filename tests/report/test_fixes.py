"""Patches of reports: applied, they make the break go away and leave the results alone."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import dyncomp
from dyncomp.report.page.fixes import fix_of

BEFORE = "import numpy as np\nimport dyncomp\n\n\n"
PROGRAMS = {
    "graph-break": """
        def f(x):
            y = x + 1
            dyncomp.graph_break("here")
            return y * 2
        """,
    "graph-break alone in its block": """
        from dyncomp import graph_break as stop

        def f(x):
            y = x + 1
            if y.ndim == 1:
                stop()
            return y * 2
        """,
    "disabled": """
        @dyncomp.disable(reason="too slow once")
        def helper(x):
            return x * 3

        def f(x):
            y = x + 1
            return helper(y) * 2
        """,
    "import": """
        def f(x):
            y = x + 1
            import this_is_replaced
            return y * len(this_is_replaced.__name__)
        """,
}
# Small modules of the standard library that nothing here loads.
UNUSED = ("stringprep", "colorsys", "sched", "nturl2path", "tabnanny", "pyclbr", "wave", "quopri", "cProfile")


def load(path: Path) -> object:
    spec = importlib.util.spec_from_file_location(f"patched_{path.stem}_{path.stat().st_mtime_ns}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def breaks_of(path: Path):
    module = load(path)
    report = dyncomp.explain(module.f, backend="eager")(np.arange(5.0))
    assert report.error is None
    return report.result, report.breaks


def unused_module() -> str:
    for name in UNUSED:
        if name not in sys.modules and importlib.util.find_spec(name) is not None:
            return name
    pytest.skip("all of them are loaded")


@pytest.mark.parametrize("name", PROGRAMS)
def test_patches_apply_and_the_break_goes(name, tmp_path, monkeypatch):
    if shutil.which("git") is None:
        pytest.skip("git applies the patch")
    monkeypatch.chdir(tmp_path)
    text = BEFORE + textwrap.dedent(PROGRAMS[name])
    if name == "import":
        text = text.replace("this_is_replaced", unused_module())
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    result, breaks = breaks_of(path)
    kind = name.partition(" ")[0]
    (record,) = [record for record in breaks if record.id == kind]
    fix = fix_of(record)
    assert fix is not None and fix.why and fix.path == str(path)
    patch = tmp_path / "fix.patch"
    patch.write_text(fix.diff, encoding="utf-8")
    subprocess.run(["git", "apply", "-p0", str(patch)], cwd=tmp_path, check=True, timeout=60)
    assert path.read_text(encoding="utf-8") == fix.after != text
    again, left = breaks_of(path)
    np.testing.assert_array_equal(again, result)
    assert [record.id for record in left if record.id == kind] == []


REFUSED = {
    "an argument with an effect": """
        def f(x):
            y = x + 1
            dyncomp.graph_break(str(y.ndim))  # here
            return y
        """,
    "two statements on a line": """
        def f(x):
            y = x + 1; dyncomp.graph_break()  # here
            return y
        """,
    "an import whose failure is awaited": """
        def f(x):
            y = x + 1
            try:
                import MODULE  # here
            except ImportError:
                pass
            return y
        """,
    "a name that the module has": """
        MODULE = 3

        def f(x):
            y = x + 1
            import MODULE  # here
            return y
        """,
    "a name that another function reads": """
        def g():
            return MODULE

        def f(x):
            y = x + 1
            import MODULE  # here
            return y
        """,
    "a module that is not of the standard library": """
        def f(x):
            y = x + 1
            try_it = 1
            import no_such_module_at_all  # here
            return y
        """,
    "a function that is marked elsewhere": """
        def helper(x):
            return x * 3

        helper = dyncomp.disable(helper)

        def f(x):
            y = x + 1
            return helper(y) * 2  # here
        """,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_safe_has_no_patch(name, tmp_path):
    text = BEFORE + textwrap.dedent(REFUSED[name])
    if "MODULE" in text:
        text = text.replace("MODULE", unused_module())
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    report = dyncomp.explain(load(path).f, backend="eager")(np.arange(5.0))
    here = next(n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# here"))
    (record,) = [record for record in report.breaks if record.loc.line == here]
    assert fix_of(record) is None
