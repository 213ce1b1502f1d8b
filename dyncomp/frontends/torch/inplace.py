"""Operations that write into their tensor: ``x.add_(y)``, ``x += y``, ``copy_``, ``fill_``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import Unsupported
from ...graph.ir import Var
from ..base import ArrayRef, TraceContext, part_shown
from .create import filled
from .functional import relu_var
from .gradients import become_leaf, requires
from .library import torch
from .linear import matmul_var
from .operands import Number, need_tensor, to_var, write
from .pointwise import (
    BINARY,
    KEEPING,
    SCALED_PAIRS,
    UNARY,
    add_var,
    clamp_var,
    divide_var,
    keep_var,
    lerp_var,
    masked_fill_var,
    multiply_var,
    scaled_pair,
    subtract_var,
    unary_var,
)
from .torch_rules import RuleTable

TABLE = RuleTable()


def _operator(var_of: Callable[..., Var]) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, a: object, b: object) -> ArrayRef:
        return write(tx, need_tensor(a), var_of(tx, a, b))

    return rule


for _name, _var_of in BINARY.items():
    TABLE.operator(f"i{_name}")(_operator(_var_of))


@TABLE.operator("imatmul")
def imatmul(tx: TraceContext, a: object, b: object) -> ArrayRef:
    # `a @= b` binds a new tensor: torch has no __imatmul__
    matmul_var(tx, need_tensor(a), need_tensor(b))
    raise Unsupported("a @= b")


@TABLE.method("add_")
def add_(tx: TraceContext, self: object, other: object, *, alpha: object = 1) -> ArrayRef:
    return write(tx, self, add_var(tx, need_tensor(self), other, alpha))


@TABLE.method("sub_", "subtract_")
def sub_(tx: TraceContext, self: object, other: object, *, alpha: object = 1) -> ArrayRef:
    return write(tx, self, subtract_var(tx, need_tensor(self), other, alpha))


@TABLE.method("mul_", "multiply_")
def mul_(tx: TraceContext, self: object, other: object) -> ArrayRef:
    return write(tx, self, multiply_var(tx, need_tensor(self), other))


@TABLE.method("div_", "divide_")
def div_(tx: TraceContext, self: object, other: object, *, rounding_mode: object = None) -> ArrayRef:
    return write(tx, self, divide_var(tx, need_tensor(self), other, rounding_mode))


@TABLE.method("pow_")
def pow_(tx: TraceContext, self: object, exponent: object) -> ArrayRef:
    return write(tx, self, BINARY["pow"](tx, need_tensor(self), exponent))


@TABLE.method("copy_")
def copy_(tx: TraceContext, self: object, src: object, non_blocking: object = False) -> ArrayRef:
    """Casts as ``to`` does."""
    target = need_tensor(self)
    return write(tx, target, to_var(tx, need_tensor(src), target.dtype))


@TABLE.method("fill_")
def fill_(tx: TraceContext, self: object, value: object) -> ArrayRef:
    target = need_tensor(self)
    if not isinstance(value, (*Number, ArrayRef)):
        raise Unsupported("fill_ with something else than a number")
    return write(tx, target, filled(tx, target.shape, value, target.dtype).var)


@TABLE.method("zero_")
def zero_(tx: TraceContext, self: object) -> ArrayRef:
    return fill_(tx, self, 0)


@TABLE.method("masked_fill_")
def masked_fill_(tx: TraceContext, self: object, mask: object, value: object) -> ArrayRef:
    return write(tx, self, masked_fill_var(tx, self, mask, value))


@TABLE.method("lerp_")
def lerp_(tx: TraceContext, self: object, end: object, weight: object) -> ArrayRef:
    return write(tx, self, lerp_var(tx, self, end, weight))


def _scaled_pair(op: str) -> Callable[..., ArrayRef]:
    def rule(
        tx: TraceContext, self: object, tensor1: object, tensor2: object, *, value: object = 1
    ) -> ArrayRef:
        return write(tx, self, scaled_pair(tx, op, self, tensor1, tensor2, value))

    return rule


for _name, _op in SCALED_PAIRS.items():
    TABLE.method(f"{_name}_")(_scaled_pair(_op))


@TABLE.method("clamp_", "clip_")
def clamp_(tx: TraceContext, self: object, min: object = None, max: object = None) -> ArrayRef:
    return write(tx, self, clamp_var(tx, self, min, max))


@TABLE.method("clamp_min_")
def clamp_min_(tx: TraceContext, self: object, min: object) -> ArrayRef:
    return clamp_(tx, self, min)


@TABLE.method("clamp_max_")
def clamp_max_(tx: TraceContext, self: object, max: object) -> ArrayRef:
    return clamp_(tx, self, None, max)


@TABLE.method("relu_")
@TABLE.function("relu_", "F.relu_")
def relu_(tx: TraceContext, input: object) -> ArrayRef:
    return write(tx, input, relu_var(tx, need_tensor(input)))


def _unary(op: str, real: bool) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, self: object) -> ArrayRef:
        return write(tx, self, unary_var(tx, op, self, real))

    return rule


def _keeping(op: str) -> Callable[..., ArrayRef]:
    def rule(tx: TraceContext, self: object) -> ArrayRef:
        return write(tx, self, keep_var(tx, op, self))

    return rule


for _name, (_op, _real) in UNARY.items():
    if _real:
        TABLE.method(f"{_name}_")(_unary(_op, _real))
for _name, _op in KEEPING.items():
    TABLE.method(f"{_name}_")(_keeping(_op))


@TABLE.method("requires_grad_", "requires_grad=")
def requires_grad_(tx: TraceContext, self: object, requires_grad: object = True) -> ArrayRef:
    """Of a tensor that captured code made: a leaf. Of others where it changes nothing."""
    x = need_tensor(self)
    made = tx.builder.producer(x.var) is not None and part_shown(tx.builder, x.var) is None
    if not made and not torch.is_grad_enabled():
        raise Unsupported("requires_grad_ without grad mode")
    if requires(tx, x.var) is requires_grad:
        return x
    if not made or requires_grad is not True or not x.dtype.is_inexact:
        raise Unsupported("requires_grad_ that changes a tensor")
    become_leaf(tx, x.var)
    return x


@TABLE.method("register_hook", "retain_grad", "share_memory_", "set_", "resize_")
def not_captured(tx: TraceContext, self: object, *args: object, **kwargs: object) -> Any:
    raise Unsupported("a method that changes what autograd or the storage knows of a tensor")
