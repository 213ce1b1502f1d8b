"""Strings in captured code: methods, formatting, and texts of numbers known only at run time."""

# ruff: noqa: UP030, UP031, UP032, C416, E501

from __future__ import annotations

import enum

import numpy as np
import pytest

from tests.capture.cases import Table, run

table = Table()


def vec():
    return np.arange(4.0) + 1


def growing():
    return [lambda n=n: (vec(), n, n / 4) for n in (3, 5, 8, 11)]


class Color(enum.Enum):
    RED = 1


class Named:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"<{self.name}>"


class Shown:
    def __repr__(self):
        return "Shown()"


class Formatted:
    def __format__(self, spec):
        return f"[{spec}]"


@table
def methods(x):
    s = "  Hello, World "
    return (
        s.strip().lower(),
        s.split(","),
        s.replace("l", "L", 2),
        s.find("W"),
        s.strip().startswith(("He", "x")),
        "-".join(["a", "b"]),
        "abc".upper().center(9, "*"),
        "a,b;c".partition(","),
        "x".zfill(3),
        ["1", "2"],
        "ß".casefold(),
        x + len(s),
    )


@table
def more_methods(x):
    return (
        "a\tb".expandtabs(4),
        "abc".translate({97: "z"}),
        "abc".translate(str.maketrans("a", "b")),
        ["a", "b"],
        "aXb".swapcase(),
        b"abc",
        b"ab".decode(),
        "line\nnext".splitlines(),
        "abc".removeprefix("a"),
        "12".isdigit(),
        "{} {a}".format(1, a=2),
        "{0[k]}".format({"k": 3}),
        x * 2,
    )


@table
def methods_through_the_class(x):
    return (
        str.upper("a"),
        str.join(",", ["a", "b"]),
        bytes.fromhex("00ff"),
        int.from_bytes(b"\x01\x00", "big"),
        x + 1,
    )


@table
def errors(x):
    found = []
    for action in (
        lambda: "abc".index("z"),
        lambda: "abc"[5],
        lambda: "%d" % "a",
        lambda: "a" + 1,
        lambda: "x".center(),
    ):
        try:
            action()
        except (ValueError, IndexError, TypeError) as error:
            found.append((type(error).__name__, str(error)))
    return found, x * 2


@table
def operators(x):
    s = "abc"
    return s + "d", s * 2, s[1], s[::-1], "b" in s, s < "abd", s == "abc", "%s-%05.2f" % ("a", 3.14159), x + 1


@table
def iteration(x):
    return (
        [c for c in "abc"],
        list(enumerate("ab")),
        dict(zip("ab", [1, x])),
        sorted("hello"),
        "".join(reversed("abc")),
    )


@table
def formatted_constants(x):
    n, f, name = 7, 3.14159, "ab"
    width = 10
    return f"{n:>5}|{f:.2f}|{name!r}|{n:#x}|{name:*^{width}}|{n=}|{f:{width}.{2}}", x * n


@table
def formatted_containers(x):
    return (
        f"{[1, 'a']} {(1, 2)} { {'k': 1} } {None} {True} {3 + 4j}",
        str([1, [2]]),
        repr({"a": (1,)}),
        repr("x"),
        x + 1,
    )


@table
def formatted_classes(x):
    return f"{int} {x.dtype} {Color.RED} {Color.RED!r}", str(float), repr(Color.RED), x * 2


@table
def formatted_objects(x):
    a, b, c = Named("n"), Shown(), Formatted()
    return f"{a}", str(a), f"{b}", str(b), repr(b), f"{c:spec}", f"{c}", format(c, "q"), x + 1


@table(breaks=True)
def formatted_arrays(x):
    y = x + 1
    return f"{y}", str(y), y * 2


@table(lambda: (np.ones(3),), lambda: (np.ones(5),), lambda: (np.ones(7),), lambda: (np.ones(9),))
def texts_of_sizes(x):
    return f"{len(x)} of {x.shape}", str(len(x)), "%d" % len(x), "n=" + str(len(x)), x * 2


@table(*growing())
def texts_of_changing_numbers(x, n, f):
    return f"step {n:03d}: {f:.3f}", "{} and {}".format(n, f), "%d %s" % (n, f), str(n) + repr(f), x * f


@table(*growing())
def methods_of_changing_texts(x, n, f):
    text = f"Item {n}"
    return (
        text.upper(),
        text.replace("I", "i"),
        text.center(20, "-"),
        "-".join([text, "end"]),
        text[0:4] * 1,
        len(text),
        x,
    )


@table(*growing(), breaks=True)
def branches_on_changing_texts(x, n, f):
    text = f"{n}"
    y = x * f
    if text.startswith("1"):
        return y, "one"
    return y, text


@table(lambda: (vec(), "a"), lambda: (vec(), "b"))
def modes(x, mode):
    if mode == "a":
        return x + 1
    return x * 2, f"mode {mode}"


@table
def bytes_methods(x):
    b = b"abc"
    return b.upper(), b[0], b[1:], b + b"d", list(b), b.hex(), bytes([1, 2]), bytes(2), x + b[0]


@table(breaks=True)
def byte_arrays(x):
    b = bytearray(b"ab")
    b.append(99)
    return b, x + len(b)


@table
def numbers_of_texts(x):
    return int("12") * x, float("1.5"), int("0x1f", 16), ord("é"), chr(233), complex("1j")


@table
def long_texts_are_joined_in_loops(x):
    parts = []
    for i in range(4):
        parts.append(f"{i}:{i * i}")
    return ",".join(parts), x + len(parts)


@table(lambda: (np.zeros(40), 30), breaks=True)
def texts_in_long_loops(x, n):
    log = []
    for i in range(n):
        x[i] = i * 2.0
        log.append(f"step {i}")
    return x, log


@pytest.mark.parametrize("case", table.cases, ids=table.names())
def test_same_as_plain_python(case):
    run(case)
