"""Run one module of CPython's tests in this process, plainly or compiled, and keep a journal."""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import logging
import math
import os
import resource
import signal
import sys
import tempfile
import time
import types
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .outcomes import Journal

_FIXTURES = ("setUp", "tearDown", "runTest", "asyncSetUp", "asyncTearDown")
_MEMORY = 8 << 30
_WAITING = 4


class Recorder(unittest.TestResult):
    """Writes the journal, and turns the hook on while a test runs."""

    def __init__(self, journal: Journal, stall: float, config: Any) -> None:
        super().__init__()
        self.journal = journal
        self.stall = stall
        self.config = config
        self.kind = "ok"
        self.text = ""

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.kind, self.text = "ok", ""
        self.journal.write("start", test=test.id())
        _limit_time(self.stall)
        _set_active(self.config)

    def stopTest(self, test: unittest.TestCase) -> None:
        _set_active(None)
        _limit_time(None)
        self.journal.write("end", test=test.id(), kind=self.kind, text=self.text)
        super().stopTest(test)

    def _note(self, kind: str, test: Any, err: Any) -> None:
        active = _set_active(None) if self.config is not None else None
        self.kind = kind
        self.text += self._exc_info_to_string(err, test)[-6000:]
        if active is not None:
            _set_active(active)

    def addFailure(self, test: Any, err: Any) -> None:
        self._note("fail", test, err)

    def addError(self, test: Any, err: Any) -> None:
        if isinstance(test, unittest.TestCase):
            self._note("error", test, err)
        else:  # a class or module fixture
            self.journal.write("start", test=test.id())
            self._note("error", test, err)
            self.journal.write("end", test=test.id(), kind="error", text=self.text)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._note("fail", test, err)

    def addSkip(self, test: Any, reason: str) -> None:
        if self.kind == "ok":
            self.kind, self.text = "skip", reason

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.kind = "xfail"

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.kind = "xpass"


def _limit_time(seconds: float | None) -> None:
    """End the process, with its stacks on stderr, when a test takes more than ``seconds`` of the processor's
    time, or very long by the clock: how busy the machine is must not matter."""
    faulthandler.cancel_dump_traceback_later()
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if seconds is None:
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))
        return
    faulthandler.dump_traceback_later(_WAITING * seconds, exit=True)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), hard))


def _set_active(config: Any) -> Any:
    if "dyncomp" not in sys.modules:
        return None
    from dyncomp.hook import _hook

    return _hook.set_active(config)


def tests_of(suite: Any) -> Iterator[Any]:
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def _filtered(suite: Any, unwanted: set[str], wanted: list[str]) -> unittest.TestSuite:
    kept = unittest.TestSuite()
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            kept.addTest(_filtered(item, unwanted, wanted))
        elif item.id() not in unwanted and (not wanted or any(part in item.id() for part in wanted)):
            kept.addTest(item)
    return kept


def compile_tests(suite: Any, config: Any) -> None:
    """Replace each test method and fixture of the suite's classes by its compiled form."""
    from dyncomp.hook import _hook

    done: set[type] = set()
    for test in tests_of(suite):
        for cls in type(test).__mro__:
            if cls in done or cls.__module__.partition(".")[0] in ("unittest", "doctest", "builtins"):
                continue
            done.add(cls)
            for name, member in list(vars(cls).items()):
                if isinstance(member, types.FunctionType) and (name.startswith("test") or name in _FIXTURES):
                    setattr(cls, name, _hook.Dispatcher(member, config))


def _make_config(variant_name: str) -> Any:
    from dyncomp.api import SESSION
    from dyncomp.options import make_options

    from .variants import VARIANTS, should_capture

    variant = VARIANTS[variant_name]
    config = SESSION.new_config(make_options(backend="eager", options=variant.options))
    config.should_capture = should_capture(variant)
    config.raise_internal_errors = False  # they are counted; the test goes on as plain Python
    return config


def _keep_messages_apart() -> None:
    """What dyncomp logs is not what a test prints: it goes to the process's own stderr."""
    log = logging.getLogger("dyncomp")
    log.addHandler(logging.StreamHandler(sys.__stderr__))
    log.propagate = False


def _summary(config: Any) -> dict[str, Any]:
    if config is None:
        return {}
    import dyncomp

    found = dyncomp.stats()
    return {"stats": found, "internal": sorted(set(config.records.internal_errors))}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("--variant", default="")
    parser.add_argument("--journal", required=True)
    parser.add_argument("--skip", default="")
    parser.add_argument("--stall", type=float, default=60.0)
    parser.add_argument("-k", action="append", default=[])
    given = parser.parse_args()
    faulthandler.enable()
    faulthandler.register(signal.SIGXCPU, chain=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells leave it ignored in the background
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    skipped = set(json.loads(Path(given.skip).read_text())) if given.skip else set()
    config = _make_config(given.variant) if given.variant else None
    _keep_messages_apart()
    stream = open(given.journal, "w", encoding="utf-8", errors="replace")  # noqa: SIM115 - until the process ends
    journal = Journal(stream)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        from test import support

        support.use_resources = []  # type: ignore[attr-defined] - nothing that needs network, minutes or screens
        name = f"test.{given.module}"
        suite = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name))
        suite = _filtered(suite, skipped, given.k)
        if config is not None:
            compile_tests(suite, config)
        suite.run(Recorder(journal, given.stall, config))
        os.chdir("/")
    journal.write("summary", **_summary(config))
    stream.close()
    sys.stdout.flush()
    os._exit(0)  # threads and objects that the tests leave behind are not the matter


if __name__ == "__main__":
    main()
