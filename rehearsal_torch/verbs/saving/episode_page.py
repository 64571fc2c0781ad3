"""The page of a saved model of episodes, README.md, as people and the Hugging Face Hub read it.

It is arranged as that of a model for cases (`verbs.saving.hub_page`), and nothing here sends anything either.

Source: huggingface.co/docs/hub/model-cards (keys of the YAML); the sections after Mitchell et al. (2019).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rehearsal_torch.verbs.saving.hub_page import NAMED, UNLICENSED, code, codes, front, line, origin

if TYPE_CHECKING:
    from rehearsal_torch.problems.episodes.roles import Action, EpisodeRoles

TAGS = ("causal-inference", "decision-support", "counterfactual", "safetensors", "time-series")
INTENDED = (
    "Looking back at units like those of the data: it estimates which few other actions would have led to a "
    "larger reward. A recommendation is a claim of this model, not a prescription."
)
LIMITS = (
    "It rests on the assumption that nothing hidden influences both actions and states.",
    "States and actions outside the ranges of the data carry a warning: what it says of them is an "
    "extrapolation.",
    "It says nothing of units, instruments or populations other than those of the data, nor of changes "
    "since.",
    "What an action brings after the end of an episode does not count.",
)


def episode_page(card: Mapping[str, Any], roles: "EpisodeRoles", labels: Mapping[str, str]) -> str:
    """The text of README.md.

    Args:
        card: The model card.
        roles: What the columns of its episodes mean.
        labels: The labels of its weights (`surrogates.weight_labels`).
    """
    states = [each.name for each in roles.varying]
    given = [each.name for each in (*roles.static, *roles.contextual)]
    limits = card.get("limits")
    parts = [
        *front({"tags": list(TAGS)}),
        f"# A model of episodes: {codes(states)} under {codes([each.name for each in roles.actions])}",
        "",
        line(card.get("intended_use") or INTENDED),
        "",
        "```python",
        "import rehearsal_torch as rt",
        "",
        'model = rt.load("FOLDER")  # the folder of this file; runs no code from it',
        'units = model.read("table.csv")  # with the columns below',
        "model.look_back(units[0])",
        "```",
        "",
        "## Limits",
        "",
        *(f"- {line(each)}" for each in (limits if isinstance(limits, list) else LIMITS)),
        f"- {UNLICENSED}",
        "",
        "## Columns",
        "",
        "| column | what it is |",
        "|---|---|",
        f"| {code(roles.unit)} | whose row it is: {line(roles.words.unit).replace('|', '/')} |",
        f"| {code(roles.time)} | when |",
        *(f"| {code(name)} | a state, predicted |" for name in states[:NAMED]),
        *(f"| {code(name)} | given |" for name in given[:NAMED]),
        *(f"| {code(each.name)} | an action: {_offered(each)} |" for each in roles.actions[:NAMED]),
        "",
        *origin(card, labels),
        "",
    ]
    return "\n".join(parts)


def _offered(action: "Action") -> str:
    if action.levels:
        return f"one of {codes(action.levels)}"
    return f"an amount{f' in {code(action.unit)}' if action.unit else ''}"
