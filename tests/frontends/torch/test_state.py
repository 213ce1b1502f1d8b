"""Grad mode, inference mode, autocast, modes, default dtype: guarded, and respected."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

from .harness import same  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh():
    dyncomp.reset()
    yield
    dyncomp.reset()


def weighted(x, w):
    return (x * w).sum(0)


def test_what_requires_grad_has_a_graph_of_its_own():
    fast = dyncomp.compile(weighted)
    x, w = torch.randn(4, 3), torch.randn(3, requires_grad=True)
    out = fast(x, w)
    out.sum().backward()
    assert torch.allclose(w.grad, x.sum(0))
    assert dyncomp.stats()["graphs"] == 1
    # the same arguments without grad mode, and others with it
    with torch.no_grad():
        same(fast(x, w), weighted(x, w), "no_grad")
    same(fast(x, w.detach()), weighted(x, w.detach()), "detached")
    assert dyncomp.stats()["graphs"] == 3
    assert fast(x, w).requires_grad
    w.requires_grad_(False)
    same(fast(x, w), weighted(x, w), "frozen")


def test_grad_mode_turned_on_after_capture():
    fast = dyncomp.compile(weighted)
    x, w = torch.randn(4, 3), torch.randn(3, requires_grad=True)
    with torch.no_grad():
        assert not fast(x, w).requires_grad
    assert fast(x, w).requires_grad
    with torch.no_grad():
        assert not fast(x, w).requires_grad


def test_view_of_a_parameter_without_grad():
    p = torch.nn.Parameter(torch.randn(3, 4))
    with torch.no_grad():
        found = dyncomp.compile(lambda v: v.t(), fullgraph=True)(p)
        same(found, p.t(), "view")
    assert found.data_ptr() == p.data_ptr()


def test_no_grad_block_inside():
    def f(x):
        with torch.no_grad():
            y = x + 1
        return y * 2, torch.is_grad_enabled()

    x = torch.randn(3)
    same(dyncomp.compile(f)(x), f(x), "block")


def test_inference_mode():
    fast = dyncomp.compile(weighted)
    x, w = torch.randn(4, 3), torch.randn(3)
    with torch.inference_mode():
        found, expected = fast(x, w), weighted(x, w)
        same(found, expected, "inference")
        assert found.is_inference() == expected.is_inference()
    assert not fast(x, w).is_inference()


def test_autocast():
    fast = dyncomp.compile(lambda a, b: a @ b)
    a = torch.randn(4, 4)
    assert fast(a, a).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert fast(a, a).dtype is torch.bfloat16
    assert fast(a, a).dtype is torch.float32


def test_default_dtype():
    fast = dyncomp.compile(lambda i: i * 0.5)
    i = torch.arange(3)
    assert fast(i).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert fast(i).dtype is torch.float64
        assert dyncomp.compile(lambda: torch.ones(2) + 1.0)().dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert fast(i).dtype is torch.float32


def test_function_mode():
    from torch.overrides import TorchFunctionMode

    seen = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    fast = dyncomp.compile(lambda x: torch.relu(x))
    x = torch.randn(3)
    fast(x)
    with Watch():
        fast(x)
    assert torch.relu in seen


REFUSED = {
    "subclass": lambda: torch.randn(3).as_subclass(type("Mine", (torch.Tensor,), {})),
    "conjugate bit": lambda: torch.randn(3, dtype=torch.complex64).conj(),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "negative bit": lambda: torch.randn(3, dtype=torch.complex64).conj().imag,
    "quantized": lambda: torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.qint8),
    "meta": lambda: torch.randn(3, device="meta"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_refused_tensors_run_as_plain_python(name):
    def f(x):
        return x.abs() if name != "quantized" else x.dequantize()

    x = REFUSED[name]()
    found, expected = dyncomp.compile(f)(x), f(x)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.layout == expected.layout
    if expected.layout is torch.strided and expected.device.type == "cpu":
        assert torch.equal(found.as_subclass(torch.Tensor), expected.as_subclass(torch.Tensor))


def test_negative_bit_after_capture():
    fast = dyncomp.compile(lambda x: x + 0)
    plain = torch.randn(3)
    assert torch.equal(fast(plain), plain)
    z = torch.randn(3, dtype=torch.complex64).conj()
    assert z.imag.is_neg()
    assert torch.equal(fast(torch.view_as_real(z.resolve_conj())[:, 0].contiguous()), z.real)
    strided = dyncomp.compile(lambda x: x + 0)
    strided(torch.view_as_real(z.resolve_conj())[:, 1])
    assert torch.equal(strided(z.imag), z.imag + 0)


def test_vmap_and_functional_transforms():
    fast = dyncomp.compile(lambda x: torch.sin(x).sum())
    x = torch.randn(3, 4)
    fast(x[0])
    same(torch.vmap(fast)(x), torch.sin(x).sum(1), "vmap")


def test_numpy_and_torch_in_one_function():
    import numpy as np

    def f(a, x):
        return np.sin(a) + 1, torch.sin(x) + 1

    fast = dyncomp.compile(f)
    a, x = np.ones(3), torch.ones(3)
    for _ in range(2):
        first, second = fast(a, x)
        assert np.allclose(first, np.sin(a) + 1)
        same(second, torch.sin(x) + 1, "torch")


def test_other_arguments_of_the_same_function():
    """Guards tell apart devices of meaning: dtype, shape, strides, parameters and tensors."""
    fast = dyncomp.compile(lambda x: x * 2 + 1)
    for x in (
        torch.randn(4),
        torch.randn(4, dtype=torch.float64),
        torch.randn(2, 3).t(),
        torch.arange(4),
        torch.randn(8)[::2],
        torch.nn.Parameter(torch.randn(4), requires_grad=False),
        torch.randn(()),
        torch.randn(0, 3),
        3,
    ):
        same(fast(x), x * 2 + 1, str(x))


def test_importing_dyncomp_does_not_import_torch():
    code = (
        "import sys, dyncomp, numpy as np; dyncomp.compile(lambda x: x + 1)(np.ones(3));"
        "print('torch' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert run.stdout.strip() == "False"
