"""Questions whose answers are known at capture: branches on arrays of one number, results that caches hold,
annotations, dicts of instances whose classes say how attributes are read."""

from __future__ import annotations

import copy
import functools
import time
import types
import typing

import numpy as np
import pytest

import dyncomp


def same_value(found, expected):
    """Equal by structure, type and value."""
    assert type(found) is type(expected)
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            same_value(a, b)
    elif isinstance(expected, dict):
        same_value(list(found.items()), list(expected.items()))
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected


def _check(f, *args, fullgraph=True):
    compiled = dyncomp.compile(f, backend="eager", fullgraph=fullgraph)
    for _ in range(2):
        same_value(compiled(*copy.deepcopy(args)), f(*copy.deepcopy(args)))
    return compiled


# -- arrays of one number -----------------------------------------------------------------------------------
def mask_of_ones(x):
    mask = np.ones(x.shape, bool)
    if mask.all():
        return x + 1
    return x - 1


def sum_of_ones(x):
    count = np.ones((len(x), 3), np.int64).astype(bool).sum()
    return x * 2 if count == 3 * len(x) else x


def compared(x):
    limit = np.full((), 3.0)
    if limit > 2:
        x = x + limit
    if not np.zeros((2, 2)).any():
        x = x * 2
    return x


@pytest.mark.parametrize("f", [mask_of_ones, sum_of_ones, compared])
def test_branches_on_one_number(f):
    compiled = _check(f, np.arange(4.0))
    for size in (5, 6, 7):
        x = np.arange(float(size))
        same_value(compiled(x), f(x))


def written(x):
    mask = np.ones(4, bool)
    mask[1] = False
    return x + 1 if mask.all() else x - 1


def written_through_a_view(x):
    mask = np.zeros((2, 2))
    row = mask[0]
    row += 1
    return x + 1 if mask.any() else x - 1


def written_later(x):
    mask = np.zeros(3)
    seen = x + 1 if mask.any() else x - 1
    mask[:] = x[:3]
    return (seen, x + 1) if mask.any() else (seen, x - 1)


def of_no_elements(x):
    return x + 1 if np.zeros((0, 3), bool).all() else x - 1


@pytest.mark.parametrize("f", [written, written_through_a_view, written_later, of_no_elements])
def test_arrays_that_are_written_are_asked(f):
    _check(f, np.arange(4.0), fullgraph=False)


# -- caches -------------------------------------------------------------------------------------------------
def _cached(maxsize):
    calls = []

    @functools.lru_cache(maxsize)
    def is_available(name, strict=False):
        calls.append(name)
        time.perf_counter()  # nothing that capture follows
        return len(name) > 3 and not strict

    return is_available, calls


@pytest.mark.parametrize("maxsize", [128, None])
def test_results_that_a_cache_holds(maxsize):
    def run(is_available, calls):
        def f(x):
            if is_available("numpy") and not is_available("numpy", strict=True):
                return x + 1
            return x - 1

        is_available("numpy")
        is_available("numpy", strict=True)
        return f, is_available, calls

    plain, plain_cache, plain_calls = run(*_cached(maxsize))
    program, cache, calls = run(*_cached(maxsize))
    compiled = dyncomp.compile(program, backend="eager", fullgraph=True)
    for _ in range(3):
        same_value(compiled(np.ones(2)), plain(np.ones(2)))
    assert cache.cache_info() == plain_cache.cache_info()
    cache.cache_clear()
    plain_cache.cache_clear()
    same_value(compiled(np.ones(2)), plain(np.ones(2)))
    assert cache.cache_info() == plain_cache.cache_info()
    assert calls == plain_calls


def test_a_cache_that_is_told_otherwise():
    answer = [True]

    @functools.lru_cache
    def ready():
        time.perf_counter()
        return answer[0]

    def f(x):
        return x + 1 if ready() else x - 1

    ready()
    compiled = dyncomp.compile(f, backend="eager")
    assert compiled(np.ones(2))[0] == 2
    answer[0] = False
    assert compiled(np.ones(2))[0] == 2
    ready.cache_clear()
    assert compiled(np.ones(2))[0] == 0


# -- annotations --------------------------------------------------------------------------------------------
_FORMS = (typing.Optional[int], typing.List[int], dict[str, int], int | None, typing.Literal["a"], int)  # noqa: UP006, UP007, UP045
_CHECKS = {typing.Union: "union", types.UnionType: "union", list: "list", dict: "dict", None: "plain"}


def annotations(x):
    found = []
    for form in _FORMS:
        origin = typing.get_origin(form)
        found.append((_CHECKS.get(origin, "other"), typing.get_args(form), origin is typing.Literal))
    return x + 1, found


def test_annotations():
    _check(annotations, np.ones(2))


# -- dicts of instances -------------------------------------------------------------------------------------
class Config:
    """Sees every attribute that is read."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __getattribute__(self, name):
        if name == "width":
            return 2 * object.__getattribute__(self, name)
        return object.__getattribute__(self, name)


def fields_of(x, config):
    output = dict(config.__dict__)
    copied = copy.deepcopy(config)
    copied.depth = 7
    total = x * config.width
    for key, value in output.items():
        if key.startswith("n"):
            total = total + value
    return total, output, copied.depth, copied.width, sorted(copied.__dict__)


def test_a_dict_of_an_instance_whose_class_reads_attributes():
    compiled = _check(fields_of, np.ones(3), Config(width=3, n=2, depth=1))
    for config in (Config(width=3, n=2, depth=1), Config(width=3, n=2, m=4, depth=1), Config(width=4, n=2)):
        same_value(compiled(np.ones(3), config), fields_of(np.ones(3), config))


def many_names(x, table):
    total = x
    for name, value in table.items():
        if name.startswith("a"):
            total = total + value
        elif isinstance(value, tuple):
            table[name] = list(value)
    return total, table


def test_loops_over_many_names():
    table = {f"{'ab'[k % 2]}{k}": (k,) if k % 2 else k for k in range(44)}
    _check(many_names, np.ones(3), table)


# -- named tuples made in C ---------------------------------------------------------------------------------
_TIME = time.gmtime(0)


def fields_of_time(x, t):
    return x + t.tm_year, t[1], len(t)


def test_struct_sequences():
    _check(fields_of_time, np.ones(3), _TIME, fullgraph=False)
