"""The page of a saved model, README.md: what it is, as people and the Hugging Face Hub read it.

A folder with this page can be uploaded to the Hub as it is; nothing here sends anything, and `load` never
reads the page. It begins with plain YAML between two lines of ``---``:

    license        "unknown": the terms of the data decide, which this package does not know
    library_name   rehearsal_torch
    tags           the kind of model, the method and the format
    model-index    the held-out Brier score, where rows were held out; left out otherwise

Names of variables come from tables of users: they are shown as code, in one line, without what would end it.

Source: huggingface.co/docs/hub/model-cards (keys of the YAML); the sections after Mitchell et al. (2019).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import yaml

from rehearsal_torch.data.codings.class_actions import offered_words
from rehearsal_torch.data.codings.recorded import bound_in_words

if TYPE_CHECKING:
    from rehearsal_torch.data.rehearsal_task import RehearsalTask

LICENSE, LIBRARY = "unknown", "rehearsal_torch"
TAGS = ("causal-inference", "decision-support", "rehearsal-learning", "safetensors", "tabular")
# Names that a list shows, and characters of a name.
NAMED, LONGEST = 20, 80
UNLICENSED = (
    "The package does not know the terms of the data that the weights were fitted to: `license: unknown` at "
    "the top of this file stands for a choice that is yours, before you publish it."
)


def hub_page(card: Mapping[str, Any], task: "RehearsalTask", labels: Mapping[str, str]) -> str:
    """The text of README.md.

    Args:
        card: The model card (`verbs.model_card`).
        task: The task that the model answers.
        labels: The labels of its weights (`surrogates.weight_labels`).
    """
    method = line(card.get("method") or "model")[:LONGEST]
    name = f"{method} for {', '.join(task.outcomes[:NAMED])}"
    parts = [
        *front(_front(card, name, method)),
        f"# A rehearsal model: {code(method)} for {codes(task.outcomes)}",
        "",
        f"Given {codes(task.variables(task.context)) or 'nothing'} of a case, it estimates how probable it "
        f"is that {codes(task.outcomes)} will lie in a desired region after setting "
        f"{codes(task.variables(task.box.names))}, and recommends values or declines. A recommendation "
        "is a claim of this model, not a prescription.",
        "",
        "```python",
        "import rehearsal_torch as rt",
        "",
        'model = rt.load("FOLDER")  # the folder of this file; runs no code from it',
        "model.card",
        "```",
        "",
        "## Limits",
        "",
        *(f"- {line(each)}" for each in card.get("limits") or ()),
        f"- {UNLICENSED}",
        "",
        "## What may be set, and what is desired",
        "",
        "| variable | may be set to |",
        "|---|---|",
        *(f"| {code(each)} | {line(ends)} |" for each, ends in _settable(task)),
        "",
        "An outcome is desired if",
        "",
        *(f"- {each}" for each in _faces(task)),
        "",
        "## Held-out rows",
        "",
        line(_held_out(card)),
        "",
        *origin(card, labels),
        "",
    ]
    return "\n".join(parts)


def front(plain: Mapping[str, Any]) -> list[str]:
    """The lines of the YAML at the top of a page, between its marks.

    Args:
        plain: Its content beside license and library.
    """
    content = {"license": LICENSE, "library_name": LIBRARY, **plain}
    return ["---", yaml.safe_dump(content, sort_keys=False, allow_unicode=True).rstrip(), "---", ""]


def origin(card: Mapping[str, Any], labels: Mapping[str, str]) -> list[str]:
    """The lines of the section on where a model comes from.

    Args:
        card: The model card.
        labels: The labels of its weights.
    """
    data = card.get("data_fingerprint")
    known = [
        *sorted(labels.items()),
        *([] if data is None or "data_fingerprint" in labels else [("data", data)]),
    ]
    return [
        "## Where it comes from",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {code(str(value))} |" for name, value in known),
    ]


def _front(card: Mapping[str, Any], name: str, method: str) -> dict[str, Any]:
    """What the YAML at the top of the page says of this model."""
    found: dict[str, Any] = {"tags": [*TAGS, f"method-{method}"]}
    held_out = card.get("held_out")
    brier = held_out.get("brier") if isinstance(held_out, Mapping) else None
    if brier is None:
        return found
    rows = brier["rows"]
    metrics = [
        {"type": "brier_score", "name": f"Brier score, {rows} held-out rows", "value": brier["own"]},
        {
            "type": "brier_score",
            "name": f"Brier score of a constant, {rows} held-out rows",
            "value": brier["constant"],
        },
    ]
    result = {
        "task": {"type": "tabular-classification", "name": "Probability of a desired outcome"},
        "dataset": {"type": "own-table", "name": f"A table with SHA-256 {card.get('data_fingerprint')}"},
        "metrics": metrics,
    }
    return {**found, "model-index": [{"name": name, "results": [result]}]}


def _held_out(card: Mapping[str, Any]) -> str:
    found = card.get("held_out")
    return str(found.get("in words", "")) if isinstance(found, Mapping) else str(found or "not measured")


def _settable(task: "RehearsalTask") -> list[tuple[str, str]]:
    """What may be set, and to what; the first names, and how many more there are."""
    names = task.variables(task.box.names)
    found = [(name, _values(task, name)) for name in names[:NAMED]]
    more = len(names) - NAMED
    return [*found, *([("...", f"and {more} more")] if more > 0 else [])]


def _values(task: "RehearsalTask", name: str) -> str:
    """The values that a variable may take, as texts where it has some."""
    coding, levels = task.coded.get(name), task.box.levels.get(name)
    if coding is not None and coding.of_classes:
        return offered_words(coding, task.box.levels)
    if levels is None:
        return " to ".join(map(_number, task.box.bounds()[name]))
    texts = [_number(one) if coding is None else coding.text([one]) or _number(one) for one in levels]
    return f"one of {', '.join(texts)}"


def _faces(task: "RehearsalTask") -> list[str]:
    """The faces of the desired region M y <= d, each a line; the first ones, and how many more there are."""
    found = []
    region = task.region
    for normal, offset in list(zip(region.normals.tolist(), region.offsets.tolist(), strict=True))[:NAMED]:
        terms = [(name, one) for name, one in zip(region.names, normal, strict=True) if one]
        if len(terms) == 1:
            ((name, one),) = terms
            coding, end = task.coded.get(name), offset / one
            if coding is not None:
                found.append(code(bound_in_words(coding, end, one > 0)))
            else:
                found.append(f"{code(name)} is at {'most' if one > 0 else 'least'} {_number(end)}")
        else:
            added = " + ".join(f"{_number(one)} {code(name)}" for name, one in terms[:NAMED])
            found.append(f"{added}{' + ...' if len(terms) > NAMED else ''} is at most {_number(offset)}")
    more = len(region.offsets) - NAMED
    return [*found, *([f"and {more} more hold"] if more > 0 else [])]


def _number(value: float) -> str:
    """A number with all its digits, and none that are noise."""
    return f"{value:.15g}"


def codes(names: Sequence[str]) -> str:
    """Names as code, in a list; the first ones, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(code(name) for name in names[:NAMED]) + more


def code(text: str) -> str:
    """A text as code: one line, without backticks, which would end it, and bars, which would end a cell."""
    return f"`{line(text).replace('`', chr(39)).replace('|', '/')[:LONGEST] or ' '}`"


def line(text: object) -> str:
    """A text in one line."""
    return " ".join(str(text).split())
