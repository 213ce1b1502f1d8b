"""Functions that begin with a loop that does one thing to a container, and containers of every kind."""

import array
import linecache
import math
import random
import warnings
from collections import Counter, OrderedDict, defaultdict, deque

import numpy as np

# expressions of a position ``i`` and the container ``s``
POSITIONS = [
    "i % len(s)",
    "i",
    "-1 - i % len(s)",
    "len(s) - 1 - i % len(s)",
    "(i * 3 + 1) % len(s)",
    "i // 2 % len(s)",
]
POSITIONS += [
    "min(i, len(s) - 1)",
    "i & 1",
    "i % n",
    "i % 4 - 2",
    "abs(i) % max(len(s), 1)",
    "~i % len(s)",
    "i << 1",
]
POSITIONS += [
    "int(i / 2)",
    "i % len(s) % n",
    "True",
    "i - n",
    "len(s) // 2",
    "(i + n) % len(s)",
    "hash(i) % len(s)",
]
READS = ["t += s[{p}]", "t = s[{p}]", "t += s[{p}] == s[0]", "t += ord(s[{p}])", "u.append(s[{p}])"]
READS += [
    "t += s[s[{p}] % len(s)]",
    "t += 1 if s[{p}] else 2",
    "a, b = s[{p}], s[-1]",
    "t ^= s[{p}]",
    "t = max(t, s[{p}])",
]
READS += [
    "t += len(s[{p}:])",
    "u = s[:{p}]",
    "t += s[{p}][0]",
    "t += s.get({p}, 7)",
    "t += {p} in s",
    "t += s[{p}] < n",
]
WRITES = [
    "s[{p}] = i",
    "s[{p}] += 1",
    "s[{p}] = s[0]",
    "s[{p}], s[0] = s[0], s[{p}]",
    "del s[{p}]",
    "s.pop({p})",
]
WRITES += [
    "s.insert({p}, 1)",
    "s[{p}:] = s[:1]",
    "s.rotate({p})",
    "s.add({p})",
    "s.discard({p})",
    "s.remove({p})",
]
WHOLE = [
    "t += len(s)",
    "t += i in s",
    "t += 'a' in s",
    "t += bool(s)",
    "t += not s",
    "t += sum(s)",
    "t += max(s)",
]
WHOLE += [
    "t += s.count(1)",
    "t += s.index(1)",
    "t += s.find(b'a')",
    "t += min(s) + i",
    "u = s + s",
    "u = s * 2",
]
WHOLE += [
    "u = sorted(s)",
    "u = list(s)",
    "u = tuple(s)",
    "u = s[::-1]",
    "u = s[1:3]",
    "t += s == s[:]",
    "u = set(s)",
]
WHOLE += [
    "t += any(s)",
    "t += len(s[i:])",
    "s.append(i)",
    "s.append(s[0])",
    "s.extend(s[:1])",
    "s.clear()",
    "u = s.copy()",
]
WHOLE += [
    "t += s.pop()",
    "t += s.popleft()",
    "s.appendleft(i)",
    "s += s[:1]",
    "s *= 1",
    "s.reverse()",
    "s.sort()",
]
WHOLE += [
    "t += s is None",
    "t += isinstance(s, list)",
    "u = str(s)",
    "u = bytes(s)",
    "u = [c for c in s]",
    "t += s[i, 0]",
]
WHOLE += [
    "t += s.start",
    "t += hash(s)",
    "u = s.tobytes()",
    "u = s.decode()",
    "u = s.upper()",
    "t += s < s",
    "u = -s",
]
INNER = [
    "for c in s: t += c",
    "for c in s: u.append(c)",
    "for k, c in enumerate(s): t += k * c",
    "for c in s[1:]: t += c",
]
INNER += [
    "for a, b in zip(s, s): t += a * b",
    "for c in reversed(s): t += c",
    "for j in range(len(s)): t += s[j]",
]
INNER += [
    "for c in s:\n            if c == 1: break\n            t += 1",
    "for k in range(len(s) - 1): t += s[k] * s[k + 1]",
]
INNER += ["for c in s.values(): t += c", "for k, c in s.items(): t += k + c", "for c in s: t += ord(c)"]
INNER += [
    "j = 0\n        while j < len(s):\n            t += s[j]\n            j += 1",
    "for c in sorted(s): t += c",
]
INNER += [
    f"for j in range(n): t += s[{p}]"
    for p in ["(i + j) % len(s)", "j % len(s)", "i * j % len(s)", "i + j - 1"]
]
INNER += [
    f"m = len(s)\n        t = (t * 31 + s[{p}]) & 65535"
    for p in ["i % m", "t % m", "(t + i) % m", "i % m - m"]
]
INNER += [
    "t = (t * 31 + s[t % len(s)]) % 1000003",
    "u = [s[j % len(s)] for j in range(n)]",
    "t += s[i % len(s)] * s[-1]",
]
INNER += [
    "c = s[i % len(s)]\n        if c > 2: t += c\n        else: t -= 1",
    "k = i % len(s)\n        s[k], s[0] = s[0], s[k]",
]
INNER += [
    "a = s\n        t += a[i % len(a)]",
    "t += s[i % 5 % len(s)] if i % 2 else s[0]",
    "t += s[i % len(s) if i else 0]",
]
INNER += [
    "t += (s[i % len(s)] ^ i) % 256",
    "t += len(s) % (i + 1)",
    "t = i % len(s) < len(s) // 2",
    "t += divmod(i, len(s))[1]",
]
INNER += [
    "t += s[np.int64(i) % len(s)]",
    "t += s[int(np.float64(i)) % len(s)]",
    "t += s[i % np.int64(3)]",
    "t += math.gcd(i, len(s))",
]
_OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "@",
    "<",
    "<=",
    "==",
    "!=",
    ">",
    ">=",
    "in",
]
_OPERATORS += ["not in", "is", "and", "or"]
_OTHERS = ["i", "s[0]", "'a'", "b'a'", "1.5", "None", "True", "(1, 2)", "s"]
ITEM = "s[i % len(s)]"
PAIRS = [f"t = {ITEM} {op} {other}" for op in _OPERATORS for other in _OTHERS]
PAIRS += [f"t = {other} {op} {ITEM}" for op in _OPERATORS for other in _OTHERS]
PAIRS += [f"t = {op}{ITEM}" for op in ("-", "~", "+", "not ")] + [
    f"t = {f}({ITEM})" for f in ("abs", "int", "len")
]
PAIRS += [
    f"t = {f}({ITEM})"
    for f in ("float", "bool", "ord", "chr", "str", "round", "min", "hash", "math.sqrt", "np.sin")
]
PAIRS += [f"u {op}= {ITEM}" for op in _OPERATORS[:13]] + [f"t {op}= {ITEM}" for op in _OPERATORS[:13]]

STATEMENTS = [text.format(p=p) for text in READS + WRITES for p in POSITIONS] + WHOLE + INNER + PAIRS


def containers():
    """Of every kind, by name, made anew."""
    items = [3, 1, 4, 1, 5]
    return {
        "bytes": bytes(items),
        "bytes of one": b"a",
        "no bytes": b"",
        "bytearray": bytearray(items),
        "memoryview": memoryview(bytearray(items)),
        "str": "abcba",
        "wide str": "a\u0142\U0001f600",
        "no str": "",
        "list": list(items),
        "floats": [1.5, 2.0, -0.0],
        "complex numbers": [1j, 2.0],
        "bools": [True, False],
        "mixed": [1, 2.0, None],
        "large": [2**70, 1],
        "empty": [],
        "lists": [[1, 2], [3], [4, 5]],
        "strs": ["a", "b"],
        "tuple": tuple(items),
        "tuples": [(1, 2), (3, 4)],
        "no tuple": (),
        "dict": {0: 3, 1: 1, 2: 4},
        "OrderedDict": OrderedDict({0: 3, 1: 1}),
        "defaultdict": defaultdict(int, {0: 3, 1: 1}),
        "Counter": Counter(items),
        "set": set(items),
        "frozenset": frozenset(items),
        "deque": deque(items),
        "bounded deque": deque(items, 5),
        "range": range(2, 9, 3),
        "range down": range(5, 0, -1),
        "array": array.array("i", items),
        "array of floats": array.array("d", items),
        "ndarray": np.array(items),
        "floats of NumPy": np.array([0.5, 1.0]),
        "bytes of NumPy": np.array(items, np.uint8),
        "complex numbers of NumPy": np.array([1j, 2.0]),
        "bools of NumPy": np.array([True, False]),
        "float32": np.array([0.5, 1.0], np.float32),
        "uint64": np.array(items, np.uint64),
        "matrix": np.ones((2, 2)),
        "strings of NumPy": np.array(["a", "b"]),
        "keys": {0: 3, 1: 1}.keys(),
        "slice": slice(0, 3),
        "number": 5,
        "nothing": None,
    }


def function_of(statement):
    """A function ``f(it, s, n, t)`` that begins with a loop over ``it`` which does ``statement``."""
    text = f"def f(it, s, n, t, u, a, b):\n    for i in it:\n        {statement}\n    return t, u, a, b\n"
    name = f"<loop {statement!r}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"np": np, "math": math}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(text, name, "exec"), space)
    return space["f"]


def arguments(kind):
    return range(6), containers()[kind], 3, 0, [], None, None


def sample(seed, count):
    """Pairs of a statement and a kind of container."""
    rng = random.Random(seed)
    kinds = list(containers())
    return [(rng.choice(STATEMENTS), rng.choice(kinds)) for _ in range(count)]
