"""NumPy functions of symbolic sizes and steps: one entry for all sizes above one."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call, differences


def assigned(x):
    y = np.zeros(len(x))
    y[:: len(x) // 3 + 1] = 1
    return y


def written_through(x):
    y = x.copy()
    part = y[:: max(2, len(x) // 4)]
    part += 1
    return y, part


PROGRAMS = {
    "step": lambda x: x[:: max(2, len(x) // 3)] + 1,
    "step_with_bounds": lambda x: x[1 : len(x) - 1 : len(x) // 5 + 1].sum(),
    "step_back": lambda x: x[:: -(len(x) // 4 + 1)],
    "diagonal_by_step": lambda x: np.outer(x, x).ravel()[:: len(x) + 1],
    "assigned": assigned,
    "written_through": written_through,
    "arange_by_step": lambda x: np.arange(0, 2 * len(x), len(x) // 4 + 1),
    "arange_of_floats": lambda x: np.arange(0.0, len(x)) + x,
    "hanning": lambda x: x * np.hanning(len(x)),
    "hamming": lambda x: x * np.hamming(len(x)),
    "blackman": lambda x: x * np.blackman(len(x)),
    "bartlett": lambda x: x * np.bartlett(len(x)),
    "frequencies": lambda x: np.fft.fftfreq(len(x), d=0.1),
    "real_frequencies": lambda x: np.fft.rfftfreq(len(x), 2),
    "upper": lambda x: np.outer(x, x)[np.triu_indices(len(x), 1)],
    "lower": lambda x: np.outer(x, x)[np.tril_indices(len(x))],
    "diagonal": lambda x: np.outer(x, x)[np.diag_indices(len(x))],
    "one_quantile": lambda x: np.quantile(x, 0.3),
    "percentiles": lambda x: np.percentile(x, [0, 25, 50, 99, 100]),
    "percentiles_of_rows": lambda x: np.percentile(np.outer(x, x), 75, axis=1, keepdims=True),
    "quantile_of_nan": lambda x: np.quantile(np.where(x > 1, np.nan, x), 0.5),
    "negative_index": lambda x: x[-(len(x) // 2)] + x[-1],
    "clamped": lambda x: x[1 : len(x) + 10] * 2,
    "folded": lambda x: x[: len(x) // 2 * 2].reshape(-1, 2).sum(0),
    "pieces": lambda x: np.array_split(x, 3),
    "piece": lambda x: np.split(x[: len(x) // 2 * 2], 2)[1],
    "interpolated": lambda x: np.interp(np.linspace(0, len(x) - 1, 2 * len(x)), np.arange(len(x)), x),
    "averaged": lambda x: np.convolve(x, np.ones(3) / 3, mode="same"),
}
SIZES = (7, 12, 9, 30, 5, 100, 4, 3, 64)
# another answer for some sizes is another entry
MORE = {"averaged": 3}
FOR_KERNELS = (
    "step",
    "step_back",
    "assigned",
    "written_through",
    "arange_by_step",
    "frequencies",
    "percentiles",
)


def run(name, backend):
    function = PROGRAMS[name]
    compiled = dyncomp.compile(function, backend=backend, options={"debug_verify": True})
    for size in (*SIZES, 2, 1, 0):
        x = np.random.default_rng(size).standard_normal(size)
        problems = differences(call(function, (x.copy(),)), call(compiled, (x.copy(),)), 1e-9)
        assert not problems, (size, problems)
        if size == SIZES[-1]:
            records = compiled.config.records
            assert len(records.entries) <= MORE.get(name, 2), [e.missed for e in records.entries]
            assert not [b for e in records.entries for b in e.breaks]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_few_entries(name):
    run(name, "eager")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FOR_KERNELS)
def test_kernels(name):
    run(name, "inductor")


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_step_argument(backend):
    def every(x, k):
        return x[::k] * 2

    compiled = dyncomp.compile(every, backend=backend)
    x = np.arange(20.0)
    for k in (3, 4, 5, 1, 7, 30, -1, -4, 2):
        assert np.array_equal(compiled(x, k), every(x, k)), k
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        compiled(x, 0)
    assert len(compiled.config.records.entries) <= 5
