"""Libraries that ask PyTorch whether a compiler is at work: yes in captured code, no in plain Python."""

from __future__ import annotations

import importlib

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

QUESTIONS = (
    "torch.compiler:is_compiling",
    "torch.compiler:is_dynamo_compiling",
    "torch._utils:is_compiling",
    "torch._dynamo:is_compiling",
    "torch._dynamo.external_utils:is_compiling",
)


@pytest.fixture(autouse=True)
def _fresh():
    dyncomp.reset()
    with torch.no_grad():
        yield
    dyncomp.reset()


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_questions(question):
    module, _, name = question.partition(":")
    ask = getattr(importlib.import_module(module), name)

    def f(x):
        return x + 1 if ask() else x - 1

    x = torch.ones(3)
    assert f(x).tolist() == [0, 0, 0]
    for _ in range(2):
        assert dyncomp.compile(f, fullgraph=True)(x).tolist() == [2, 2, 2]
    quiet = dyncomp.compile(f, options={"assume_compiling": False})
    assert quiet(x).tolist() == [0, 0, 0]


def test_modules_as_programs_name_them():
    def f(x, mask):
        if torch.compiler.is_compiling() or not mask.all():
            x = x.masked_fill(~mask, 0)
        return x * 2

    x = torch.randn(4)
    for mask in (torch.tensor([True, False, True, True]), torch.ones(4, dtype=torch.bool)):
        assert torch.equal(dyncomp.compile(f, fullgraph=True)(x, mask), f(x, mask))
    assert dyncomp.stats()["breaks"] == {}


def test_exporting_is_something_else():
    def f(x):
        return x + 1 if torch.compiler.is_exporting() else x - 1

    assert dyncomp.compile(f, fullgraph=True)(torch.ones(2)).tolist() == [0, 0]


def test_plain_python_is_told_no():
    def f(x):
        y = x * 2
        dyncomp.graph_break()
        return y, plain()

    @dyncomp.disable
    def plain():
        return torch.compiler.is_compiling()

    fast = dyncomp.compile(f)
    for _ in range(2):
        y, answer = fast(torch.ones(2))
        assert y.tolist() == [2, 2] and answer is False
    assert torch.compiler.is_compiling() is False


def test_functions_of_these_names_elsewhere():
    def is_compiling():
        return False

    def f(x):
        return x + 1 if is_compiling() else x - 1

    assert dyncomp.compile(f, fullgraph=True)(torch.ones(2)).tolist() == [0, 0]
