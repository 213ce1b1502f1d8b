"""A planned graph on a GPU to a callable: Triton kernels and the Python function that launches them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...device import CPU, Device
from ...errors import LoweringError
from ...frontends.base import ArrayOwner, DeviceLibrary
from ...graph.ir import Graph
from ...notices import setup_error
from ..loops.loop_ir import Kernel
from ..planning import Planned
from ..schedule import Alternatives, LaunchKernel, Step
from ..tuning.choices import Tuning, choices_in
from . import choose, graphs
from .graphs import Replayed, log, why_not
from .launch import Driver, TritonDriver, Variants, load_module
from .products import Processor
from .wrapper import Wrapper


def check_devices(graph: Graph, owner: ArrayOwner | None) -> DeviceLibrary:
    """How the graph's arrays are dealt with; raises ``LoweringError`` where that is not known."""
    if owner is None or owner.devices is None:
        raise LoweringError(f"arrays on {graph.device} whose library is not known")
    if any(v.type.device != graph.device for v in graph.values()):
        raise LoweringError(f"arrays on {graph.device} and {CPU} in one graph")
    return owner.devices


def _kernels(planned: Planned) -> list[Kernel]:
    steps: list[Step] = [step for segment in planned.module.segments for step in segment.flat]
    steps += [inner for step in steps if isinstance(step, Alternatives) for inner in step.plain]
    return [step.kernel for step in steps if isinstance(step, LaunchKernel)]


def _varies(kernel: Kernel) -> bool:
    """Whether the order of concurrent writes shows in the result."""
    return any(
        s.op == "scatter" and (s.arg[5] == "set" or (s.arg[5] == "add" and not s.dtype.is_integer))
        for s in kernel.body
    )


def _take_of(owner: ArrayOwner, library: DeviceLibrary) -> Callable[..., Any]:
    """A routine's result as one of the graph, laid out so; ``None`` where it must be copied: it lies
    otherwise, something else sees its memory, or that is a recording's."""

    def take(array: object, shape: tuple[int, ...], strides: tuple[int, ...], name: str) -> Any:
        if owner.taken is None or library.graphs is None or library.graphs.is_recording():
            return None
        _, given, steps, dtype = owner.describe(array)
        if (tuple(given), tuple(steps), dtype) != (shape, strides, name):
            return None
        return owner.taken(array, shape, strides, 0, name)

    return take


def _replay(module: Any, planned: Planned, library: DeviceLibrary, graph: Graph) -> None:
    assert graph.device is not None
    launches = sum(len(segment.steps) for segment in planned.module.segments)
    if launches < graphs.LEAST_LAUNCHES:
        log.info("%s is not recorded: it launches %d kernels only", graph.name, launches)
        return
    reason = why_not(planned.plan, library)
    if reason:
        log.warning("%s is not recorded: %s", graph.name, reason)
        return
    replayed = Replayed(module.run, planned.plan, library, graph.device, graph.name)
    module.fresh, module.run = replayed.fresh, replayed


def build_for_device(
    graph: Graph,
    planned: Planned,
    owner: ArrayOwner,
    library: DeviceLibrary,
    edit: Callable[[str], str] | None = None,
    tuning: Tuning | None = None,
    cache: Path | None = None,
    replay: bool = False,
) -> tuple[Callable[..., Any], str]:
    """The callable of a planned graph, and its source. ``tuning``: steps that have several forms are timed
    at their first call, so; what was found is kept below ``cache``. ``replay``: launches are recorded and
    replayed."""
    if library.deterministic() and any(_varies(kernel) for kernel in _kernels(planned)):
        raise LoweringError("writes whose order differs from run to run where algorithms must not")
    _, count, descriptors = library.facts(graph.device.index)
    wrapper = Wrapper(
        planned.module, planned.plan, graph.device, Processor(count, descriptors), tune=tuning is not None
    )
    source = wrapper.source()
    if edit is not None:
        source = edit(source)
    name = f"{graph.name}_{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    try:
        module = load_module(name, source)
    except ImportError as error:
        raise setup_error(
            "compiler", f"arrays on {graph.device} need Triton (`pip install 'dyncomp[gpu]'`): {error}"
        ) from error
    driver: Driver = TritonDriver(lambda size, index: library.scratch(size, Device(graph.device.kind, index)))
    names: dict[str, Any] = {
        f"{kernel.name}_variants": Variants(module, kernel, driver, graph.device.index)
        for kernel in wrapper.kernels.values()
    }
    ready = [kernel for kernel in wrapper.kernels.values() if not kernel.symbols]
    if len(ready) > 1:
        previous = library.enter(graph.device.index)  # kernels are compiled for the current device
        try:
            driver.prepare([(getattr(module, kernel.name), kernel) for kernel in ready], aligned=True)
        finally:
            library.leave(previous)
    for k, constant in enumerate(planned.plan.constants):
        names[f"constant{k}"] = library.upload(constant, graph.device)
    names |= wrapper.functions
    device = choose.Device(library, driver, graph.device.index, tuning, choices_in(cache))
    for function, made in wrapper.choices.items():
        names[function] = choose.Choice(
            made.kernels,
            device,
            made.plain,
            made.usual,
            made.repeatable,
            made.needs_alignment,
            made.symbols,
        )
    names |= {
        "device": graph.device,
        "empty": library.empty,
        "fresh": library.empty,
        "full": library.full,
        "take": _take_of(owner, library),
        "scratch": library.scratch,
        "window": library.window,
        "without_gradient": library.without_gradient,
        "pointer": library.pointer,
        "item": library.item,
        "to_host": library.to_host,
        "matmul": library.matmul,
        "stream_of": library.stream,
        "enter": library.enter,
        "leave": library.leave,
        "as_strided": owner.as_strided,
    }
    vars(module).update(names)
    if replay:
        _replay(module, planned, library, graph)
    call: Callable[..., Any] = module.call
    return call, source
