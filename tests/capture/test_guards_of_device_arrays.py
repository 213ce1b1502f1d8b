"""Arrays on a GPU without a DLPack table (CuPy's) are read through their attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyncomp.capture.guards.fact_kinds import NoOverlap, SymBinding, SymCondition, TensorFacts
from dyncomp.capture.guards.guard import Guard, Kind, compile_guards, describe_failure
from dyncomp.capture.guards.source import LocalSource


class Memory:
    def __init__(self, ptr: Any, device_id: Any) -> None:
        self.ptr, self.device_id = ptr, device_id


class DeviceArray:
    """An array as CuPy describes its own, over NumPy's memory."""

    __cuda_array_interface__: Any = None

    def __init__(self, array: Any, device: Any = 0, **changed: Any) -> None:
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
        self.data: Any = Memory(array.ctypes.data, device)
        vars(self).update(changed)


class Raising(DeviceArray):
    @property
    def shape(self) -> Any:
        raise ValueError("no shape")

    @shape.setter
    def shape(self, value: Any) -> None: ...


X, Y = LocalSource("x", 0), LocalSource("y", 1)
FACTS = TensorFacts(DeviceArray, (2, 64, 1), (3, 4), (4, 1), (2, 0))


def check(guard: Guard, *args: Any) -> bool:
    program = compile_guards([guard])
    answer: bool = program.check(args, {}, {})
    assert (describe_failure(program, args, {}, {}) is None) == answer
    return answer


def test_facts() -> None:
    guard = Guard(X, Kind.TORCH_TENSOR, FACTS)
    a = np.ones((3, 4))
    assert check(guard, DeviceArray(a))
    assert check(guard, DeviceArray(np.ones((6, 4))[3:]))
    for other in (
        DeviceArray(a, device=1),
        DeviceArray(a.T),
        DeviceArray(a[::-1]),
        DeviceArray(np.ones((3, 5))),
        DeviceArray(np.ones((3, 4, 1))),
        DeviceArray(a.astype("float32")),
        DeviceArray(a.astype(">f8")),
        DeviceArray(a.view("int64")),
        DeviceArray(a.view("datetime64[s]")),
        DeviceArray(a, shape=[3, 4]),
        DeviceArray(a, shape=(3, 2**70)),
        DeviceArray(a, strides=(33, 8)),
        DeviceArray(a, dtype="float64"),
        DeviceArray(a, data=None),
        DeviceArray(a, device="0"),
        Raising(a),
        a,
        None,
    ):
        assert not check(guard, other)
    assert not check(
        Guard(X, Kind.TORCH_TENSOR, TensorFacts(Raising, (2, 64, 1), (), (), (2, 0))), Raising(a)
    )


def test_negative_strides_and_dtypes() -> None:
    for dtype, code in (
        ("float16", (2, 16, 1)),
        ("bool", (6, 8, 1)),
        ("complex128", (5, 128, 1)),
        ("u2", (1, 16, 1)),
    ):
        facts = TensorFacts(DeviceArray, code, (None, 4), (-4, 1), (2, 0))
        assert check(Guard(X, Kind.TORCH_TENSOR, facts), DeviceArray(np.ones((7, 4), dtype)[::-1]))
        assert not check(Guard(X, Kind.TORCH_TENSOR, facts), DeviceArray(np.ones((7, 5), dtype)[::-1]))


def test_symbols() -> None:
    condition = SymCondition(
        ("n", "s", "mul", 12, "sub"),
        "==",
        (SymBinding("n", X, "tdim", 0), SymBinding("s", X, "tstride", 0)),
    )
    guard = Guard(None, Kind.SYM, condition)
    assert check(guard, DeviceArray(np.ones((3, 4))))
    assert not check(guard, DeviceArray(np.ones((3, 5))))
    assert not check(guard, DeviceArray(np.ones(())))
    assert not check(guard, Raising(np.ones((3, 4))))


def test_overlap() -> None:
    guard = Guard(None, Kind.NO_OVERLAP, NoOverlap((X, Y), (0,)))
    memory = np.ones(10)
    first, second = memory[:5], memory[5:]
    assert check(guard, DeviceArray(first), DeviceArray(second))
    assert check(guard, DeviceArray(first[::-1]), DeviceArray(second[::-1]))
    assert not check(guard, DeviceArray(memory[:6]), DeviceArray(second))
    assert not check(guard, DeviceArray(memory[::-1]), DeviceArray(first))
    assert not check(guard, DeviceArray(memory[8::-1]), DeviceArray(first))
    assert not check(guard, Raising(first), DeviceArray(second))
