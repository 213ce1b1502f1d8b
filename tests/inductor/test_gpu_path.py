"""The whole path for arrays on a GPU, with a driver that interprets kernels: see ``gpu_programs``."""

from __future__ import annotations

import pytest

from tests.inductor.interpreted import run_interpreted

pytest.importorskip("triton")
pytest.importorskip("torch")


def test_programs_on_a_pretended_gpu() -> None:
    run_interpreted("gpu_programs.py")
