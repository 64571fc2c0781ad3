"""A run of trials, which is shown but not continued: what it tried, what came of it, what it recommends.

A run decides by the command line, and has no file of trials that reports could be written to; the page says
how to make one.
"""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

from rehearsal_torch.data.finding import undecided
from rehearsal_torch.explorer.trials.trial_session import LIMITS, LISTED, add_reading, course
from rehearsal_torch.problems.written.recognised import YAML
from rehearsal_torch.reporting.page.card import of_trials
from rehearsal_torch.reporting.page.grounds import TRIALS, warnings_of_run
from rehearsal_torch.reporting.page.material import Material, finite, mapping
from rehearsal_torch.reporting.page.sentences import said_of_trials
from rehearsal_torch.user_error import UserError

USE = (
    "This is the record of a run. It is shown, not continued: a run has no file that results could be "
    "written to."
)


class RecordedTrials:
    """What a run of trials has recorded.

    Args:
        of: The content of its folder.

    Raises:
        UserError: if it has decided nothing.
    """

    page = "trials.html"

    def __init__(self, of: Material) -> None:
        self.material = of
        if not of.run.decisions:
            design = (of.run.path / "start_design.csv").is_file()
            first = ": run the experiments of start_design.csv first" if design else ""
            raise UserError(f"holds no trials yet{first}", str(of.run.path))

    def add_routes(self, app: FastAPI) -> None:
        """Adds its question to a server."""
        add_reading(app, self)

    def describe(self) -> dict[str, Any]:
        """What the page shows: question, recommendation, cautions, and how to make a file of trials."""
        _, headline, sentences = said_of_trials(self.material)
        method = self.material.run.choices.get("decision", "")
        return {
            "title": self.material.run.path.resolve().name,
            "live": False,
            "how": self._how(method),
            "use": USE,
            "fitted": f"Decisions of {method or 'the method'}.",
            "question": of_trials(self.material.card),
            "assumptions": list(TRIALS),
            "limits": list(LIMITS),
            "cautions": warnings_of_run(self.material),
            "actions": [
                {"name": name, "bounds": None, "levels": None}
                for name in mapping(self.material.card.get("actions"))
            ],
            "nodes": [],
            "recommended": {"headline": headline, "said": sentences},
        }

    def trials(self) -> dict[str, Any]:
        """The trials of the run; those that were not answered are proposals."""
        rows: list[dict[str, Any]] = []
        for decision in self.material.run.decisions:
            setting, reward = mapping(decision.get("alteration")), finite(decision.get("reward"))
            known = {name: finite(value) for name, value in setting.items()}
            answered = mapping(mapping(decision.get("answer")).get("rows"))
            nodes = {
                name: finite(values[0]) for name, values in answered.items()
                if name not in known and isinstance(values, list) and len(values) == 1
            }  # fmt: skip
            rows.append(
                {
                    "id": int(decision.get("index", len(rows))) + 1,
                    "state": _state(decision, setting, reward),
                    "settings": known,
                    "asked": None,
                    "nodes": {name: value for name, value in nodes.items() if value is not None},
                    "reward": reward,
                    "reason": "",
                }
            )
        done = [row for row in rows if row["reward"] is not None]
        return {
            "rows": rows[-LISTED:][::-1],
            "more": max(0, len(rows) - LISTED),
            "pending": [],
            "course": course([row["id"] for row in done], [row["reward"] for row in done]),
            "summary": f"{len(done)} of {len(rows)} trials of this run were answered.",
        }

    def _how(self, method: str) -> list[str]:
        """The lines that make a file of trials of the run's task, and the command that opens it."""
        data = mapping(self.material.run.config.get("dataset"))
        task, table = data.get("task"), data.get("path")
        if task is None and isinstance(table, str) and table.lower().endswith(YAML):
            # A problem file has the task, and names its experiments.
            task, table = table, None
        chosen = f', method="{method}"' if method and method != "excbo" else ""
        given = repr(task) if isinstance(task, str) else "task"
        lines = ["import rehearsal_torch as rt"]
        if given == "task":
            lines.append(
                "task = {...}  # graph, actions and reward, as a dictionary or the name of a YAML file"
            )
        lines.append(f'optimiser = rt.CausalOptimiser({given}, file="trials.json"{chosen})')
        if isinstance(table, str):
            lines.append(f"optimiser.read({table!r})  # the experiments so far")
        option = f" method={method}" if chosen else ""
        return [*lines, f"# then, in a terminal: rehearsal explore trials.json{option}"]


def _state(decision: Mapping[str, Any], setting: Mapping[str, Any], reward: float | None) -> str:
    """Whether a trial was answered, was only proposed, or what the method said in its place."""
    if not setting:
        return "refused" if undecided(decision) else "no action"
    return "proposed" if reward is None else "completed"
