"""What others planted in the kernel cache is not run: it is rebuilt, in a private place if need be."""

from __future__ import annotations

import ctypes
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dyncomp.build import cache_files, elf, toolchain
from dyncomp.build.cache_place import place_of
from dyncomp.build.kernel_cache import KernelCache, _open_cache, kernel_key, open_cache
from dyncomp.build.toolchain import find_toolchain
from dyncomp.errors import ToolchainError
from dyncomp.trusted import Folder, UntrustedError, open_folder

ROOT = Path(__file__).parents[2]
FOREIGNER = 4321
SOURCE = 'extern "C" int answer() { return 1; }\n'
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")


def answer(library: Any) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int)(library.symbol("answer"))()


@pytest.fixture(autouse=True)
def new_process() -> None:
    """Places are looked at again."""
    _open_cache.cache_clear()
    place_of.cache_clear()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    """A library with a good checksum that leaves a mark when it is loaded."""
    folder = tmp_path_factory.mktemp("planted")
    mark = folder / "mark"
    (folder / "planted.cpp").write_text(
        "#include <fcntl.h>\n"
        f'__attribute__((constructor)) void run() {{ open("{mark}", O_CREAT | O_WRONLY, 0600); }}\n'
        'extern "C" int answer() { return 666; }\n'
    )
    command = [find_toolchain().compiler, "-shared", "-fPIC", "-o", "planted.so", "planted.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    content = cache_files.signed((folder / "planted.so").read_bytes(), kernel_key(SOURCE, find_toolchain()))
    assert not cache_files.damage(content, kernel_key(SOURCE, find_toolchain()))
    return content, mark


class Scene:
    """A cache in which a planted file lies under the key of a program."""

    def __init__(self, folder: Path, planted: bytes) -> None:
        self.outside = folder / "outside"
        self.outside.mkdir(mode=0o700)
        self.above = folder / "above"
        self.root = self.above / "cache"
        self.file = KernelCache(self.root).path_of(kernel_key(SOURCE, find_toolchain()))
        self.shard, self.top = self.file.parent, self.file.parents[1]
        self.shard.mkdir(mode=0o700, parents=True)
        for path in (self.above, self.root, self.top):
            path.chmod(0o700)
        self.file.write_bytes(planted)
        self.file.chmod(0o600)

    def link(self, path: Path) -> None:
        """A symbolic link to what was there."""
        moved = self.outside / path.name
        path.rename(moved)
        path.symlink_to(moved)

    def give_away(self, path: Path) -> None:
        os.chown(path, FOREIGNER, FOREIGNER)

    def give_link_away(self, path: Path) -> None:
        self.link(path)
        os.chown(path, FOREIGNER, FOREIGNER, follow_symlinks=False)

    def hard_link(self) -> None:
        os.link(self.file, self.outside / "other-name")

    def instead(self, make: Callable[[Path], object]) -> None:
        self.file.unlink()
        make(self.file)

    def bind(self, path: Path) -> None:
        """A socket. Its name has to be short."""
        here = os.getcwd()
        os.chdir(path.parent)
        try:
            socket.socket(socket.AF_UNIX).bind(path.name[:90])
            os.rename(path.name[:90], path.name)
        finally:
            os.chdir(here)


FAULTS: dict[str, Callable[[Scene], object]] = {
    "root-777": lambda s: s.root.chmod(0o777),
    "root-770": lambda s: s.root.chmod(0o770),
    "root-1777": lambda s: s.root.chmod(0o1777),
    "above-777": lambda s: s.above.chmod(0o777),
    "top-777": lambda s: s.top.chmod(0o777),
    "top-link": lambda s: s.link(s.top),
    "shard-777": lambda s: s.shard.chmod(0o777),
    "shard-1777": lambda s: s.shard.chmod(0o1777),
    "shard-link": lambda s: s.link(s.shard),
    "file-666": lambda s: s.file.chmod(0o666),
    "file-602": lambda s: s.file.chmod(0o602),
    "file-link": lambda s: s.link(s.file),
    "file-hard-link": lambda s: s.hard_link(),
    "file-pipe": lambda s: s.instead(os.mkfifo),
    "file-folder": lambda s: s.instead(os.mkdir),
    "file-socket": lambda s: s.instead(s.bind),
    "file-dangling": lambda s: s.instead(lambda p: os.symlink("/nowhere", p)),
    "file-loop": lambda s: s.instead(lambda p: os.symlink(p.name, p)),
}
FOREIGN: dict[str, Callable[[Scene], object]] = {
    "root-foreign": lambda s: s.give_away(s.root),
    "above-foreign": lambda s: s.give_away(s.above),
    "top-foreign": lambda s: s.give_away(s.top),
    "shard-foreign": lambda s: s.give_away(s.shard),
    "file-foreign": lambda s: s.give_away(s.file),
    "root-foreign-link": lambda s: s.give_link_away(s.root),
    "above-foreign-link": lambda s: s.give_link_away(s.above),
    "file-device": lambda s: s.instead(lambda p: os.mknod(p, 0o600 | 0o020000, os.makedev(1, 5))),
}


@pytest.mark.parametrize("fault", [*FAULTS, *(pytest.param(f, marks=as_root) for f in FOREIGN)])
def test_planted_code_is_not_run(fault: str, tmp_path: Path, planted: tuple[bytes, Path]) -> None:
    content, mark = planted
    if fault.endswith("-770") and os.getuid() == os.getgid() != 0:
        pytest.skip("a group of the user's own may write")
    scene = Scene(tmp_path, content)
    try:
        (FAULTS | FOREIGN)[fault](scene)
    except PermissionError:
        pytest.skip("no devices can be made here")
    began = time.monotonic()
    cache = open_cache({"DYNCOMP_CACHE_DIR": str(scene.root)})
    assert answer(cache.load(SOURCE)) == 1
    assert not mark.exists()
    assert (cache.stats.disk_hits, cache.stats.builds) == (0, 1)
    place_is_good = fault.startswith("file-") and fault != "file-folder"
    assert (cache.directory == scene.root) == place_is_good
    assert bool(cache.note) != place_is_good
    assert time.monotonic() - began < 30


# The folder is held: what its path means by then does not matter.
HELD = ("above-777", "above-foreign", "above-foreign-link", "root-foreign-link")


@pytest.mark.parametrize(
    "fault", [f if f in FAULTS else pytest.param(f, marks=as_root) for f in FAULTS | FOREIGN if f not in HELD]
)
def test_planted_while_it_is_open(fault: str, tmp_path: Path, planted: tuple[bytes, Path]) -> None:
    """The place was good when the cache was opened."""
    content, mark = planted
    scene = Scene(tmp_path, content)
    cache = open_cache({"DYNCOMP_CACHE_DIR": str(scene.root)})
    assert not cache.note
    try:
        (FAULTS | FOREIGN)[fault](scene)
    except PermissionError:
        pytest.skip("no devices can be made here")
    if fault.endswith("-770") and os.getuid() == os.getgid() != 0:
        pytest.skip("a group of the user's own may write")
    assert answer(cache.load(SOURCE)) == 1
    assert not mark.exists()
    assert (cache.stats.disk_hits, cache.stats.builds) == (0, 1)


def test_the_planted_library_would_run(tmp_path: Path, planted: tuple[bytes, Path]) -> None:
    """So that the others test something: in a child, as it stays loaded."""
    content, mark = planted
    scene = Scene(tmp_path, content)
    text = f"""
import ctypes
from dyncomp.build.kernel_cache import open_cache
library = open_cache({{"DYNCOMP_CACHE_DIR": {str(scene.root)!r}}}).load({SOURCE!r})
assert ctypes.CFUNCTYPE(ctypes.c_int)(library.symbol("answer"))() == 666
"""
    subprocess.run([sys.executable, "-c", text], cwd=ROOT, check=True, timeout=120)
    assert mark.exists()
    mark.unlink()


def test_a_kernel_under_the_name_of_another(tmp_path: Path) -> None:
    """Its checksum is good; its name is part of it."""
    other = 'extern "C" int answer() { return 2; }\n'
    cache = KernelCache(tmp_path)
    cache.load(other)
    paths = [cache.path_of(kernel_key(source, find_toolchain())) for source in (SOURCE, other)]
    paths[0].parent.mkdir(mode=0o700)
    paths[1].rename(paths[0])
    again = KernelCache(tmp_path)
    assert answer(again.load(SOURCE)) == 1
    assert again.stats.damaged == 1


def test_a_link_that_comes_to_lead_elsewhere(tmp_path: Path, planted: tuple[bytes, Path]) -> None:
    """The user's own link is followed, once."""
    content, mark = planted
    evil, good = tmp_path / "evil", tmp_path / "good"
    for folder in (evil, good):
        folder.mkdir(mode=0o700)
    scene = Scene(evil, content)
    link = tmp_path / "link"
    link.symlink_to(good)
    cache = open_cache({"DYNCOMP_CACHE_DIR": str(link)})
    link.unlink()
    link.symlink_to(scene.root)
    assert answer(cache.load(SOURCE)) == 1
    assert cache.stats.builds == 1
    assert list(good.rglob("*.so")) and not mark.exists()


def test_a_race(tmp_path: Path, planted: tuple[bytes, Path]) -> None:
    """File and shard are exchanged again and again for what must not be taken, while kernels are loaded."""
    content, mark = planted
    KernelCache(tmp_path / "cache").load(SOURCE)
    path = KernelCache(tmp_path / "cache").path_of(kernel_key(SOURCE, find_toolchain()))
    good = path.read_bytes()
    (tmp_path / "other").mkdir()
    scene = Scene(tmp_path / "other", content)
    stop = threading.Event()

    def exchange() -> None:
        draft = tmp_path / "draft"
        while not stop.is_set():
            for put in (lambda: draft.symlink_to(scene.file), lambda: draft.write_bytes(good)):
                put()
                if not draft.is_symlink():
                    draft.chmod(0o600)
                os.replace(draft, path)

    thread = threading.Thread(target=exchange)
    thread.start()
    hits = 0
    try:
        for _ in range(200):
            cache = KernelCache(tmp_path / "cache")
            library = cache.find(SOURCE, find_toolchain())
            hits += library is not None
            assert library is None or answer(library) == 1
    finally:
        stop.set()
        thread.join()
    assert hits > 0 and not mark.exists()


@pytest.mark.parametrize("umask", (0o000, 0o002, 0o777))
def test_private_whatever_the_umask(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        cache = open_cache({"DYNCOMP_CACHE_DIR": str(tmp_path / "a" / "cache")})
        cache.load(SOURCE)
    finally:
        os.umask(before)
    assert not cache.note
    for path in (tmp_path / "a", *(tmp_path / "a").rglob("*")):
        if path.suffix != ".lock":
            assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_descriptors_that_the_program_closes(tmp_path: Path) -> None:
    """As daemons do; the number may mean another folder by then."""
    cache = open_cache({"DYNCOMP_CACHE_DIR": str(tmp_path / "cache")})
    held = cache._folder(cache.directory).descriptor()
    other = os.open(tmp_path, os.O_RDONLY)
    os.dup2(other, held)
    os.close(other)
    assert answer(cache.load(SOURCE)) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cache"]
    os.close(held)


def test_a_deleted_cache_is_made_again(tmp_path: Path) -> None:
    import shutil

    cache = open_cache({"DYNCOMP_CACHE_DIR": str(tmp_path / "cache")})
    cache.load(SOURCE)
    shutil.rmtree(tmp_path / "cache")
    assert answer(cache.load(SOURCE.replace("1", "2"))) == 2
    assert len(list((tmp_path / "cache").rglob("*.so"))) == 1


def test_no_descriptors_are_lost(tmp_path: Path) -> None:
    cache = open_cache({"DYNCOMP_CACHE_DIR": str(tmp_path / "cache")})
    cache.load(SOURCE)
    before = len(os.listdir("/proc/self/fd"))
    for fault in range(20):
        again = KernelCache(tmp_path / "cache")
        again._folders.update(cache._folders)
        again.load(SOURCE)
        if fault == 10:
            again.path_of(kernel_key(SOURCE, find_toolchain())).parent.chmod(0o777)
            assert again._found_in(again.directory, kernel_key(SOURCE, find_toolchain())) is None
            again.path_of(kernel_key(SOURCE, find_toolchain())).parent.chmod(0o700)
    assert len(os.listdir("/proc/self/fd")) == before


def test_ways(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to("../real/sub/..")
    for path in ("a/up/x", "a/../a/./up//x", "real/x"):
        descriptor, found = open_folder(tmp_path / path, create=True)
        os.close(descriptor)
        assert found == str(real / "x")
    with pytest.raises(OSError, match="Not a directory"):
        (tmp_path / "file").write_text("")
        Folder(tmp_path / "file" / "x").descriptor(create=True)
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="Too many levels"):
        open_folder(tmp_path / "round")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(UntrustedError, match="other users may write"):
        open_folder(tmp_path / "open" / "x", create=True)
    assert not (tmp_path / "open" / "x").exists()


# -- libraries that are not whole -------------------------------------------------------------
def test_libraries_that_are_cut_off(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    key = kernel_key(SOURCE, find_toolchain())
    cache.load(SOURCE)
    whole = cache.path_of(key).read_bytes()[: -cache_files._FOOTER_BYTES]
    assert elf.damage(whole) == ""
    assert elf.damage(whole + b"appended") == ""
    assert all(elf.damage(whole[:size]) for size in range(len(whole)))
    for size in (0, 1, 63, 64, len(whole) // 2, len(whole) - 1):
        cache.path_of(key).write_bytes(cache_files.signed(whole[:size], key))
        again = KernelCache(tmp_path)
        assert answer(again.load(SOURCE)) == 1
        assert (again.stats.damaged, again.stats.builds) == (1, 1)


def test_libraries_with_holes_or_other_bytes(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    cache.load(SOURCE)
    content = bytearray(cache.path_of(kernel_key(SOURCE, find_toolchain())).read_bytes())
    (tmp_path / "x.so").write_bytes(content)
    dynamic = subprocess.run(["readelf", "-lW", tmp_path / "x.so"], capture_output=True, check=True)
    (line,) = [text for text in dynamic.stdout.decode().splitlines() if text.split()[:1] == ["DYNAMIC"]]
    offset, size = (int(line.split()[k], 16) for k in (1, 4))
    hole = content[:]
    hole[offset : offset + size] = bytes(size)
    assert "dynamic section" in elf.damage(bytes(hole))
    for machine in (40, 183, 243):
        other = content[:]
        other[18] = machine
        assert "processor" in elf.damage(bytes(other))
    own, found = random.Random(15), 0
    for _ in range(3000):
        other = content[:]
        for _ in range(own.randrange(1, 4)):
            place = own.choice(
                (own.randrange(64), own.randrange(64, 700), own.randrange(offset, offset + size))
            )
            other[place] = own.randrange(256)
        found += bool(elf.damage(bytes(other)))  # raises nothing
    assert found > 500


def lying(folder: Path, line: str) -> toolchain.Toolchain:
    """A compiler that spoils what it made and reports success."""
    script = folder / "compiler"
    script.write_text(
        f'#!/bin/sh\n{find_toolchain().compiler} "$@"\n'
        'for last; do case "$last" in *.so) f="$last";; esac; done\n'
        f'[ -n "$f" ] && {{ {line}; }}\nexit 0\n'
    )
    script.chmod(0o755)
    return find_toolchain({"DYNCOMP_CXX": str(script)})


@pytest.mark.parametrize(
    "line",
    (
        'truncate -s 1000 "$f"',
        'truncate -s -1 "$f"',
        ': > "$f"',
        'rm "$f"; mkfifo "$f"',
        'rm "$f"; ln -s /bin/sh "$f"',
    ),
)
def test_compilers_that_lie(line: str, tmp_path: Path) -> None:
    cache = KernelCache(tmp_path / "cache")
    with pytest.raises(ToolchainError):
        cache.load(SOURCE, lying(tmp_path, line))
    assert not list((tmp_path / "cache").rglob("*.so"))
    assert not list((tmp_path / "cache").rglob(".build-*"))


# -- what killed processes leave, and the size -------------------------------------------------
SLEEPER = """
import sys
from dyncomp.build.kernel_cache import open_cache
open_cache().load('extern "C" int answer() { return 5; }')
"""


def test_builds_of_killed_processes_are_reclaimed(tmp_path: Path) -> None:
    compiler = tmp_path / "g++"
    compiler.write_text('#!/bin/sh\ncase "$1" in --version|-dump*) echo 1; exit;; esac\nexec sleep 60\n')
    compiler.chmod(0o755)
    environ = {**os.environ, "DYNCOMP_CACHE_DIR": str(tmp_path / "cache"), "DYNCOMP_CXX": str(compiler)}
    command = [sys.executable, "-c", SLEEPER]
    running = [subprocess.Popen(command, cwd=ROOT, env=environ, start_new_session=True) for _ in range(2)]
    try:
        # one of the two holds the lock of the shard and builds
        end = time.monotonic() + 60
        while not (builds := list((tmp_path / "cache").rglob(".build-*"))) and time.monotonic() < end:
            time.sleep(0.02)
        assert builds
        time.sleep(0.1)
        open_cache({"DYNCOMP_CACHE_DIR": str(tmp_path / "cache")})
        assert list((tmp_path / "cache").rglob(".build-*")) == builds  # alive
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert list((tmp_path / "cache").rglob(".build-*"))
    _open_cache.cache_clear()
    place_of.cache_clear()
    open_cache({"DYNCOMP_CACHE_DIR": str(tmp_path / "cache")})
    assert not list((tmp_path / "cache").rglob(".build-*"))


def test_the_budget_counts_all_files(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path, limit=80_000)
    cache.load(SOURCE)
    assert cache.evict() == 0
    for folder in ("choices", "compilers", "v1", "v1/aa", "v1/aa/.build-x"):
        place = tmp_path / folder
        place.mkdir(mode=0o700, exist_ok=True)
        (place / "other").write_bytes(bytes(16_000))
    held = os.open(tmp_path / "v1/aa/.build-x", os.O_RDONLY)
    assert cache_files._locks(held)
    (tmp_path / "choices" / "old.json").write_bytes(bytes(16_000))
    os.utime(tmp_path / "choices" / "old.json", (1, 1))
    assert cache.evict() >= 16_000
    assert not (tmp_path / "choices" / "old.json").exists()
    assert (tmp_path / "v1/aa/.build-x/other").exists()
    os.close(held)


def test_no_descriptors_left_is_no_damage(tmp_path: Path) -> None:
    """Nothing is rebuilt, and no sound file deleted, where this process can open no file."""
    cache = open_cache({"DYNCOMP_CACHE_DIR": str(tmp_path / "cache")})
    cache.load(SOURCE)
    path = cache.path_of(kernel_key(SOURCE, find_toolchain()))
    again = KernelCache(tmp_path / "cache", _folders=dict(cache._folders))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open("/", os.O_RDONLY)
    os.close(free)
    for allowed in range(free, free + 3):  # none for the folders, for the file
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, before[1]))
        try:
            with pytest.raises(ToolchainError, match="no room"):
                again.find(SOURCE, find_toolchain())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert path.exists()
    assert answer(again.load(SOURCE)) == 1
    assert again.stats.damaged == 0
