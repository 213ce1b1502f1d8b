"""Methods that C types define, bound and handed on over a graph break."""

from __future__ import annotations

import collections
import io

import pytest

from tests.capture.comparing import check


def read_unbuffered(path):
    with open(path, "rb", buffering=0) as file:
        print(file.read(3))
        return file.tell()


def hand_on(owner, name, *args):
    method = getattr(owner, name)
    print("break")
    return method(*args), type(method)


def hand_on_a_wrapper(owner):
    method = owner.__repr__
    print("break")
    return method(), type(method)


def test_file_of_a_path(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"abcdef")
    check(read_unbuffered, lambda: (str(path),), options={"capture_plain": True})


@pytest.mark.parametrize(
    "make",
    [
        lambda: (io.BytesIO(b"abc"), "read", 2),
        lambda: (io.StringIO("abc"), "readline"),
        lambda: ([1, 2], "append", 3),
        lambda: (collections.deque([1]), "appendleft", 3),
        lambda: ("a b", "split"),
        lambda: (3, "bit_length"),
        lambda: ((x for x in [4]), "send", None),
    ],
)
def test_method_over_a_break(make):
    check(hand_on, make, options={"capture_plain": True})


@pytest.mark.parametrize("owner", [1, "a", [1], {1: 2}, (1,), len])
def test_wrapper_over_a_break(owner):
    check(hand_on_a_wrapper, lambda: (owner,), options={"capture_plain": True})
