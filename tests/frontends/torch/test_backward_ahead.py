"""The backward graph is compiled while a compiler works on the forward graph."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from dyncomp import pipeline  # noqa: E402
from dyncomp.build.background import builder  # noqa: E402
from dyncomp.errors import ToolchainError  # noqa: E402
from tests.frontends.torch.test_gradients import close, grad, seeded  # noqa: E402, F401


@pytest.fixture
def graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the graphs that are compiled, with a cache that holds nothing."""
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(pipeline, "AHEAD_CORES", 1)
    made: list[str] = []
    compile = pipeline._compile

    def counting(graph, *args):
        made.append(graph.name)
        return compile(graph, *args)

    monkeypatch.setattr(pipeline, "_compile", counting)
    return made


def f(x, w):
    return (torch.sin(x @ w) * w.exp().sum(0)).cos()


def check(x, w, function):
    found = torch.autograd.grad(function(x, w).sum(), (x, w))
    for a, b in zip(found, torch.autograd.grad(f(x, w).sum(), (x, w))):
        close(a, b, "gradient")


def test_it_is_there_when_it_is_asked_for(graphs):
    x, w = grad(4, 5), grad(5, 5)
    compiled = dyncomp.compile(f)
    compiled(x, w)
    assert builder(low=False).wait(60.0)
    assert graphs == ["f", "f_backward"]
    check(x, w, compiled)
    assert graphs == ["f", "f_backward"]
    # where an input requires none, another graph is
    compiled(x, w.detach()).sum().backward()
    assert len(graphs) == 4


def test_a_failure_ahead_is_tried_again(graphs, monkeypatch):
    compile = pipeline._compile
    failed = []

    def failing(graph, *args):
        if graph.name == "f_backward" and not failed:
            failed.append(graph.name)
            raise ToolchainError("for this test")
        return compile(graph, *args)

    monkeypatch.setattr(pipeline, "_compile", failing)
    check(grad(4, 5), grad(5, 5), dyncomp.compile(f))
    assert failed == ["f_backward"]


def test_explain_shows_the_forward_graph(graphs):
    report = dyncomp.explain(f)(grad(4, 5), grad(5, 5))
    assert builder(low=False).wait(60.0)
    (entry,) = [e for e in report.entries if e.compiled is not None]
    assert entry.compiled.graph_after.name == "f"
