"""Settings of the tests on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What an earlier run found the fastest is not taken without a look at the others."""
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path / "cache"))
