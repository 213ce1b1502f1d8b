"""``np.einsum`` through pairwise ``dot_general``."""

from __future__ import annotations

import string
from collections import Counter
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import iteration_order, strides_in_order
from ...symbolic.integers import Dim, SymInt, hint, same
from ..base import ArrayRef, TraceContext
from . import promote
from .linalg import contract
from .numpy_rules import RuleTable
from .operands import as_ref, broadcast_shapes, broadcast_to, convert, emit, value_of, view_of
from .promote import parse_dtype
from .ufunc_methods import deliver, single_out
from .views import transpose_var

TABLE = RuleTable()

Label = str


@dataclass(frozen=True)
class Term:
    """An operand whose dimensions are distinct labels."""

    var: Var
    labels: tuple[Label, ...]

    def size(self, label: Label) -> Dim:
        return self.var.shape[self.labels.index(label)]


_LETTERS = (
    string.ascii_uppercase + string.ascii_lowercase
)  # in order, as outputs that are not given are sorted


@TABLE.function("einsum")
def einsum(
    tx: TraceContext,
    *operands: object,
    out: object = None,
    dtype: object = None,
    order: str = "K",
    casting: str = "safe",
    optimize: object = False,
) -> ArrayRef:
    """``np.einsum`` with a subscript string. Operands are contracted in pairs, the pair with the
    smallest result first. The result's memory order is that of NumPy's iterator where sizes are known and
    ``optimize`` is not asked for."""
    if operands and isinstance(operands[0], ArrayRef):
        operands = _with_subscripts(operands)
    if not operands or not isinstance(operands[0], str) or order != "K":
        raise Unsupported("numpy.einsum with subscripts that are not a string, or with order=")
    if optimize is not False and len(operands) > 2:
        raise Unsupported("numpy.einsum with optimize=: the memory order is that of its steps")
    refs = [as_ref(tx, x) for x in operands[1:]]
    inputs, output = parse_subscripts(operands[0], [r.ndim for r in refs])
    natural = promote.from_np(np.result_type(*(r.dtype.numpy for r in refs)))
    wanted = natural if dtype is None else parse_dtype(dtype)
    if wanted.is_bool or not promote.can_cast(natural, wanted, casting):
        raise Unsupported("numpy.einsum of booleans, or with an unsafe dtype=")
    terms = [_term(tx, convert(tx, r.var, wanted), labels) for r, labels in zip(refs, inputs)]
    if len(terms) == 1 and set(terms[0].labels) == set(output) and out is None:
        view = _permuted(tx, terms[0], output)
        shared = view.ndim and refs[0].dtype == wanted
        return view_of(refs[0], view) if shared else value_of(view)
    operands_as_given = terms = _drop_broadcast(tx, terms)
    while len(terms) > 1:
        first, last = _best_pair(terms, output)
        rest = [t for t in terms if t is not first and t is not last]
        terms = [*rest, _multiply(tx, first, last, _needed(rest, output))]
    summed = _sum_out(tx, terms[0], set(output))
    result = _permuted(tx, summed, output)
    if out is None and not optimize:
        result = _as_iterated(tx, result, operands_as_given, output)
    return deliver(tx, result, single_out(out))


def _as_iterated(tx: TraceContext, x: Var, terms: list[Term], output: list[Label]) -> Var:
    """``x`` with its axes in memory as the iterator over all labels goes through them."""
    if any(
        isinstance(n, SymInt) for var in (x, *(t.var for t in terms)) for n in (*var.shape, *var.type.strides)
    ):
        return x
    labels = [*output, *sorted({label for term in terms for label in term.labels}.difference(output))]
    sizes = [next(t.size(label) for t in terms if label in t.labels) for label in labels]
    strides = [[_stride(term, label) for label in labels] for term in terms]
    axes = [axis for axis in iteration_order(sizes, strides) if axis < len(output)]
    wanted = strides_in_order(x.shape, axes)
    if all(size <= 1 or a == b for size, a, b in zip(x.shape, wanted, x.type.strides)):
        return x
    fresh = emit(tx, "contiguous", transpose_var(tx, x, axes))
    return transpose_var(tx, fresh, sorted(range(x.ndim), key=axes.__getitem__))


def _stride(term: Term, label: Label) -> Dim:
    return term.var.type.strides[term.labels.index(label)] if label in term.labels else 0


def _with_subscripts(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The form ``einsum(a, [0, 1], b, [1, 2], [0, 2])`` with its lists of numbers as letters."""
    output = operands[-1] if len(operands) % 2 else None
    pairs = operands[: len(operands) - (len(operands) % 2)]
    text = ",".join(map(_letters, pairs[1::2]))
    if output is not None:
        text = f"{text}->{_letters(output)}"
    return (text, *pairs[::2])


def _letters(labels: object) -> str:
    if not isinstance(labels, (list, tuple)):
        raise Unsupported("numpy.einsum with subscripts that are not a list")
    return "".join(map(_letter, labels))


def _letter(label: object) -> str:
    if label is Ellipsis:
        return "..."
    if type(label) is not int or not 0 <= label < len(_LETTERS):
        raise Unsupported(f"numpy.einsum with the subscript {label!r}")
    return _LETTERS[label]


def parse_subscripts(text: str, ndims: list[int]) -> tuple[list[list[Label]], list[Label]]:
    """Labels of every operand and of the output; dimensions under an ellipsis get labels ``.0 .1 …``
    counted from the right."""
    text = text.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ndims):
        raise Unsupported("the number of subscripts does not match the number of operands")
    inputs = [_labels(part, ndim) for part, ndim in zip(parts, ndims)]
    widest = max((sum(label[0] == "." for label in labels) for labels in inputs), default=0)
    dots = [f".{widest - 1 - i}" for i in range(widest)]
    if arrow:
        output = _output_labels(right, dots)
    else:
        counts = Counter(label for labels in inputs for label in labels if label[0] != ".")
        output = dots + sorted(label for label, count in counts.items() if count == 1)
    known = {label for labels in inputs for label in labels}
    if len(set(output)) != len(output) or not set(output) <= known:
        raise Unsupported(f"einsum output {right!r} repeats or invents a label")
    return inputs, output


def _labels(part: str, ndim: int) -> list[Label]:
    before, dots, after = part.partition("...")
    named = before + after
    if not all(c.isalpha() for c in named):
        raise Unsupported(f"invalid einsum subscripts {part!r}")
    hidden = ndim - len(named)
    if hidden < 0 or (hidden and not dots):
        raise Unsupported(f"einsum subscripts {part!r} do not match an operand of {ndim} dimensions")
    return [*before, *(f".{hidden - 1 - i}" for i in range(hidden)), *after]


def _output_labels(right: str, dots: list[Label]) -> list[Label]:
    before, has_dots, after = right.partition("...")
    if not all(c.isalpha() for c in before + after) or (dots and not has_dots):
        raise Unsupported(f"einsum output {right!r} does not fit the operands")
    return [*before, *(dots if has_dots else []), *after]


def _term(tx: TraceContext, var: Var, labels: list[Label]) -> Term:
    """Repeated labels become diagonals."""
    labels = list(labels)
    while True:
        repeated = next((x for x in labels if labels.count(x) > 1), None)
        if repeated is None:
            return Term(var, tuple(labels))
        first = labels.index(repeated)
        second = labels.index(repeated, first + 1)
        if not var.shape[first] == var.shape[second]:
            raise Unsupported("dimensions of one operand under one einsum label do not match")
        var = emit(tx, "diagonal", var, offset=0, axis1=first, axis2=second)
        labels = [x for i, x in enumerate(labels) if i not in (first, second)] + [repeated]


def _drop_broadcast(tx: TraceContext, terms: list[Term]) -> list[Term]:
    """Dimensions of size one under a label that is larger elsewhere are dropped."""
    sizes: dict[Label, Dim] = {}
    for term in terms:
        for label in term.labels:
            (sizes[label],) = broadcast_shapes((sizes.get(label, 1),), (term.size(label),))
    return [_without_ones(tx, term, sizes) for term in terms]


def _without_ones(tx: TraceContext, term: Term, sizes: dict[Label, Dim]) -> Term:
    kept = [x for x in term.labels if not (same(term.size(x), 1) and not same(sizes[x], 1))]
    if len(kept) == len(term.labels):
        return term
    shape = tuple(term.size(x) for x in kept)
    return Term(emit(tx, "reshape", term.var, shape=shape), tuple(kept))


def _needed(rest: list[Term], output: list[Label]) -> set[Label]:
    return set(output).union(*(t.labels for t in rest))


def _best_pair(terms: list[Term], output: list[Label]) -> tuple[Term, Term]:
    if len(terms) == 2:
        return terms[0], terms[1]
    pairs = [(a, b) for i, a in enumerate(terms) for b in terms[i + 1 :]]

    def result_size(pair: tuple[Term, Term]) -> int:
        rest = [t for t in terms if t not in pair]
        needed = _needed(rest, output)
        total = 1
        for label in {*pair[0].labels, *pair[1].labels} & needed:
            owner = pair[0] if label in pair[0].labels else pair[1]
            total *= hint(owner.size(label))
        return total

    return min(pairs, key=result_size)


def _multiply(tx: TraceContext, x: Term, y: Term, needed: set[Label]) -> Term:
    """The product of two terms, summed over the labels that nothing else needs."""
    x = _sum_out(tx, x, needed | set(y.labels))
    y = _sum_out(tx, y, needed | set(x.labels))
    common = [label for label in x.labels if label in y.labels]
    summed = [label for label in common if label not in needed]
    shared = [label for label in common if label in needed]
    if not summed:
        return _elementwise(tx, x, y)
    axes = (_places(x, summed), _places(y, summed))
    batch = (_places(x, shared), _places(y, shared))
    var = contract(tx, x.var, y.var, axes, batch)
    free = [a for a in x.labels if a not in common] + [b for b in y.labels if b not in common]
    return Term(var, (*shared, *free))


def _places(term: Term, labels: list[Label]) -> tuple[int, ...]:
    return tuple(term.labels.index(label) for label in labels)


def _elementwise(tx: TraceContext, x: Term, y: Term) -> Term:
    labels = (*x.labels, *(label for label in y.labels if label not in x.labels))
    shape = tuple(x.size(label) if label in x.labels else y.size(label) for label in labels)
    spread = [_spread(tx, term, labels, shape) for term in (x, y)]
    if x.var.dtype.is_inexact:
        tx.assume("numpy-errstate")
    tx.unsure += 1
    return Term(emit(tx, "multiply", *spread), labels)


def _spread(tx: TraceContext, term: Term, labels: tuple[Label, ...], shape: tuple[Dim, ...]) -> Var:
    ordered = [label for label in labels if label in term.labels]
    var = _permuted(tx, term, ordered)
    dims = tuple(labels.index(label) for label in ordered)
    if len(dims) == len(shape):
        return broadcast_to(tx, var, shape)
    return emit(tx, "broadcast_in_dim", var, shape=shape, dims=dims)


def _sum_out(tx: TraceContext, term: Term, keep: set[Label]) -> Term:
    axes = tuple(i for i, label in enumerate(term.labels) if label not in keep)
    if not axes:
        return term
    rest = tuple(label for label in term.labels if label in keep)
    return Term(emit(tx, "reduce_sum", term.var, axes=axes), rest)


def _permuted(tx: TraceContext, term: Term, labels: list[Label]) -> Var:
    perm = [term.labels.index(label) for label in labels]
    return term.var if perm == list(range(len(perm))) else transpose_var(tx, term.var, perm)


# what ``np.einsum`` itself calls where it has found an order of its own (``optimize=True``)
TABLE.functions[np._core._multiarray_umath.c_einsum] = einsum  # type: ignore[attr-defined]
