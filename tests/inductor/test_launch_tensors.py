"""CompiledGraph over torch tensors: through DLPack's exchange table and through callbacks."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from dyncomp.dtypes import bfloat16, complex64, float32, float64, int64
from dyncomp.inductor.launch import (
    BufferRef,
    InputResult,
    InputSlot,
    KernelStep,
    LaunchPlan,
    OutputResult,
    OutputSlot,
    PyCallStep,
    SizeRef,
    SymbolSlot,
    TensorOwner,
    ViewOutput,
    build,
)
from tests.runtime.kernels import library, run

torch = pytest.importorskip("torch")


def torch_owner(use_table: bool) -> TensorOwner:
    def dtype(name):
        return getattr(torch, name)

    def describe(tensor):
        return (
            tensor.data_ptr(),
            tuple(tensor.shape),
            tuple(tensor.stride()),
            str(tensor.dtype).removeprefix("torch."),
        )

    def empty(shape, strides, name):
        return torch.empty_strided(shape, strides, dtype=dtype(name))

    def as_strided(base, shape, strides, offset, name):
        typed = base if base.dtype == dtype(name) else base.view(dtype(name))
        return typed.as_strided(shape, strides, typed.storage_offset() + offset)

    return TensorOwner(torch.Tensor, describe, empty, as_strided, use_table)


@pytest.fixture(params=[True, False], ids=["table", "callbacks"])
def owner(request):
    if request.param and not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this torch has no exchange table")
    return torch_owner(request.param)


@pytest.fixture(scope="module")
def kernels():
    return library(
        run(
            "for (i64 i=0;i<s[0];++i) ((float*)b[2])[i] = ((float*)b[0])[i*s[1]] + ((float*)b[1])[i];", "add"
        ),
        'extern "C" void sizes(const i64* s, i64* out) { out[0] = s[0]; }\n',
        run("((float*)b[0])[0] = 42;", "poke"),
    )


@pytest.fixture
def add(kernels, owner):
    slot = InputSlot("array", float32, 1)
    plan = LaunchPlan(
        (slot, slot),
        (OutputSlot(float32, (SizeRef(0),)),),
        (OutputResult(0),),
        (KernelStep("add"),),
        symbols=(SymbolSlot("shape", 0, 0), SymbolSlot("stride", 0, 0)),
        size_count=1,
        owner=owner,
    )
    return build(plan, kernels)


def test_values(add):
    for n in (0, 1, 5, 1000):
        x, y = torch.arange(float(n)), torch.full((n,), 2.0)
        result = add(x, y)
        assert type(result) is torch.Tensor
        assert result.dtype == torch.float32
        assert not result.requires_grad
        assert torch.equal(result, x + y)


def test_strided_input_offset_and_parameter(add):
    x = torch.arange(20.0)[3::4]
    y = torch.nn.Parameter(torch.ones(5))
    assert add(x, y).tolist() == [4, 8, 12, 16, 20]


@pytest.mark.parametrize(
    "bad",
    [None, np.ones(3, np.float32), torch.ones(3, dtype=torch.float64), torch.ones(3, 1), torch.ones(())],
)
def test_refused(add, bad):
    with pytest.raises(TypeError, match="argument 0"):
        add(bad, torch.ones(3))


def test_tensor_elsewhere(add, owner):
    if not owner.use_table:
        pytest.skip("callbacks see no device: the guards do")
    with pytest.raises((TypeError, RuntimeError, BufferError)):
        add(torch.ones(3, device="meta"), torch.ones(3))


def test_dtypes_and_layouts(owner):
    outputs = (
        OutputSlot(bfloat16, (2, 3)),
        OutputSlot(complex64, (2, 3), (1, 2)),
        OutputSlot(int64, ()),
        OutputSlot(float64, (2, 0)),
    )
    results = tuple(OutputResult(k) for k in range(4))
    refs = tuple(BufferRef(k, o.dtype, o.shape, o.strides) for k, o in enumerate(outputs))

    def fill():
        return tuple(np.full(o.shape, k + 1).astype(o.dtype.numpy) for k, o in enumerate(outputs))

    plan = LaunchPlan((), outputs, results, (PyCallStep(fill, (), refs),), single=False, owner=owner)
    made = build(plan)()
    assert [str(t.dtype) for t in made] == [
        "torch.bfloat16",
        "torch.complex64",
        "torch.int64",
        "torch.float64",
    ]
    assert [tuple(t.shape) for t in made] == [(2, 3), (2, 3), (), (2, 0)]
    assert made[1].stride() == (1, 2)
    assert (made[0] == 1).all()
    assert (made[1] == 2).all()
    assert made[2].item() == 3


def test_mutation_views_and_identity(kernels, owner):
    slot = InputSlot("array", float32, 2, writable=True)
    results = (InputResult(0), ViewOutput("input", 0, float32, (3, 2), (1, 3), 0))
    graph = build(LaunchPlan((slot,), (), results, (KernelStep("poke"),), single=False, owner=owner), kernels)
    x = torch.zeros(2, 3)
    same, view = graph(x)
    assert same is x
    assert x[0, 0] == 42
    view[1, 0] = -1
    assert x[0, 1] == -1
    assert torch.equal(view, x.T)


def test_pycall_gets_numpy_arrays(owner):
    slot = InputSlot("array", float64, 2)
    square = (BufferRef(0, float64, (2, 2)), BufferRef(1, float64, (2, 2)))
    plan = LaunchPlan(
        (slot,),
        (OutputSlot(float64, (2, 2)),),
        (OutputResult(0),),
        (PyCallStep("numpy:linalg.inv", square[:1], square[1:]),),
        owner=owner,
    )
    graph = build(plan)
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=torch.float64)
    assert torch.allclose(graph(x), torch.linalg.inv(x))
    with pytest.raises(np.linalg.LinAlgError):
        graph(x * 0)


def test_shape_checks(kernels, owner):
    slot = InputSlot("array", float32, 2, shape=(2, 3), strides=(3, None))
    graph = build(LaunchPlan((slot,), (), (InputResult(0),), (), owner=owner), kernels)
    graph(torch.zeros(2, 3))
    with pytest.raises(TypeError, match="shape"):
        graph(torch.zeros(3, 2))
    with pytest.raises(TypeError, match="strides"):
        graph(torch.zeros(3, 2).T)


def test_tensors_are_freed(add):
    x, y = torch.ones(1000), torch.ones(1000)
    gone = [weakref.ref(add(x, y)) for _ in range(10)]
    gc.collect()
    assert all(ref() is None for ref in gone)
    assert add(x, y).add_(1)[0] == 3


def test_autograd_and_numpy_accept_outputs(add):
    result = add(torch.ones(4), torch.ones(4))
    result.requires_grad_(True)
    (result * 3).sum().backward()
    assert result.grad.tolist() == [3] * 4
    assert result.detach().numpy().tolist() == [2] * 4
