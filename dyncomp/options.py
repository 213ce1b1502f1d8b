"""How to compile: one frozen value, built once per ``compile`` call and part of every cache key."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from .dataclass import dataclass
from .notices import check_variables
from .symbolic.dynamic_sizes import DynamicArguments, parse_dynamic

MODES = ("default", "reduce-overhead", "max-autotune")
# what torch.compile calls a mode: here only "reduce-overhead" records CUDA graphs
_OTHER_NAMES = {"max-autotune-no-cudagraphs": "max-autotune"}
PROGRESS = ("auto", "on", "off")
TIERS = ("best", "fast-first")
RANDOM = ("library", "fused")
NUMERICS = ("default", "strict")
ALWAYS = -1  # as ``verify``
# What the thread pool takes (``kMaxThreads`` in ``runtime/csrc/pool.h``).
MOST_THREADS = 256


@dataclass(frozen=True)
class Options:
    """Options of one ``compile`` call.

    ``unroll_limit``: a loop with a constant trip count up to this is unrolled; longer ones never.
    ``recompile_limit``: how often a code object is compiled again before the original runs for other inputs;
    ``accumulated_recompile_limit``: the same over all ``compile`` calls of one function;
    ``capture_limit``: how often a function may be captured together with all of its pieces (what follows its
    graph breaks, its loops' bodies) before those that are not compiled yet stay plain Python.
    ``cache_bytes``: how much the compiled forms of one ``compile`` call may hold in memory, by an estimate;
    past it those not used for longest are dropped.
    ``stop_after``: name of the last pipeline pass to run (see ``pipeline.PASSES``).
    ``dump``: a directory to write every form of every graph to, as files (:mod:`dyncomp.report.dump`).
    ``num_threads``: 0 means what the machine and ``OMP_NUM_THREADS`` allow; the pool is the process's.
    ``debug_verify``: check every intermediate form after every pass.
    ``small_loops``: compile loops over single numbers too, though plain Python is quicker with these.
    ``native_loops``: compile loops over single numbers as a whole, once they have run, or are about to run,
    for ``native_loop_us`` microseconds in plain Python (by an estimate).
    ``measure``: make early calls of functions that are captured in pieces both ways, compiled and as they
    are, and keep to the quicker (:mod:`dyncomp.capture.policy.trial`).
    ``patience_us``: where pieces of small arrays took a good part of a second to compile, others wait with
    their capture until they ran for so many microseconds as they are; 0: nothing waits, nor does it without
    ``measure`` (:mod:`dyncomp.capture.policy.patience`).
    ``keep_packed``: keep packed copies of weights that matrix products use at every call, as long as the
    system sees that nothing is written to them (Linux from 6.7 on).
    ``parallel_branches``: on CPUs, run long branches of a graph that do not depend on each other at the same
    time where a model of the time says that it pays (:mod:`dyncomp.inductor.fusion.branches`).
    ``tuning_seconds``: under ``mode="max-autotune"``, how long the forms of one graph (of one step on a GPU)
    may be measured; ``progress``: whether a bar shows that on standard error: ``"on"``, ``"off"``, or
    ``"auto"``, where that is a terminal.
    ``tier``: ``"best"``: graphs wait for the compiler to optimise them; ``"fast-first"``: large ones begin
    with code that is built sooner, and optimised code takes its place when a background build is done
    (:mod:`dyncomp.inductor.tuning.tiers`). Not under ``mode="max-autotune"``, and not on a GPU.
    ``assume_compiling``: answer captured code that asks PyTorch whether a compiler is at work
    (``is_compiling`` and its like) with ``True``, as libraries then leave out branches that look at the
    data. Code that runs as plain Python is answered ``False``.
    ``random``: ``"library"``: arrays of random numbers are drawn by their library, the very numbers that the
    original draws; ``"fused"``: on CPUs PyTorch's uniform numbers, and what is made of them, are drawn in
    kernels: other numbers (:mod:`dyncomp.frontends.torch.random_bits`).
    ``numerics``: ``"strict"``: results have the bits that the library gives. What libraries may round
    differently is computed by the library's own functions (:mod:`dyncomp.capture.calls.numerics`).
    ``warm_start``: keep captured functions on disk, guards and all, and use what an earlier process left
    there (:mod:`dyncomp.warm_start`).
    ``verify``: in how many calls each compiled form runs beside the original and is compared with it, -1: in
    all (:mod:`dyncomp.verification`).
    ``strict``: raise what dyncomp itself does wrong (generated code that the compiler rejects, an internal
    error) instead of warning and running the original.
    ``capture_plain``: replace functions without array work too, which gains nothing: for tests.
    """

    mode: str = "default"
    backend: str | Callable[..., Any] = "inductor"
    fullgraph: bool = False
    dynamic: bool | DynamicArguments | None = None
    unroll_limit: int = 8
    unroll_ops: int = 400
    recompile_limit: int = 8
    accumulated_recompile_limit: int = 256
    capture_limit: int = 128
    cache_bytes: int = 1 << 28
    inline_depth: int = 24
    stop_after: str = ""
    dump: str = ""
    num_threads: int = 0
    serial_threshold_us: float = 8.0
    debug_verify: bool = False
    small_loops: bool = False
    native_loops: bool = True
    native_loop_us: int = 20_000
    measure: bool = True
    patience_us: int = 10_000
    keep_packed: bool = True
    parallel_branches: bool = False
    tuning_seconds: float = 4.0
    progress: str = "auto"
    tier: str = "best"
    assume_compiling: bool = True
    random: str = "library"
    numerics: str = "default"
    verify: int = 0
    strict: bool = False
    capture_plain: bool = False
    cache: bool = True
    warm_start: bool = True

    def key(self) -> tuple[Any, ...]:
        """What of the options changes generated code, as a hashable, serialisable tuple."""
        return tuple((k, v) for k, v in asdict(self).items() if k not in _NOT_IN_KEY)


_NOT_IN_KEY = frozenset(
    (
        "backend",
        "fullgraph",
        "recompile_limit",
        "accumulated_recompile_limit",
        "capture_limit",
        "cache_bytes",
        "debug_verify",
        "cache",
        "warm_start",
        "native_loops",
        "native_loop_us",
        "measure",
        "patience_us",
        "tuning_seconds",
        "progress",
        "tier",
        "verify",
        "strict",
    )
)
_KNOWN = {f.name: f for f in fields(Options)}
_FROM_ENVIRONMENT: dict[str, Callable[[str], Any]] = {
    "unroll_limit": int,
    "recompile_limit": int,
    "accumulated_recompile_limit": int,
    "capture_limit": int,
    "cache_bytes": int,
    "num_threads": int,
    "native_loop_us": int,
    "patience_us": int,
    "tuning_seconds": float,
    "progress": str,
    "tier": str,
    "numerics": str,
    "stop_after": str,
    "dump": str,
    "debug_verify": lambda text: text not in ("", "0"),
    "measure": lambda text: text not in ("", "0"),
    "keep_packed": lambda text: text not in ("", "0"),
    "parallel_branches": lambda text: text not in ("", "0"),
    "verify": str,
    "strict": lambda text: text not in ("", "0"),
    "cache": lambda text: text not in ("", "0"),
    "warm_start": lambda text: text not in ("", "0"),
}


def make_options(
    *,
    mode: str = "default",
    backend: str | Callable[..., Any] = "inductor",
    fullgraph: bool = False,
    dynamic: object = None,
    verify: str | int = 0,
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Options:
    """Build :class:`Options` from ``compile``'s arguments and ``DYNCOMP_*`` environment variables.

    Raises ``ValueError`` for an unknown mode or option, naming the known ones, and for values out of range;
    ``TypeError`` for values of wrong types.
    """
    environ = os.environ if environ is None else environ
    check_variables(environ, _FROM_ENVIRONMENT)
    mode = _OTHER_NAMES.get(mode, mode) if isinstance(mode, str) else mode
    made = Options(mode=mode, backend=backend, fullgraph=fullgraph, dynamic=parse_dynamic(dynamic))
    for name, parse in _FROM_ENVIRONMENT.items():
        text = environ.get(f"DYNCOMP_{name.upper()}")
        if text is not None and (text or parse not in (int, float)):
            value: Any = verified_calls(text) if name == "verify" else _parsed(name, parse, text)
            made = replace(made, **{name: value})
    if verify:
        made = replace(made, verify=verified_calls(verify))
    if not isinstance(options or {}, Mapping):
        raise TypeError(f"options must be a mapping of names to values, not {type(options).__name__}")
    for name, value in (options or {}).items():
        if name not in _KNOWN:
            raise ValueError(f"unknown option {name!r}; known: {', '.join(sorted(_KNOWN))}")
        parsed: Any = parse_dynamic(value) if name == "dynamic" else value
        if name == "mode" and isinstance(value, str):
            parsed = _OTHER_NAMES.get(value, value)
        if name == "verify":
            parsed = verified_calls(value)
        if name == "dump" and isinstance(value, os.PathLike):
            parsed = os.fspath(value)
        made = replace(made, **{name: parsed})
    if made.mode not in MODES:
        raise ValueError(f"unknown mode {made.mode!r}; known: {', '.join(MODES)}")
    _check_types(made)
    _check_choices(made)
    if made.random == "fused":  # the original, made to compare, draws other numbers
        made = replace(made, measure=False)
    if made.numerics == "strict":  # beside other work a library may have other threads
        made = replace(made, parallel_branches=False)
    return made


def verified_calls(asked: object) -> int:
    """The option ``verify`` as a number: of ``"first"``, ``"always"``, a number of calls, or nothing."""
    known = {"first": 1, "always": ALWAYS, "": 0, None: 0}
    if isinstance(asked, (str, type(None))) and asked in known:
        return known[asked]
    number = int(asked) if isinstance(asked, str) and asked.isdigit() else asked
    if not isinstance(number, int) or isinstance(number, bool) or number < ALWAYS:
        raise ValueError(f"verify must be 'first', 'always' or a number of calls, is {asked!r}")
    return number


def _parsed(name: str, parse: Callable[[str], Any], text: str) -> Any:
    """The value that an environment variable says."""
    try:
        return parse(text)
    except ValueError:
        wanted = "an integer" if parse is int else "a number"
        raise ValueError(f"DYNCOMP_{name.upper()} must be {wanted}, not {text!r}") from None


def _check_types(options: Options) -> None:
    """Raise ``TypeError`` for a value of a wrong type and ``ValueError`` for a negative one."""
    if not isinstance(options.backend, str) and not callable(options.backend):
        raise TypeError(f"backend must be a name or a callable, not {type(options.backend).__name__}")
    for field in fields(Options):
        value, default = getattr(options, field.name), field.default
        if field.name == "dynamic":
            continue  # parsed
        if isinstance(default, bool):
            good, wanted = isinstance(value, bool), "True or False"
        elif isinstance(default, int):
            good, wanted = isinstance(value, int) and not isinstance(value, bool), "an integer"
        elif isinstance(default, float):
            good, wanted = isinstance(value, (int, float)) and not isinstance(value, bool), "a number"
        else:
            good, wanted = field.name == "backend" or isinstance(value, str), "a string"
        if not good:
            raise TypeError(f"{field.name} must be {wanted}, not {value!r}")
        if isinstance(value, (int, float)) and not value >= 0 and field.name != "verify":
            raise ValueError(f"{field.name} must not be negative, is {value!r}")


def _check_choices(options: Options) -> None:
    """Raise ``ValueError`` for a value that is none of those that there are."""
    if options.num_threads > MOST_THREADS:
        raise ValueError(f"num_threads must be at most {MOST_THREADS}, is {options.num_threads}")
    if "\0" in options.dump:
        raise ValueError(f"dump must be the name of a directory, not {options.dump!r}")
    if options.progress not in PROGRESS:
        raise ValueError(f"progress must be one of {', '.join(PROGRESS)}, is {options.progress!r}")
    if options.tier not in TIERS:
        raise ValueError(f"tier must be one of {', '.join(TIERS)}, is {options.tier!r}")
    if options.random not in RANDOM:
        raise ValueError(f"random must be one of {', '.join(RANDOM)}, is {options.random!r}")
    if options.numerics not in NUMERICS:
        raise ValueError(f"numerics must be one of {', '.join(NUMERICS)}, is {options.numerics!r}")
    if options.numerics == "strict" and options.random == "fused":
        raise ValueError("numerics='strict' gives the library's bits; random='fused' draws other numbers")
