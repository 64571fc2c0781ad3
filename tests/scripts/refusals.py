"""A system that refuses to write: files of a limited size, and folders that are read-only."""

import ctypes
import os
import resource
import sys
from contextlib import contextmanager

# Linux's capabilities to write where permissions forbid it and to read there: CAP_DAC_OVERRIDE and
# CAP_DAC_READ_SEARCH, by their numbers.
_OVERRIDE = (1 << 1) | (1 << 2)
_VERSION_3 = 0x20080522


@contextmanager
def little_space(size):
    """No file can grow beyond some bytes: what is written beyond raises an OSError, as on a full disk.

    Args:
        size: The bytes.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def read_only(*folders):
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
def _permissions_count():
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
