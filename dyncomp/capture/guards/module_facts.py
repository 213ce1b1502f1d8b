"""Members of library modules that capture took as they are: guarded by the version of the module's dict."""

from __future__ import annotations

import types
from typing import Any

from ...dataclass import dataclass


class Absent:
    """In place of a member that there was not."""


@dataclass(frozen=True, eq=False)
class ModuleFacts:
    """What the names in ``members`` stand for in a module."""

    module: types.ModuleType
    members: dict[str, Any]

    def hold(self) -> bool:
        """Whether they still do. Runs no code of the program."""
        namespace = self.namespace
        return all(namespace.get(name, Absent) is found for name, found in self.members.items())

    @property
    def namespace(self) -> dict[str, Any]:
        return vars(self.module)

    def __str__(self) -> str:
        name = self.namespace.get("__name__", "a module")
        return f"{', '.join(self.members)} of {name} as they were"


def still_there(unused: object, facts: ModuleFacts) -> bool:
    """What the guard program calls where something was set in the module."""
    return facts.hold()
