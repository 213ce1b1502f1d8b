"""Functions of ``operator`` that are not just an operator on two values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


def contains(a: Any, b: Any, /) -> bool:
    return b in a


def truth(a: object, /) -> bool:
    return bool(a)


def not_(a: object, /) -> bool:
    return not a


def is_(a: object, b: object, /) -> bool:
    return a is b


def is_not(a: object, b: object, /) -> bool:
    return a is not b


def setitem(a: Any, b: Any, c: Any, /) -> None:
    a[b] = c


def delitem(a: Any, b: Any, /) -> None:
    del a[b]


def count_of(a: Any, b: Any, /) -> int:
    count = 0
    for item in a:
        if item is b or item == b:
            count += 1
    return count


def index_of(a: Any, b: Any, /) -> int:
    for index, item in enumerate(a):
        if item is b or item == b:
            return index
    raise ValueError("sequence.index(x): x not in sequence")


def call(obj: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return obj(*args, **kwargs)


FUNCTIONS: dict[Any, Any] = {
    operator.contains: contains,
    operator.truth: truth,
    operator.not_: not_,
    operator.is_: is_,
    operator.is_not: is_not,
    operator.setitem: setitem,
    operator.delitem: delitem,
    operator.countOf: count_of,
    operator.indexOf: index_of,
    operator.call: call,
}
