"""``%load_ext dyncomp`` and ``%%dyncomp`` in a shell of IPython."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dyncomp
from dyncomp.hook import _hook
from dyncomp.notebooks.cells import CellReport
from dyncomp.notebooks.options import LineError, parse_line

pytest.importorskip("IPython")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def the_shell(tmp_path_factory):
    import os

    os.environ.setdefault("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    settings = Config()
    settings.HistoryManager.enabled = False
    settings.InteractiveShell.colors = "nocolor"
    made = InteractiveShell.instance(config=settings)
    yield made
    InteractiveShell.clear_instance()


@pytest.fixture
def shell(the_shell, monkeypatch, tmp_path):
    """A fresh shell; pages go to ``tmp_path``."""
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    the_shell.reset(new_session=False)
    the_shell.run_line_magic("load_ext", "dyncomp")
    the_shell.user_ns["np"] = np
    yield the_shell
    the_shell.run_line_magic("unload_ext", "dyncomp")


@pytest.fixture
def shown(monkeypatch):
    """What the magic displays."""
    found: list[CellReport] = []
    monkeypatch.setattr("IPython.display.display", found.append)
    return found


def run(shell, text):
    return shell.run_cell(text, silent=False)


def test_functions_of_the_cell_are_compiled_and_reported(shell, shown):
    done = run(
        shell,
        "%%dyncomp\ndef f(x):\n    return np.sin(x) * 2\n\nclass C: pass\n\ny = f(np.ones(5))\ny.sum()\n",
    )
    assert done.success and done.result == pytest.approx(10 * np.sin(1))
    assert isinstance(shell.user_ns["f"], _hook.Dispatcher)
    (report,) = shown
    assert "All of the call is compiled." in repr(report) and len(repr(report).splitlines()) <= 11
    page = report.path.read_text(encoding="utf-8")
    assert "return np.sin(x) * 2" in page and 'class="line graph"' in page
    assert report.path.as_uri() in report._repr_html_() and str(report.path) in repr(report)
    assert not [name for name in shell.user_ns if "dyncomp" in name]


def test_later_cells_call_compiled_functions(shell, shown):
    run(shell, "%%dyncomp\ndef f(x):\n    return np.sin(x) * 2\n")
    assert "Nothing is compiled" in repr(shown[0])
    before = dyncomp.stats()["graphs"]
    assert run(shell, "f(np.ones(3)) + 0").success
    assert dyncomp.stats()["graphs"] == before + 1
    assert len(shown) == 1


def test_options_and_decorators(shell, shown, tmp_path):
    text = """\
    import functools
    def twice(g):
        @functools.wraps(g)
        def run(x):
            return g(g(x))
        return run
    @twice
    def f(x):
        return x + 1
    @property
    def not_callable(self):
        return 1
    z = f(np.zeros(3))
    """
    import textwrap

    path = tmp_path / "named.html"
    done = run(shell, f"%%dyncomp backend=eager unroll_limit=3 report={path}\n" + textwrap.dedent(text))
    assert done.success and shell.user_ns["z"].tolist() == [2.0] * 3
    assert isinstance(shell.user_ns["not_callable"], property)
    assert shell.user_ns["f"].config.options.backend == "eager"
    assert shell.user_ns["f"].config.options.unroll_limit == 3
    assert shown[0].path == path and path.exists()


def test_errors_of_the_cell_are_its_own(shell, shown):
    done = run(
        shell, "%%dyncomp\ndef f(x):\n    y = x + 1\n    raise LookupError('no')\nf(np.ones(3))\nz = 1\n"
    )
    assert isinstance(done.error_in_exec, LookupError) and "z" not in shell.user_ns
    assert "graph break [raise]" in repr(shown[0])
    frames = []
    trace = done.error_in_exec.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    assert frames[-1] == ("f", 3)
    done = run(shell, "%%dyncomp\ndef f(x:\n")
    assert isinstance(done.error_in_exec, SyntaxError) and len(shown) == 1
    assert not [name for name in shell.user_ns if "dyncomp" in name]


def test_fullgraph(shell, shown):
    body = "    y = x + 1\n    dc.graph_break()\n    return y\n"
    text = f"%%dyncomp fullgraph\nimport dyncomp as dc\ndef f(x):\n{body}f(np.ones(3))\n"
    assert isinstance(run(shell, text).error_in_exec, dyncomp.GraphBreakError)


@pytest.mark.parametrize(
    "line",
    ["mode=fast", "nonsense", "unrol_limit=3", "fullgraph=maybe", "report", "mode=default mode=default", "'"],
)
def test_wrong_lines_are_told_and_nothing_runs(shell, shown, capsys, line):
    done = run(shell, f"%%dyncomp {line}\nz = 1\n")
    assert not done.success and "z" not in shell.user_ns and not shown
    assert "%%dyncomp [mode=MODE]" in capsys.readouterr().err
    with pytest.raises(LineError):
        parse_line(line)


def test_values_on_the_line():
    found = parse_line(
        "mode=max-autotune dynamic=no --fullgraph measure unroll_limit=16 keep_packed=no  # all"
    )
    assert (found.compiled.mode, found.compiled.dynamic, found.compiled.fullgraph) == (
        "max-autotune",
        False,
        True,
    )
    assert found.compiled.unroll_limit == 16 and found.compiled.keep_packed is False and found.measure


def test_pages_that_cannot_be_written_are_told(shell, shown, tmp_path):
    assert run(
        shell, f"%%dyncomp report={tmp_path}/no/page.html\ndef f(x): return x + 1\nf(np.ones(2))\n"
    ).success
    assert shown[0].path is None and "no report is written" in repr(shown[0])
    assert "no report is written" in shown[0]._repr_html_()


def test_cells_that_define_nothing(shell, shown):
    assert run(shell, "%%dyncomp\n1 + 1;\n").success
    assert "defines no function" in repr(shown[0])
    assert Path(shown[0].path).exists()
