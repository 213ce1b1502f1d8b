"""Tensors on GPUs as compiled graphs need them: torch's allocator and its current streams."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...device import Device
from ..base import DeviceLibrary, GraphRecorder
from .autocast import switched_off
from .library import torch
from .routines import ON_DEVICES


@functools.lru_cache(maxsize=64)
def _place(device: Device) -> Any:
    return torch.device(str(device))


def _empty(shape: Sequence[int], strides: Sequence[int] | None, name: str, device: Device) -> Any:
    dtype = getattr(torch, name)
    if strides is None:
        return torch.empty(shape, dtype=dtype, device=_place(device))
    return torch.empty_strided(shape, strides, dtype=dtype, device=_place(device))


def _full(value: object, name: str, device: Device) -> Any:
    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            return value
        value = value.item()
    return torch.full((), value, dtype=getattr(torch, name), device=_place(device))


def _scratch(size: int, device: Device) -> Any:
    """Memory for elements of any type."""
    return torch.empty((size + 15) // 16 * 16, dtype=torch.uint8, device=_place(device))


def _upload(array: Any, device: Device) -> Any:
    return torch.from_numpy(array.copy()).to(_place(device))


def _window(base: Any, offset: int, shape: Sequence[int], strides: Sequence[int], name: str) -> Any:
    dtype = getattr(torch, name)
    if base.dtype is not dtype:
        if base.dtype is not torch.uint8 or base.ndim != 1:
            return _reinterpreted(base, offset, shape, strides, dtype)
        base = base.view(dtype)  # of scratch memory
    start = base.storage_offset() + offset // dtype.itemsize
    return torch.as_strided(_without_gradient(base), shape, strides, start)


def _reinterpreted(base: Any, offset: int, shape: Sequence[int], strides: Sequence[int], dtype: Any) -> Any:
    start = base.storage_offset() * base.itemsize + offset
    made = torch.empty(0, dtype=dtype, device=base.device)
    return made.set_(base.untyped_storage(), start // dtype.itemsize, tuple(shape), tuple(strides))


def _without_gradient(tensor: Any) -> Any:
    return tensor.detach() if tensor.requires_grad else tensor


def _wide(a: Any, b: Any, out: Any) -> None:
    """Halves multiplied with results in float32, by a routine that not every build of torch has."""
    multiply = torch.mm if a.ndim == 2 else torch.bmm
    if a.ndim <= 3:
        try:
            multiply(a, b, out_dtype=out.dtype, out=out)
            return
        except (NotImplementedError, RuntimeError, TypeError, ValueError):
            pass
    _matmul(a.to(out.dtype), b.to(out.dtype), out)


def _matmul(a: Any, b: Any, out: Any) -> None:
    if a.dtype != out.dtype:
        with torch.no_grad():
            _wide(a, b, out)
        return
    with torch.no_grad():
        if a.ndim == 2:
            torch.mm(a, b, out=out)
        elif a.ndim == 3:
            torch.bmm(a, b, out=out)
        else:
            with switched_off():
                torch.matmul(a, b, out=out)


def _stream(index: int) -> int:
    handle: int = torch._C._cuda_getCurrentRawStream(index)
    return handle


def _enter(index: int) -> int:
    previous: int = torch._C._cuda_exchangeDevice(index)
    return previous


def _leave(previous: int) -> None:
    torch._C._cuda_maybeExchangeDevice(previous)


def _milliseconds(call: Callable[[], None]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    end.synchronize()
    elapsed: float = start.elapsed_time(end)
    return elapsed


def _facts(index: int) -> tuple[str, int, bool]:
    found = torch.cuda.get_device_properties(index)
    is_nvidia = torch.version.hip is None
    return found.name, found.multi_processor_count, is_nvidia and found.major >= 9


def _record(index: int, run: Callable[[], Any], pool: object) -> tuple[Callable[[], None], Any, Any]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(index), torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
        made = run()
    return graph.replay, made, graph.pool()


def _copy(targets: Sequence[Any], sources: Sequence[Any]) -> None:
    with torch.no_grad():
        if len(targets) == 1:
            targets[0].copy_(sources[0])
        else:
            torch._foreach_copy_(targets, sources)


def _clone(array: Any) -> Any:
    with torch.no_grad():
        return array.clone()


def _fill(array: Any, number: Any) -> None:
    with torch.no_grad():
        array.fill_(number)


def _given(array: Any) -> Any:
    """A tensor of the same memory with a version of its own, as a new one has."""
    return array.data


def _holders(array: Any) -> int:
    count: int = torch._C._storage_Use_Count(array.untyped_storage()._cdata)
    return count


def _to_host(array: Any) -> Any:
    with torch.no_grad():
        return array.to("cpu")


GRAPHS = GraphRecorder(
    record=_record,
    is_recording=lambda: torch.cuda.is_current_stream_capturing(),
    copy=_copy,
    clone=_clone,
    fill=_fill,
    strides=torch.Tensor.stride,
    size=lambda array: array.untyped_storage().nbytes(),
    given=_given,
    holders=_holders,
)

LIBRARY = DeviceLibrary(
    _empty,
    _full,
    _scratch,
    _upload,
    _window,
    _without_gradient,
    torch.Tensor.data_ptr,
    torch.Tensor.item,
    _matmul,
    _stream,
    _enter,
    _leave,
    _milliseconds,
    _facts,
    torch.are_deterministic_algorithms_enabled,
    ON_DEVICES,
    GRAPHS,
    _to_host,
)
