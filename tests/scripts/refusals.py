"""A system that refuses to write files beyond some size."""

import resource
from contextlib import contextmanager


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
