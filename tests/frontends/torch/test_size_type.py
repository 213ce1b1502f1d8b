"""Parts of ``torch.Size`` and sums with it are ``torch.Size``; one from outside is a tuple of numbers."""

from __future__ import annotations

import pytest

import dyncomp
from tests.capture.comparing import graphs

torch = pytest.importorskip("torch")

EXPRESSIONS = {
    "slice": lambda s: s[:-1],
    "reversed": lambda s: s[::-1],
    "whole": lambda s: (s[:], s[:] == s),
    "with a tuple": lambda s: s + (2,),
    "behind a tuple": lambda s: (2, 3) + s,
    "with nothing": lambda s: (s + (), () + s),
    "with itself": lambda s: s[:1] + s,
    "repeated": lambda s: (s * 2, 2 * s, s * 1, s * 0),
    "compared": lambda s: (s[:1] == (4,), s[:1] == torch.Size([4]), s < (5,), s[:0] or 7),
    "shape of another": lambda s: torch.zeros(s[:-1] + (2,)).shape,
    "other containers": lambda s: (tuple(s[:1]), list(s[1:]), [*s], len(s[1:]), max(s), f"{s[1:]}"),
    "added to": lambda s: [s := s + (k,) for k in range(3)][-1],
    "not integers": lambda s: s + ("x",),
    "with a list": lambda s: s + [1],
}


def typed(value):
    if isinstance(value, (list, tuple)):
        return type(value), [typed(v) for v in value]
    return type(value), value


def outcome(function, *args):
    try:
        return typed(function(*args))
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_keep_their_type(name, dynamic):
    expression = EXPRESSIONS[name]

    def of_a_tensor(x):
        return expression(x.shape)

    def behind_a_break(x):
        size = x.shape
        dyncomp.graph_break()
        return expression(size)

    x = torch.zeros(4, 5)
    for program in (of_a_tensor, behind_a_break):
        compiled = dyncomp.compile(program, backend="eager", dynamic=dynamic)
        for _ in range(2):
            assert outcome(compiled, x) == outcome(program, x)


def test_one_from_outside_is_a_tuple_of_numbers():
    def program(x, size):
        return x.reshape(size[:-1] + (-1,)) * size[0], size[1:]

    compiled = dyncomp.compile(program, backend="eager")
    x = torch.arange(24.0)
    for size in (torch.Size([2, 3, 4]), torch.Size([4, 3, 2]), torch.Size([6, 4]), (2, 3, 4)):
        (found, rest), (expected, tail) = compiled(x, size), program(x, size)
        assert torch.equal(found, expected)
        assert typed(rest) == typed(tail)
    assert graphs(compiled.config.records) >= 1
    assert not compiled.config.records.internal_errors


def test_what_has_the_shape_is_not_broadcast():
    def program(a, b):
        x, y = torch.broadcast_tensors(a, b)
        (z,) = torch.broadcast_tensors(b)
        return x is a, y is b, z is b, x, y

    a, b = torch.ones(4, 5), torch.arange(5.0)
    found, expected = dyncomp.compile(program, backend="eager")(a, b), program(a, b)
    assert found[:3] == expected[:3] == (True, False, True)
    assert found[3] is a
    assert torch.equal(found[4], expected[4])
