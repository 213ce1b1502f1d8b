"""CPython's own tests: a few quick modules in the default suite, all of them where slow tests are wanted."""

from __future__ import annotations

import pytest

from .modules import LANGUAGE, LIBRARY, QUICK, available
from .runner import Limits, compare

pytest.importorskip("test.support", reason="CPython's tests are not installed")


def check(module: str, variant: str) -> None:
    found = compare(module, variant, Limits(stall=100.0, module=280.0))
    notes = [f"{test}: {outcome.kind}\n{outcome.text[-1500:]}" for test, outcome in found.differing.items()]
    assert not notes, "\n".join(notes)
    assert not found.internal, "\n".join(found.internal)
    assert not found.problem, found.problem
    assert found.tests > 0
    assert len(found.expected) <= max(2, found.tests // 10), found.expected


@pytest.mark.parametrize("module", available(QUICK))
def test_module(module):
    check(module, "default")


@pytest.mark.slow
@pytest.mark.parametrize("module", available(LANGUAGE + LIBRARY))
def test_module_slow(module):
    check(module, "default")


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["nested", "library", "shipped"])
@pytest.mark.parametrize("module", available(QUICK))
def test_variant(module, variant):
    check(module, variant)
