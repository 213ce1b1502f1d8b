"""What functions and values are called where people read of them."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.capture.entries.call_names import in_words


def test_variables_of_continuations_are_put_into_words():
    text = "expected .stack0 == 2 (int); found 3; x.stack0 and vars(x)['.stack1'] and .item: list"
    shown = in_words(text)
    assert shown.startswith("expected <a value in use where the piece begins> == 2 (int); found 3; x.stack0")
    assert "'.stack1'" in shown and shown.endswith("<the loop's item>: list")


def test_arguments_are_refused_in_plain_words():
    table = np.zeros(3, dtype=[("a", float)])

    def f(x):
        y = x + 1
        np.copyto(y, table, casting="unsafe")
        return y

    report = dyncomp.explain(f, backend="eager")(np.ones(3))
    (record,) = report.breaks
    kind = "an object of type numpy.ndarray (structured arrays are not compiled)"
    assert record.reason == f"{kind} as an argument in an array function"


def test_models_are_called_after_their_class():
    torch = pytest.importorskip("torch")

    class Doubling(torch.nn.Module):
        def forward(self, x):
            return torch.sin(x) * 2

    report = dyncomp.explain(Doubling())(torch.ones(3))
    (entry,) = report.entries
    assert entry.name == "Doubling" and entry.graph.name == "Doubling"
    assert f"Doubling at {__file__}" in str(report) and "_wrapped_call_impl" not in str(report)


def test_warnings_about_models_name_their_class(caplog):
    torch = pytest.importorskip("torch")

    class Scaled(torch.nn.Module):
        def __init__(self, how):
            super().__init__()
            self.how = how

        def forward(self, x):
            return torch.sin(x) * 2 if self.how == "sin" else torch.cos(x)

    model = Scaled("sin")
    fast = dyncomp.compile(model, backend="eager", options={"recompile_limit": 2, "warm_start": False})
    with caplog.at_level("WARNING", logger="dyncomp.capture"):
        for how in ("sin", "a", "b", "c", "d"):
            model.how = how
            fast(torch.ones(3))
    (message,) = [r.getMessage() for r in caplog.records if "recompilation limit" in r.getMessage()]
    assert message.startswith(f"Scaled at {__file__}") and "how" in message


def test_functions_and_methods_of_the_program_keep_their_names():
    class Owner:
        def method(self, x):
            return np.sin(x) * 2

    report = dyncomp.explain(Owner().method, backend="eager")(np.ones(3))
    (entry,) = report.entries
    assert entry.name == Owner.method.__qualname__ and entry.graph.name == "method"
