"""An extension that was built from other sources is refused when it is imported."""

import importlib

import pytest

import dyncomp.hook
from dyncomp.hook import _hook


@pytest.mark.parametrize("found", [0, dyncomp.hook.INTERFACE_VERSION + 1, None])
def test_another_interface(monkeypatch, found):
    if found is None:
        monkeypatch.delattr(_hook, "INTERFACE_VERSION")
    else:
        monkeypatch.setattr(_hook, "INTERFACE_VERSION", found)
    with pytest.raises(ImportError, match="build dyncomp again"):
        importlib.reload(dyncomp.hook)
    monkeypatch.undo()
    importlib.reload(dyncomp.hook)
