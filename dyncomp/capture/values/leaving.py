"""Whether what was found outside may no longer be there when the captured part has run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..guards.source import CellSource, FreeCellSource, GlobalSource, GlobalsSource, ReferentSource, Source
from .base import Tracer, Value
from .obj import InstanceValue


class WrittenPlaces(NamedTuple):
    """Names of the global variables, and sources of the objects, that a captured part has changed so far."""

    names: frozenset[str]
    sources: frozenset[Source | None]


def written_places(tracer: Tracer) -> WrittenPlaces:
    names = frozenset(name for _, name in tracer.global_writes)
    return WrittenPlaces(names, frozenset(value.source for value in tracer.mutated))


def leaves_place(tracer: Tracer, source: Source, written: WrittenPlaces) -> bool:
    """Whether the captured part changes something on the way to ``source``, so that it may let go of what was
    found there, or a weak reference, which holds nothing, is on that way. Global variables are told apart by
    name alone, attributes of an object by name."""
    further: list[str | None] = []  # the names of what is read from a place, and from that
    for place in _way(source):
        if isinstance(place, ReferentSource) or _last_name(place) in written.names:
            return True
        found = tracer.by_source.get(place)
        changed = place in written.sources or getattr(found, "mutated", False)
        if changed and not (further and _keeps(found, further[-2:])):
            return True
        further.append(_last_name(place))
        if id(getattr(found, "obj", None)) in tracer.states:
            return True
    return False


def _keeps(found: Value | None, names: list[str | None]) -> bool:
    """Whether an object was changed in none of these attributes (``vars(x)["name"]`` names two)."""
    if not isinstance(found, InstanceValue) or found.slots:
        return False
    return not any(name is not None and found.namespace.was_written(name) for name in names)


def _way(source: Source) -> Iterator[Source]:
    """``source``, what it is read from, and so on."""
    place: Source | None = source
    while place is not None:
        yield place
        if isinstance(place, CellSource):
            yield FreeCellSource(place.local, place.index)
        if isinstance(place, GlobalSource):
            yield GlobalsSource()
        place = place.parent


def _last_name(place: Source) -> str | None:
    """The name under which ``place`` is found in what it is read from."""
    name = getattr(place, "key", getattr(place, "attr", None))
    return name if isinstance(name, str) else None
