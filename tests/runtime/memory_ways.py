"""The ways that Linux has to change a page of memory, for ``test_kept_memory``."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
import struct
import tempfile
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np

from tests.runtime.system_calls import PAGE, Missing, Ring, check, libc, number, requests, system

PROT_READ_WRITE, MAP_SHARED, MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS = 3, 1, 2, 0x10, 0x20
MREMAP_MAYMOVE, MREMAP_FIXED, MREMAP_DONTUNMAP = 1, 2, 4


def map_at(address, size, flags, descriptor=-1):
    found = libc.mmap(
        number(address), ctypes.c_size_t(size), PROT_READ_WRITE, flags, descriptor, ctypes.c_long(0)
    )
    return check(found, "mmap")


class Room:
    """Mapped memory, as an array. It stays: a way may have mapped something else there."""

    def __init__(self, address, size, keep=None):
        self.address, self.size, self.keep = address, size, keep
        buffer = (ctypes.c_char * size).from_address(address)
        self.array = np.frombuffer(buffer, np.float32)

    def advise(self, advice):
        result = libc.madvise(number(self.address), ctypes.c_size_t(self.size), advice)
        check(result, f"madvise({advice})")

    def protect(self, protection):
        check(libc.mprotect(number(self.address), ctypes.c_size_t(self.size), protection), "mprotect")

    def ones(self):
        return np.ones(self.size // 4, np.float32).tobytes()


@contextmanager
def file_of_ones(size, direct=False):
    with tempfile.TemporaryDirectory(dir="/var/tmp" if direct else None) as folder:
        path = os.path.join(folder, "file")
        with open(path, "wb") as file:
            file.write(np.ones(size // 4, np.float32).tobytes())
            os.fsync(file.fileno())
        try:
            descriptor = os.open(path, os.O_RDWR | (os.O_DIRECT if direct else 0))
        except OSError as error:
            raise Missing(str(error)) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def in_child(body: Callable[[int], None]) -> None:
    """Run in a forked process, given the number of its parent."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            body(parent)
            code = 0
        except Missing:
            code = 77
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 77:
        raise Missing("not allowed in a child")
    assert code == 0


# -- rooms -------------------------------------------------------------------------------------


def anonymous(size):
    return Room(map_at(0, size, MAP_PRIVATE | MAP_ANONYMOUS), size)


def huge_pages_wanted(size):
    """Aligned as transparent huge pages are."""
    huge = 2 << 20
    start = -(-map_at(0, size + 2 * huge, MAP_PRIVATE | MAP_ANONYMOUS) // huge) * huge
    room = Room(start, size)
    room.advise(mmap.MADV_HUGEPAGE)
    return room


def from_malloc(size):
    memory = np.empty(size + 2 * PAGE, np.uint8)
    return Room(-(-memory.ctypes.data // PAGE) * PAGE, size, memory)


def locked(size):
    room = anonymous(size)
    check(libc.mlock(number(room.address), ctypes.c_size_t(size)), "mlock")
    return room


def with_a_name(size):
    room = anonymous(size)
    check(libc.prctl(0x53564D41, 0, number(room.address), ctypes.c_size_t(size), b"weights"), "prctl")
    return room


def mapped_file(flags):
    def make(size):
        file = tempfile.TemporaryFile(dir="/var/tmp")  # noqa: SIM115
        file.truncate(size)
        return Room(map_at(0, size, flags, file.fileno()), size, file)

    return make


def memory_file(flags):
    def make(size):
        descriptor = os.memfd_create("weights")
        os.truncate(descriptor, size)
        return Room(map_at(0, size, flags, descriptor), size)

    return make


def zero_device(flags):
    def make(size):
        descriptor = os.open("/dev/zero", os.O_RDWR)
        room = Room(map_at(0, size, flags, descriptor), size)
        os.close(descriptor)
        return room

    return make


def shared_anonymous(size):
    return Room(map_at(0, size, MAP_SHARED | MAP_ANONYMOUS), size)


def system_v(size):
    libc.shmat.restype = ctypes.c_void_p
    number_of_it = check(libc.shmget(0, ctypes.c_size_t(size), 0o1600), "shmget")
    address = libc.shmat(number_of_it, None, 0)
    libc.shmctl(number_of_it, 0, None)  # goes with its last user
    return Room(check(address, "shmat"), size)


def huge_pages(flags):
    def make(size):
        size = -(-size // (2 << 20)) * (2 << 20)
        return Room(map_at(0, size, flags | MAP_ANONYMOUS | 0x40000), size)

    return make


def python_shared_memory(size):
    from multiprocessing import shared_memory

    memory = shared_memory.SharedMemory(create=True, size=size)
    memory.unlink()
    return Room(ctypes.addressof(ctypes.c_char.from_buffer(memory.buf)), size, memory)


def half_of_a_file(size):
    """The second half of an anonymous mapping, replaced by a file's pages."""
    room = anonymous(size)
    half = size // 2 // PAGE * PAGE
    with tempfile.TemporaryFile(dir="/var/tmp") as file:
        file.truncate(size)
        map_at(room.address + half, size - half, MAP_PRIVATE | MAP_FIXED, file.fileno())
    return room


PRIVATE = [anonymous, huge_pages_wanted, from_malloc, locked, with_a_name]
OTHERS = {
    "file, shared": mapped_file(MAP_SHARED),
    "file, private": mapped_file(MAP_PRIVATE),
    "memfd, shared": memory_file(MAP_SHARED),
    "memfd, private": memory_file(MAP_PRIVATE),
    "/dev/zero, shared": zero_device(MAP_SHARED),
    "/dev/zero, private": zero_device(MAP_PRIVATE),
    "anonymous, shared": shared_anonymous,
    "System V": system_v,
    "huge pages, shared": huge_pages(MAP_SHARED),
    "huge pages, private": huge_pages(MAP_PRIVATE),
    "multiprocessing": python_shared_memory,
    "half of a file": half_of_a_file,
}


# -- ways to change it -------------------------------------------------------------------------


def one_store(room):
    room.array[len(room.array) // 2] += 1


def fill(room):
    room.array.fill(1)


def read_file(room):
    with file_of_ones(room.size) as file:
        assert os.preadv(file, [memoryview(room.array).cast("B")], 0) == room.size


def read_file_directly(room):
    with file_of_ones(room.size, direct=True) as file:
        assert os.preadv(file, [memoryview(room.array).cast("B")], 0) == room.size


def read_pipe(room):
    reader, writer = os.pipe()
    os.write(writer, room.ones()[:PAGE])
    os.readv(reader, [memoryview(room.array).cast("B")])
    os.close(reader)
    os.close(writer)


def receive(room):
    left, right = socket.socketpair()
    with left, right:
        left.send(room.ones()[:PAGE])
        right.recv_into(memoryview(room.array).cast("B"), PAGE)


def random_bytes(room):
    check(libc.getrandom(number(room.address + PAGE), ctypes.c_size_t(64), 0), "getrandom")


def kernel_structure(room):
    """A clock's time, written by a system call (not by the vDSO)."""
    check(libc.syscall(ctypes.c_long(228), 2, number(room.address + PAGE)), "clock_gettime")


def own_memory_file(room):
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(room.address)
        memory.write(room.ones()[:PAGE])


def _write_process(process, room):
    data = ctypes.create_string_buffer(room.ones()[:PAGE])
    local = (ctypes.c_size_t * 2)(ctypes.addressof(data), PAGE)
    remote = (ctypes.c_size_t * 2)(room.address, PAGE)
    zero = ctypes.c_ulong(0)
    one = ctypes.c_ulong(1)
    check(libc.process_vm_writev(process, local, one, remote, one, zero), "process_vm_writev")


def own_process(room):
    _write_process(os.getpid(), room)


def _let_children_trace():
    libc.prctl(0x59616D61, ctypes.c_ulong(0xFFFFFFFFFFFFFFFF), 0, 0, 0)  # PR_SET_PTRACER


def other_process(room):
    _let_children_trace()
    in_child(lambda parent: _write_process(parent, room))


def other_process_by_file(room):
    def body(parent):
        try:
            with open(f"/proc/{parent}/mem", "r+b", buffering=0) as memory:
                memory.seek(room.address)
                memory.write(room.ones()[:PAGE])
        except OSError as error:
            raise Missing(str(error)) from error

    _let_children_trace()
    in_child(body)


def debugger(room):
    """A child attaches to its parent and pokes a word."""

    def body(parent):
        try:
            check(libc.ptrace(16, parent, None, None), "PTRACE_ATTACH")
            os.waitpid(parent, 0)
            word = number(0x3F8000003F800000)
            check(libc.ptrace(5, parent, number(room.address + 64), word), "PTRACE_POKEDATA")
        finally:
            libc.ptrace(17, parent, None, None)

    _let_children_trace()
    in_child(body)


def dropped(room):
    room.advise(mmap.MADV_DONTNEED)


def dropped_in_part(room):
    check(libc.madvise(number(room.address + PAGE), ctypes.c_size_t(PAGE), mmap.MADV_DONTNEED), "madvise")


def dropped_and_read(room):
    room.advise(mmap.MADV_DONTNEED)
    room.array.sum()


def freed_and_written(room):
    room.advise(mmap.MADV_FREE)
    room.array.fill(1)


def mapped_anew(room):
    libc.munmap(number(room.address), ctypes.c_size_t(room.size))
    assert map_at(room.address, room.size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED) == room.address


def mapped_over(room):
    map_at(room.address, room.size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)


def file_mapped_over(room):
    with file_of_ones(room.size) as file:
        map_at(room.address, room.size, MAP_PRIVATE | MAP_FIXED, file)


def mapped_over_in_part(room):
    map_at(room.address + PAGE, PAGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)


def _move(old, size, flags, to):
    found = libc.mremap(number(old), ctypes.c_size_t(size), ctypes.c_size_t(size), flags, number(to))
    check(found, "mremap")


def another_moved_here(room):
    other = anonymous(room.size)
    other.array.fill(2)
    _move(other.address, room.size, MREMAP_MAYMOVE | MREMAP_FIXED, room.address)


def moved_away(room):
    """The pages, not the mapping."""
    spare = anonymous(room.size)
    _move(room.address, room.size, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, spare.address)


def moved_away_written_and_back(room):
    spare = anonymous(room.size)
    _move(room.address, room.size, MREMAP_MAYMOVE | MREMAP_FIXED, spare.address)
    spare.array.fill(1)
    _move(spare.address, room.size, MREMAP_MAYMOVE | MREMAP_FIXED, room.address)


def guarded_and_not(room):
    room.advise(102)  # MADV_GUARD_INSTALL
    room.advise(103)


def collapsed_and_written(room):
    with_flag = libc.madvise(number(room.address), ctypes.c_size_t(room.size), 25)  # MADV_COLLAPSE
    room.array[-1] = 5 + with_flag


def merged_and_written(room):
    room.advise(mmap.MADV_MERGEABLE)
    room.array[7] = 5


def protected_and_written(room):
    room.protect(1)
    room.protect(3)
    room.array[7] = 5


def populated_and_written(room):
    room.advise(23)  # MADV_POPULATE_WRITE
    room.array[7] = 5


def written_after_fork(room):
    in_child(lambda parent: None)
    room.array[7] = 5


def written_while_a_child_has_it(room):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reader, 1)
        os._exit(0)
    room.array[7] = 5
    os.write(writer, b"x")
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)


def written_while_in_a_pipe(room):
    """vmsplice pins pages for a reader."""
    reader, writer = os.pipe()
    part = (ctypes.c_size_t * 2)(room.address, PAGE)
    check(libc.vmsplice(writer, part, ctypes.c_size_t(1), 0), "vmsplice")
    room.array[7] = 5
    os.read(reader, PAGE)
    os.close(reader)
    os.close(writer)


def read_out_of_a_pipe(room):
    reader, writer = os.pipe()
    os.write(writer, room.ones()[:PAGE])
    part = (ctypes.c_size_t * 2)(room.address, PAGE)
    check(libc.vmsplice(reader, part, ctypes.c_size_t(1), 0), "vmsplice")
    os.close(reader)
    os.close(writer)


def copied_by_faults(room):
    """The program's own userfaultfd; another watches the memory, so this may be refused."""
    mode = 1
    descriptor = system("userfaultfd", os.O_CLOEXEC | mode)
    try:
        api = ctypes.create_string_buffer(struct.pack("QQQ", 0xAA, 0, 0))
        check(libc.ioctl(descriptor, ctypes.c_ulong(0xC018AA3F), api), "UFFDIO_API")
        source = anonymous(room.size)
        source.array.fill(2)
        room.advise(mmap.MADV_DONTNEED)
        register = ctypes.create_string_buffer(struct.pack("QQQQ", room.address, room.size, 1, 0))
        if libc.ioctl(descriptor, ctypes.c_ulong(0xC020AA00), register) == 0:
            copy = ctypes.create_string_buffer(
                struct.pack("QQQQQ", room.address, source.address, room.size, 0, 0)
            )
            check(libc.ioctl(descriptor, ctypes.c_ulong(0xC028AA03), copy), "UFFDIO_COPY")
    finally:
        os.close(descriptor)


def signal_stack(room):
    """A signal's frame is written by the kernel to memory that was made the stack of handlers."""

    class Stack(ctypes.Structure):
        _fields_ = (("sp", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))

    # SA_ONSTACK is set by faulthandler alone
    import faulthandler

    old = Stack()
    libc.sigaltstack(None, ctypes.byref(old))
    with tempfile.TemporaryFile() as out:
        faulthandler.register(signal.SIGUSR2, file=out, chain=False)
        libc.sigaltstack(ctypes.byref(Stack(room.address, 0, room.size)), None)
        try:
            os.kill(os.getpid(), signal.SIGUSR2)
        finally:
            libc.sigaltstack(ctypes.byref(old), None)
            faulthandler.unregister(signal.SIGUSR2)


def ring_read(room):
    with Ring() as ring, file_of_ones(room.size) as file:
        ring.read(file, room, fixed=False)


def ring_registered_now(room):
    with Ring() as ring, file_of_ones(room.size) as file:
        ring.register(room)
        ring.read(file, room, fixed=True)


def asynchronous_read(room):
    """libaio."""
    with requests() as context, file_of_ones(room.size) as file:
        words = (0, 0, 0, 0, 0, file, room.address, room.size, 0, 0, 0, 0)
        block = ctypes.create_string_buffer(struct.pack("QIIHhIQQqQII", *words))
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(block))
        system("io_submit", context, 1, pointers)
        system("io_getevents", context, 1, 1, ctypes.create_string_buffer(32), number(0))


WAYS = [
    one_store, fill, read_file, read_file_directly, read_pipe, receive, random_bytes, kernel_structure,
    own_memory_file, own_process, other_process, other_process_by_file, debugger, dropped, dropped_in_part,
    dropped_and_read, freed_and_written, mapped_anew, mapped_over, file_mapped_over, mapped_over_in_part,
    another_moved_here, moved_away, moved_away_written_and_back, guarded_and_not, collapsed_and_written,
    merged_and_written, protected_and_written, populated_and_written, written_after_fork,
    written_while_a_child_has_it, written_while_in_a_pipe, read_out_of_a_pipe, copied_by_faults, signal_stack,
    ring_read, ring_registered_now, asynchronous_read,
]  # fmt: skip
# Ways that only private anonymous memory of one's own mapping has.
REPLACING = {mapped_anew, mapped_over, file_mapped_over, mapped_over_in_part, another_moved_here, moved_away}
REPLACING |= {moved_away_written_and_back, guarded_and_not, dropped, dropped_in_part, dropped_and_read}


# -- what changes nothing ----------------------------------------------------------------------


def cold(room):
    room.advise(20)


def paged_out(room):
    room.advise(21)


def freed_only(room):
    room.advise(mmap.MADV_FREE)


def child_writes(room):
    in_child(lambda parent: room.array.fill(7))


def child_drops(room):
    in_child(lambda parent: room.advise(mmap.MADV_DONTNEED))


def file_written(room):
    with file_of_ones(room.size) as file:
        os.pwritev(file, [memoryview(room.array).cast("B")], 0)


def barrier(room):
    system("membarrier", 0, 0, 0)


HARMLESS = [cold, paged_out, freed_only, child_writes, child_drops, file_written, barrier]
