"""The questions about episodes, and where they are asked.

POST  /api/episode       {episode}: the episode as observed
POST  /api/look-back     {episode, changes, fixed, seconds}: the best sequence with so many changes
POST  /api/replay        {episode, actions}: a sequence that was put together by hand

Steps are places from 0, also where the page calls them by the times of the table.
"""

from typing import TYPE_CHECKING, Annotated

from fastapi import FastAPI
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from rehearsal_torch.explorer.replies import told

if TYPE_CHECKING:
    from rehearsal_torch.explorer.episode_session import EpisodeSession

MOST = 10_000
Steps = Annotated[list[int], Field(max_length=MOST)]


class EpisodeAsked(BaseModel):
    """A question about an episode.

    Attributes:
        episode: Its number on the page.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    episode: int


class ChangesAsked(EpisodeAsked):
    """A question for the best sequence.

    Attributes:
        changes: How many actions may differ.
        fixed: Steps whose action stays.
        seconds: The time limit.
    """

    changes: int
    fixed: Steps = []
    seconds: FiniteFloat


class SequenceAsked(EpisodeAsked):
    """A question about a sequence.

    Attributes:
        actions: One action number for each step.
    """

    actions: Steps


def add_routes(app: FastAPI, session: "EpisodeSession") -> None:
    """Adds the questions to a server.

    Args:
        app: The server.
        session: What answers.
    """

    @app.post("/api/episode")
    def episode(asked: EpisodeAsked) -> Response:
        return told(lambda: session.episode(asked.episode))

    @app.post("/api/look-back")
    def look_back(asked: ChangesAsked) -> Response:
        return told(lambda: session.look_back(asked.episode, asked.changes, asked.fixed, asked.seconds))

    @app.post("/api/replay")
    def replay(asked: SequenceAsked) -> Response:
        return told(lambda: session.replay(asked.episode, asked.actions))
