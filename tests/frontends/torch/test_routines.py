"""torch's own routines as nodes of the graph."""

from __future__ import annotations

import pytest

import dyncomp

torch = pytest.importorskip("torch")
F = torch.nn.functional

from dyncomp.frontends.torch import calls  # noqa: E402

from .harness import arguments, check, inputs, same  # noqa: E402
from .routine_expressions import ALL  # noqa: E402


def _values():
    values = inputs(torch.float32)
    torch.manual_seed(1)
    values["n"] = torch.randn(2, 4, 8, 8)
    square = torch.randn(6, 6)
    values["c"] = square @ square.T + torch.eye(6)
    values["k"] = torch.randint(0, 5, (5, 6))
    return values


@pytest.fixture(autouse=True)
def _without_grad():
    with torch.no_grad():
        yield


@pytest.mark.parametrize("name", ALL)
def test_eager(name):
    check(ALL[name], *arguments(ALL[name], _values()))


@pytest.mark.parametrize(
    "name", ["topk-fields", "scatter_", "median", "norm", "pad", "interpolate", "equal", "nonzero"]
)
def test_inductor(name):
    check(ALL[name], *arguments(ALL[name], _values()), backend="inductor")


def _layer(x):
    scores, places = x.softmax(-1).topk(2, dim=-1)
    ordered = torch.sort(places.reshape(-1))[0]
    return F.pad(scores / scores.sum(-1, keepdim=True), (1, 0)), torch.cat([ordered, ordered]), x.roll(1, 0)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_one_entry_serves_many_sizes(backend):
    """Sizes of results are formulas of the sizes of arguments."""
    compiled = dyncomp.compile(_layer, backend=backend, fullgraph=True)
    before = dyncomp.stats()["fallbacks"]
    captures = []
    for size in (5, 8, 11, 30, 2):
        x = torch.randn(size, 7)
        same(compiled(x), _layer(x), f"{size}")
        captures.append(dyncomp.stats()["frames_captured"])
    assert captures[-1] == captures[1]
    assert dyncomp.stats()["fallbacks"] == before


def test_an_integer_of_the_program():
    def top(x, count):
        return x.topk(count).values * 2

    compiled = dyncomp.compile(top, backend="eager", fullgraph=True)
    x = torch.randn(4, 9)
    for count in (2, 3, 5, 7):
        same(compiled(x, count), top(x, count), f"{count}")


def test_what_the_routine_refuses_at_run_time():
    """The original program runs, and raises; nothing was written before."""

    def put(x, places):
        x += 1
        return x.scatter(0, places, 5.0)

    compiled = dyncomp.compile(put, backend="eager")
    good, bad = torch.tensor([[0, 1]]), torch.tensor([[0, 9]])
    x, expected = torch.zeros(3, 2), torch.zeros(3, 2)
    same(compiled(x, good), put(expected, good), "good")
    with pytest.raises(RuntimeError, match="out of bounds"):
        put(expected, bad)
    with pytest.raises(RuntimeError, match="out of bounds"):
        compiled(x, bad)
    assert torch.equal(x, expected)


def test_random_numbers_are_not_folded():
    def noisy(x):
        return F.dropout(x + 1, 0.5) * 2, torch.rand(3) + x[0, :3]

    x = torch.ones(4, 6)
    compiled = dyncomp.compile(noisy, backend="eager")
    for seed in (1, 2):
        torch.manual_seed(seed)
        expected = noisy(x)
        torch.manual_seed(seed)
        same(compiled(x), expected, f"{seed}")


def test_deterministic_algorithms_are_guarded():
    def asked(x):
        return x + 1 if torch.are_deterministic_algorithms_enabled() else x - 1

    compiled = dyncomp.compile(asked, backend="eager", fullgraph=True)
    x = torch.ones(3)
    assert compiled(x)[0] == 0
    torch.use_deterministic_algorithms(True)
    try:
        assert compiled(x)[0] == 2
    finally:
        torch.use_deterministic_algorithms(False)


def test_fields_of_named_results_from_before_a_break():
    def fields(x):
        found = torch.max(x, 1)
        dyncomp.graph_break()
        values, indices = found
        return found.values + 1, indices * 2, type(found).__name__, values is found[0]

    x = torch.randn(3, 4)
    same(dyncomp.compile(fields, backend="eager")(x), fields(x), "fields")


def test_constants_of_several_stages():
    """What repeats a number in memory is made in each stage of a graph: an array that one gave had other
    strides than the next expected, so that every call raised and the original ran."""
    norms = [torch.nn.BatchNorm2d(6).eval() for _ in range(3)]

    def program(x):
        for norm, scale in zip(norms, (2.0, 0.5, 2.0)):
            x = norm(F.interpolate(x, scale_factor=scale, mode="bilinear"))
        return x

    compiled = dyncomp.compile(program)
    dyncomp.reset()
    with torch.no_grad():
        for number in (2, 2, 3, 1, 4):
            x = torch.randn(number, 6, 8, 8)
            torch.testing.assert_close(compiled(x), program(x))
    assert dyncomp.stats()["fallbacks"] == 0


def test_sizes_that_do_not_go_together_are_not_tried_with_memory(monkeypatch):
    """torch's weight norm writes beyond its buffers there."""
    tried = []
    plain = calls._tried_on

    def watched(call, opening, sizes, numbers, device):
        if device == "cpu" and sizes:
            tried.append(call.function.__name__)
        return plain(call, opening, sizes, numbers, device)

    monkeypatch.setattr(calls, "_tried_on", watched)

    def f(v, g):
        return torch._weight_norm(v, g, 0) * 2

    compiled = dyncomp.compile(f, backend="eager")
    for rows, columns in ((4, 3), (6, 3), (8, 5), (5, 5)):
        v, g = torch.randn(rows, columns, 1), torch.rand(rows, 1, 1)
        same(compiled(v, g), f(v, g), "weight norm")
    assert "_weight_norm" not in tried


def test_warnings_come_from_the_line_that_calls():
    def f(x):
        y = x * 2
        return torch.var(y, correction=10) + 1

    compiled = dyncomp.compile(f)
    for _ in range(2):
        with pytest.warns(UserWarning, match="degrees of freedom") as heard:
            compiled(torch.ones(3))
        assert {(w.filename, w.lineno) for w in heard} == {(__file__, f.__code__.co_firstlineno + 2)}
    assert dyncomp.stats()["fallbacks"] == 0


@pytest.mark.parametrize("fixed", (None, 8))
def test_sizes_that_only_go_together(fixed):
    """Torch takes one size only where others are like it: one compiled form serves all that are."""
    compiled = dyncomp.compile(lambda a, b, c: torch.baddbmm(a, b, c).sin(), backend="eager", fullgraph=True)
    before = None
    for count, width in ((2, 8), (3, fixed or 9), (5, fixed or 12)):
        arguments = torch.randn(count, 1, width), torch.randn(count, 4, 6), torch.randn(count, 6, width)
        same(compiled(*arguments), torch.baddbmm(*arguments).sin(), f"{count}, {width}")
        before, graphs = dyncomp.stats()["graphs"] if count == 3 else before, dyncomp.stats()["graphs"]
    assert graphs == before
