"""Loops over single numbers as generated C++: characters of strings, bytes, bytearrays."""

import numpy as np
import pytest

import dyncomp
from tests.scalar_loops.runs import check, outcome

AT_ONCE = {"native_loop_us": 0, "unroll_limit": 0, "debug_verify": True}


def levenshtein(it, a, b, d):
    for i in it:
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d


@pytest.mark.parametrize("b", ["sitting", "", "k", "küßten", "k\u0142\u0142tt", "\U0001f600tt\u0142"])
def test_characters_of_all_widths(b):
    d = np.zeros((8, 10), dtype=np.int64)
    check(levenshtein, range(1, 8), "kitten\U0001f600", b, d)
    check(levenshtein, range(1, 8), "kitten.", b, d)


def counted(it, text, n, letters):
    for i in it:
        c = text[i]
        n += ord(c) - ord("a")
        if c == "x" or c >= "y":
            n *= 2
        if c in "aeiou":
            n += 1
        if c not in "abc":
            n -= 1
        if c == "long" or c != letters:
            n += 3
        if c == letters:
            n += 7
        last = chr(ord(c) + 1)
    return n, c, last


def test_what_is_done_with_characters():
    check(counted, range(-5, 9), "hexameters yz", 0, "e", left=False)
    check(counted, range(-5, 14), "hexameters yz", 0, "e", left=True)
    check(counted, range(4), "h\u0100\uffff\U0010fffe", 0, "\u0100", left=False)
    check(counted, range(3), "h\U0010ffff!", 0, "long", left=True)
    check(counted, range(0), "abc", 0, "", left=False)


def over(it, n):
    for c in it:
        if c == "a":
            n += 1
        if c:
            n += 2
    return n, c


def test_iteration_over_strings():
    check(over, "banana", 0, left=False)
    check(over, "b\u0101nana", 0, left=False)
    check(over, "", 0)


def nested(it, word, n):
    for _ in it:
        for k, c in enumerate(word):
            if c == "n":
                n += k
        for a, b in zip(word, word):
            n += a == b
    return n, c


def test_iteration_within():
    check(nested, range(3), "banana", 0, left=False)


def checksum(it, data, crc):
    for i in it:
        crc ^= data[i]
        for _ in range(8):
            crc = (crc >> 1) ^ 0x8408 if crc & 1 else crc >> 1
    return crc


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_bytes(kind):
    check(checksum, range(9), kind(b"123456789"), 0xFFFF, left=False)
    check(checksum, range(11), kind(b"123456789"), 0xFFFF, left=True)


def crossed(it, flags, n, value):
    for i in it:
        if flags[i]:
            for j in range(i * i, n, i):
                flags[j] = value
    return flags


def test_bytearrays_are_written():
    check(crossed, range(2, 10), bytearray(b"\x01") * 90, 90, 0, left=False)
    check(crossed, range(2, 10), bytearray(b"\x01") * 90, 90, True, left=False)
    check(crossed, range(2, 10), bytearray(b"\x01") * 90, 90, 256, left=True)
    check(crossed, range(2, 10), bytearray(b"\x01") * 90, 90, -1, left=True)
    check(crossed, range(2, 10), bytes(90), 90, 0, left=False)
    check(crossed, range(2, 10), b"\x01" * 90, 90, 0, left=True)


def needleman(a, b, gap):
    d = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    for i in range(len(a) + 1):
        d[i, 0] = i * gap
    for j in range(len(b) + 1):
        d[0, j] = j * gap
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            s = 1 if a[i - 1] == b[j - 1] else -1
            d[i, j] = max(d[i - 1, j - 1] + s, d[i - 1, j] + gap, d[i, j - 1] + gap)
    return d[len(a), len(b)], a is b


def palindromes(text):
    best = ""
    for i in range(len(text)):
        k = 0
        while i - k >= 0 and i + k < len(text) and text[i - k] == text[i + k]:
            k += 1
        if k > len(best):
            best = text[i - k + 1 : i + k]
    return best


@pytest.mark.parametrize("function", [needleman, palindromes])
def test_programs(function):
    texts = ["GATTACA", "GCATGCU", "\u00e4nn\u00e4", "\u0142l\u0142", "", "a" * 30]
    compiled = dyncomp.compile(function, options=AT_ONCE)
    for a in texts:
        for b in texts:
            args = (a, b, -1) if function is needleman else (a + b,)
            for _ in range(2):
                assert outcome(compiled, args) == outcome(function, args)
    assert any(record.runs for record in compiled.config.records.native_loops)
