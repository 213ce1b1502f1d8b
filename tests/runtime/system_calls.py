"""System calls that Python has no functions for (numbers of x86-64)."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from contextlib import contextmanager

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
PAGE = mmap.PAGESIZE
SYSCALLS = {"userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}
SYSCALLS.update(
    {"io_setup": 206, "io_destroy": 207, "io_getevents": 208, "io_submit": 209, "membarrier": 324}
)


class Missing(Exception):
    """This system does not have it, or forbids it."""


def number(value):
    return ctypes.c_void_p(value)


def check(result, what):
    """The result of a C function that fails with -1."""
    if result in (-1, None, ctypes.c_void_p(-1).value):
        raise Missing(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def system(name, *arguments):
    packed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return check(libc.syscall(ctypes.c_long(SYSCALLS[name]), *packed), name)


class Ring:
    """io_uring: one request at a time."""

    def __init__(self):
        self.parameters = ctypes.create_string_buffer(120)
        self.descriptor = system("io_uring_setup", 4, self.parameters)
        words = struct.unpack("30I", self.parameters.raw)
        offsets = words[10:]
        self.tail, self.array = offsets[1], offsets[6]
        size = 4096
        self.ring = mmap.mmap(self.descriptor, size, offset=0)
        self.entries = mmap.mmap(self.descriptor, size, offset=0x10000000)

    def register(self, room):
        part = (ctypes.c_size_t * 2)(room.address, room.size)
        system("io_uring_register", self.descriptor, 0, part, 1)

    def read(self, file, room, fixed):
        words = (4 if fixed else 22, 0, 0, file, 0, room.address, room.size, 0, 1, 0, 0, 0, 0, 0)
        entry = struct.pack("BBHiQQIIQHHIQQ", *words)
        tail = struct.unpack_from("I", self.ring, self.tail)[0]
        self.entries[:64] = entry
        struct.pack_into("I", self.ring, self.array + 4 * (tail & 3), 0)
        struct.pack_into("I", self.ring, self.tail, tail + 1)
        system("io_uring_enter", self.descriptor, 1, 1, 1, number(0), 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ring.close()
        self.entries.close()
        os.close(self.descriptor)


@contextmanager
def requests():
    context = ctypes.c_ulong(0)
    system("io_setup", 4, ctypes.byref(context))
    try:
        yield context
    finally:
        system("io_destroy", context)
