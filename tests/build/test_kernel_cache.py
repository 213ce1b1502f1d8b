"""The kernel cache: hits, damage, directories that cannot be used, processes at once, eviction."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import logging
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from dyncomp.build import cache_files, cache_place, kernel_cache
from dyncomp.build.kernel_cache import KernelCache, kernel_key, open_cache
from dyncomp.build.toolchain import Toolchain, find_toolchain
from dyncomp.errors import ToolchainError

ROOT = Path(__file__).parents[2]


def unit(value: int) -> str:
    return f'extern "C" int answer() {{ return {value}; }}\n'


def answer(library) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int)(library.symbol("answer"))()


def counts(cache):
    stats = cache.stats
    return (stats.memory_hits, stats.disk_hits, stats.builds, stats.damaged)


def test_build_then_memory_then_disk(tmp_path):
    cache = KernelCache(tmp_path)
    library = cache.load(unit(1))
    assert answer(library) == 1
    assert counts(cache) == (0, 0, 1, 0)
    assert cache.load(unit(1)) is library
    assert counts(cache) == (1, 0, 1, 0)
    del library  # unloaded
    assert answer(cache.load(unit(1))) == 1
    assert counts(cache) == (1, 1, 1, 0)
    again = KernelCache(tmp_path)
    assert answer(again.load(unit(1))) == 1
    assert counts(again) == (0, 1, 0, 0)


def test_several_at_once_and_repeated_ones(tmp_path):
    cache = KernelCache(tmp_path)
    libraries = cache.load_many([unit(k % 3) for k in range(6)])
    assert [answer(library) for library in libraries] == [0, 1, 2, 0, 1, 2]
    assert cache.stats.builds == 3


def test_key_depends_on_source_and_toolchain(tmp_path):
    own = find_toolchain()
    other = type(own)(own.compiler, own.flags, "0" * 64)
    assert len({kernel_key(unit(1), own), kernel_key(unit(2), own), kernel_key(unit(1), other)}) == 3


def test_files_are_private_and_nothing_is_left_over(tmp_path):
    directory = tmp_path / "cache"
    cache = open_cache({"DYNCOMP_CACHE_DIR": str(directory)})
    cache.load(unit(3))
    assert cache.note == ""
    for path in (directory, *directory.rglob("*")):
        assert path.stat().st_mode & 0o022 == 0
    assert directory.stat().st_mode & 0o777 == 0o700
    suffixes = sorted(path.suffix for path in directory.rglob("*") if path.is_file())
    assert suffixes == [".cpp", ".lock", ".so"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[:100] + bytes([content[100] ^ 1]) + content[101:],
        lambda content: content[: len(content) // 2],
        lambda content: b"garbage",
        lambda content: content[:-8] + b"OTHERVER",
    ],
)
def test_damaged_file_is_rebuilt(tmp_path, damage, caplog):
    KernelCache(tmp_path).load(unit(4))
    cache = KernelCache(tmp_path)
    path = cache.path_of(kernel_key(unit(4), find_toolchain()))
    replaced = path.with_suffix(".tmp")
    replaced.write_bytes(damage(path.read_bytes()))
    os.replace(replaced, path)
    with caplog.at_level(logging.WARNING, "dyncomp.codecache"):
        assert answer(cache.load(unit(4))) == 4
    assert counts(cache) == (0, 0, 1, 1)
    assert "damaged" in caplog.text


def test_compiler_error_is_a_toolchain_error_and_keeps_the_source(tmp_path):
    cache = KernelCache(tmp_path)
    with pytest.raises(ToolchainError, match="undeclared"):
        cache.load("int f() { return undeclared; }")
    assert [path.read_text() for path in tmp_path.rglob("*.cpp")] == ["int f() { return undeclared; }"]
    with pytest.raises(ToolchainError, match="undeclared"):
        cache.load_many([unit(1), "int f() { return undeclared; }"])


def test_unwritable_directory_falls_back(tmp_path, caplog):
    blocker = tmp_path / "file"
    blocker.write_text("")
    with caplog.at_level(logging.WARNING, "dyncomp.codecache"):
        cache = open_cache({"DYNCOMP_CACHE_DIR": str(blocker / "below")})
    assert "is not used" in cache.note
    assert "Not a directory" in caplog.text
    assert answer(cache.load(unit(5))) == 5
    assert tmp_path not in cache.directory.parents


def test_directory_open_to_others_falls_back(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    cache = open_cache({"DYNCOMP_CACHE_DIR": str(shared)})
    assert "other users may write" in cache.note
    assert answer(cache.load(unit(6))) == 6
    assert list(shared.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_read_only_directory_falls_back(tmp_path):
    tmp_path.chmod(0o500)
    cache = open_cache({"DYNCOMP_CACHE_DIR": str(tmp_path)})
    assert "Permission denied" in cache.note


def test_directory_that_cannot_be_written_is_read(tmp_path, monkeypatch, caplog):
    """A cache that came with an image: what is there is used, what is not goes elsewhere."""
    KernelCache(tmp_path).load(unit(12))
    before = sorted(tmp_path.rglob("*"))

    def refuse(dir):  # the superuser may write everywhere
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(cache_place.tempfile, "TemporaryFile", refuse)
    kernel_cache._open_cache.cache_clear()
    cache_place.place_of.cache_clear()
    cache = open_cache({"DYNCOMP_CACHE_DIR": str(tmp_path)})
    monkeypatch.undo()
    assert "Read-only" in cache.note
    assert answer(cache.load(unit(12))) == 12
    assert counts(cache) == (0, 1, 0, 0)
    assert answer(cache.load(unit(13))) == 13
    assert sorted(tmp_path.rglob("*")) == before
    assert tmp_path not in cache.directory.parents


@pytest.mark.parametrize("mode", (0o777, 0o770))
def test_directory_open_to_others_is_not_read(tmp_path, mode):
    KernelCache(tmp_path).load(unit(12))
    tmp_path.chmod(mode)
    cache = open_cache({"DYNCOMP_CACHE_DIR": str(tmp_path)})
    assert cache.older is None
    assert answer(cache.load(unit(12))) == 12
    assert counts(cache) == (0, 0, 1, 0)


def test_directory_whose_code_cannot_be_run(tmp_path, monkeypatch):
    facts = os.statvfs_result([4096, 4096, *[10**6] * 6, os.ST_NOEXEC, 255])
    monkeypatch.setattr(cache_place.os, "statvfs", lambda path: facts)
    cache = open_cache({"DYNCOMP_CACHE_DIR": str(tmp_path / "cache")})
    assert "no code can be run" in cache.note
    assert cache.older is None


def full_disk(tmp_path: Path, directory: Path) -> Toolchain:
    """A compiler that finds no room below ``directory``."""
    own = find_toolchain()
    script = tmp_path / "compiler"
    refuse = f'*{directory}/*) echo "{directory}/x.so: No space left on device" >&2; exit 1;;'
    script.write_text(f'#!/bin/sh\ncase "$*" in {refuse} esac\nexec {own.compiler} "$@"\n')
    script.chmod(0o755)
    return type(own)(str(script), own.flags, own.fingerprint)


def test_a_full_disk(tmp_path, caplog):
    directory = tmp_path / "cache"
    first = KernelCache(directory).load(unit(14))
    cache = KernelCache(directory)
    toolchain = full_disk(tmp_path, directory)
    with caplog.at_level(logging.WARNING, "dyncomp.codecache"):
        assert answer(cache.load(unit(15), toolchain)) == 15
    assert "the disk is full" in caplog.text
    assert "the disk is full" in cache.note
    assert cache.older == directory
    assert answer(cache.load(unit(14), toolchain)) == answer(first) == 14
    assert counts(cache) == (0, 1, 1, 0)
    assert answer(cache.load(unit(16), toolchain)) == 16
    with pytest.raises(ToolchainError, match="No space left"):
        cache.load(unit(17), full_disk(tmp_path, cache.directory))


def test_directory_that_becomes_unwritable(tmp_path, caplog):
    directory = tmp_path / "cache"
    cache = KernelCache(directory)
    directory.write_text("a file where the directory was")
    with caplog.at_level(logging.WARNING, "dyncomp.codecache"):
        assert answer(cache.load(unit(7))) == 7
    assert "not written any more" in caplog.text
    (cache.directory / "v1").rename(cache.directory / "v0")
    (cache.directory / "v1").write_text("here as well")
    with pytest.raises(ToolchainError, match="cannot write"):
        cache.load(unit(17))


def test_kernels_that_others_evict(tmp_path, monkeypatch, caplog):
    """Between the look at a file and its being loaded."""
    KernelCache(tmp_path / "first").load(unit(18))
    shutil.copytree(tmp_path / "first", tmp_path / "second")  # the first is loaded, whether there or not
    cache = KernelCache(tmp_path / "second")
    sound = KernelCache._sound

    def evicted(self, shard, directory, key):
        found = sound(self, shard, directory, key)
        monkeypatch.undo()
        self.path_of(key).unlink()
        return found

    monkeypatch.setattr(KernelCache, "_sound", evicted)
    with caplog.at_level(logging.WARNING, "dyncomp.codecache"):
        assert answer(cache.load(unit(18))) == 18
    assert not caplog.text
    assert counts(cache) == (0, 1, 0, 0)  # the descriptor outlives the name


def test_what_is_whole_but_no_library_is_rebuilt(tmp_path):
    """As a broken linker leaves it behind, with the checksum of what it made."""
    content = b"garbage"
    cache = KernelCache(tmp_path)
    key = kernel_key(unit(19), find_toolchain())
    path = cache.path_of(key)
    path.parent.mkdir(parents=True)
    path.write_bytes(cache_files.signed(content, key))
    assert answer(cache.load(unit(19))) == 19
    assert counts(cache) == (0, 0, 1, 1)


def test_disabled_caches(tmp_path):
    environ = {"DYNCOMP_CACHE_DIR": str(tmp_path), "DYNCOMP_FORCE_DISABLE_CACHES": "1"}
    cache = open_cache(environ)
    assert answer(cache.load(unit(8))) == 8
    assert list(tmp_path.iterdir()) == []
    assert cache.note == "caches are disabled"
    assert open_cache({"DYNCOMP_CACHE_DIR": str(tmp_path), "DYNCOMP_FORCE_DISABLE_CACHES": "0"}).note == ""


def test_eviction_drops_what_was_used_longest_ago(tmp_path):
    cache = KernelCache(tmp_path)
    paths = []
    for k in range(6):
        cache.load(unit(100 + k))
        path = cache.path_of(kernel_key(unit(100 + k), find_toolchain()))
        os.utime(path, (1000 + k, 1000 + k))
        os.utime(path.with_suffix(".cpp"), (1000 + k, 1000 + k))
        paths.append(path)
    KernelCache(tmp_path).load(unit(100))  # used again: now the newest
    cache.limit = sum(path.stat().st_size for path in paths) // 2
    assert cache.evict() > 0
    left = [path.exists() for path in paths]
    assert left[0]
    assert not left[1]
    assert left[5]
    total = sum(path.stat().st_size for path in tmp_path.rglob("*.so"))
    assert total <= cache.limit
    assert answer(KernelCache(tmp_path).load(unit(101))) == 101


def test_abandoned_builds_are_cleaned(tmp_path):
    cache = KernelCache(tmp_path, limit=0)
    cache.load(unit(9))
    shard = cache.path_of(kernel_key(unit(9), find_toolchain())).parent
    abandoned = shard / ".build-old"
    abandoned.mkdir()
    (abandoned / "half.so").write_text("")
    current = shard / ".build-new"
    current.mkdir()
    lock = os.open(current, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    cache.evict()
    os.close(lock)
    assert not abandoned.exists()
    assert current.exists()
    cache.evict()
    assert not current.exists()


def test_threads_at_once_build_once(tmp_path):
    cache = KernelCache(tmp_path)
    found = []
    threads = [threading.Thread(target=lambda: found.append(answer(cache.load(unit(10))))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [10] * 4
    assert cache.stats.builds == 1


def start(program: str, directory: Path, **environ: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=ROOT,
        env={**os.environ, "DYNCOMP_CACHE_DIR": str(directory), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


LOADER = """
    import ctypes
    from dyncomp.build.kernel_cache import open_cache
    cache = open_cache()
    library = cache.load('extern "C" int answer() { return 77; }')
    assert ctypes.CFUNCTYPE(ctypes.c_int)(library.symbol("answer"))() == 77
    print(cache.stats.builds, cache.directory)
"""


def test_two_processes_at_once_build_once(tmp_path):
    running = [start(LOADER, tmp_path / "cache") for _ in range(3)]
    outputs = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], outputs
    assert sorted(int(output.split()[0]) for output in outputs) == [0, 0, 1]


def test_private_directory_is_deleted_at_exit(tmp_path):
    process = start(LOADER, tmp_path, DYNCOMP_FORCE_DISABLE_CACHES="1", TMPDIR=str(tmp_path))
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 0, output
    builds, directory = output.split()
    assert builds == "1"
    assert Path(directory).parent == tmp_path
    assert not Path(directory).exists()


def test_lock_that_cannot_be_had(tmp_path, monkeypatch, caplog):
    cache = KernelCache(tmp_path)
    path = cache.path_of(kernel_key(unit(11), find_toolchain()))
    path.parent.mkdir(parents=True)
    monkeypatch.setattr(kernel_cache, "_LOCK_SECONDS", 0.05)
    with open(tmp_path / "v1" / f"{path.parent.name}.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert answer(cache.load(unit(11))) == 11
    assert "without the lock" in caplog.text
