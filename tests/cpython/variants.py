"""Ways of compiling the tests. All keep what holds no array work too: these tests have none."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

_BASE: Mapping[str, Any] = {"capture_plain": True, "debug_verify": True}


@dataclass(frozen=True)
class Variant:
    """``options`` of ``dyncomp.compile``; ``library``: the standard library's functions are captured too."""

    options: Mapping[str, Any]
    library: bool = False


VARIANTS = {
    # test methods and helpers of the test file are captured, what they call is inlined where it can be
    "default": Variant(_BASE),
    # nothing is inlined, so that each Python callee is a capture of its own; loops and entries end early
    "nested": Variant({**_BASE, "inline_depth": 0, "unroll_limit": 2, "recompile_limit": 2}),
    # every function of the pure-Python library that the tests reach is a capture of its own
    "library": Variant({**_BASE, "inline_depth": 0, "unroll_limit": 2, "recompile_limit": 3}, library=True),
    # as users have it: code without array work is left alone
    "shipped": Variant({"debug_verify": True}),
}

_STDLIB = os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep
_TESTS = _STDLIB + "test" + os.sep
_SUPPORT = _TESTS + "support" + os.sep
# what runs the tests, and what a capture itself goes through
_MACHINERY = (
    "unittest",
    "doctest.py",
    "importlib",
    "faulthandler.py",
    "site-packages",
    "traceback.py",
    "linecache.py",
)


def should_capture(variant: Variant) -> Callable[[CodeType], bool]:
    """Which frames the hook captures."""

    def decide(code: CodeType) -> bool:
        filename = code.co_filename
        if filename.startswith("<"):
            return filename.startswith(("<string>", "<doctest", "<stdin>"))
        path = os.path.realpath(filename)
        if not path.startswith(_STDLIB):
            return False
        if path.startswith(_TESTS):
            return not path.startswith(_SUPPORT)
        return variant.library and not path.removeprefix(_STDLIB).startswith(_MACHINERY)

    return decide
