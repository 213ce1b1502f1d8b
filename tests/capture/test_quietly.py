"""What warns or prints is left to the program, though its arguments are constants."""

from __future__ import annotations

import enum
import re
import types
import warnings
from collections import OrderedDict

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check


def nested_set(x):
    return x + 1, re.findall("[[a]b]", "[b]")


def doubled(x):
    return x + 1, re.sub(r"[a&&b]", "z", "a-b")


def debugged(x):
    return x + 1, bool(re.match("q[xy]", "qx", re.DEBUG)), re.search("(?i)Z", "z").span()


def counted(x):
    return x + 1, re.sub("a", "b", "aaa", 1), re.split("b", "abbc", 1)  # noqa: B034


LAZY = types.ModuleType("numpy_lazily")


def _old_name(name):
    if name != "old":
        raise AttributeError(name)
    warnings.warn(f"{name} is old", DeprecationWarning, stacklevel=2)
    return len


LAZY.__getattr__ = _old_name


def old_name(x):
    return x + 1, LAZY.old((1, 2))


def heard(function):
    """The result, the warnings and what stands for them in the registry of this file."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = function(np.arange(3.0))
    return repr(result), [(w.category, str(w.message), w.filename, w.lineno) for w in found]


@pytest.mark.parametrize("program", [nested_set, doubled, counted, old_name])
def test_warnings_come_from_the_program(program):
    compiled = dyncomp.compile(program, backend="eager")
    plain = heard(program)
    for _ in range(3):
        re.purge()
        assert heard(compiled) == plain
        re.purge()
        assert heard(program) == plain


def test_a_pattern_is_printed_each_time(capsys):
    compiled = dyncomp.compile(debugged, backend="eager")
    debugged(1)
    plain = capsys.readouterr().out
    assert "LITERAL 113" in plain
    for _ in range(2):
        compiled(1)
        assert capsys.readouterr().out == plain


def test_filters_are_left_as_they_were():
    before = list(warnings.filters)
    listed = warnings.filters
    heard(dyncomp.compile(nested_set, backend="eager"))
    assert warnings.filters is listed
    assert warnings.filters == before


def of_the_base(x):
    entries = OrderedDict(a=1, b=2, c=3)
    popped = dict.pop(entries, "a")
    return x + popped, sorted(dict.keys(entries)), len(entries)


class Key:
    asked = 0

    def __hash__(self):
        Key.asked += 1
        return 5


def values_of(entries, x):
    return x + 1, len(list(entries.values()))


def test_methods_of_a_base_are_not_those_of_the_class():
    check(of_the_base, lambda: (np.arange(3.0),))


def test_keys_of_an_ordered_dict_are_not_hashed_at_capture():
    def asked(function):
        entries = OrderedDict([(Key(), 1), (Key(), 2)])
        Key.asked = 0
        result = function(entries, np.arange(2.0))
        return result[1], Key.asked

    assert asked(dyncomp.compile(values_of, backend="eager")) == asked(values_of)


def test_guards_do_not_hash_objects():
    class Colour(enum.Enum):
        RED = 1

        def __hash__(self):
            hashed.append(self)
            return 1

    def program(colour, x):
        return x + 1 if colour is Colour.RED else x

    hashed = []
    compiled = dyncomp.compile(program, backend="eager")
    hashed.clear()
    assert compiled(Colour.RED, np.zeros(1))[0] == 1
    assert hashed == []
