"""Loops over containers that are changed in the middle: every kind of container, form of iteration, change
and moment. Each is the text of a function ``f(x, c)`` that returns what it saw and an array."""

# ruff: noqa: E501 - texts of programs

from __future__ import annotations

import itertools
from collections import OrderedDict, defaultdict, deque

# kind: how it is made, what changes it, forms of iterating over it
_OF_DICTS = [
    "{c}",
    "{c}.keys()",
    "{c}.values()",
    "{c}.items()",
    "list({c})",
    "reversed({c})",
    "iter({c}.items())",
]
_OF_ALL = [
    "enumerate({c})",
    "zip({c}, range(9))",
    "map(str, {c})",
    "filter(None, {c})",
    "itertools.chain({c}, [9])",
]
_OF_ALL += [
    "itertools.islice({c}, 6)",
    "(k for k in {c})",
    "zip({c}, {c})",
    "enumerate(iter({c}), 2)",
    "gen({c})",
]
_OF_ALL += [
    "itertools.accumulate({c}, lambda a, b: b)",
    "itertools.pairwise({c})",
    "itertools.takewhile(bool, {c})",
]
_OF_LISTS = ["{c}", "reversed({c})", "iter({c})", "{c}[:]", "range(len({c}))", "sorted({c})", "tuple({c})"]
_DICT_CHANGES = [
    "{c}[10 + n] = 1",
    "{c}.pop(2, None)",
    "del {c}[3]",
    "{c}.clear()",
    "{c}.update(a=1)",
    "{c}[2] = 7",
]
_DICT_CHANGES += ["{c}.setdefault(20 + n, 1)", "{c}.popitem()", "{c}[30] = {c}.pop(1, 0)", "{c} |= {{40: n}}"]
# that leave the size as it is, or all
_DICT_CHANGES += [
    "{c}.clear() or {c}.update({{5: 1, 6: 2, 7: 3, 8: 4}})",
    "{c}.setdefault(60, 1) and {c}.pop(60)",
    "{c}.pop(1, 0) and {c}.clear()",
    "{c}.update({{4: {c}.pop(4, 0)}})",
]
_SET_CHANGES = [
    "{c}.add(10 + n)",
    "{c}.discard(2)",
    "{c}.clear()",
    "{c} |= {{11}}",
    "{c}.pop()",
    "{c}.remove(3)",
]
_SET_CHANGES += ["{c}.add(2)", "{c} ^= {{1, 12}}", "{c}.update([5, 13 + n])"]
_SET_CHANGES += ["{c}.clear() or {c}.update([5, 6, 7, 8])", "{c}.add(60) or {c}.remove(60)"]
_LIST_CHANGES = [
    "{c}.append(10 + n) if n < 4 else None",
    "{c}.pop()",
    "{c}.clear()",
    "del {c}[0]",
    "{c}.insert(0, 5) if n < 4 else None",
]
_LIST_CHANGES += [
    "{c}[-1] = 8",
    "{c}[:] = [9, 9]",
    "{c}.remove(3)",
    "{c}.reverse()",
    "{c}.sort()",
    "{c}.extend([7])",
]
_LIST_CHANGES[-1] += " if n < 3 else None"
_MOVES = ["{c}.move_to_end(1)", "{c}.move_to_end(4)", "{c}.move_to_end(3, False)", "{c}.popitem(False)"]
_DEQUE_CHANGES = [
    "{c}.append(10 + n)",
    "{c}.popleft()",
    "{c}.clear()",
    "{c}.rotate(1)",
    "{c}[0] = 9",
    "{c}.pop()",
]
_DEQUE_CHANGES += [
    "{c}.append(0) or {c}.pop()",
    "{c}.rotate(4)",
    "{c}.appendleft(1)",
    "{c}.remove(3)",
    "{c}.extend([5])",
    "{c}.insert(1, 6)",
    "{c}.reverse()",
]

KINDS = {
    "dict": ("{1: 5, 2: 6, 3: 7, 4: 8}", _DICT_CHANGES, _OF_DICTS + _OF_ALL),
    "OrderedDict": ("OrderedDict({1: 5, 2: 6, 3: 7, 4: 8})", _DICT_CHANGES + _MOVES, _OF_DICTS + _OF_ALL),
    "defaultdict": ("defaultdict(int, {1: 5, 2: 6, 3: 7})", [*_DICT_CHANGES, "{c}[50 + n]"], _OF_DICTS + _OF_ALL),
    "set": ("{1, 2, 3, 4}", _SET_CHANGES, ["{c}", "iter({c})", "list({c})", *_OF_ALL]),
    "list": ("[1, 2, 3, 4]", _LIST_CHANGES, _OF_LISTS + _OF_ALL),
    "bytearray": ("bytearray([1, 2, 3, 4])", _LIST_CHANGES[:-2], _OF_LISTS + _OF_ALL),
    "deque": ("deque([1, 2, 3, 4])", _DEQUE_CHANGES, ["{c}", "reversed({c})", "iter({c})", "list({c})", *_OF_ALL]),
}  # fmt: skip
# when: in which iteration, before or after the array work, or in all
MOMENTS = ["n == 0", "n == 1", "n == 3", "True", "x.sum() > 4"]
# what the loop is: its body as it is, left early, under a handler, in a function, by next, while another goes on
SHAPES = {
    "plain": "for k in {it}:\n        x = x + 1\n        seen.append(k)\n        if {when}: {change}\n        n += 1",
    "first": "for k in {it}:\n        if {when}: {change}\n        x = x + 1\n        seen.append(k)\n        n += 1",
    "left": "for k in {it}:\n        seen.append(k)\n        if {when}:\n            {change}\n            break\n        n += 1",
    "handled": "try:\n        for k in {it}:\n            x = x + 1\n            seen.append(k)\n            if {when}: {change}\n"
    "            n += 1\n    except (RuntimeError, KeyError, IndexError, ValueError) as error:\n"
    "        seen.append((type(error).__name__, str(error)))",
    "next": "it = iter({it})\n    seen.append(next(it))\n    {change}\n    x = x * 2\n    seen.append(next(it, None))\n"
    "    seen.append(list(it))",
    "comprehension": "def do(k):\n        nonlocal n, {name}\n        if {when}: {change}\n        n += 1\n        return k\n"
    "    seen = [do(k) for k in {it}]\n    x = x + len(seen)",
    "star": "it = iter({it})\n    a, *_ = [next(it)]\n    {change}\n    seen = [a, *it]\n    x = x + n",
    "two": "a, b = iter({it}), iter({it})\n    seen += [next(a), next(b), next(a)]\n    {change}\n    x = x + 1\n"
    "    seen += [next(b, 0)]\n    seen += list(a)",
    "break": "for k in {it}:\n        x = x + 1\n        seen.append(k)\n        print(end='')\n        if {when}: {change}\n"
    "        if n == 1: opaque(x)\n        n += 1",
}
SPACE = {"itertools": itertools, "OrderedDict": OrderedDict, "defaultdict": defaultdict, "deque": deque}


def gen(items):
    yield from items


def opaque(x):
    return None


SPACE.update(gen=gen, opaque=opaque)


def text_of(kind, change, form, when, shape, outside):
    """The function's source; ``outside``: the container is an argument, and not made there."""
    made, _, _ = KINDS[kind]
    fill = {"it": form.format(c="c"), "when": when, "change": change.format(c="c"), "name": "c"}
    lines = SHAPES[shape].format(**fill)
    own = "" if outside else f"    c = {made}\n"
    return (
        f"def f(x, c, seen):\n{own}    n = 0\n    {lines}\n    seen.append(('end', n))\n"
        f"    return x * 2, seen, c\n"
    )


def all_cases():
    for kind, (_, changes, forms) in KINDS.items():
        yield from itertools.product([kind], changes, forms, MOMENTS, SHAPES, [True, False])
