"""CPython's own tests with every frame patched in place by a (larger) copy of its code."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("test.support", reason="CPython's tests are not installed")

SCRIPT = """
import sys, unittest
from dyncomp.hook import _hook

def on_miss(func, bound, config):
    code = func.__code__
    return _hook.Entry(None, code.replace(co_stacksize=code.co_stacksize + 20))

suite = unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])
_hook.set_active(_hook.HookConfig(on_miss))
result = unittest.TextTestRunner(verbosity=0).run(suite)
_hook.set_active(None)
assert _hook.stats()["patched"] > 100, _hook.stats()
sys.exit(0 if result.wasSuccessful() else 1)
"""
QUICK = ["test_scope", "test_keywordonlyarg", "test_contextlib"]
SLOW = [
    "test_functools",
    "test_generators",
    "test_collections",
    "test_exceptions",
    "test_with",
    "test_dataclasses",
]
SLOW += [
    "test_enum",
    "test_itertools",
    "test_call",
    "test_positional_only_arg",
    "test_coroutines",
    "test_json",
]
SLOW += ["test_frame", "test_traceback", "test_gc", "test_weakref"]


def run(name):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", SCRIPT, f"test.{name}"],
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=root),
        timeout=280,
    )
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.parametrize("name", QUICK)
def test_module(name):
    run(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_module_slow(name):
    run(name)
