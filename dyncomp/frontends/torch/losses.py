"""Cross entropy and the negative log-likelihood of classes, as torch's LossNLL.cpp defines them.

Where classes are given by number the logarithms of the other probabilities are not made. The loss of
sequences (``ctc_loss``) is torch's own routine.
"""

from __future__ import annotations

from typing import Any

from ...dataclass import dataclass
from ...device import CPU
from ...dtypes import int64
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import shapes_equal
from ...symbolic.integers import Dim, product
from ..base import ArrayRef, TraceContext
from ..numpy.operands import emit
from . import state
from .calls import routine
from .functional import real_tensor
from .library import torch
from .operands import contiguous, convert, need_tensor, pointwise, tensor, to_var
from .pointwise import add_var, divide_var, multiply_var
from .reductions import widened
from .torch_rules import RuleTable

TABLE = RuleTable()

# Of torch.nn._reduction: a loss for each place, their mean, their sum.
NONE, MEAN, SUM = range(3)


@dataclass(frozen=True)
class _Scores:
    """What a loss is of. ``axis``: that of the classes; ``weight``: of each class, if there are any."""

    x: ArrayRef
    axis: int
    weight: ArrayRef | None

    @property
    def rest(self) -> tuple[Dim, ...]:
        """The sizes but for the number of classes."""
        return self.x.shape[: self.axis] + self.x.shape[self.axis + 1 :]

    @property
    def classes(self) -> Dim:
        return self.x.shape[self.axis]


@dataclass(frozen=True)
class _Classes:
    """The class of each place. ``numbers``: 0 where it is ignored; ``counts``: where it is not;
    ``weights``: of the classes, 0 where these are ignored; ``None``: all are 1."""

    numbers: Var
    counts: Var
    weights: Var | None


def _scores(input: object, weight: object, reduction: object) -> _Scores:
    x = real_tensor(input)
    if reduction not in (NONE, MEAN, SUM) or x.ndim == 0:
        raise Unsupported("a loss of these arguments")
    axis = 0 if x.ndim == 1 else 1
    if x.shape[axis] == 0:
        raise Unsupported("a loss without classes")
    weights = None if weight is None else need_tensor(weight)
    if weights is not None and (
        weights.dtype != x.dtype or not shapes_equal(weights.shape, (x.shape[axis],))
    ):
        raise Unsupported("weights of another dtype or number than the classes")
    if x.ndim > 2 and x.type.device != CPU and state.read_state()[-1]:
        raise Unsupported("the loss of images has no deterministic algorithm on a GPU")
    return _Scores(x, axis, weights)


def _classes(tx: TraceContext, scores: _Scores, target: object, ignore_index: object) -> _Classes:
    given = need_tensor(target)
    if given.dtype != int64 or not shapes_equal(given.shape, scores.rest):
        raise Unsupported("classes of another dtype or shape")
    zero, ignored = (to_var(tx, value, int64) for value in (0, ignore_index))
    counts = pointwise(tx, "not_equal", given.var, ignored)
    numbers = contiguous(tx, pointwise(tx, "where", counts, given.var, zero))
    if scores.weight is None:
        return _Classes(numbers, counts, None)
    weights = emit(tx, "index", scores.weight.var, numbers, dims=(0,), position=0)
    return _Classes(numbers, counts, _where(tx, counts, weights))


def _where(tx: TraceContext, counts: Var, values: Var) -> Var:
    """``values``, 0 where these do not count."""
    return contiguous(tx, pointwise(tx, "where", counts, values, to_var(tx, 0.0, values.dtype)))


def _sum(tx: TraceContext, x: Var, axes: tuple[int, ...] | None = None) -> ArrayRef:
    """Over ``axes`` (all), halves in float32."""
    over = tuple(range(x.ndim)) if axes is None else axes
    return tensor(convert(tx, contiguous(tx, emit(tx, "reduce_sum", widened(tx, x), axes=over)), x.dtype))


def _reduced(tx: TraceContext, losses: Var, classes: _Classes, reduction: int) -> ArrayRef:
    """A loss for each place as one; a mean is relative to the weights of what counts."""
    if reduction == NONE:
        return tensor(losses)
    total = _sum(tx, losses)
    if reduction == SUM:
        return total
    if classes.weights is not None:
        return tensor(divide_var(tx, total, _sum(tx, classes.weights)))
    count = _sum(tx, emit(tx, "convert", classes.counts, dtype=int64))
    return tensor(divide_var(tx, total, tensor(convert(tx, count.var, total.dtype))))


def _likelihoods(tx: TraceContext, logs: Var, classes: _Classes, reduction: int) -> ArrayRef:
    """The loss where ``logs`` are the logarithms of the probabilities of the places' classes."""
    losses = pointwise(tx, "negative", logs)
    if classes.weights is not None:
        losses = pointwise(tx, "multiply", losses, classes.weights)
    return _reduced(tx, _where(tx, classes.counts, losses), classes, reduction)


@TABLE.function("_C._nn.nll_loss_nd")
def nll_loss(
    tx: TraceContext,
    self: object,
    target: object,
    weight: object = None,
    reduction: Any = NONE,
    ignore_index: object = -100,
) -> ArrayRef:
    """Of logarithms of probabilities, with classes along dimension 1 (0 if there is no other)."""
    scores = _scores(self, weight, reduction)
    classes = _classes(tx, scores, target, ignore_index)
    kept = tuple(a for a in range(scores.x.ndim) if a != scores.axis)
    column = tuple(1 if a == scores.axis else d for a, d in enumerate(scores.x.shape))
    outside = to_var(tx, scores.classes, int64)
    is_negative = pointwise(tx, "less", classes.numbers, to_var(tx, 0, int64))
    checked = contiguous(tx, pointwise(tx, "where", is_negative, outside, classes.numbers))
    at = emit(tx, "broadcast_in_dim", checked, shape=column, dims=kept)
    picked = contiguous(tx, emit(tx, "take_along_axis", scores.x.var, at, axis=scores.axis))
    logs = emit(tx, "reshape", picked, shape=scores.rest)
    return _likelihoods(tx, logs, classes, reduction)


@TABLE.function("_C._nn.cross_entropy_loss")
def cross_entropy(
    tx: TraceContext,
    self: object,
    target: Any,
    weight: object = None,
    reduction: Any = NONE,
    ignore_index: Any = -100,
    label_smoothing: Any = 0.0,
) -> ArrayRef:
    """Of scores, with classes along dimension 1 (0 if there is no other); targets are classes, or
    probabilities of each where they have the scores' shape."""
    scores = _scores(self, weight, reduction)
    if not isinstance(label_smoothing, (int, float)) or label_smoothing > 1:
        raise Unsupported("label_smoothing must be between 0.0 and 1.0")
    if shapes_equal(scores.x.shape, need_tensor(target).shape):
        return _of_probabilities(tx, scores, target, reduction, ignore_index, label_smoothing)
    classes = _classes(tx, scores, target, ignore_index)
    wide = widened(tx, scores.x.var)
    logs = convert(tx, emit(tx, "log_softmax_at", wide, classes.numbers, axis=scores.axis), scores.x.dtype)
    found = _likelihoods(tx, logs, classes, reduction)
    if label_smoothing <= 0:
        return found
    share = tensor(
        multiply_var(tx, _smooth(tx, scores, classes, reduction), _per_class(label_smoothing, scores))
    )
    return tensor(add_var(tx, tensor(multiply_var(tx, found, 1 - label_smoothing)), share))


def _per_class(amount: float, scores: _Scores) -> float:
    if not isinstance(scores.classes, int):
        raise Unsupported("label smoothing over a number of classes known at run time only")
    return amount / scores.classes


def _log_softmax(tx: TraceContext, scores: _Scores) -> Var:
    wide = emit(tx, "log_softmax", widened(tx, scores.x.var), axes=(scores.axis,))
    return contiguous(tx, convert(tx, wide, scores.x.dtype))


def _weighted(tx: TraceContext, scores: _Scores, values: Var) -> Var:
    """``values`` of all classes times the classes' weights."""
    if scores.weight is None:
        return values
    spread = emit(tx, "broadcast_in_dim", scores.weight.var, shape=scores.x.shape, dims=(scores.axis,))
    return pointwise(tx, "multiply", values, spread)


def _smooth(tx: TraceContext, scores: _Scores, classes: _Classes, reduction: int) -> ArrayRef:
    """The loss where all classes are equally right."""
    logs = _weighted(tx, scores, _log_softmax(tx, scores))
    losses = pointwise(tx, "negative", _sum(tx, logs, (scores.axis,)).var)
    return _reduced(tx, _where(tx, classes.counts, losses), classes, reduction)


def _of_probabilities(
    tx: TraceContext, scores: _Scores, target: object, reduction: int, ignore_index: object, smoothing: float
) -> ArrayRef:
    given = real_tensor(target)
    if given.dtype != scores.x.dtype or not (isinstance(ignore_index, int) and ignore_index < 0):
        raise Unsupported("probabilities of another dtype, or some ignored")
    if smoothing > 0:
        kept = tensor(multiply_var(tx, given, 1 - smoothing))
        given = tensor(add_var(tx, kept, _per_class(smoothing, scores)))
    logs = pointwise(tx, "multiply", _log_softmax(tx, scores), given.var)
    terms = _weighted(tx, scores, logs)
    if reduction == NONE:
        return tensor(pointwise(tx, "negative", _sum(tx, terms, (scores.axis,)).var))
    total = tensor(pointwise(tx, "negative", _sum(tx, terms).var))
    if reduction == SUM:
        return total
    return tensor(divide_var(tx, total, product(scores.rest)))


def ctc_loss(
    log_probs: Any,
    targets: object,
    input_lengths: object,
    target_lengths: object,
    blank: object = 0,
    reduction: object = MEAN,
    zero_infinity: object = False,
) -> Any:
    """torch's own. Without memory it cannot be tried, as the lengths say what sizes go together: then
    something that has the same type, size and gradients."""
    if not log_probs.is_meta:
        given = (log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
        return torch.ctc_loss(*given)
    each = log_probs.sum((0, 2) if log_probs.ndim == 3 else None)
    return each if reduction == NONE else each.sum()


TABLE.function("ctc_loss")(routine(ctc_loss))
