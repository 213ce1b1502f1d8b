"""``dyncomp.dataclass`` makes what ``dataclasses`` makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field
from typing import Any, ClassVar

import pytest

from dyncomp.dataclass import dataclass


def _variants(decorate: Any) -> dict[str, Any]:
    @decorate
    class Plain:
        """Doc."""

        a: int
        b: str = "x"
        c: list[int] = field(default_factory=list)
        d: int = field(default=4, init=False)
        e: dict[str, int] = field(default_factory=dict, init=False)
        f: int = field(default=5, repr=False)
        g: int = field(default=6, compare=False)
        shared: ClassVar[int] = 3

    @decorate(frozen=True)
    class Frozen:
        """Doc."""

        a: int
        b: Any = None
        c: tuple[int, ...] = field(default_factory=tuple)
        d: Any = field(default_factory=list, hash=False)

    @decorate(frozen=True, slots=True)
    class Slots:
        """Doc."""

        a: int
        b: float = 1.5

    @decorate(eq=False)
    class Identity:
        """Doc."""

        a: int = 1

        def __repr__(self) -> str:
            return "mine"

    @decorate(frozen=True)
    class Derived(Frozen):
        """Doc."""

        e: int = 7

        def __post_init__(self) -> None:
            object.__setattr__(self, "b", self.a + 1)

    @decorate(frozen=True)
    class Hashed:
        """Doc."""

        a: int

        def __hash__(self) -> int:
            return 12

    @decorate(frozen=True)
    class Empty:
        """Doc."""

    return {k: v for k, v in locals().items() if isinstance(v, type)}


OURS, THEIRS = _variants(dataclass), _variants(dataclasses.dataclass)
_CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1,), {}),
    ((1, 2), {}),
    ((1,), {"b": 3}),
    ((1, 2, (3,)), {}),
    ((1, 2, 3, 4, 5, 6), {}),
    ((), {"a": 2, "nothing": 1}),
]


def _seen(cls: Any, args: Any, kwargs: Any) -> Any:
    try:
        made = cls(*args, **kwargs)
    except TypeError as error:
        return str(error)
    same = cls(*args, **kwargs)
    facts = [repr(made).replace(cls.__qualname__, ""), made == same, made != same, made == 3]
    facts += [dataclasses.astuple(made), dataclasses.asdict(copy.copy(made))]
    if cls.__hash__ is not object.__hash__:
        facts.append(cls.__hash__ is None or hash(made))
    changed = dataclasses.replace(made)
    return [*facts, type(changed) is cls, repr(changed) == repr(made)]


@pytest.mark.parametrize("name", sorted(OURS))
def test_it_makes_the_same(name: str) -> None:
    ours, theirs = OURS[name], THEIRS[name]
    for args, kwargs in _CALLS:
        assert _seen(ours, args, kwargs) == _seen(theirs, args, kwargs)
    parameters = [(p.name, p.kind, p.default is p.empty) for p in inspect.signature(ours).parameters.values()]
    others = [(p.name, p.kind, p.default is p.empty) for p in inspect.signature(theirs).parameters.values()]
    assert parameters == others
    assert ours.__match_args__ == theirs.__match_args__
    assert set(vars(ours)) == set(vars(theirs))


@pytest.mark.parametrize("name", ["Frozen", "Slots", "Derived"])
def test_frozen_is_frozen(name: str) -> None:
    made = OURS[name](1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        made.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
        del made.a


@dataclass(frozen=True, slots=True)
class Stored:
    """For pickle, which finds it by its name."""

    a: int
    b: tuple[int, ...] = ()


def test_slots_are_pickled_and_refuse_other_attributes() -> None:
    made = Stored(1, (2,))
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.deepcopy(made) == made
    assert not hasattr(made, "__dict__")


def test_a_value_that_contains_itself_is_shown() -> None:
    made = OURS["Plain"](1)
    made.c.append(made)
    assert "c=[...]" in repr(made)


def test_a_class_below_a_frozen_one_has_attributes_of_its_own() -> None:
    class Below(OURS["Frozen"]):  # type: ignore[misc]
        pass

    made = Below(1)
    made.more = 2
    assert made.more == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.a = 2
