"""The page of ``explain(f)(*args).save(...)``: its parts, that it is whole, and what it says where things are
missing."""

from __future__ import annotations

import importlib.util
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import dyncomp
from dyncomp.report import page as page_package
from dyncomp.report.page import passes, steps, write
from dyncomp.report.page.guards import guard_checks
from dyncomp.report.page.source_lines import State, source_files
from tests.report import page_programs
from tests.report.page_programs import arguments, inner, looks, program

jinja2 = pytest.importorskip("jinja2")
matplotlib = pytest.importorskip("matplotlib")
VOID = {"meta", "link", "br", "hr", "img", "input", "path", "use"}


class Outline(HTMLParser):
    """Raises where elements are not closed as they were opened; keeps texts, attributes and classes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.texts, self.attributes = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def shown(self) -> str:
        return "".join(self.texts)


@pytest.fixture(scope="module")
def report():
    return dyncomp.explain(program)(*arguments())


@pytest.fixture(scope="module")
def text(report):
    return report.html()


def test_it_is_one_whole_document_that_asks_for_nothing_else(text):
    outline = Outline(text)
    assert "<script" not in text and "@import" not in text and "url(http" not in text
    asked = [v for tag, name, v in outline.attributes if name in ("src", "href", "xlink:href", "action")]
    assert all(value.startswith(("#", "data:,")) for value in asked)
    for anchor in ("overview", "source", "breaks", "guards", "kernels", "memory", "graphs", "loops"):
        assert ("h1" if anchor == "overview" else "h2", "id", anchor) in outline.attributes


def test_save_writes_it(report, tmp_path):
    path = report.save(tmp_path / "report.html", measure=False)
    assert path == tmp_path / "report.html"
    Outline(path.read_text(encoding="utf-8"))
    assert isinstance(report.save(str(path), measure=False), Path)
    with pytest.raises(OSError):
        report.save(tmp_path / "no" / "report.html", measure=False)


def test_the_overview_comes_first_in_ten_lines(report, text):
    first = re.search(r'<pre class="overview">(.*?)</pre>', text, re.S)[1]
    assert report.verdict() in first and len(first.splitlines()) <= 10
    assert text.index(first) < text.index('id="source"')


def lines_of(report, function):
    kernels = [(k.name, k.origin) for k in report.kernels]
    call = report.call
    files = source_files(report.entries, report.skipped, report.native_loops, call.reached, kernels)
    (file,) = [f for f in files if f.path == page_programs.__file__]
    assert file.is_users and files[0] is file and not file.missing
    (block,) = [b for b in file.blocks if b.name == function.__name__]
    return block.lines


def told(line):
    """The state that the comment at a line's end tells."""
    return line.text.rpartition("  # ")[2] if "  # " in line.text else "none"


@pytest.mark.parametrize("function", [program, inner])
def test_lines_are_what_became_of_them(report, function):
    lines = lines_of(report, function)
    assert {line.number: str(line.state) for line in lines} == {line.number: told(line) for line in lines}


def test_lines_of_plain_functions():
    lines = lines_of(dyncomp.explain(looks)(np.ones(3)), looks)
    assert {str(line.state) for line in lines if told(line) == "plain"} == {"plain"}


def test_lines_tell_their_operations_and_kernels(report):
    by_text = {line.text.partition("  # ")[0].strip(): line for line in lines_of(report, program)}
    notes = by_text["y = np.tanh(x @ w)"].notes
    assert any("matmul" in note or "dot" in note for note in notes) and any("tanh" in note for note in notes)
    assert any(note.startswith("kernels: k0_program") for note in notes)
    (note,) = by_text["dyncomp.graph_break()"].notes
    assert note.startswith("graph break [graph-break]")


def test_source_that_is_missing_is_told():
    names: dict[str, object] = {"np": np}
    exec(compile("def f(x):\n    return np.sin(x) + 1\n", "no_such_file.py", "exec"), names)
    found = dyncomp.explain(names["f"], backend="eager")(np.ones(3))
    assert "its source cannot be found; lines involved: 1, 2" in Outline(found.html(measure=False)).shown


def test_text_of_the_program_is_escaped():
    def f(x):
        y = x + 1
        dyncomp.graph_break("<b>bold</b>")
        return y

    page = dyncomp.explain(f, backend="eager")(np.ones(3)).html(measure=False)
    assert "<b>bold" not in page and "&lt;b&gt;bold" in page


# -- guards ---------------------------------------------------------------------------------------
class Model:
    def __init__(self):
        self.weights = [np.ones(3), np.ones(3)]
        self.scale = 2.0


def uses(model, x):
    return x * model.weights[0] + model.weights[1] * model.scale


def test_guards_are_a_tree_and_cost_time():
    model, x = Model(), np.ones(3)
    found = dyncomp.explain(uses, backend="eager")(model, x)
    (check,) = guard_checks(found.entries, found.call)
    assert check.ns > 0 and "measured now" in check.how
    by_label = {branch.label: branch for branch in check.branches}
    assert {"model", "x"} <= set(by_label)
    below = by_label["model"].below
    assert set(below) == {".weights", ".scale"}
    assert set(below[".weights"].below) == {"[0]", "[1]"}
    assert sum(branch.count for branch in check.branches) == check.count == len(found.guards)
    assert sum(branch.ns for branch in check.branches) == pytest.approx(check.ns)
    assert by_label["model"].count > below[".weights"].count > 1


def test_many_guards_are_counted_and_not_all_shown(monkeypatch):
    from dyncomp.report.page import guards

    monkeypatch.setattr(guards, "_MOST_ALTOGETHER", 3)
    model, x = Model(), np.ones(3)
    found = dyncomp.explain(uses, backend="eager")(model, x)
    (check,) = guard_checks(found.entries, found.call)

    def total(branch):
        below = [total(b) for b in branch.below.values()]
        assert branch.count == len(branch.guards) + branch.left_out + sum(map(sum, below))
        return (
            len(branch.guards) + sum(b[0] for b in below),
            branch.left_out + sum(b[1] for b in below),
        )

    shown, left_out = map(sum, zip(*map(total, check.branches)))
    assert shown == 3 and shown + left_out == check.count
    assert "… and " in found.html(measure=False)


def test_guards_of_arguments_that_are_gone_are_not_measured():
    found = dyncomp.explain(uses, backend="eager")(Model(), np.ones(3))
    (check,) = guard_checks(found.entries, found.call)
    assert check.ns is None and "gone" in check.how
    assert "gone" in found.html()


def test_guards_that_do_not_hold_any_more_are_told():
    model, x = Model(), np.ones(3)
    found = dyncomp.explain(uses, backend="eager")(model, x)
    model.scale = 3.0
    (check,) = guard_checks(found.entries, found.call)
    assert check.ns is None and "did not hold" in check.how and "['scale'] == 2.0" in check.how


def test_guards_of_later_frames_are_estimated():
    x, w = arguments()
    found = dyncomp.explain(program)(x, w)
    first, *others = guard_checks(found.entries, found.call)
    assert "measured now" in first.how
    assert others and all("estimated" in check.how and check.ns > 0 for check in others)


# -- kernels, memory, passes ----------------------------------------------------------------------
def test_kernels_are_measured_and_have_sources(report, text):
    (entry, *_) = [e for e in report.entries if e.graph is not None]
    facts = steps.graph_facts(entry.compiled.artifact, None, report.call.options, measure=True)
    assert facts.how.startswith("each step apart") and facts.seconds > 0
    by_kind = {step.kind: step for step in facts.steps}
    product, kernel = by_kind["product"], by_kind["kernel"]
    assert product.work.flops == 2 * 20 * 30 * 40
    assert product.work.read == 8 * (20 * 30 + 30 * 40)
    assert all(step.seconds > 0 for step in facts.steps)
    assert facts.seconds == pytest.approx(sum(step.total for step in facts.steps))
    # tanh, max of rows, difference: each of 20 x 40 numbers
    assert kernel.work.flops == 3 * 20 * 40
    assert "for (i64" in kernel.source and kernel.source.startswith(f"// {kernel.name}")
    assert kernel.source.splitlines()[-1] == "}"
    assert len(facts.memory) == len(facts.labels) and max(facts.memory) <= facts.arena
    assert "Gflop/s" in text and "flops per byte moved" in text and "KiB alive" in text


def test_not_measured(report):
    page = report.html(measure=False)
    assert "not measured" in page and "flops per byte moved" not in page


def test_a_graph_that_raises_on_made_up_inputs_is_told(monkeypatch):
    found = dyncomp.explain(lambda x, i: x[i] * 2)(np.ones(3), np.array([1, 2]))
    artifact = found.entries[0].compiled.artifact
    monkeypatch.setattr(steps, "stand_ins", lambda graph: [np.ones(3), np.array([7, 7])])
    facts = steps.graph_facts(artifact, None, found.call.options, measure=True)
    assert facts.how.startswith("not measured: IndexError") and facts.seconds is None


def test_passes_are_run_again_and_long_graphs_cut(report, monkeypatch):
    entry = report.entries[0]
    found = passes.passes_of(entry.compiled, report.call.options, passes.LineBudget())
    assert [p.name for p in found.steps] == ["captured", *(p.name for p in dyncomp.pipeline.PASSES)]
    assert not found.problem and "tanh" in found.steps[0].text
    assert found.steps[-1].nodes == len(entry.compiled.graph_after.nodes)
    short = passes.passes_of(entry.compiled, report.call.options, passes.LineBudget(5))
    assert sum(len(p.text.splitlines()) for p in short.steps) == 5
    assert sum(p.cut for p in short.steps) > 5

    long = passes.LineBudget().cut("\n".join(["x" * 5000] * 10))
    assert len(long[0]) == 10 * passes.LONGEST_LINE + 9 and long[1] == 0
    assert passes.LineBudget(characters=1000).cut("x" * 300 + "\n" + "y" * 900)[1] == 0
    assert passes.LineBudget(characters=500).cut("x" * 300 + "\n" + "y" * 900)[1] == 1

    def fails(*args):
        raise ValueError("no more")

    monkeypatch.setattr(passes, "run_passes", fails)
    broken = passes.passes_of(entry.compiled, report.call.options, passes.LineBudget())
    assert broken.problem.endswith("ValueError: no more") and len(broken.steps) == 1


def recompiling(x):
    return called(x, 1.5) + called(x, 2.5)


@dyncomp.disable(recursive=False)
def called(x, k):
    return inner(x, k)


def test_recompilations_are_a_tree():
    found = dyncomp.explain(recompiling, backend="eager")(np.ones(3))
    shown = Outline(found.html(measure=False)).shown
    assert "compiled 2 times" in shown and "because: expected k == 1.5" in shown


# -- without the extra ----------------------------------------------------------------------------
@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_without_the_extra(report, monkeypatch, missing, tmp_path):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else real(name))
    with pytest.raises(ModuleNotFoundError, match=r"dyncomp\[report\]"):
        report.save(tmp_path / "report.html")
    shown = report._repr_html_()
    assert shown.startswith("<pre>") == (missing == "jinja2")
    assert report.verdict() in Outline(shown).shown


def test_notebooks_show_the_overview(report):
    outline = Outline(report._repr_html_())
    assert report.verdict() in outline.shown and str(report) in outline.shown


def test_nothing_is_loaded_before_it_is_needed():
    import subprocess

    code = "import dyncomp, sys; print([m for m in ('jinja2', 'matplotlib', 'IPython') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_templates_are_package_data():
    folder = Path(page_package.__file__).parent / "templates"
    names = {path.name for path in folder.iterdir()}
    assert {"page.html.jinja", "page.css", "style.css"} <= names
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert '"report/page/templates/*"' in project


def test_every_state_has_a_colour_and_words():
    style = (Path(page_package.__file__).parent / "templates" / "page.css").read_text(encoding="utf-8")
    for state in State:
        if state is not State.NONE:
            assert state in write.STATES and f".{state.value} {{" in style
