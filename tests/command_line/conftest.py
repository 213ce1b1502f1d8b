"""Running the command ``dyncomp``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def python(tmp_path: Path, shared_cache: Path) -> Callable[..., Done]:
    """Run Python in a folder of its own: exit status, output, errors."""

    def run(*arguments: str, **variables: str) -> Done:
        environment = {**os.environ, "DYNCOMP_CACHE_DIR": str(shared_cache), "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            env={**environment, **variables},
            cwd=tmp_path,
            timeout=120,
        )

    return run


@pytest.fixture
def dyncomp(python: Callable[..., Done]) -> Callable[..., Done]:
    return lambda *arguments, **variables: python("-m", "dyncomp", *arguments, **variables)
