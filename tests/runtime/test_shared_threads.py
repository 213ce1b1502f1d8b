"""Work on the threads of another library's OpenMP runtime, here one of callbacks."""

import ctypes
import os
import time

import numpy as np
import pytest

import dyncomp
from dyncomp import runtime
from dyncomp.runtime import openmp
from dyncomp.runtime._launch import share_threads

MEMBER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
NUMBER = ctypes.CFUNCTYPE(ctypes.c_int)


class Team:
    """Its members run one after another in the calling thread."""

    def __init__(self, most, delay=0.0):
        self.most = most
        self.delay = delay
        self.sizes = []
        self.number = 0
        self.functions = (PARALLEL(self.parallel), NUMBER(lambda: self.number), NUMBER(lambda: self.most))

    def parallel(self, member, data, threads, flags):
        self.sizes.append(threads)
        for self.number in reversed(range(threads)):
            MEMBER(member)(data)
        time.sleep(self.delay)

    def __enter__(self):
        share_threads(*(ctypes.cast(function, ctypes.c_void_p).value for function in self.functions))
        return self

    def __exit__(self, *_):
        share_threads(0, 0, 0)


@pytest.fixture
def threads():
    before = runtime.num_threads()
    runtime.set_num_threads(4)
    yield
    runtime.set_num_threads(before)


def chain(x):
    return np.tanh(x) * 2.0 + np.exp(-x * x)


X = np.linspace(-3, 3, 1 << 20)


@pytest.mark.parametrize(("most", "expected"), [(9, 4), (3, 3), (2, 2)])
def test_as_many_threads_as_both_allow(threads, most, expected):
    compiled = dyncomp.compile(chain)
    own = compiled(X)
    with Team(most) as team:
        shared = compiled(X)
        assert team.sizes and set(team.sizes) == {expected}
    np.testing.assert_array_equal(shared, own)
    np.testing.assert_array_equal(compiled(X), own)


def test_another_team_is_not_late(threads):
    """A team whose members dawdle is not asked for a while; one that takes its place is."""
    compiled = dyncomp.compile(chain)
    own = compiled(X)
    with Team(2, delay=0.002):
        np.testing.assert_array_equal(compiled(X), own)
    with Team(2) as team:
        np.testing.assert_array_equal(compiled(X), own)
        assert team.sizes


def test_one_thread_needs_no_team(threads):
    compiled = dyncomp.compile(chain)
    compiled(X)
    with Team(1) as team:
        compiled(X)
    assert not team.sizes


def test_children_have_no_team(threads):
    compiled = dyncomp.compile(chain)
    own = compiled(X)
    with Team(4) as team:
        child = os.fork()
        if not child:
            same = np.array_equal(compiled(X), own) and not team.sizes
            os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_torch_brings_its_threads():
    torch = pytest.importorskip("torch")
    assert openmp.share_threads_of("torch") or "libgomp" not in torch.__config__.parallel_info()
    share_threads(0, 0, 0)
    openmp.share_threads_of.cache_clear()
    assert not openmp.share_threads_of("no_such_package")
