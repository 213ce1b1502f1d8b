"""Functions with free variables that read the global of their own name; long texts in compiled code."""

from __future__ import annotations

import numpy as np

import dyncomp
from tests.capture.comparing import check


@dyncomp.disable
def unknown(n):
    return n


def make_recursive(step):
    global recursive

    def recursive(x, n):
        return x if unknown(n) == 0 else recursive(x + step, n - 1)


def test_a_function_with_free_variables_calls_itself():
    make_recursive(1.5)
    records = check(recursive, lambda: (np.zeros(2), 2), options={"inline_depth": 0})
    assert not records.internal_errors


def long_texts(x):
    text = "ab" * 5000
    data = bytes(3000)
    unknown(1)
    return x + len(text), text, data, text is text.replace("q", "r"), text[:3]


def test_long_texts_are_constants_by_name():
    records = check(long_texts, lambda: (np.zeros(2),))
    assert records.entries
    assert all(len(record.source) < 2000 for record in records.entries)
