"""On a GPU: convolutions of groups by the templates (``pytest -m gpu tests/gpu``)."""

from __future__ import annotations

from typing import Any

import pytest

import dyncomp
from dyncomp.inductor.gpu import choose, formats

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.inductor.gpu_groups import CASES, HALF, added, depthwise, strided  # noqa: E402
from tests.inductor.gpu_simulator import r  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]
LARGE = [
    (depthwise, lambda d: (r(4, 96, 56, 56, dtype=d), r(96, 1, 3, 3, dtype=d), r(96, dtype=d))),
    (added, lambda d: (r(4, 64, 14, 14, dtype=d), r(64, 1, 7, 7, dtype=d), r(64, dtype=d))),
    (strided, lambda d: (r(4, 128, 28, 28, dtype=d), r(128, 4, 3, 3, dtype=d), r(128, dtype=d))),
    (strided, lambda d: (r(4, 512, 14, 14, dtype=d), r(512, 16, 3, 3, dtype=d), r(512, dtype=d))),
]


@pytest.fixture(autouse=True)
def in_c_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images of halves stay as they are: templates of groups do not take channels last."""
    monkeypatch.setattr(formats, "FEW_CHANNELS", 1 << 30)


@pytest.mark.parametrize("mode", ["default", "max-autotune"])
@pytest.mark.parametrize("dtype", [HALF, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("number", range(len(CASES + LARGE)))
def test_groups(number: int, dtype: Any, mode: str) -> None:
    function, make = (CASES + LARGE)[number]
    arguments = [a.cuda() for a in make(dtype)]
    with torch.no_grad():
        got = dyncomp.compile(function, fullgraph=True, mode=mode)(*arguments)
        want = function(*[a.double() for a in arguments])
    close = {HALF: 2e-2, torch.bfloat16: 2e-1, torch.float32: 1e-2}[dtype]
    torch.testing.assert_close(got.double(), want, rtol=close, atol=close)


def test_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """All candidates run."""
    seen: list[str] = []
    original = choose.Choice._find

    def find(self: Any, plain: Any, stream: int, places: Any) -> int:
        for number, name in enumerate(self.names):
            self._candidate(number, stream, places)()
            torch.cuda.synchronize()
            seen.append(name)
        return original(self, plain, stream, places)

    function, make = LARGE[0]
    arguments = [a.cuda() for a in make(HALF)]
    monkeypatch.setattr(choose.Choice, "_find", find)
    with torch.no_grad():
        want = function(*arguments)
        got = dyncomp.compile(function, fullgraph=True, mode="max-autotune")(*arguments)
    torch.testing.assert_close(got, want, rtol=2e-2, atol=2e-2)
    assert sum("few" in name for name in seen) >= 2
