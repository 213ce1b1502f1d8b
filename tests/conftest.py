"""Settings of the whole suite."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, settings

from dyncomp.build import toolchain

# The default suite tries the same examples each time; DYNCOMP_RANDOM=1 tries new ones. The explaining
# phase is left out: it runs under sys.monitoring, where compiled functions run their originals. There is no
# deadline: machines are shared.
PHASES = [phase for phase in Phase if phase is not Phase.explain]
settings.register_profile("same", derandomize=True, database=None, phases=PHASES, deadline=None)
settings.register_profile("random", phases=PHASES, deadline=None)
settings.load_profile("random" if os.environ.get("DYNCOMP_RANDOM") == "1" else "same")

USERS_FLAGS = toolchain.FLAGS
QUICK_FLAGS = tuple("-O0" if flag == "-O2" else flag for flag in USERS_FLAGS)

# What dyncomp itself does wrong fails a test, though the program would go on as plain Python.
os.environ.setdefault("DYNCOMP_STRICT", "1")
# Tests see captures; what is on disk is for the tests of ``warm_start``.
os.environ.setdefault("DYNCOMP_WARM_START", os.environ.get("ROUND_TRIP", "0"))


# In these folders and files, mostly of derivatives, the C++ compiler does not optimize: that takes a third of
# the time for their large kernels, whose bits are the same. What the optimizer makes of kernels is the matter
# of all others, ``inductor`` and ``numerics`` above all; slow tests run what users run.
NOT_OPTIMIZED = (
    *("aot_autograd/", "minifier/", "objectives/", "prims/", "tracing/", "transforms/", "verification/"),
    *("test_derivative", "test_gradient", "test_iterations", "test_kinks", "test_nested", "test_tape"),
    *("test_vmap", "frontends/numpy/test_scipy"),
    *(
        f"frontends/torch/test_{name}"
        for name in (
            *("attention_gradients", "autograd", "backward", "checkpoints", "gradients", "losses"),
            *("optimizers", "recurrent", "training", "transformers"),
        )
    ),
)
TESTS = Path(__file__).parent

# What these test is the same whatever interpreter runs it: kernels, and the references of ops. CI tries them
# on one of three; the launcher, a C extension, on each.
SAME_ON_ALL_PYTHONS = ("inductor", "numerics", "prims")


def pytest_addoption(parser):
    parser.addoption("--core", action="store_true", help="only what depends on Python's version")


def pytest_ignore_collect(collection_path, config):
    folder = collection_path.parent
    if not config.getoption("--core") or folder.parent != TESTS or folder.name not in SAME_ON_ALL_PYTHONS:
        return None
    return collection_path.name.startswith("test_") and "launch" not in collection_path.name or None


@pytest.fixture(autouse=True)
def what_the_compiler_optimizes(request):
    flags = QUICK_FLAGS if _is_quick(request.node) else USERS_FLAGS
    if toolchain.FLAGS is not flags:
        toolchain.FLAGS = flags
        toolchain._find.cache_clear()


def _is_quick(item):
    name = item.path.relative_to(TESTS).as_posix()
    return name.startswith(NOT_OPTIMIZED) and item.get_closest_marker("slow") is None


ERROR_MODES = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


@pytest.fixture(autouse=True)
def counted_from_nothing():
    """Faults that an earlier test of this process caused on purpose are not this one's."""
    from dyncomp import faults
    from dyncomp.capture.policy import patience

    faults.counters.pop("internal_errors", None)
    patience.forget()  # which functions were compiled by other tests, too


@pytest.fixture(autouse=True)
def numpys_own_error_modes():
    """Whatever an earlier test of this process left of ``np.seterr`` or an open ``np.errstate``."""
    if np.geterr() != ERROR_MODES:
        np.seterr(**ERROR_MODES)


@pytest.fixture(autouse=True, scope="module")
def what_earlier_modules_left_is_not_looked_at_again():
    """``dyncomp.reset()`` collects garbage, which takes seconds with what hundreds of test modules keep."""
    gc.collect()
    gc.freeze()


if os.environ.get("ROUND_TRIP") == "1":
    from .round_trip import use_stored_entries

    use_stored_entries()
