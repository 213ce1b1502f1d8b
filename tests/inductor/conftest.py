"""Fixtures of the inductor's tests."""

from __future__ import annotations

from typing import Any

import pytest

from dyncomp.inductor import compile as inductor


@pytest.fixture
def artifacts(monkeypatch: pytest.MonkeyPatch) -> list[inductor.CompiledArtifact]:
    """What is compiled in a test."""
    made: list[inductor.CompiledArtifact] = []
    finish = inductor._artifact

    def keep(*args: Any) -> inductor.CompiledArtifact:
        made.append(finish(*args))
        return made[-1]

    monkeypatch.setattr(inductor, "_artifact", keep)
    return made
