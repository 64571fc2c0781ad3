"""Full disks and read-only folders, made by the system itself."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Linux's capabilities to write where permissions forbid it and to read there: CAP_DAC_OVERRIDE and
# CAP_DAC_READ_SEARCH, by their numbers.
_OVERRIDE = (1 << 1) | (1 << 2)
_VERSION_3 = 0x20080522
# Linux's flags of unshare and mount, by their numbers: CLONE_NEWNS, MS_REC | MS_PRIVATE, MS_REMOUNT.
_MOUNTS, _PRIVATE, _AGAIN = 0x20000, 0x4000 | 0x40000, 0x20


def own_mounts() -> bool:
    """Gives this process a view of the mounts that ends with it, in which it may mount disks; False where the
    system refuses, as it does without the administrator's rights.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.unshare(_MOUNTS) == 0 and libc.mount(b"none", b"/", None, _PRIVATE, None) == 0


class Disk:
    """A disk in memory, mounted on an empty folder by a process that has `own_mounts`.

    Args:
        folder: The folder.
        size: Its bytes; Linux rounds them up to whole pages.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self._libc = os.fsencode(folder), ctypes.CDLL(None, use_errno=True)
        self._mount(0, size)

    @property
    def used(self) -> int:
        """The bytes that are taken."""
        told = os.statvfs(self.folder)
        return (told.f_blocks - told.f_bfree) * told.f_frsize

    def resize(self, size: int) -> None:
        """Makes it larger or smaller, down to what is used."""
        self._mount(_AGAIN, size)

    def remove(self) -> None:
        """Takes it away, with all that lies on it."""
        self._done(self._libc.umount2(self.folder, 0))

    def _mount(self, flags: int, size: int) -> None:
        self._done(self._libc.mount(b"none", self.folder, b"tmpfs", flags, f"size={size}".encode()))

    def _done(self, code: int) -> None:
        if code:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), os.fsdecode(self.folder))


@contextmanager
def read_only(*folders: Path) -> Iterator[None]:
    """Folders, with all that lies below, in which nobody may write: not even the administrator, as whom
    tests may run.
    """
    places = [path for folder in folders for path in (folder, *folder.rglob("*")) if not path.is_symlink()]
    modes = {path: path.stat().st_mode for path in places}
    for path, mode in modes.items():
        path.chmod(mode & 0o555)
    try:
        with _permissions_count():
            yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@contextmanager
def _permissions_count() -> Iterator[None]:
    if os.geteuid() != 0 or sys.platform != "linux":
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0, os.strerror(ctypes.get_errno())
    before = sets[0]
    sets[0] = before & ~_OVERRIDE
    assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        sets[0] = before
        assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())
