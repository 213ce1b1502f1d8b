"""A planned graph on a GPU to a callable: Triton kernels and the Python function that launches them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from ...device import CPU
from ...errors import LoweringError, ToolchainError
from ...frontends.base import ArrayOwner, DeviceLibrary
from ...graph.ir import Graph
from ...prims.table import TABLE
from ..fuse import LibraryCall
from ..loopir import Kernel
from ..plan import Planned, Planner
from ..schedule import LaunchKernel
from .launch import Driver, TritonDriver, Variants, load_module
from .products import Chosen, TunedProduct
from .wrapper import Wrapper

# What was found to be fastest on the GPUs of this process.
CHOSEN = Chosen()


class DevicePlanner(Planner):
    """Plans library calls as the library's own routines on the device, where it has them."""

    def _extern(self, call: LibraryCall) -> None:
        value = call.value
        assert value.row is not None
        if value.row.ref is TABLE[value.row.name].ref:
            raise LoweringError(f"{value.row.name} has no routine on a GPU")
        super()._extern(call)


def check_devices(graph: Graph, owner: ArrayOwner | None) -> DeviceLibrary:
    """How the graph's arrays are dealt with; raises ``LoweringError`` where that is not known."""
    if owner is None or owner.devices is None:
        raise LoweringError(f"arrays on {graph.device} whose library is not known")
    if any(v.type.device != graph.device for v in graph.values()):
        raise LoweringError(f"arrays on {graph.device} and {CPU} in one graph")
    return owner.devices


def _kernels(planned: Planned) -> list[Kernel]:
    steps = [step for segment in planned.module.segments for step in segment.steps]
    return [step.kernel for step in steps if isinstance(step, LaunchKernel)]


def _varies(kernel: Kernel) -> bool:
    """Whether the order of concurrent writes shows in the result."""
    return any(
        s.op == "scatter" and (s.arg[5] == "set" or (s.arg[5] == "add" and not s.dtype.is_integer))
        for s in kernel.body
    )


def build_for_device(
    graph: Graph,
    planned: Planned,
    owner: ArrayOwner,
    library: DeviceLibrary,
    edit: Callable[[str], str] | None = None,
    tune: bool = False,
) -> tuple[Callable[..., Any], str]:
    """The callable of a planned graph, and its source. ``tune``: products are timed at their first call."""
    if library.deterministic() and any(_varies(kernel) for kernel in _kernels(planned)):
        raise LoweringError("writes whose order differs from run to run where algorithms must not")
    wrapper = Wrapper(planned.module, planned.plan, graph.device, tune=tune)
    source = wrapper.source()
    if edit is not None:
        source = edit(source)
    name = f"{graph.name}_{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    try:
        module = load_module(name, source)
    except ImportError as error:
        raise ToolchainError(f"Triton is needed for arrays on {graph.device}: {error}") from error
    driver: Driver = TritonDriver()
    names: dict[str, Any] = {
        f"{kernel.name}_variants": Variants(module, kernel, driver, graph.device.index)
        for kernel in wrapper.kernels.values()
    }
    for k, constant in enumerate(planned.plan.constants):
        names[f"constant{k}"] = library.upload(constant, graph.device)
    names |= wrapper.functions
    for function, step in wrapper.tuned.items():
        names[function] = TunedProduct(step, library, driver, graph.device.index, CHOSEN)
    names |= {
        "device": graph.device,
        "empty": library.empty,
        "full": library.full,
        "scratch": library.scratch,
        "window": library.window,
        "pointer": library.pointer,
        "item": library.item,
        "matmul": library.matmul,
        "stream_of": library.stream,
        "enter": library.enter,
        "leave": library.leave,
        "as_strided": owner.as_strided,
    }
    vars(module).update(names)
    call: Callable[..., Any] = module.call
    return call, source
