"""The C++ launcher: compiled graphs, thread pool, caching allocator (sources in csrc/)."""

from collections.abc import Callable
from typing import Any, final

ABI_VERSION: int

@final
class CompiledGraph:
    """``CompiledGraph(spec)``: made by ``dyncomp.inductor.launch.build``; called with a graph's inputs."""

    def __init__(self, spec: tuple[Any, ...]) -> None: ...
    def __call__(self, *inputs: Any) -> Any: ...
    @property
    def name(self) -> str: ...
    @property
    def num_inputs(self) -> int: ...
    def consume(self, inputs: list[Any], /) -> Any:
        """A call with the items of a list, which is emptied: those that the plan's steps name as read last
        (``KernelStep.last_read``) are released then. After an error they are gone, too."""

    def retarget(self, sizes: int, steps: tuple[int, ...], library: Any) -> None:
        """Run other builds of the same functions, given by their addresses (0: none) and what keeps them
        loaded; ValueError if they are not as many as the plan has."""

def load_library(path: str) -> Any:
    """dlopen (local, bind now), until nothing holds what is returned. OSError with the loader's message; its
    ``errno`` is set where the system ran out of memory, mappings or descriptors."""

def loaded_libraries() -> int:
    """How many libraries of kernels are loaded."""

def load_global(path: str) -> None:
    """dlopen with RTLD_GLOBAL (libm, libmvec), for good; OSError as above."""

def symbol(library: Any, name: str) -> int:
    """Address of an exported symbol; LookupError if it is absent."""

def num_threads() -> int:
    """Threads that parallel_for uses, the caller included."""

def share_threads(parallel: int, thread_number: int, most_threads: int, /) -> bool: ...
def use_direct_view(type: type, address: int, offset: int, tensors: tuple[Any, ...], /) -> int:
    """Read tensors by the function at an address, which is given what is at an offset of the object. The
    address of a function for ``_hook.set_tensor_view``, 0 where it does not give what DLPack's table does of
    these tensors."""

def set_num_threads(count: int) -> None:
    """ValueError unless 1 <= count <= 256."""

def enter_task() -> None:
    """This thread works on a task: while tasks run, each has its part of the threads."""

def leave_task() -> None:
    """This thread works on no task any more, or its task waits."""

def set_task_runner(runner: Callable[[list[Callable[[], None]]], None] | None, /) -> None:
    """``runner(functions)`` calls them in several threads and returns when all have ended; what one raises
    comes out of it."""

def running_tasks() -> int:
    """How many tasks run."""

def threads_here() -> int:
    """About as many threads as a job of this thread has now."""

def default_num_threads() -> int:
    """From DYNCOMP_NUM_THREADS, OMP_NUM_THREADS, the affinity mask and the cgroup's CPU limit."""

def group_limits(root: str, /) -> tuple[float, float]:
    """Processors and bytes of memory that the control groups of this process allow; 0: no limit. ``root``:
    where /proc and /sys are (for tests)."""

def runtime_address() -> int:
    """Address of the process's Runtime struct (for calling generated code through ctypes)."""

def blas_available() -> bool:
    """Whether Runtime.blas was filled from an OpenBLAS with 64-bit integers."""

def release_memory() -> int:
    """Free cached blocks and idle arenas; the number of bytes given back."""

def kept_copies() -> dict[str, Any]:
    """Packed operands that are kept from call to call: ``can_watch`` (whether the system allows it),
    ``copies``, ``bytes``, and how often one was used (``hits``) or found written to (``changed``)."""

def private_memory(address: int, size: int, by_text: bool, /) -> bool:
    """For tests: whether whole pages are private and anonymous, asked by query or read in the text of
    /proc/self/maps."""

def use_products(name: str | None, /) -> None:
    """What generated code multiplies by from now on: "avx512", "avx2", "portable" or (``None``) the best
    that this processor has; LookupError for what it does not have. For tests."""

def cached_bytes() -> int:
    """Bytes held in the caching allocator's free lists."""

def set_cache_limit(limit: int) -> None:
    """Most bytes that the free lists may hold; 0 turns caching off."""

def select(x: Any, mask: Any) -> Any:
    """``x[mask]``, quickly where both are plain arrays of one shape."""

def lapack_available() -> bool:
    """Whether the functions of matrices below can be called."""

def solve(a: Any, b: Any) -> Any:
    """``np.linalg.solve`` of a matrix of float64 and a vector or matrix."""

def factored(matrix: Any) -> tuple[Any, Any]:
    """The factors of a matrix of float64, transposed, and LAPACK's pivots."""

def solve_factored(transposed: bool, a: Any, factors: Any, pivots: Any, b: Any) -> Any:
    """The solution for ``b`` of a matrix ``a``, or of its transpose, by what ``factored(a)`` gave."""

def triangular(lower: bool, left: bool, a: Any, b: Any) -> Any:
    """x of ``a @ x = b`` (``left``) or ``x @ a = b``, for a triangle of ``a`` and a matrix ``b``."""

def inverse(matrix: Any) -> Any:
    """``np.linalg.inv`` of a matrix of float64."""

def determinant(matrix: Any) -> Any:
    """``np.linalg.det`` of a matrix of float64."""

def cholesky(matrix: Any) -> Any:
    """``np.linalg.cholesky`` of a matrix of float64."""

def reduced_qr(matrix: Any) -> Any:
    """``np.linalg.qr`` of a matrix of float64."""

def eigh(matrix: Any) -> Any:
    """``np.linalg.eigh`` of a matrix of float64, as a tuple."""

def eigvalsh(matrix: Any) -> Any:
    """``np.linalg.eigvalsh`` of a matrix of float64."""

def transform_rows(ufunc: Any, x: Any, factor: float, out: Any, axis: int) -> None:
    """``ufunc(x, factor, axes=[axis, (), axis], out=out)`` for the ufuncs of ``np.fft`` and arrays of two or
    more dimensions, the rows on the thread pool. Raises ``TypeError`` for other arguments."""

def matrix_product(name: str | None, letter: str, /, *numbers: Any) -> None:
    """Multiply at addresses, for tests and measurements (``module.cpp`` says what the numbers are)."""

def spans_begin(limit: int, /) -> None:
    """Record calls of graphs from now on, at most so many until they are taken."""

def spans_end() -> None:
    """Record no more."""

def spans_take() -> tuple[list[tuple[tuple[Any, ...], int, int, int, tuple[tuple[int, int, int], ...]]], int]:
    """What was recorded since it was last taken: labels of the graph, native thread id, when it began and
    ended (nanoseconds of CLOCK_MONOTONIC), and for each part of it that ran its number, beginning and end.
    And how many calls there was no room for."""

def use_ranges(type: Any, address: int, /) -> None:
    """Run each graph, and each part of it, in a block ``with type(label):`` while the function at ``address``
    (``bool()``) says of the calling thread that it is watched; 0: never."""

def parallel_for(body: Callable[[int, int, int], None], n: int, grain: int) -> None:
    """For tests: run a Python body(lo, hi, tid) over the pool."""
