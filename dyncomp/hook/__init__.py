"""The frame-evaluation hook (PEP 523), guard programs and dispatchers, in C."""

import os

from . import _hook

INTERFACE_VERSION = 12
_found = getattr(_hook, "INTERFACE_VERSION", None)
if _found != INTERFACE_VERSION:
    raise ImportError(
        f"{_hook.__file__} was built from other sources than {__file__} (interface {_found}, "
        f"not {INTERFACE_VERSION}): build dyncomp again, for example by `pip install -e .`"
    )

# profilers see the original program, as debuggers do
_hook.set_profiled_as_written(os.environ.get("DYNCOMP_PROFILE_ORIGINAL", "") not in ("", "0"))
