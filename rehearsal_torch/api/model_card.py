"""The card of a fitted method: what it was fitted to, what it is for, and its limits, in words.

It names the data by fingerprint and ranges, and the task; it says how well the method predicts rows that it
has not seen, where that was measured.

Source: after Mitchell et al. (2019), Model cards for model reporting (intended use, limits, data).
"""

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.files.installation import commit
from rehearsal_torch.method_choice.rule import Choice
from rehearsal_torch.method_choice.words import sentences
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
from rehearsal_torch.reporting.untouched_score import UntouchedScore

PACKAGES = ("rehearsal-torch", "torch", "numpy")
UNMEASURED = (
    'not measured: no row was held out (**{"dataset.validation": 0.2} holds a fifth out when it is fitted)'
)
LIMITS = (
    "It rests on the graph as given, and on no hidden common cause beyond it; no interval covers an error in "
    "the graph.",
    "Contexts and actions outside the ranges of the data carry a warning: what it says of them is an "
    "extrapolation.",
    "It answers this task alone: where another graph, context, outcome or set of actions would need another "
    "fit, it is refused.",
    "It says nothing of units, instruments or populations other than those of the data, nor of changes "
    "since.",
    "Its weights hold contexts, covariates and actions of rows that it was fitted to: share it as you would "
    "share them.",
)


def intended_use(task: RehearsalTask) -> str:
    """What a method fitted for a task is for, in a sentence."""
    given = f"given {_several(task.variables(task.context))}" if task.context else "without a context"
    lie = "lie" if len(task.outcomes) > 1 else "lies"
    return (
        f"Decision support for cases like the rows of the data: {given}, it estimates how probable it is "
        f"that {_several(task.outcomes)} {lie} in the desired region after setting "
        f"{_several(task.variables(task.box.names))}, and recommends values or declines. A "
        "recommendation is a claim of this model, not a prescription."
    )


def model_card(
    problem: RehearsalTable,
    method: str,
    seed: int,
    settings: Mapping[str, object],
    score: UntouchedScore | None = None,
    choice: Choice | None = None,
) -> dict[str, Any]:
    """The card, as plain data.

    Args:
        score: The held-out score of untouched rows; None if it was not measured.
        choice: The choice of the method from the rows; None if it was asked for by name.
    """
    data = {name: value for name, value in problem.card().items() if name != "cases"}
    return {
        "intended_use": intended_use(problem.task),
        "limits": list(LIMITS),
        "held_out": UNMEASURED if score is None else {"brier": _brier(score), "in words": score.line()},
        "method": method,
        **({} if choice is None else {"method_choice": sentences(choice)}),
        "seed": seed,
        "commit": commit(),
        "settings": {name: _plain(value) for name, value in settings.items()},
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "data_fingerprint": problem.observations().fingerprint(),
        "data": data,
    }


def _brier(score: UntouchedScore) -> dict[str, float]:
    ends = {"own": score.own, "constant": score.constant}
    return {"rows": score.rows, **{name: round(each.mean, 6) for name, each in ends.items()}}


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _several(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
