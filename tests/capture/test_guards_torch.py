"""Tensor facts through DLPack's C exchange table."""

from __future__ import annotations

import numpy as np
import pytest

from dyncomp.capture.guards.fact_kinds import CustomCheck, Elements, SymBinding, SymCondition, TensorFacts
from dyncomp.capture.guards.guard import Guard, GuardRefused, Kind, compile_guards, describe_failure
from dyncomp.capture.guards.source import AttrSource, LocalSource
from tests.warm_start.test_plain import packed, unpacked

torch = pytest.importorskip("torch")
if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    pytest.skip("this torch has no exchange table", allow_module_level=True)

X = LocalSource("x", 0)
F32 = TensorFacts(torch.Tensor, (2, 32, 1), (3, 4), (4, 1))


def check(guard, *args):
    program = compile_guards([guard])
    answer = program.check(args, {}, {})
    assert (describe_failure(program, args, {}, {}) is None) == answer
    return answer


def test_tensor():
    guard = Guard(X, Kind.TORCH_TENSOR, F32)
    assert check(guard, torch.ones(3, 4))
    assert check(guard, torch.ones(6, 4)[3:])
    for other in (
        torch.ones(4, 3).t(),
        torch.ones(3, 5),
        torch.ones(3, 4, dtype=torch.float64),
        torch.ones(3, 4, dtype=torch.int32),
        torch.ones(3),
        torch.nn.Parameter(torch.ones(3, 4)),
        torch.ones(3, 4).to_sparse(),
        torch.ones(3, 4, device="meta"),
        torch.ones(3, 4).numpy(),
        3,
    ):
        assert not check(guard, other)
    assert str(F32) == "Tensor float32 (3, 4) strides (4, 1)"


def test_requires_grad_and_views():
    guard = Guard(X, Kind.TORCH_TENSOR, F32)
    grad = torch.ones(3, 4, requires_grad=True)
    answers = {check(guard, grad), check(guard, grad * 2)}
    assert len(answers) == 1
    requires = Guard(AttrSource(X, "requires_grad"), Kind.BOOL, False)
    assert check(requires, torch.ones(3, 4))
    assert not check(requires, grad)


def test_free_sizes_and_parameters():
    free = TensorFacts(torch.nn.Parameter, (2, 32, 1), (None, 4), None)
    assert check(Guard(X, Kind.TORCH_TENSOR, free), torch.nn.Parameter(torch.ones(7, 4)))
    assert not check(Guard(X, Kind.TORCH_TENSOR, free), torch.nn.Parameter(torch.ones(7, 5)))
    half = TensorFacts(torch.Tensor, (4, 16, 1), (2,), (1,))
    assert check(Guard(X, Kind.TORCH_TENSOR, half), torch.ones(2, dtype=torch.bfloat16))
    boolean = TensorFacts(torch.Tensor, (6, 8, 1), (2,), (1,))
    assert check(Guard(X, Kind.TORCH_TENSOR, boolean), torch.ones(2, dtype=torch.bool))


def test_symbols():
    condition = SymCondition(
        ("n", "s", "mul", 12, "sub"),
        "==",
        (SymBinding("n", X, "tdim", 0), SymBinding("s", X, "tstride", 0)),
    )
    guard = Guard(None, Kind.SYM, condition)
    assert check(guard, torch.ones(3, 4))
    assert not check(guard, torch.ones(3, 5))
    assert not check(guard, torch.ones(()))
    assert not check(guard, 3)


def test_types_without_a_table_are_refused():
    with pytest.raises(GuardRefused):
        compile_guards([Guard(X, Kind.TORCH_TENSOR, TensorFacts(int, (2, 32, 1), (3,), None))])


def test_store():
    guard = Guard(X, Kind.TORCH_TENSOR, F32)
    back = unpacked(packed(guard))
    assert str(back) == str(guard)
    assert check(back, torch.ones(3, 4))


def test_custom():
    guard = Guard(X, Kind.CUSTOM_ARRAY, CustomCheck(lambda t, e: t.dim() == e, 2))
    assert check(guard, torch.ones(3, 4))
    assert not check(guard, torch.ones(3))


def test_elements():
    guard = Guard(X, Kind.ELEMENTS, Elements.of(np.array([3, 4])))
    assert str(guard) == "x: elements [3, 4]"
    assert unpacked(packed(guard.expected)) == guard.expected
    assert check(guard, torch.tensor([3, 4]))
    assert check(guard, np.array([3, 4]))
    assert check(guard, torch.tensor([[1, 2], [3, 4]])[1])
    for other in (
        torch.tensor([3, 5]),
        torch.tensor([3, 9, 4, 9])[::2],
        torch.tensor([3, 4], dtype=torch.int32),
        torch.tensor([3, 4, 5]),
        np.array([3, 4, 5]),
        np.array([3, 9, 4, 9])[::2],
        torch.empty(2, dtype=torch.int64, device="meta"),
        [3, 4],
        None,
    ):
        assert not check(guard, other)
    number = Guard(X, Kind.ELEMENTS, Elements.of(np.array(True)))
    assert check(number, torch.tensor(True))
    assert check(number, np.array(True))
    assert not check(number, torch.tensor(False))
    with pytest.raises(GuardRefused):
        compile_guards([Guard(X, Kind.ELEMENTS, b"12")])
