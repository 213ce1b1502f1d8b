"""A pytest plugin that compiles every Python function of the packages named in ``DYNCOMP_TEST_PACKAGES``.

Loaded by ``tests.packages`` into a run of a package's own tests. Outcomes per test and dyncomp's counters go
to the JSON file named in ``DYNCOMP_TEST_REPORT``; without packages it only records (the plain run).
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import random
import time
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

_TARGET = "the compiled function"
_MOST_DECORATORS = 5
OUTCOMES: dict[str, str] = {}
COMPILED: set[types.FunctionType] = set()
STARTED: list[float] = []  # when the first test began
ENDED: list[bool] = []


def pytest_configure(config: Any) -> None:
    names = [name for name in os.environ.get("DYNCOMP_TEST_PACKAGES", "").split(",") if name]
    if names:
        compile_packages(names)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """A sample, and an order in which a run that ends early has seen something of everything."""
    items[:] = items[:: int(os.environ.get("DYNCOMP_TEST_SAMPLE") or 1)]
    if os.environ.get("DYNCOMP_TEST_SHUFFLE"):
        random.Random(os.environ["DYNCOMP_TEST_SHUFFLE"]).shuffle(items)


def pytest_runtest_protocol(item: Any) -> None:
    """End a run that has used its time; what it did not come to is not compared."""
    budget = float(os.environ.get("DYNCOMP_TEST_BUDGET") or 0)
    if not STARTED:
        STARTED.append(time.monotonic())
    if budget and time.monotonic() - STARTED[0] > budget:
        item.session.shouldstop = "out of time"
        ENDED.append(True)


def compile_packages(names: list[str]) -> None:
    """Replace every function of the packages, wherever a module refers to it, by its compiled form."""
    import dyncomp
    from dyncomp.prims.dynamic import FUNCTIONS

    called_by_graphs = {getattr(own, "__wrapped__", own) for own in FUNCTIONS.values()}
    backend = os.environ.get("DYNCOMP_TEST_BACKEND", "eager")
    modules = [module for name in names for module in modules_of(name)]

    plain = bool(os.environ.get("DYNCOMP_TEST_PLAIN"))

    def compiler(function: Any) -> Any:
        if backend == "none":
            return function
        return dyncomp.compile(function, backend=backend, options={"capture_plain": plain})

    methods = bool(os.environ.get("DYNCOMP_TEST_METHODS"))
    for module in modules:
        for value in list(vars(module).values()):
            for function in functions_of(value, names, methods):
                if function not in COMPILED and function not in called_by_graphs:
                    COMPILED.add(function)
                    compile_in_place(function, compiler)


def functions_of(value: Any, names: list[str], methods: bool) -> list[types.FunctionType]:
    """The packages' functions behind a module's member: itself, what decorators have wrapped, the methods."""
    if isinstance(value, type):
        members = list(vars(value).values()) if methods and is_of(value, names) else []
        return [found for member in members for found in functions_of(function_in(member), names, False)]
    found = []
    for _ in range(_MOST_DECORATORS):
        if is_target(value, names):
            found.append(value)
        value = getattr(value, "__wrapped__", None) if hasattr(value, "__module__") else None
    return found


def function_in(member: Any) -> Any:
    """The function of a ``staticmethod``, ``classmethod`` or ``property``."""
    if isinstance(member, property):
        return member.fget
    return getattr(member, "__func__", member)


def compile_in_place(function: types.FunctionType, compiler: Callable[[Any], Any]) -> None:
    """Have a function call its compiled copy. It stays the same object, so that tables of functions, ``is``
    and references in closures hold; only its code changes, to a call with the same signature."""
    code = function.__code__
    copy = types.FunctionType(
        code, function.__globals__, code.co_name, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__module__, copy.__qualname__, copy.__doc__ = (
        function.__module__,
        function.__qualname__,
        function.__doc__,
    )
    function.__code__ = forwarding_code(code, compiler(copy))


def forwarding_code(code: types.CodeType, target: Any) -> types.CodeType:
    """Code with the parameters and free variables of ``code`` that calls ``target`` with its arguments."""
    total = code.co_argcount + code.co_kwonlyargcount
    positional, keyword = (
        list(code.co_varnames[: code.co_argcount]),
        code.co_varnames[code.co_argcount : total],
    )
    rest = list(code.co_varnames[total:])
    parameters, arguments = list(positional), list(positional)
    if code.co_posonlyargcount:
        parameters.insert(code.co_posonlyargcount, "/")
    if code.co_flags & inspect.CO_VARARGS:
        name = rest.pop(0)
        parameters.append(f"*{name}")
        arguments.append(f"*{name}")
    elif keyword:
        parameters.append("*")
    parameters += keyword
    arguments += [f"{name}={name}" for name in keyword]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parameters.append(f"**{rest[0]}")
        arguments.append(f"**{rest[0]}")
    free = code.co_freevars
    lines = [
        f"def outer({', '.join(free)}):",
        f"    def forward({', '.join(parameters)}):",
        f"        return {_TARGET!r}({', '.join(arguments)})",
        *(f"        {name}" for name in free),  # never reached, but makes them free variables
        "    return forward",
    ]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)
    made = namespace["outer"](*free).__code__
    assert made.co_freevars == free
    constants = tuple(target if constant == _TARGET else constant for constant in made.co_consts)
    return made.replace(
        co_consts=constants,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )


def modules_of(name: str) -> list[types.ModuleType]:
    """The module and, for a package, its modules, tests left out; those that cannot be imported too."""
    module = importlib.import_module(name)
    found = [module]
    for info in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
        if "test" in info.name.rpartition(".")[2] or info.name.endswith(("conftest", "setup")):
            continue
        try:
            found += modules_of(info.name)
        except Exception:
            continue
    return found


def is_target(value: Any, names: list[str]) -> bool:
    """Whether a function is the packages' own; networkx has some that exchange their own code."""
    return isinstance(value, types.FunctionType) and is_of(value, names) and not hasattr(value, "__argmap__")


def is_of(value: Any, names: list[str]) -> bool:
    module = str(value.__module__)
    return any(module == name or module.startswith(f"{name}.") for name in names)


def pytest_runtest_logreport(report: Any) -> None:
    if report.when == "call" or report.outcome != "passed":
        outcome = report.outcome
        if outcome == "failed":
            outcome = f"failed: {str(report.longrepr)[-1500:]}"
        path, _, name = report.location
        OUTCOMES[f"{os.path.basename(path)}::{name}"] = outcome


def reasons_of(records: list[Any]) -> list[tuple[str, int]]:
    """Why graphs broke and functions were left alone, most frequent first."""
    found: Counter[str] = Counter()
    for record in records:
        found.update(f"skip: {why}" for _, _, why in record.skipped)
        for entry in record.entries:
            found.update(f"{b.id}: {b.reason}" for b in entry.breaks)
    return found.most_common(200)


def pytest_sessionfinish(session: Any) -> None:
    path = os.environ.get("DYNCOMP_TEST_REPORT")
    if not path:
        return
    stats: dict[str, Any] = {}
    called = 0
    if COMPILED:
        import dyncomp
        from dyncomp.api import SESSION

        stats = {k: v for k, v in dyncomp.stats().items() if isinstance(v, (int, float))}
        stats["breaks"] = dict(dyncomp.stats().get("breaks", {}))
        records = [config.records for config in list(SESSION.configs)]
        stats["reasons"] = reasons_of(records)
        called = sum(bool(r.entries or r.skipped) for r in records)
        stats["internal"] = [
            f"{name} {loc}: {why}" for r in records for name, loc, why in r.skipped if "internal" in why
        ]
    report = {"outcomes": OUTCOMES, "stats": stats, "functions": len(COMPILED), "called": called}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dict(report, ended=bool(ENDED)), file)
