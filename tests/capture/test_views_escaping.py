"""Views, and views of views, that leave the graph: written inside, behind a break and after the return."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import call, differences

VIEWS = """
z.real
z.imag
z.real[1:]
z.imag[::2]
z.real.T
z.real.reshape(-1)
z.real.ravel()
z.imag[0, 1:]
z.real.swapaxes(0, 1)
z.T.real
z[1:].imag[:, 1:]
np.real(z)[1:]
np.diagonal(z).real
np.real_if_close(z)
z.real.view()
z.real.view().T
z.real.real[0]
[r for r in z.real]
tuple(z.imag)
np.split(z.real, 2)[1]
np.atleast_3d(z.imag)
np.flip(z.real)
np.broadcast_to(z.real, (2, *z.shape))
np.asarray(z.real[1:])
np.ascontiguousarray(z.real.T)
np.require(z.imag[:2], requirements="C")
z.real[0].sort()
np.copyto(z.real[1:], 5)
np.add(z.real, 1, out=z.imag[...])
z.real[1:].strides
z.real[1:].flags.writeable
z.real.T.flags.c_contiguous
np.shares_memory(z.real[1:], z)
z.T.ravel()
z.T.reshape(2, -1)
np.diagonal(z)
np.lib.stride_tricks.sliding_window_view(z, 2, axis=0)
np.meshgrid(z[0], z[:, 0], copy=False)[0]
z.view(float)
np.rot90(z)
np.einsum("ii->i", z[:3, :3])
""".strip().splitlines()

USES = {
    "plain": "v = {view}; return v, z",
    "write": "v = {view}; written(v, 7); return z, v",
    "break": "v = {view}; dyncomp.graph_break(); written(v, 7); return v",
    "between": "v = {view}; w = z * 2; dyncomp.graph_break(); written(v, 7); w = w + z; return w, v",
    "base": "v = {view}; z[0] = 3; z[1:] *= 2; return v, z",
}
ARRAYS = {"argument": "z = x", "made": "z = x * 2 + 1j", "part": "z = x.real"}


def written(view, value):
    if isinstance(view, np.ndarray) and view.flags.writeable:
        view[...] = value


def seen(function):
    """What a call does, and where its results' memory is, after they were written too."""
    x = np.arange(12.0).reshape(4, 3) * (1 + 2j) + 0.5
    outcome = call(function, (x,))
    result = outcome.world[2]
    arrays = [a for a in (result if isinstance(result, tuple) else (result,)) if isinstance(a, np.ndarray)]
    facts = [
        (
            a.flags.writeable,
            [stride for size, stride in zip(a.shape, a.strides) if size > 1],
            [np.shares_memory(a, b) for b in (x, *arrays)],
        )
        for a in arrays
    ]
    for number, array in enumerate(arrays):
        written(array, 50 + number)
    return outcome, facts


def made(text):
    names = {"np": np, "dyncomp": dyncomp, "written": written}
    exec(text, names)
    return names["f"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("view", VIEWS)
def test_views(view):
    for array, setup in ARRAYS.items():
        for use, body in USES.items():
            function = made(f"def f(x):\n    {setup}\n    {body.format(view=view)}")
            inductor = (array, use) == ("made", "between") and VIEWS.index(view) % 8 == 2
            backend = "inductor" if inductor else "eager"
            compiled = dyncomp.compile(function, backend=backend)
            for _ in range(2):
                expected, facts = seen(function)
                found, own = seen(compiled)
                assert not differences(expected, found, 1e-12), (array, use)
                assert own == facts, (array, use)


def fields(x):
    r = np.zeros(4, dtype=[("a", "f8"), ("b", "i4", (2,))])
    r["a"][1:] = x[0, 1:].real
    first = r["a"]
    dyncomp.graph_break()
    first[0] = 5
    r["b"][:, 1] = 3
    return r["a"], r["b"][1:], np.shares_memory(first, r)


def flat_of_result(x):
    y = x.real * 2
    f = y.flat
    f[3] = 9.0
    y[0, 0] = -1
    return y, next(f), f.base is y


def test_fields_and_flat():
    for function in (fields, flat_of_result):
        compiled = dyncomp.compile(function, backend="eager")
        for _ in range(2):
            x = np.ones((3, 4)) * 1j
            expected, found = call(function, (x,)), call(compiled, (x,))
            assert not differences(expected, found)


def test_a_view_that_stays_breaks_nothing():
    def program(z):
        return (z.real[1:] * 2 + z.imag[:-1]).sum(axis=0)

    compiled = dyncomp.compile(program, backend="eager", fullgraph=True)
    z = np.arange(12.0).reshape(4, 3) * (1 + 2j)
    np.testing.assert_array_equal(compiled(z), program(z))


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_empty_slices_take_their_step_as_one(dynamic):
    def program(x):
        part = x.copy()[1:]
        turned = part[::-1]
        return turned, turned.strides, part[::2].strides, part[4:][::3].strides

    compiled = dyncomp.compile(program, backend="eager", dynamic=dynamic)
    for size in (5, 4, 3, 2, 1, 6, 1):
        x = np.arange(float(size))
        got, want = compiled(x), program(x)
        assert got[1:] == want[1:]
        assert got[0].strides == want[0].strides
