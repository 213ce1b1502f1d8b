"""Which results may be written: as NumPy hands them out."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp

PROGRAMS = {
    "broadcast_to": lambda x, s: np.broadcast_to(x * 2, (3, 4)),
    "broadcast_to of a scalar": lambda x, s: np.broadcast_to(x.sum(), (3,)),
    "broadcast_arrays": lambda x, s: np.broadcast_arrays(x, np.ones((2, 1))),
    "reshaped scalar": lambda x, s: (np.reshape(x.sum(), (1,)), np.reshape(s, (1, 1)), np.ravel(s)),
    "expanded scalar": lambda x, s: (np.expand_dims(s, 0), np.expand_dims(s, 0), np.atleast_1d(s)),
    "diagonal": lambda x, s: np.diagonal(np.outer(x, x)),
}


def writeable(result):
    arrays = result if isinstance(result, (tuple, list)) else (result,)
    return [array.flags.writeable for array in arrays]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_writeable_flag(name, backend):
    program = PROGRAMS[name]
    args = np.arange(4.0), np.float64(3.0)
    expected, found = program(*args), dyncomp.compile(program, backend=backend)(*args)
    np.testing.assert_equal(found, expected)
    assert writeable(found) == writeable(expected)
    for array in found if isinstance(found, (tuple, list)) else [found]:
        if array.flags.writeable:
            array.flags.writeable = True  # which an array without an owner of its memory refuses


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_arrays_of_one_scalar_are_apart(backend):
    def program(x, s):
        v, w = np.reshape(s, (1,)), np.expand_dims(s, 0)
        v += 1
        print(end="")
        w += x.sum()
        return v, w, s

    args = np.arange(4.0), np.float64(3.0)
    np.testing.assert_equal(dyncomp.compile(program, backend=backend)(*args), program(*args))


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_numpy_integer_repeats_a_list(backend):
    def program(table):
        return [[i] * table[i, 0] for i in range(2)], np.concatenate([[i] * table[i, 1] for i in range(2)])

    table = np.array([[1, 2], [3, 4]])
    expected, found = program(table), dyncomp.compile(program, backend=backend)(table)
    assert found[0] == expected[0]
    np.testing.assert_equal(found[1], expected[1])
