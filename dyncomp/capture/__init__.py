"""From Python bytecode to graphs, and back to code that uses them."""

from . import _hook

INTERFACE_VERSION = 5
_found = getattr(_hook, "INTERFACE_VERSION", None)
if _found != INTERFACE_VERSION:
    raise ImportError(
        f"{_hook.__file__} was built from other sources than {__file__} (interface {_found}, "
        f"not {INTERFACE_VERSION}): build dyncomp again, for example by `pip install -e .`"
    )
