"""Cells of recurrent networks (``nn.LSTMCell``, ``GRUCell``, ``RNNCell``), as what they compute; layers of
many steps are routines, with dropout between them in training mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...device import CPU
from ...dtypes import float32, float64
from ...errors import Unsupported
from ...graph.ir import Var
from ..base import ArrayRef, TraceContext
from ..numpy.operands import emit
from .call_names import RECURRENT
from .calls import called_as, routine
from .dropout import dropout
from .functional import relu_var
from .library import torch
from .linear import linear
from .operands import need_tensor, pointwise, tensor
from .shape import piece, transpose
from .torch_rules import RuleTable

TABLE = RuleTable()


def _gates(
    tx: TraceContext, x: object, h: ArrayRef, weights: Sequence[object], biases: Sequence[object], count: int
) -> tuple[list[Var], list[Var]]:
    """The rows of ``x @ w_ih.T + b_ih`` and of ``h @ w_hh.T + b_hh`` in ``count`` parts."""
    tensors = [need_tensor(t) for t in (x, h, *weights, *[b for b in biases if b is not None])]
    if any(t.ndim != 2 for t in tensors[:4]) or tensors[0].dtype not in (float32, float64):
        raise Unsupported("a recurrent cell of these inputs")
    width = h.shape[1]
    if any(type(n) is not int for n in (width, *tensors[2].shape)) or tensors[3].shape[0] != count * width:
        raise Unsupported("a recurrent cell of unknown width")
    found = []
    for source, weight, bias in zip((x, h), weights, biases):
        rows = linear(tx, source, weight, bias)
        found.append([piece(tx, rows.var, 1, number * width, width).var for number in range(count)])
    return found[0], found[1]


@TABLE.function("lstm_cell")
def lstm_cell(
    tx: TraceContext,
    input: object,
    hx: object,
    w_ih: object,
    w_hh: object,
    b_ih: object = None,
    b_hh: object = None,
) -> tuple[ArrayRef, ArrayRef]:
    """Hidden and cell state after a step (Hochreiter and Schmidhuber, 1997, with a forget gate)."""
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise Unsupported("an LSTM cell without a state")
    h, c = need_tensor(hx[0]), need_tensor(hx[1])
    if c.shape != h.shape or c.dtype != h.dtype:
        raise Unsupported("an LSTM cell of states unlike each other")
    ours, theirs = _gates(tx, input, h, (w_ih, w_hh), (b_ih, b_hh), 4)
    sums = [pointwise(tx, "add", b, a) for a, b in zip(ours, theirs)]
    write, keep, show = (pointwise(tx, "sigmoid", sums[k]) for k in (0, 1, 3))
    new = pointwise(tx, "multiply", write, pointwise(tx, "tanh", sums[2]))
    cell = pointwise(tx, "add", pointwise(tx, "multiply", keep, c.var), new)
    hidden = pointwise(tx, "multiply", show, pointwise(tx, "tanh", cell))
    return tensor(hidden), tensor(cell)


@TABLE.function("gru_cell")
def gru_cell(
    tx: TraceContext,
    input: object,
    hx: object,
    w_ih: object,
    w_hh: object,
    b_ih: object = None,
    b_hh: object = None,
) -> ArrayRef:
    """The state after a step (Cho et al., 2014)."""
    h = need_tensor(hx)
    ours, theirs = _gates(tx, input, h, (w_ih, w_hh), (b_ih, b_hh), 3)
    reset, update = (pointwise(tx, "sigmoid", pointwise(tx, "add", theirs[k], ours[k])) for k in (0, 1))
    new = pointwise(tx, "tanh", pointwise(tx, "add", pointwise(tx, "multiply", theirs[2], reset), ours[2]))
    change = pointwise(tx, "multiply", pointwise(tx, "subtract", h.var, new), update)
    return tensor(pointwise(tx, "add", change, new))


def _simple_cell(activation: Callable[[TraceContext, Var], Var]) -> Callable[..., ArrayRef]:
    """The rule of a cell whose state is an activation of the sum of its gates (Elman, 1990)."""

    def cell(
        tx: TraceContext,
        input: object,
        hx: object,
        w_ih: object,
        w_hh: object,
        b_ih: object = None,
        b_hh: object = None,
    ) -> ArrayRef:
        (ours,), (theirs,) = _gates(tx, input, need_tensor(hx), (w_ih, w_hh), (b_ih, b_hh), 1)
        return tensor(activation(tx, pointwise(tx, "add", theirs, ours)))

    return cell


TABLE.function("rnn_tanh_cell")(_simple_cell(lambda tx, x: pointwise(tx, "tanh", x)))
TABLE.function("rnn_relu_cell")(_simple_cell(lambda tx, x: relu_var(tx, tensor(x))))


# -- layers of many steps, with dropout between them ---------------------------------------------------------
def _states(hx: Any) -> Sequence[Any]:
    return hx if isinstance(hx, (tuple, list)) else (hx,)


def _layers(name: str) -> Callable[..., tuple[ArrayRef, ...]]:
    """``_rnn_impl`` of ATen/native/RNN.cpp: what a layer gives, (steps, batch, width) or packed, passes
    dropout on its way to the next."""
    function = getattr(torch._VF, name)
    layer = routine(function)

    def packed(tx: TraceContext, *args: Any) -> tuple[ArrayRef, ...]:
        """Of packed sequences, which torch refuses without memory: its results are like the states."""
        data, states = need_tensor(args[0]), [need_tensor(s) for s in _states(args[2])]
        if data.type.device != CPU:
            raise Unsupported("packed sequences on a GPU")
        width = states[0].shape[-1] * (1 + bool(args[-1]))
        types = [(data.dtype, (data.shape[0], width)), *((s.dtype, s.shape) for s in states)]
        return tuple(called_as(tx, function, args, types))

    def rule(tx: TraceContext, *args: Any) -> tuple[ArrayRef, ...]:
        is_packed = isinstance(args[3], (tuple, list))
        data, sizes, rest = args[0], args[1 : 1 + is_packed], args[1 + is_packed :]
        hx, parameters, biases, count, p, train, two_ways, *batch_first = rest
        if train is not True or p == 0:
            if is_packed:
                return packed(tx, *args)
            raise Unsupported("a recurrent layer without dropout")
        states = [need_tensor(s) for s in _states(hx)]
        ways, each = 1 + bool(two_ways), len(parameters) // count
        turned = bool(batch_first and batch_first[0])
        x, finals = transpose(tx, data, 0, 1) if turned else need_tensor(data), []
        for k in range(count):
            given: list[Any] = [piece(tx, s.var, 0, k * ways, ways) for s in states]
            start = given if name == "lstm" else given[0]
            own = parameters[k * each : (k + 1) * each]
            x, *last = (packed if is_packed else layer)(
                tx, x, *sizes, start, own, biases, 1, 0.0, True, two_ways, *(False for _ in batch_first)
            )
            finals.append(last)
            if k < count - 1:
                x = dropout(tx, x, p)
        ends = (emit(tx, "concatenate", *(s.var for s in parts), axis=0) for parts in zip(*finals))
        return transpose(tx, x, 0, 1) if turned else x, *map(tensor, ends)

    return rule


for _name in sorted(RECURRENT):
    TABLE.function(f"_VF.{_name}", _name)(_layers(_name))
