"""How the page is served: uvicorn's settings, and how long a request may take to arrive.

uvicorn ends an idle connection after a response, but waits without end for the rest of a request. As many
connections as are answered at once (`MOST`), each with half a request, would keep everybody else out. A
request, headers and body, therefore has `ARRIVAL` seconds from the opening of its connection, or from its
first byte on one that is reused; then the connection is closed.

Source: ours; CWE-400, uncontrolled resource consumption ("slowloris").
"""

from asyncio import TimerHandle, Transport

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from rehearsal_torch.explorer.server import Session, server

# Seconds for a whole request, at most 64 KiB from this machine; and connections that are answered at once.
ARRIVAL, MOST = 5.0, 64


class TimedProtocol(H11Protocol):
    """A connection whose requests arrive within `ARRIVAL` seconds, or that is closed."""

    _limit: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Starts the time of the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Ends the time of a request that is complete, and starts that of the next one."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the time."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._forget()
        elif self._limit is None:
            self._limit = self.loop.call_later(ARRIVAL, self.transport.close)

    def _forget(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self._limit = None


def configured(session: Session, port: int) -> Config:
    """uvicorn's settings for the server of a session.

    Args:
        session: What answers.
        port: The port on which it will be served.
    """
    return Config(
        server(session, port),
        http=TimedProtocol,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=2,
        limit_concurrency=MOST,
        server_header=False,
    )
