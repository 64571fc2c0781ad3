"""Connecting to a Dask cluster by its address, or starting one on this machine.

    tcp://HOST:PORT    the scheduler of a cluster of one's own (``tls://`` with the certificates of Dask's own
                       configuration)
    null               worker processes of this machine, each with one thread, that end with the connection;
                       they take part by a certificate that is made for them, so that no other user or
                       process of the machine can reach them, and give memory back to the system as other
                       processes do: Dask's own setting (MALLOC_TRIM_THRESHOLD_) gives back every block at
                       once, which took a quarter of the CPU seconds of eleven fits of flows

Within the connection, joblib's context names the cluster (``joblib.parallel_config(backend="dask")``), so
that the loop finds it in the same way as one that a caller named.

Whoever controls the scheduler controls this process and the workers: they send each other pickled code. The
address must be that of one's own cluster; it is never read from a file that others may have written.

Source: ours; the interface is that of ``distributed.Client`` and ``distributed.LocalCluster``.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rehearsal_torch.cluster.address import PATIENCE, check_reachable, require_dask, unreachable

if TYPE_CHECKING:
    from distributed import Client


@contextmanager
def connected(
    address: str | None, workers: int, told: Callable[[str], None] | None = None, seconds: float = PATIENCE
) -> "Iterator[Client]":
    """A connection to a cluster, which joblib's context names meanwhile.

    Args:
        address: The scheduler's address; None starts workers on this machine.
        workers: How many workers are started.
        told: Receives one line with the cluster's dashboard, if it has one, or with what that of workers of
            this machine needs; None says nothing.
        seconds: The time after which an address is given up.

    Yields:
        The client.

    Raises:
        ClusterError: if Dask is not installed, or the address cannot be reached or is no scheduler's.
    """
    require_dask()
    if address is not None:
        check_reachable(address, seconds)
    from distributed import Client
    from joblib import parallel_config

    with _quiet(), _scheduler(address, workers) as there:
        try:
            client = Client(there, timeout=seconds, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise unreachable(str(address), "it does not answer as a Dask scheduler does") from error
        try:
            # Without bokeh, the page of workers that are started here would say no more than that.
            bare = address is None and find_spec("bokeh") is None
            link = "needs bokeh, which is not installed: pip install bokeh" if bare else dashboard(client)
            if told is not None and link is not None:
                told(f"Dask dashboard: {link}")
            with parallel_config(backend="dask", client=client):
                yield client
        finally:
            with suppress(TimeoutError, OSError):
                client.close(timeout=seconds)


def dashboard(client: "Client") -> str | None:
    """The link to the page of a cluster; None if it has none."""
    if "dashboard" not in client.scheduler_info()["services"]:
        return None
    return str(client.dashboard_link)


@contextmanager
def _scheduler(address: str | None, workers: int) -> Iterator[object]:
    """What a client connects to: an address, or a cluster of this machine that ends with the context."""
    if address is not None:
        yield address
        return
    import dask
    from distributed import LocalCluster

    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None}),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            security=True,
            dashboard_address="127.0.0.1:0",
            memory_limit=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps Dask's log from the terminal: what matters in it is an error of this module, in words."""
    names = [
        name for name in ("distributed", *logging.root.manager.loggerDict) if name.startswith("distributed")
    ]
    loggers = [logging.getLogger(name) for name in dict.fromkeys(names)]
    before = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.setLevel(level)
