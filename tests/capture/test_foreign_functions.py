"""What packages do around NumPy: ufuncs of their own, memory orders in small letters, functions compared."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dyncomp

special = pytest.importorskip("scipy.special")


def check(program, *calls, backend="eager"):
    compiled = dyncomp.compile(program, backend=backend, fullgraph=True)
    for args in calls:
        plain, found = program(*args), compiled(*args)
        assert type(found) is type(plain)
        for a, b in zip(plain, found, strict=True):
            assert type(b) is type(a)
            # erf, expit, digamma and others are the graph's own ops
            single = getattr(a, "dtype", None) == np.float32
            np.testing.assert_allclose(b, a, rtol=2e-7 if single else 1e-14, atol=0 if single else 1e-14)
            if isinstance(a, np.ndarray):
                assert b.dtype == a.dtype
                assert b.strides == a.strides


def one_result(x, y):
    return special.xlogy(x, y), special.gamma(x.T), special.erf(x)[1:], special.jv(0, x).max()


def several_results(x, y):
    sn, cn, dn, ph = special.ellipj(x, 0.5)
    return sn, cn + y, ph


def of_scalars(x, y):
    return special.binom(5, x[0, 0]), special.zeta(2.0), special.gammaln(float(x[0, 0]))


def of_integers_and_single(x, y):
    return special.expit(x.astype(np.float32)), special.erfc(y > 1), special.binom(6, 3)


def into_an_array(x, y):
    out = np.zeros_like(x)
    special.digamma(x, out=out)
    return out, special.digamma(x, out=out) is out


def of_another_name(x, y):
    return special.exp2(x), special.log1p(y), special.cbrt(x), special.expm1(x)


def arrays(n):
    x = np.linspace(0.25, 3, 3 * n).reshape(3, n)
    return x, np.asfortranarray(x[::-1] + 1)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("program", [one_result, several_results, of_scalars], ids=lambda p: p.__name__)
def test_ufuncs_of_other_libraries_are_in_the_graph(program, backend):
    check(program, arrays(4), arrays(5), arrays(6), arrays(1), backend=backend)


@pytest.mark.parametrize(
    "program", [of_integers_and_single, into_an_array, of_another_name], ids=lambda p: p.__name__
)
def test_ufuncs_convert_and_write_as_numpys_do(program):
    check(program, arrays(4), arrays(7))


def test_ufuncs_of_other_libraries_run_on_what_a_mask_selects():
    def program(x, y):
        chosen = special.digamma(x[y > 2])
        return chosen, chosen.sum()

    check(program, arrays(4), arrays(3))


def test_errors_of_special_functions_are_raised_where_they_are_asked_for():
    def program(x):
        return special.gamma(x) * 2

    compiled = dyncomp.compile(program, backend="eager")
    x = np.array([-1.0, 2.0])
    np.testing.assert_array_equal(compiled(x), program(x))
    with special.errstate(all="raise"):
        with pytest.raises(special.SpecialFunctionError) as plain:
            program(x)
        with pytest.raises(special.SpecialFunctionError) as found:
            compiled(x)
    assert str(found.value) == str(plain.value)


def test_orders_in_small_letters():
    def program(x, y):
        return (
            np.asarray(y, order="c"),
            np.array(x, order="f"),
            np.zeros((2, 3), order="f"),
            np.zeros_like(x, order="f"),
            np.full((2, 3), 7.0, order="f"),
            np.eye(3, order="f"),
            x.copy("f"),
            x.ravel("f"),
            x.reshape((2, -1), order="f"),
            x.astype(int, "f"),
            y.flatten("a"),
        )

    check(program, arrays(4), arrays(6))


def test_functions_are_compared():
    def one(x):
        return x

    def program(f, g, x):
        def inner():
            return x

        same = (f == g, f != g, f == np.sum, inner == f, inner == inner)  # noqa: PLR0124
        return same, x + 1

    x = np.arange(3.0)
    compiled = dyncomp.compile(program, backend="eager", fullgraph=True)
    for f, g in ((one, one), (one, check), (check, check), (check, one)):
        plain, found = program(f, g, x), compiled(f, g, x)
        assert found[0] == plain[0]
        np.testing.assert_array_equal(found[1], plain[1])


def test_what_is_of_unlike_types_is_not_equal():
    class Model:
        def step(self):
            return 1

    def program(method, x):
        return method == "2-point", method != 3, len == "len", math == method, x + 1  # noqa: PLR0124

    found = dyncomp.compile(program, backend="eager", fullgraph=True)(Model().step, np.arange(3.0))
    assert found[:4] == (False, True, False, False)


def test_containers_have_no_attributes_but_their_types():
    def program(parts, x):
        found = []
        for part in parts:
            try:
                found.append(part.dtype)
            except AttributeError as error:
                found.append(str(error))
        return found, x + 1

    parts = (slice(1, 2), [1], (2,), {"a": 3}, {4}, range(5))
    x = np.arange(3.0)
    found = dyncomp.compile(program, backend="eager", fullgraph=True)(parts, x)
    assert found[0] == program(parts, x)[0]


def test_constants_have_no_attributes_but_their_types():
    def program(x):
        found = []
        for part in (Ellipsis, None, "a", b"b"):
            try:
                found.append(part.dtype)
            except AttributeError as error:
                found.append(str(error))
        return found, x + 1

    x = np.arange(3.0)
    found = dyncomp.compile(program, backend="eager", fullgraph=True)(x)
    assert found[0] == program(x)[0]


def test_place_of_one_value():
    def program(x, y):
        a = x.copy()
        np.place(a, y > 2, 7)
        np.place(a, x > 1.5, [np.nan])
        np.place(a, a == 7, x[:1, 0])
        return (a,)

    check(program, arrays(4), arrays(5))


def test_flags_of_layout():
    def program(x, y):
        return tuple(
            (a.flags.fnc, a.flags.forc, a.flags["C"], a.flags.f_contiguous) for a in (x, y, x[:, ::2], x[0])
        )

    check(program, arrays(4), arrays(1), arrays(5))
