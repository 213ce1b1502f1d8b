"""Functions of torch that rows name, against compiled ones."""

from __future__ import annotations

import pytest

import dyncomp
from dyncomp.prims.table import TABLE

torch = pytest.importorskip("torch")

NAMED = [(path, row) for row in TABLE.values() for path in row.names_in("torch")]
SPECIAL = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.5, -2.0, 30.0, -30.0]


def _function(path):
    found = torch
    for name in path.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize(("path", "row"), NAMED, ids=[path for path, _ in NAMED])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64"])
def test_functions_of_torch(path, row, dtype):
    function = _function(path)
    x = torch.cat([torch.linspace(-4.0, 4.0, 41) + 0.013, torch.tensor(SPECIAL)])
    if dtype == "int64":
        x = x.nan_to_num(posinf=9.0, neginf=-9.0).round()
    x = x.to(getattr(torch, dtype))
    # zeta(x, inf) is in docs/deviations.md
    xs = [x] if row.scalar.arity == 1 else [x.abs() + 1, x.where(x < 1e9, 2.5)]
    try:
        function(*xs)
    except NotImplementedError as error:
        with pytest.raises(NotImplementedError, match=str(error)):
            dyncomp.compile(lambda *xs: function(*xs) * 2)(*xs)
        return
    with torch.no_grad():
        compiled = dyncomp.compile(lambda *xs: function(*xs) * 2)
        # the rounding of library and compiled code add up in the type in which both compute
        rounding = {"rtol": 1e-5, "atol": 1e-5} if dtype in ("float32", "int64") else {}
        torch.testing.assert_close(compiled(*xs), function(*xs) * 2, equal_nan=True, **rounding)
        if hasattr(torch.Tensor, path):
            compiled = dyncomp.compile(lambda x: getattr(x, path)())
            torch.testing.assert_close(compiled(x), function(x), equal_nan=True, **rounding)
