"""Cross entropy and negative log-likelihoods: all ways to call them, against torch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyncomp

torch = pytest.importorskip("torch")
F = torch.nn.functional

from .harness import check  # noqa: E402

# Scores, with classes along dimension 1 (0 where there is no other).
SHAPES = [(7, 5), (5,), (3, 4, 6), (2, 3, 4, 5), (0, 5), (2, 3, 0), (1, 1)]
REDUCTIONS = ("none", "mean", "sum")
IGNORED = -100


@pytest.fixture(autouse=True)
def without_grad() -> Any:
    with torch.no_grad():
        yield


def operands(shape: tuple[int, ...], dtype: Any = torch.float32) -> tuple[Any, ...]:
    """Scores, classes of which some are ignored, probabilities, weights of classes."""
    torch.manual_seed(len(shape))
    count = shape[0] if len(shape) == 1 else shape[1]
    rest = shape[:0] if len(shape) == 1 else (shape[0], *shape[2:])
    classes = torch.randint(0, count, rest)
    if rest:
        classes.view(-1)[1::3] = IGNORED
    x = (torch.randn(shape) * 3).to(dtype)
    return x, classes, torch.randn(shape).softmax(0).to(dtype), (torch.rand(count) + 0.5).to(dtype)


def every_way(**fixed: Any) -> Callable[..., Any]:
    """A program of all losses of classes."""

    def losses(x: Any, classes: Any, weight: Any) -> Any:
        found = []
        for reduction in REDUCTIONS:
            for w in (None, weight):
                kept = {"weight": w, "reduction": reduction, **fixed}
                found.append(F.cross_entropy(x, classes, **kept))
                found.append(F.cross_entropy(x, classes, label_smoothing=0.1, **kept))
                found.append(F.nll_loss(-x.abs(), classes, **kept))
        return tuple(found)

    return losses


def of_probabilities(x: Any, target: Any, weight: Any) -> Any:
    found = []
    for reduction in REDUCTIONS:
        for w in (None, weight):
            found.append(F.cross_entropy(x, target, w, reduction=reduction))
            found.append(F.cross_entropy(x, target, w, reduction=reduction, label_smoothing=0.1))
    return tuple(found)


def check_own(function: Any, *arguments: Any, backend: str = "eager") -> None:
    """Without torch's routines."""
    check(function, *arguments, backend=backend)
    report = dyncomp.explain(function)(*arguments)
    assert len(report.graphs) == 1
    assert "routine" not in str(report.graphs[0])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_classes(shape: tuple[int, ...]) -> None:
    x, classes, _, weight = operands(shape)
    check_own(every_way(), x, classes, weight)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_probabilities(shape: tuple[int, ...]) -> None:
    x, _, target, weight = operands(shape)
    check_own(of_probabilities, x, target, weight)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_types(dtype: Any) -> None:
    x, classes, target, weight = operands((7, 5), dtype)
    check_own(every_way(), x, classes, weight)
    check_own(of_probabilities, x, target, weight)


@pytest.mark.parametrize("shape", [(7, 5), (2, 3, 4, 5)], ids=str)
def test_inductor(shape: tuple[int, ...]) -> None:
    x, classes, target, weight = operands(shape)
    check_own(every_way(), x, classes, weight, backend="inductor")
    check_own(of_probabilities, x, target, weight, backend="inductor")


def test_layouts() -> None:
    x, classes, target, weight = operands((3, 4, 6))
    check(every_way(), x.transpose(0, 2).contiguous().transpose(0, 2), classes.t().contiguous().t(), weight)
    check(of_probabilities, x, target.transpose(1, 2).contiguous().transpose(1, 2), weight)
    check(every_way(), x.permute(2, 1, 0), classes.t(), weight)


def test_ignored_classes() -> None:
    x, classes, _, weight = operands((7, 5))
    check(every_way(ignore_index=2), x, classes.clamp(0), weight)
    check(every_way(), x, torch.full_like(classes, IGNORED), weight)
    x[1] = float("nan")  # is ignored
    check(every_way(), x, classes, weight)
    x[0, classes[0]] = float("-inf")
    x[2] = float("-inf")
    x[3, 0] = float("inf")
    check(every_way(), x, classes, weight)


def mean(x: Any, classes: Any) -> Any:
    return F.cross_entropy(x, classes)


@pytest.mark.parametrize("wrong", [5, -1, -7])
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_classes_that_are_none(wrong: int, backend: str) -> None:
    x, classes, _, _ = operands((7, 5))
    compiled = dyncomp.compile(mean, backend=backend)
    compiled(x, classes)
    classes[0] = wrong
    with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
        mean(x, classes)
    with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
        compiled(x, classes)


BAD = [
    lambda x, k, p, w: F.cross_entropy(x, k[:3]),
    lambda x, k, p, w: F.cross_entropy(x, k, w[:2]),
    lambda x, k, p, w: F.cross_entropy(x, p, ignore_index=1),
    lambda x, k, p, w: F.cross_entropy(x, k, label_smoothing=1.5),
    lambda x, k, p, w: F.cross_entropy(x, k.float()),
    lambda x, k, p, w: F.cross_entropy(x.long(), k),
    lambda x, k, p, w: F.cross_entropy(x, k, reduction="most"),
    lambda x, k, p, w: F.cross_entropy(x, p.long()),
    lambda x, k, p, w: F.nll_loss(x, p),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_arguments_that_torch_refuses(number: int) -> None:
    arguments = operands((7, 5))
    with pytest.raises(Exception) as theirs:
        BAD[number](*arguments)
    with pytest.raises(type(theirs.value)) as mine:
        dyncomp.compile(BAD[number], backend="eager")(*arguments)
    assert str(mine.value) == str(theirs.value)


def test_what_is_left_to_torch() -> None:
    """Other types of classes, weights and probabilities."""
    x, classes, target, weight = operands((7, 5))
    check(lambda x, k: F.cross_entropy(x, k), x, classes.clamp(0).to(torch.uint8), backend="eager")
    check(lambda x, p: F.cross_entropy(x, p), x, target.double(), backend="eager")


def test_sizes_become_symbols() -> None:
    compiled = dyncomp.compile(mean, backend="eager", fullgraph=True, dynamic=True)
    for count in (3, 8, 2):
        x, classes, _, _ = operands((count, 5 + count))
        torch.testing.assert_close(compiled(x, classes), mean(x, classes))


def test_losses_of_two_shapes_warn():
    x = torch.randn(4, 6)
    compiled = dyncomp.compile(torch.nn.functional.mse_loss, backend="eager")
    for _ in range(2):
        with pytest.warns(UserWarning, match="target size"):
            found = compiled(x, x[:1])
        assert torch.allclose(found, ((x - x[:1]) ** 2).mean())


NATIVE = (
    "cross_entropy_loss(x, k)",
    "cross_entropy_loss(x, k, w)",
    "cross_entropy_loss(x, k, None, 1)",
    "cross_entropy_loss(x, k, reduction=2)",
    "cross_entropy_loss(x, p)",
    "nll_loss_nd(x, k)",
    "nll_loss_nd(x, k, w, 1)",
    "binary_cross_entropy(p, p)",
    "binary_cross_entropy(p, p, w)",
    "binary_cross_entropy(w, p)",
    "binary_cross_entropy(p, w)",
    "binary_cross_entropy(p, p, None, 1)",
    "mse_loss(x, w)",
    "l1_loss(x, p)",
    "huber_loss(x, p)",
    "smooth_l1_loss(x, w)",
    "soft_margin_loss(x, p)",
    "multi_margin_loss(x, k)",
)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("text", NATIVE)
def test_functions_below_those_of_the_library(text: str) -> None:
    """They have defaults of their own; no graph fails in every call."""
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    given = (x, torch.tensor([0, 3, 1, 2]), x.softmax(1), torch.full((4,), 0.25))
    space: dict[str, Any] = {"torch": torch}
    exec(f"def f(x, k, p, w):\n    return torch._C._nn.{text}", space)
    before = dyncomp.stats()["fallbacks"]
    compiled = dyncomp.compile(space["f"], backend="eager")
    wanted = space["f"](*given)
    for _ in range(3):
        found = compiled(*given)
        assert found.shape == wanted.shape and torch.allclose(found, wanted, equal_nan=True)
    assert dyncomp.stats()["fallbacks"] == before


# -- sequences --------------------------------------------------------------------------------------
def ctc_of_padded(scores, labels, lengths, reduction):
    """As transformers has it: how many targets there are depends on the data."""
    kept = labels > 0
    logarithms = F.log_softmax(scores, dim=-1).transpose(0, 1)
    targets = labels.masked_select(kept)
    return F.ctc_loss(logarithms, targets, lengths, kept.sum(-1), blank=0, reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_targets_of_unknown_size_do_not_break_the_graph(reduction):
    torch.manual_seed(3)
    labels = torch.tensor([[2, 5, 0, 1], [3, 0, 0, 0], [1, 1, 4, 0]])
    fast = dyncomp.compile(ctc_of_padded)
    with torch.enable_grad():
        for batch, steps in ((2, 9), (3, 11), (3, 9)):
            scores = torch.randn(batch, steps, 6, requires_grad=True)
            given = labels[:batch].roll(steps, 1), torch.full((batch,), steps - 1), reduction
            found, expected = fast(scores, *given), ctc_of_padded(scores, *given)
            torch.testing.assert_close(found, expected)
            gradients = [torch.autograd.grad(loss.sum(), scores)[0] for loss in (found, expected)]
            torch.testing.assert_close(*gradients)
    report = dyncomp.explain(ctc_of_padded)(scores, *given)
    assert not report.breaks and not report.skipped


def test_sequences_that_torch_refuses():
    """Lengths beyond the steps raise as in plain Python."""
    labels, lengths = torch.tensor([[2, 5, 0, 1]]), torch.tensor([30])
    for f in (ctc_of_padded, dyncomp.compile(ctc_of_padded)):
        with pytest.raises(RuntimeError, match="input_length"):
            f(torch.randn(1, 9, 6), labels, lengths, "mean")
