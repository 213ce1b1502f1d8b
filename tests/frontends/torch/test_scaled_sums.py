"""``alpha`` of sums, and sums at positions: what torch refuses, and how halves are rounded."""

import pytest

import dyncomp

torch = pytest.importorskip("torch")

X = torch.arange(64).reshape(32, 2)
AT = torch.arange(32)


def outcome(function, *args):
    try:
        return function(*[arg.clone() for arg in args]).tolist()
    except RuntimeError as error:
        return str(error)


SAME = {
    "bool alpha of ints": (lambda x: torch.add(x, x, alpha=True), X),
    "bool alpha of floats": (lambda x: torch.sub(x, x, alpha=True), X * 0.5),
    "bool alpha of bools": (lambda x: torch.add(x, x, alpha=True), X > 3),
    "float alpha of ints": (lambda x: torch.add(x, x, alpha=1.0), X),
    "float alpha of floats": (lambda x: torch.add(x, x, alpha=1.0), X * 0.5),
    "alpha of bfloat16": (lambda x: torch.add(x, x, alpha=0.3), (X * 0.37).bfloat16()),
    "alpha of float16": (lambda x: torch.sub(x, x, alpha=0.7), (X * 0.37).half()),
    "alpha beyond float16": (lambda x: torch.add(x, x, alpha=1e6), (X * 0.37).half()),
    "source is target": (lambda x: x.index_add_(0, AT, x), X),
    "source in target": (lambda x: x.index_add_(0, AT[:3], x[:3]), X),
    "index is target": (lambda x: x.index_add_(0, x, x + 1), AT),
    "source of its own": (lambda x: x.index_add_(0, AT, x * 2), X),
}


@pytest.mark.parametrize("name", SAME)
def test_as_torch(name):
    function, x = SAME[name]
    assert outcome(dyncomp.compile(function), x) == outcome(function, x)
