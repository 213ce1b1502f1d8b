"""What g++ takes for the units of modules' code (``bench.compile_units`` measures collections of models)."""

from __future__ import annotations

import importlib

import pytest


@pytest.mark.slow
def test_slowest_units_of_modules(tmp_path, monkeypatch, capsys):
    """All are built, and the slowest are printed; the bound itself is the bench's to check."""
    pytest.importorskip("torch")
    importlib.import_module("tests.models.vision_operators")  # before torchvision
    pytest.importorskip("torchvision")
    from bench.compile_units import Collected, collect, programs, report, slowness
    from dyncomp.build.toolchain import Toolchain, find_toolchain

    scale = slowness(find_toolchain())
    found = Collected(scale, tmp_path)
    monkeypatch.setattr(Toolchain, "compile", lambda self, *args: found.compile(self, *args))
    monkeypatch.setenv("DYNCOMP_FORCE_DISABLE_CACHES", "1")
    wrong = {}
    for name, build in list(programs("modules"))[::4]:
        problem = collect(found, name, build)
        if problem:
            wrong[name] = problem
    with capsys.disabled():
        print("\n" + report(found.units, scale))
    assert not wrong
    assert found.units and all(unit.seconds > 0 for unit in found.units)
