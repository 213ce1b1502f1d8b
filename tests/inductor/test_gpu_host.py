"""Tensors on the CPU beside those on a GPU, see ``gpu_host``."""

from __future__ import annotations

import pytest

from tests.inductor.interpreted import run_interpreted

pytest.importorskip("triton")
pytest.importorskip("torch")


def test_on_a_pretended_gpu() -> None:
    run_interpreted("gpu_host.py")
