"""The address of a Dask scheduler, and whether one listens there; nothing of Dask is imported.

    tcp://HOST:PORT    or tls://HOST:PORT; an IPv6 address stands in brackets

The check is made before a run begins, so that a wrong address costs seconds, not a fit.

Source: ours.
"""

import re
import socket
from importlib.util import find_spec

# Seconds until an address that does not answer is given up.
PATIENCE = 10.0
# The most bytes that the first message of a scheduler may have.
_LONGEST = 1 << 20
_ADDRESS = re.compile(r"(tcp|tls)://(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/\[\]]+)):([0-9]{1,5})")


class ClusterError(RuntimeError):
    """A cluster that cannot be reached, has no workers, or whose workers cannot compute the tasks."""


def require_dask() -> None:
    """Checks that Dask's scheduler and workers are installed; nothing is imported.

    Raises:
        ClusterError: with what to type, if they are not.
    """
    if find_spec("distributed") is None:
        raise ClusterError(
            "expected the package distributed; it is not installed: pip install 'rehearsal-torch[cluster]'"
        )


def parts_of(address: str) -> tuple[str, int]:
    """Host and port of a scheduler's address.

    Raises:
        ClusterError: if it is no address.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found[4]) < 65536:
        raise ClusterError(
            f"expected the address of a scheduler, such as tcp://10.0.0.5:8786; got {address!r}"
        )
    return found[2] or found[3], int(found[4])


def check_reachable(address: str, seconds: float = PATIENCE) -> None:
    """Checks that a scheduler listens at an address; nothing of Dask is imported.

    A scheduler begins a connection with a message of its own, whose first eight bytes are its length (little
    endian). Behind ``tls://`` these cannot be read, and it is checked only that something listens.

    Args:
        address: The scheduler's address.
        seconds: The time after which it is given up.

    Raises:
        ClusterError: if it is no address, or no scheduler listens there.
    """
    host, port = parts_of(address)
    try:
        with socket.create_connection((host, port), seconds) as opened:
            begins = b"" if address.startswith("tls:") else _first_bytes(opened)
    except (OSError, UnicodeError) as error:
        raise unreachable(address, str(error)) from error
    if address.startswith("tcp:") and not (
        len(begins) == 8 and 0 < int.from_bytes(begins, "little") <= _LONGEST
    ):
        raise unreachable(address, "what listens there does not answer as a Dask scheduler does")


def _first_bytes(opened: socket.socket) -> bytes:
    """The first eight bytes that are sent; fewer if no more arrive in time."""
    found = b""
    try:
        while len(found) < 8 and (more := opened.recv(8 - len(found))):
            found += more
    except TimeoutError:
        return found
    return found


def unreachable(address: str, why: str) -> ClusterError:
    """The error for an address without a scheduler.

    Args:
        address: The address.
        why: What was found there.
    """
    return ClusterError(
        f"no Dask scheduler can be reached at {address} ({why}): start one with `dask scheduler`, which "
        "prints its address, or leave dask.address out to start workers on this machine"
    )
