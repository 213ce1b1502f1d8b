"""Calls that cannot be inlined are remembered from one capture to the next."""

import numpy as np

import dyncomp


def breaking(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


class Guarded:
    """A break inside of a setter cannot be resumed where the attribute is assigned."""

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, x):
        self._value = breaking(x)


def innermost(x):
    holder = Guarded()
    y = x * 2
    try:
        y = breaking(y)
    finally:
        holder.value = y
    return holder.value * 3


def middle(x):
    return innermost(x + 1) + 1


def outer(x):
    return middle(x) * 2


def restarts(compiled):
    return [entry.restarts for entry in compiled.config.records.entries]


def test_found_once_for_all_functions_around():
    compiled = dyncomp.compile(outer, backend="eager")
    for x in (np.arange(3.0), -np.arange(9.0)):
        np.testing.assert_array_equal(compiled(x), outer(x))
    assert sum(restarts(compiled)) == 1


def helper(x, times):
    if times is None:
        return x.sum() * 2
    return x * 2 if x.sum() > 0 else x * 3


def calls_helper(x, times):
    x = x + 1
    try:
        y = helper(x * 2, times)
    finally:
        x = None
    return y * 3


def test_other_arguments_are_tried():
    compiled = dyncomp.compile(calls_helper, backend="eager")
    x = np.arange(4.0)
    np.testing.assert_array_equal(compiled(x, True), calls_helper(x, True))
    assert any(entry.breaks for entry in compiled.config.records.entries)
    before = len(compiled.config.records.entries)
    np.testing.assert_array_equal(compiled(x, None), calls_helper(x, None))
    assert not any(entry.breaks for entry in compiled.config.records.entries[before:])


def test_a_refusal_is_believed_a_few_times_only():
    from dyncomp.capture.policy import not_inlined
    from dyncomp.capture.values.number import ConstValue

    calls = not_inlined.RefusedCalls()
    caller, callee, args = outer.__code__, helper.__code__, (ConstValue(None),)
    calls.note(caller, 3, 0, callee, args, "why")
    assert calls.reason(caller, 4, 0, callee, args) is None
    assert calls.reason(caller, 3, 0, callee, (ConstValue(True),)) is None
    believed = [calls.reason(caller, 3, 0, callee, args) for _ in range(20)]
    assert believed[0] == "why"
    assert believed[-1] is None
    calls.note(caller, 3, 0, callee, args, "again")
    assert calls.reason(caller, 3, 0, callee, args) == "again"
    assert calls.reason(caller, 3, 8, callee, args) is None  # what follows a break


def test_an_error_tells_of_the_break_itself():
    compiled = dyncomp.compile(outer, backend="eager")
    compiled(np.arange(3.0))
    with dyncomp.error_on_graph_break(True):
        try:
            compiled(-np.arange(9.0))
        except dyncomp.errors.GraphBreakError as error:
            assert "cannot be resumed" not in str(error)


class Switched:
    """What it does depends on a boolean attribute, as with modules in training."""

    def __init__(self):
        self.training = False

    def forward(self, x):
        return helper(x, None if self.training else True)


def calls_method(x, switched):
    x = x + (1 if switched.training else 2)
    try:
        y = switched.forward(x * 2)
    finally:
        x = None
    return y * 3


def test_an_attribute_that_switches_is_told_apart():
    compiled = dyncomp.compile(calls_method, backend="eager")
    x, switched = np.arange(4.0), Switched()
    np.testing.assert_array_equal(compiled(x, switched), calls_method(x, switched))
    assert any(entry.breaks for entry in compiled.config.records.entries)
    before = len(compiled.config.records.entries)
    switched.training = True
    np.testing.assert_array_equal(compiled(x, switched), calls_method(x, switched))
    assert not any(entry.breaks for entry in compiled.config.records.entries[before:])
