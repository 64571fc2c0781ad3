"""Connection to a Dask cluster whose workers share tasks: one that runs, or processes of this machine.

    tcp://HOST:PORT    the scheduler of a cluster of one's own (``tls://`` with the certificates of Dask's
                       configuration)
    null               workers of this machine, each with one thread, that end with the connection; a
                       certificate made for them keeps other users and processes out

Within the connection joblib's context names the cluster (``joblib.parallel_config(backend="dask")``), as it
names one that a caller has connected to.

Whoever controls the scheduler controls this process and the workers: they send each other pickled code. The
address must be that of one's own cluster; it is never read from a file that others may have written.
"""

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rehearsal_torch.files.redaction import without_password

if TYPE_CHECKING:
    from distributed import Client

# Seconds until an address that does not answer is given up.
PATIENCE = 10.0


class ClusterError(RuntimeError):
    """A cluster that cannot be reached, has no workers, or whose workers cannot compute the tasks."""


def require_dask() -> None:
    """Raises a ClusterError, with the remedy, if Dask's scheduler is not installed; imports nothing."""
    if find_spec("distributed") is None:
        raise ClusterError(
            "expected the package distributed; it is not installed: pip install 'rehearsal-torch[cluster]'"
        )


def check_reachable(address: str, seconds: float = PATIENCE) -> None:
    """Raises a ClusterError if no scheduler listens at an address. Dask's own client would wait forever for
    one that sends nothing, and takes any first eight bytes for the length of a message.
    """
    try:
        parts = urlsplit(address)
        surplus = parts.username is not None or parts.path or parts.query or parts.fragment
        if parts.scheme not in ("tcp", "tls") or not parts.hostname or not parts.port or surplus:
            raise ValueError("expected an address such as tcp://10.0.0.5:8786")
        with socket.create_connection((parts.hostname, parts.port), seconds) as connection:
            # The first message of tls:// is encrypted. A listener that sends nothing is no scheduler.
            header = b"\1" + bytes(7)
            if parts.scheme == "tcp":
                with suppress(TimeoutError):
                    header = b""
                    header = connection.makefile("rb").read(8)
        if len(header) < 8 or not 0 < int.from_bytes(header, "little") <= 1 << 20:
            raise ValueError("what listens there does not answer as a Dask scheduler does")
    except (OSError, ValueError) as error:
        raise _unreachable(address, error) from error


def _unreachable(address: str | None, error: Exception) -> ClusterError:
    reason = " ".join(str(error).split())
    if address is None:
        return ClusterError(
            f"the Dask workers that were started on this machine cannot be reached ({reason}): run the same "
            "command again, with fewer workers if the machine is busy, or without parallel=dask"
        )
    return ClusterError(
        f"no Dask scheduler can be reached at {without_password(address)} ({reason}): start one with "
        "`dask scheduler`, which prints its address, or leave dask.address out to start workers on this "
        "machine"
    )


@contextmanager
def connected(
    address: str | None, workers: int, told: Callable[[str], None] | None = None, seconds: float = PATIENCE
) -> "Iterator[Client]":
    """A connection to the cluster at an address, or, for None, to workers that are started on this machine;
    joblib's context names it meanwhile. `told` receives one line about the dashboard. ClusterError if Dask is
    not installed, or no scheduler can be reached within `seconds`.
    """
    require_dask()
    if address is not None:
        check_reachable(address, seconds)
    import dask
    from distributed import Client, LocalCluster
    from distributed.utils import silence_logging_cmgr
    from joblib import parallel_config

    def local_cluster() -> LocalCluster:
        # Dask's own setting gives every freed block back to the system at once: a quarter of the CPU seconds
        # of eleven fits of flows.
        with dask.config.set({"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None}):
            return LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                security=True,
                dashboard_address="127.0.0.1:0",
                memory_limit=None,
                silence_logs=logging.CRITICAL,
            )

    with (
        silence_logging_cmgr(logging.CRITICAL),
        local_cluster() if address is None else nullcontext(address) as scheduler,
    ):
        try:
            client = Client(scheduler, timeout=seconds, set_as_default=False)
        except (OSError, ValueError) as error:
            raise _unreachable(address, error) from error
        with client, parallel_config(backend="dask", client=client):
            if told is not None and "dashboard" in client.scheduler_info()["services"]:
                # Without bokeh, the dashboard would only ask for it.
                without_bokeh = address is None and find_spec("bokeh") is None
                remedy = "needs bokeh, which is not installed: pip install bokeh"
                told(f"Dask dashboard: {remedy if without_bokeh else client.dashboard_link}")
            yield client


def named_cluster() -> "Client | None":
    """The client of the Dask cluster in joblib's context; None without one, and within a cluster's task."""
    from joblib.parallel import get_active_backend

    client: Client | None = getattr(get_active_backend()[0], "client", None)
    if client is None:
        return None
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return client
    return None
