"""A GPU that is none: kernels by Triton's interpreter on the computer's own memory.

For processes with ``TRITON_INTERPRET=1``. :func:`install` mends the interpreter's library functions;
:class:`InterpretedDriver` launches generated kernels; :func:`pretend` has CPU tensors taken for CUDA's. A
file of tests that imports the fixture :func:`pretended` runs on such a GPU.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

_LIBRARY = (
    "expm1 log1p log10 cbrt tan sinh cosh tanh asin acos atan asinh acosh atanh atan2 pow fmod trunc rint "
    "copysign hypot"
)
_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}
_NAMES |= {"atanh": "arctanh", "atan2": "arctan2", "pow": "power"}
_DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}


class Memory:
    """What the interpreter takes for a tensor."""

    def __init__(self, array: Any, dtype: str) -> None:
        self.array, self.dtype = array, dtype

    def data_ptr(self) -> int:
        return self.array if isinstance(self.array, int) else self.array.ctypes.data

    def size(self) -> tuple[int, ...]:
        return () if isinstance(self.array, int) else self.array.shape

    def stride(self) -> tuple[int, ...]:
        return (
            () if isinstance(self.array, int) else tuple(s // self.array.itemsize for s in self.array.strides)
        )

    def storage_offset(self) -> int:
        return 0

    def _self(self, *args: Any, **kwargs: Any) -> Memory:
        return self

    untyped_storage = cpu = new_empty = set_ = copy_ = contiguous = clone = _self


def _library(function: Callable[..., Any]) -> Any:
    from triton.language import core
    from triton.runtime import interpreter

    def call(*args: Any, _semantic: Any = None, _builder: Any = None, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            values = function(*(a.handle.data for a in args))
        values = np.asarray(values).astype(args[0].handle.data.dtype)
        return core.tensor(interpreter.TensorHandle(values, args[0].dtype.scalar), args[0].type)

    return call


def _mend_numbers() -> None:
    """Triton 3.6 beside NumPy 2.4: bounds of loops known at run time, complements of unsigned integers."""
    from triton.runtime import interpreter

    original = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    def ones(self: Any, type: Any) -> Any:
        dtype = np.dtype(interpreter._get_np_dtype(type))
        value = np.zeros(1, dtype) == 0 if dtype.kind == "b" else ~np.zeros(1, dtype)
        return interpreter.TensorHandle(value, type.scalar)

    interpreter._patch_lang_tensor = patched
    interpreter.InterpreterBuilder.get_all_ones_value = ones


def _mend_products() -> None:
    """The interpreter multiplies the bits of bfloat16 numbers."""
    from triton.language import core
    from triton.runtime import interpreter

    original = interpreter.InterpreterBuilder.create_dot

    def widened(handle: Any) -> Any:
        if handle.dtype.scalar != core.bfloat16:
            return handle
        wide = (handle.data.astype(np.uint32) << 16).view(np.float32)
        return interpreter.TensorHandle(wide, core.float32)

    def create_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        return original(self, widened(a), widened(b), *rest)

    interpreter.InterpreterBuilder.create_dot = create_dot


def install() -> None:
    """Give the interpreter library functions: its own return nothing."""
    from triton.language.extra import libdevice
    from triton.runtime import interpreter

    if getattr(interpreter, "mended", False):
        return
    interpreter.mended = True
    _mend_products()
    if "scope" in inspect.signature(interpreter._patch_lang_tensor).parameters:
        _mend_numbers()

    for name in _LIBRARY.split():
        setattr(libdevice, name, _library(getattr(np, _NAMES.get(name, name))))


class InterpretedDriver:
    """Launches kernels in the interpreter. ``launched``: their names, in order; ``devices``: where."""

    launched: list[str] = []
    devices: list[int] = []

    def __init__(self, scratch: Any = None) -> None:
        pass

    def prepare(self, jobs: Any, aligned: bool) -> None:
        pass

    def load(self, function: Any, kernel: Any, aligned: bool, device: int) -> Any:
        kinds = [k[1:] for k in kernel.signature.values() if k.startswith("*")]
        dtypes = [_DTYPES.get(k) or k.replace("i", "int") for k in kinds]

        def launch(programs: int, stream: int, *arguments: int) -> None:
            assert stream == STREAM + device
            assert not aligned or all(a % 16 == 0 for a in arguments[: len(dtypes)])
            self.launched.append(kernel.name)
            self.devices.append(device)
            pointers = [Memory(a, d) for a, d in zip(arguments, dtypes)]
            with np.errstate(all="ignore"):
                function[(programs,)](*pointers, *arguments[len(dtypes) :], **kernel.blocks)

        return launch


# The current stream of the first device; the next one has the next number.
STREAM = 4711
RECORDED: list[Any] = []
# Tensors that are not taken for those of the first device.
ON_CPU: list[Any] = []
ON_SECOND: list[Any] = []


def record(index: int, run: Any, pool: Any) -> Any:
    """A recording that runs once more on the same arrays. Recording itself computes nothing: what is written
    is put back."""
    (arguments,) = (c.cell_contents for c in run.__closure__ if isinstance(c.cell_contents, list))
    inputs = [x for x in arguments if hasattr(x, "copy_")]
    before = [x.clone() for x in inputs]
    made = run()
    for x, old in zip(inputs, before):
        x.copy_(old)
    for x in made:
        x.zero_()

    def replay() -> None:
        RECORDED.append(index)
        for old, new in zip(made, run()):
            old.copy_(new)

    return replay, made, pool or object()


@contextlib.contextmanager
def on_a_pretended_gpu(monkeypatch: Any, folder: Any) -> Iterator[None]:
    """What the tests' fixtures have in common: a fresh cache in ``folder``, no gradients."""
    import torch

    if os.environ.get("TRITON_INTERPRET") == "1":
        install()
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(folder / "cache"))
    pretend(monkeypatch)
    for found in (InterpretedDriver.launched, InterpretedDriver.devices, RECORDED, ON_CPU, ON_SECOND):
        found.clear()
    with torch.no_grad():
        yield


@pytest.fixture(autouse=True)
def pretended(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    with on_a_pretended_gpu(monkeypatch, tmp_path):
        yield


def r(
    *shape: int, dtype: Any = None, seed: int | None = None, scale: float = 1.0, device: str = "cpu"
) -> Any:
    """Normally distributed numbers, others for each ``seed``, by default for each sum of sizes."""
    import torch

    generator = torch.Generator().manual_seed(sum(shape) if seed is None else seed)
    return (torch.randn(shape, generator=generator) * scale).to(device, dtype)


def pretend(monkeypatch: Any) -> None:
    """Have torch's tensors be on the device cuda:0, but for those ``ON_CPU`` and ``ON_SECOND``, and what
    graphs make there."""
    import torch

    from dyncomp.capture import wrap
    from dyncomp.device import CPU, Device
    from dyncomp.frontends.torch import devices, state, torch_facts
    from dyncomp.frontends.torch.frontend import TorchFrontend
    from dyncomp.inductor.gpu import compile as gpu

    current: list[int] = []

    def enter(index: int) -> int:
        current.append(index)
        return -1

    def leave(previous: int) -> None:
        assert previous == -1
        current.pop()

    def stream(index: int) -> int:
        assert current[-1] == index
        return STREAM + index

    def empty(shape: Any, strides: Any, name: str, device: Any) -> Any:
        made = devices.LIBRARY.empty(shape, strides, name, device)
        if device.index == 1:
            ON_SECOND.append(made)
        return made

    def pointer(tensor: Any) -> int:
        assert not any(tensor is x for x in ON_CPU), "a kernel is given memory of the CPU"
        return devices.LIBRARY.pointer(tensor)

    def device_of(tensor: Any) -> Any:
        if any(tensor is x for x in ON_CPU):
            return CPU
        memory = tensor.untyped_storage().data_ptr()
        return Device("cuda", int(any(memory == x.untyped_storage().data_ptr() for x in ON_SECOND)))

    def milliseconds(call: Any) -> float:
        # what does without torch is the faster
        before = len(InterpretedDriver.launched)
        call()
        return 600.0 if len(InterpretedDriver.launched) == before else 500.0

    library = dataclasses.replace(
        devices.LIBRARY,
        empty=empty,
        pointer=pointer,
        stream=stream,
        enter=enter,
        leave=leave,
        milliseconds=milliseconds,
        facts=lambda index: ("pretended", 4, False),
        graphs=dataclasses.replace(devices.GRAPHS, record=record, is_recording=lambda: False),
    )
    owner = dataclasses.replace(TorchFrontend.owner, devices=library)
    monkeypatch.setattr(torch_facts, "device_of", device_of)
    monkeypatch.setattr(state, "current_device", lambda: 0)
    monkeypatch.setattr(wrap, "dlpack_device", lambda device: (1, 0))
    monkeypatch.setattr(devices, "_place", lambda device: torch.device("cpu"))
    monkeypatch.setattr(TorchFrontend, "owner", owner)
    monkeypatch.setattr(gpu, "TritonDriver", InterpretedDriver)
