"""``.real`` and ``.imag`` of complex arrays are views, also where captured code computes them."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp


def of_an_argument(z):
    return z.real, z.imag, z


def of_a_result(z):
    w = np.fft.fft(z)
    return w.real, w


def sorted_in_place(z):
    w = z * 2
    r = w.real
    r.sort()
    return r, w


def assigned(z):
    w = z * 2
    r = w.imag
    r[:] = 0
    return r + 1, w


def changed_in_place(z):
    z.real += 1
    return z


def flags(z):
    return z.real.flags.writeable, z.imag * 2, z.real[1:].sum()


PROGRAMS = [of_an_argument, of_a_result, sorted_in_place, assigned, changed_in_place, flags]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_parts(program, backend):
    compiled = dyncomp.compile(program, backend=backend)
    for _ in range(2):
        first, second = (np.array([3.0, 1.0, 2.0]) + 1j for _ in range(2))
        got, wanted = compiled(first), program(second)
        pairs = zip(got, wanted) if isinstance(wanted, tuple) else [(got, wanted)]
        for a, b in pairs:
            np.testing.assert_allclose(a, b)
            if isinstance(b, np.ndarray):
                assert a.flags.writeable == b.flags.writeable
        np.testing.assert_allclose(first, second)


def test_writes_to_a_part_are_seen_in_the_whole():
    compiled = dyncomp.compile(of_an_argument, backend="eager")
    z = np.zeros(3, complex)
    real, _, same = compiled(z)
    real[0] = 5
    assert z[0] == 5 and same is z


def test_eigenvalues_are_writeable():
    def program(m):
        found = np.linalg.eigvals(m)
        found.sort()
        return found

    m = np.array([[2.0, 1.0], [0.0, 3.0]])
    np.testing.assert_allclose(dyncomp.compile(program, backend="eager")(m), program(m))
