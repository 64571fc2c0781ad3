"""The questions about trials, and where they are asked.

    GET   /api/trials        the trials so far
    POST  /api/ask           {count, fixed}: proposes trials
    POST  /api/tell          {trial, settings, nodes}: records what came of one
    POST  /api/fail          {trial, reason}: it gave no usable measurement
    POST  /api/abandon       {trial, reason}: it will not be run
    POST  /api/adopt         {fixed}: the action to adopt

Measurements may come as they were typed: the optimiser says what is no number.
"""

from typing import TYPE_CHECKING, Annotated, Any, Protocol

from fastapi import FastAPI
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from rehearsal_torch.explorer.replies import told

if TYPE_CHECKING:
    from rehearsal_torch.explorer.trials.trial_session import TrialSession

MOST = 1000
Numbers = Annotated[dict[str, FiniteFloat], Field(max_length=MOST)]
Typed = Annotated[dict[str, FiniteFloat | Annotated[str, Field(max_length=200)]], Field(max_length=MOST)]
Reason = Annotated[str, Field(max_length=1000)]


class Reading(Protocol):
    """What has trials to show."""

    def trials(self) -> Any:
        """The trials so far."""


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class NextAsked(_Asked):
    """A question for trials.

    Attributes:
        count: How many.
        fixed: Actions that are held at a value.
    """

    count: int
    fixed: Numbers = {}


class AdoptAsked(_Asked):
    """A question for the action to adopt.

    Attributes:
        fixed: Actions that are held at a value.
    """

    fixed: Numbers = {}


class Told(_Asked):
    """What came of a trial.

    Attributes:
        trial: The number of a pending one; None for an experiment that was not proposed.
        settings: The settings that were run, as typed.
        nodes: The measured values, as typed.
    """

    trial: int | None
    settings: Typed = {}
    nodes: Typed


class Ended(_Asked):
    """A trial without a result.

    Attributes:
        trial: The number of a pending one.
        reason: Why.
    """

    trial: int
    reason: Reason = ""


def add_reading(app: FastAPI, session: Reading) -> None:
    """Adds the question for the trials so far."""

    @app.get("/api/trials")
    def trials() -> Response:
        return told(session.trials)


def add_writing(app: FastAPI, session: "TrialSession") -> None:
    """Adds the questions that continue the trials."""

    @app.post("/api/ask")
    def ask(asked: NextAsked) -> Response:
        return told(lambda: session.ask(asked.count, asked.fixed))

    @app.post("/api/tell")
    def tell(asked: Told) -> Response:
        return told(lambda: session.tell(asked.trial, asked.settings, asked.nodes))

    @app.post("/api/fail")
    def fail(asked: Ended) -> Response:
        return told(lambda: session.fail(asked.trial, asked.reason))

    @app.post("/api/abandon")
    def abandon(asked: Ended) -> Response:
        return told(lambda: session.abandon(asked.trial, asked.reason))

    @app.post("/api/adopt")
    def adopt(asked: AdoptAsked) -> Response:
        return told(lambda: session.recommend(asked.fixed))
