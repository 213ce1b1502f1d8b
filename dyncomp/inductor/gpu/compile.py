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
from ..plan import Planned, Planner
from .launch import Driver, TritonDriver, Variants, load_module
from .wrapper import Wrapper


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


def build_for_device(
    graph: Graph,
    planned: Planned,
    owner: ArrayOwner,
    library: DeviceLibrary,
    edit: Callable[[str], str] | None = None,
    driver: Driver | None = None,
) -> tuple[Callable[..., Any], str]:
    """The callable of a planned graph, and its source."""
    wrapper = Wrapper(planned.module, planned.plan, graph.device)
    source = wrapper.source()
    if edit is not None:
        source = edit(source)
    name = f"{graph.name}_{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    try:
        module = load_module(name, source)
    except ImportError as error:
        raise ToolchainError(f"Triton is needed for arrays on {graph.device}: {error}") from error
    driver = driver or TritonDriver()
    names: dict[str, Any] = {
        f"{kernel.name}_variants": Variants(module, kernel, driver, graph.device.index)
        for kernel in wrapper.kernels.values()
    }
    for k, constant in enumerate(planned.plan.constants):
        names[f"constant{k}"] = library.upload(constant, graph.device)
    names |= wrapper.functions
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
