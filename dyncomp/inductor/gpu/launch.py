"""Loading Triton kernels and launching them with as little Python as possible.

A kernel is compiled for the device at hand and launched through ``CompiledKernel.run`` with raw addresses. It
has two variants, each made when first needed: where all addresses are divisible by 16, loads and stores are
wide.
"""

from __future__ import annotations

import contextvars
import linecache
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import ModuleType
from typing import Any, Protocol

from ...comments import in_comment
from ..render.triton.unit import TritonKernel

Launch = Callable[..., None]
ALIGNMENT = 16
# Of a program.
MOST_THREADS = 1024


class Driver(Protocol):
    """What makes a jit function of a generated module launchable."""

    def load(self, function: object, kernel: TritonKernel, aligned: bool, device: int) -> Launch:
        """``launch(programs, stream, *addresses, *symbols)`` for ``kernel``."""
        ...

    def prepare(self, jobs: Sequence[tuple[Any, TritonKernel]], aligned: bool) -> None:
        """Compile functions that will be loaded, side by side. What does not compile raises when loaded."""
        ...


def load_module(name: str, source: str) -> ModuleType:
    """Generated source as a module. Triton reads the text of functions again: ``linecache`` has it."""
    path = f"<dyncomp {in_comment(name)}>"
    module = ModuleType(name)
    module.__file__ = path
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    exec(compile(source, path, "exec"), module.__dict__)
    return module


class Variants:
    """One kernel, by alignment. ``name`` is the kernel's in ``module``."""

    def __init__(self, module: ModuleType, kernel: TritonKernel, driver: Driver, device: int) -> None:
        self.module = module
        self.kernel = kernel
        self.driver = driver
        self.device = device
        self.made: dict[bool, Launch] = {}

    @property
    def function(self) -> Any:
        return getattr(self.module, self.kernel.name)

    def get(self, aligned: bool) -> Launch:
        launch = self.made.get(aligned)
        if launch is None:
            launch = self.driver.load(self.function, self.kernel, aligned, self.device)
            self.made[aligned] = launch
        return launch


class TritonDriver:
    """Compiles and launches by Triton's own driver, which is torch's where torch is loaded. ``scratch(bytes,
    device number)``: memory for kernels that ask for some (for tensor descriptors)."""

    def __init__(self, scratch: Callable[[int, int], Any] | None = None) -> None:
        self.scratch = scratch
        self.prepared: dict[tuple[str, bool], Future[Any]] = {}

    def prepare(self, jobs: Sequence[tuple[Any, TritonKernel]], aligned: bool) -> None:
        from triton.runtime import driver

        target = driver.active.get_current_target()
        with ThreadPoolExecutor(max(min(len(jobs), len(os.sched_getaffinity(0))), 1)) as pool:
            for function, kernel in jobs:
                key = (kernel.name, aligned)
                self.prepared[key] = pool.submit(compile_kernel, function, kernel, aligned, target)

    def load(self, function: object, kernel: TritonKernel, aligned: bool, device: int) -> Launch:
        from triton.runtime import driver

        ahead = self.prepared.pop((kernel.name, aligned), None)
        if ahead is not None:
            compiled = ahead.result()
        else:
            compiled = compile_kernel(function, kernel, aligned, driver.active.get_current_target())
        constants = tuple(kernel.blocks.values())
        direct = direct_launch(compiled, constants)
        if direct is not None:
            return direct
        run, handle = compiled.run, compiled.function
        packed = compiled.packed_metadata

        def launch(programs: int, stream: int, *arguments: int) -> None:
            run(programs, 1, 1, stream, handle, packed, None, None, None, *arguments, *constants)

        if not getattr(compiled.metadata, "global_scratch_size", 0) or self.scratch is None:
            return launch
        return _with_scratch(launch, self.scratch, device)


def direct_launch(compiled: Any, constants: tuple[int, ...]) -> Launch | None:
    """Triton's C function without the Python around it, which allocates what these kernels do not ask for
    (1.4 to 2 microseconds become 0.6); ``None`` where its arguments are not known, or there is more to do."""
    import triton

    run = compiled.run
    version = tuple(triton.__version__.split(".")[:2])
    if type(run).__name__ != "CudaLauncher" or version not in (("3", "6"), ("3", "9")):
        return None
    if run.global_scratch_size or run.profile_scratch_size or getattr(run, "gsan_enabled", False):
        return None
    begin, handle, packed = run.launch, compiled.function, compiled.packed_metadata
    together, dependent = run.launch_cooperative_grid, run.launch_pdl

    if version == ("3", "6"):

        def launch(programs: int, stream: int, *arguments: int) -> None:
            begin(
                *(programs, 1, 1, stream, handle, together, dependent, None, None, packed),
                *(None, None, None, *arguments, *constants),
            )

        return launch
    kinds, signature = run.arg_annotations, run.kernel_signature

    def launch_annotated(programs: int, stream: int, *arguments: int) -> None:
        given = (*arguments, *constants)
        begin(
            *(programs, 1, 1, stream, handle, together, dependent, packed, None, None, None),
            *(None, None, kinds, signature, given),
        )

    return launch_annotated


def _with_scratch(launch: Launch, scratch: Callable[[int, int], Any], device: int) -> Launch:
    """``launch`` where Triton asks for memory: its allocator is a context variable, set in a context of our
    own, so that the program's stays as it is."""
    import triton

    context = contextvars.copy_context()
    context.run(triton.set_allocator, lambda size, alignment, stream: scratch(size, device))

    def launch_in_context(programs: int, stream: int, *arguments: int) -> None:
        context.copy().run(launch, programs, stream, *arguments)

    return launch_in_context


def compile_kernel(function: object, kernel: TritonKernel, aligned: bool, target: Any) -> Any:
    """``kernel`` compiled for ``target`` (no GPU is needed for that)."""
    import triton
    from triton.compiler import ASTSource

    attributes = _attributes(kernel) if aligned else {}
    source = ASTSource(function, signature=kernel.signature, constexprs=kernel.blocks, attrs=attributes)
    options: Mapping[str, Any] = {
        "num_warps": min(kernel.num_warps, MOST_THREADS // target.warp_size),
        "num_stages": kernel.num_stages,
        "enable_fp_fusion": kernel.fuses_multiply_add,
        "debug": kernel.asserts,
        "sanitize_overflow": False,  # integers wrap; debug would have each operation checked
    }
    return triton.compile(source, target=target, options=options)


def _attributes(kernel: TritonKernel) -> dict[tuple[int], list[list[Any]]]:
    """That every pointer is divisible by 16."""
    pointers = [k for k, kind in enumerate(kernel.signature.values()) if kind.startswith("*")]
    return {(k,): [["tt.divisibility", ALIGNMENT]] for k in pointers}
