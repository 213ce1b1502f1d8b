"""Branches of graphs run at the same time in all tests here."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def branches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNCOMP_PARALLEL_BRANCHES", "1")
