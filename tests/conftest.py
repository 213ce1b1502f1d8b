"""Settings of the whole suite."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest
from hypothesis import Phase, settings

# The default suite tries the same examples each time; DYNCOMP_RANDOM=1 tries new ones. The explaining
# phase is left out: it runs under sys.monitoring, where compiled functions run their originals. There is no
# deadline: machines are shared.
PHASES = [phase for phase in Phase if phase is not Phase.explain]
settings.register_profile("same", derandomize=True, database=None, phases=PHASES, deadline=None)
settings.register_profile("random", phases=PHASES, deadline=None)
settings.load_profile("random" if os.environ.get("DYNCOMP_RANDOM") == "1" else "same")

# What dyncomp itself does wrong fails a test, though the program would go on as plain Python.
os.environ.setdefault("DYNCOMP_STRICT", "1")
# Tests see captures; what is on disk is for the tests of ``warm_start``.
os.environ.setdefault("DYNCOMP_WARM_START", os.environ.get("ROUND_TRIP", "0"))


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
