"""Compiled graphs on disk: the launch plan, by the key of its library in the kernel cache."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..build.kernel_cache import kernel_key, open_cache
from ..build.library import Library
from ..capture.entries.floating import Watch
from ..device import CPU
from ..frontends.base import ArrayOwner
from ..inductor.launch import LaunchPlan, PyCallStep, TensorOwner, build, choose_threads
from ..pipeline import Compiled, op_table, report_writes
from .descriptions import NotStorable, Stale
from .owners import owner_name, owner_named, tensor_owner_named
from .plain import Packer, Unpacker


def with_spent(packer: Packer, compiled: Compiled, row: list[Any]) -> list[Any]:
    """``row`` of a graph, some results of which may have no history left."""
    outputs = compiled.graph_before.outputs
    spent = [k for k, out in enumerate(outputs) if out.spent]
    if not spent or compiled.owner is None:
        return row
    return ["spent", packer.row(row), spent, len(outputs), owner_name(compiled.owner)]


def pack_launch(packer: Packer, compiled: Compiled) -> list[Any]:
    """The row of a compiled graph as it is launched."""
    on_cpu = compiled.graph_after.device == CPU
    if compiled.backend != "inductor" or not on_cpu:
        raise NotStorable("a graph that is not one launch on the CPU")
    return pack_artifact(packer, compiled.artifact, compiled.owner, compiled.heard, compiled.num_threads)


def pack_artifact(
    packer: Packer, artifact: Any, owner: ArrayOwner | None, heard: Sequence[int], num_threads: int
) -> list[Any]:
    """The row of what the backend made of a graph."""
    plan = getattr(artifact, "plan", None)
    if not isinstance(plan, LaunchPlan):
        raise NotStorable("a graph that is not one launch on the CPU")
    key = None
    if artifact.source:
        if artifact.built is None:
            raise NotStorable("a graph whose code is not in the cache")
        key = kernel_key(artifact.source, artifact.built)
    return ["graph", key, *pack_plan(packer, plan, owner, heard, num_threads)]


def pack_plan(
    packer: Packer, plan: LaunchPlan, owner: ArrayOwner | None, heard: Sequence[int], num_threads: int
) -> list[Any]:
    """A launch plan, and what of arrays and threads goes with it."""
    for step in plan.steps:
        if isinstance(step, PyCallStep) and type(step.func) is functools.partial:
            _note_reference(packer, step.func.func, owner)
    packer.own.update((id(constant), constant) for constant in plan.constants)
    name = None if owner is None else owner_name(owner)
    return [packer.value(plan), name, list(heard), num_threads]


def _note_reference(packer: Packer, function: Any, owner: ArrayOwner | None) -> None:
    """A function that may be found by no name but that of its op."""
    lists = () if owner is None else (owner.routines, owner.own_routines)
    for number, routines in enumerate(lists):
        for name, routine in routines:
            if routine is function and owner is not None:
                packer.note(function, ["routine of op", owner_name(owner), number, name])
                return
    found = next((name for name, row in op_table().items() if row.ref is function), None)
    if found is not None:
        packer.note(function, ["reference of op", found])


def _routine(unpacker: Unpacker, parts: list[Any]) -> Any:
    owner, number, name = parts
    found = owner_named(owner)
    return dict((found.routines, found.own_routines)[number])[name]


def unpack_graph(unpacker: Unpacker, parts: list[Any]) -> Any:
    key, *plan = parts
    library = None
    if key is not None:
        library = open_cache().at(key)
        if library is None:
            raise Stale("its kernels are not in the cache")
    return launched(unpacker, plan, library)


def launched(unpacker: Unpacker, parts: list[Any], library: Library | None) -> Callable[..., Any]:
    """What :func:`pack_plan` packed, as a callable that runs kernels of ``library``."""
    data, name, heard, num_threads = parts
    owner = None if name is None else owner_named(name)
    choose_threads(num_threads, owner)
    plan = unpacker.value(data)
    if not isinstance(plan, LaunchPlan):
        raise Stale("no launch plan")
    call = build(plan, library)
    if isinstance(plan.on_status, Watch):
        plan.on_status.armed = True
    return report_writes(call, owner, tuple(heard))


def pack_watch(packer: Packer, watch: Watch) -> list[Any]:
    return ["watch", packer.value(tuple(watch.places)), watch.strict, watch.always]


def unpack_watch(unpacker: Unpacker, parts: list[Any]) -> Watch:
    places, strict, always = parts
    watch = Watch(unpacker.value(places), strict)
    watch.always = always
    return watch


def pack_owner(packer: Packer, owner: TensorOwner) -> list[Any]:
    return ["owner of arrays", owner_name(owner)]


BY_TYPE: dict[type, Callable[[Packer, Any], list[Any]]] = {Watch: pack_watch, TensorOwner: pack_owner}


def _spent(unpacker: Unpacker, parts: list[Any]) -> Any:
    call, spent, count, name = parts
    autograd = owner_named(name).autograd
    assert autograd is not None
    return autograd.spent(unpacker.value(call), spent, count)


MAKERS = {
    "graph": unpack_graph,
    "spent": _spent,
    "watch": unpack_watch,
    "routine of op": _routine,
    "reference of op": lambda u, p: op_table()[p[0]].ref,
    "owner of arrays": lambda u, p: tensor_owner_named(p[0]),
}
