"""The questions about a rehearsal method, and where they are asked.

POST  /api/what-if       {case, given, set}: the claim of a setting
POST  /api/charts        {case, given, set}: curves, and outcomes beside the region
POST  /api/recommend     {case, given}: the method's decision
"""

from typing import TYPE_CHECKING, Annotated

from fastapi import FastAPI
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from rehearsal_torch.explorer.replies import told

if TYPE_CHECKING:
    from rehearsal_torch.explorer.rehearsal_session import RehearsalSession

MOST = 1000
Numbers = Annotated[dict[str, FiniteFloat], Field(max_length=MOST)]


class CaseAsked(BaseModel):
    """A question about a case.

    Attributes:
        case: The number of a recorded case, whose own bounds apply; None for the task's.
        given: The context, name to number.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    case: int | None = None
    given: Numbers


class SettingAsked(CaseAsked):
    """A question about a setting in a case.

    Attributes:
        set: Name to number.
    """

    set: Numbers


def add_routes(app: FastAPI, session: "RehearsalSession") -> None:
    """Adds the questions to a server.

    Args:
        app: The server.
        session: What answers.
    """

    @app.post("/api/what-if")
    def what_if(asked: SettingAsked) -> Response:
        return told(lambda: session.what_if(asked.case, asked.given, asked.set))

    @app.post("/api/charts")
    def charts(asked: SettingAsked) -> Response:
        return told(lambda: session.charts(asked.case, asked.given, asked.set))

    @app.post("/api/recommend")
    def recommend(asked: CaseAsked) -> Response:
        return told(lambda: session.recommend(asked.case, asked.given))
