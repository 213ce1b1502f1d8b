"""Steps of compiled graphs are timed one by one, on what the graph itself computes."""

from __future__ import annotations

import numpy as np

import dyncomp
from dyncomp.inductor.launch import PyCallStep
from dyncomp.inductor.schedule import CallBlas, LaunchKernel
from dyncomp.inductor.tuning.step_clock import steps_of, with_clock


def compiled(function, *arguments):
    report = dyncomp.explain(function)(*arguments)
    (entry,) = report.entries
    return entry.compiled.artifact


def clock_of(artifact):
    return with_clock(artifact.module, artifact.plan, artifact.form, artifact.built, 8000.0)


def mixed(x, w):
    y = np.tanh(x @ w)
    z = np.fft.rfft(y).real
    return z / z.sum(axis=1, keepdims=True), np.argmax(z, axis=1)


def test_each_step_has_a_time():
    x, w = np.ones((40, 30)), np.linspace(0, 1, 30 * 50).reshape(30, 50)
    artifact = compiled(mixed, x, w)
    clock = clock_of(artifact)
    kinds = [type(step) for step in clock.steps]
    assert kinds.count(PyCallStep) == 1 and CallBlas in kinds and LaunchKernel in kinds
    assert list(clock.steps) == steps_of(artifact.module, artifact.plan)
    seconds = clock.seconds([x, w], 0.01)
    assert len(seconds) == len(clock.steps) and all(0 < s < 1 for s in seconds)


def test_steps_compute_what_the_graph_does():
    def writes(x, out):
        y = np.sort(x) * 2
        out[:] = y.sum() + y

    x, out = np.array([3.0, 1.0, 2.0]), np.zeros(3)
    clock = clock_of(compiled(writes, x, out.copy()))
    clock.call(x, out)
    np.testing.assert_array_equal(out, [14.0, 16.0, 18.0])


def test_symbolic_sizes():
    def scaled(x):
        return x / x.sum()

    artifact = dyncomp.explain(scaled, dynamic=True)(np.ones(40)).entries[0].compiled.artifact
    clock = clock_of(artifact)
    assert len(clock.seconds([np.ones(90)], 0.01)) == len(clock.steps)


def test_lives_of_temporaries_fit_the_arena():
    x, w = np.ones((40, 30)), np.ones((30, 50))
    artifact = compiled(mixed, x, w)
    count = len(steps_of(artifact.module, artifact.plan))
    assert artifact.lives and all(0 <= first <= last < count for _, first, last in artifact.lives)
    assert sum(size for size, _, _ in artifact.lives) == artifact.temp_bytes
    alive = [sum(s for s, first, last in artifact.lives if first <= k <= last) for k in range(count)]
    assert max(alive) <= artifact.arena_bytes
