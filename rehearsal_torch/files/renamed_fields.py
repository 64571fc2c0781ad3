"""Old names of fields, table cells and tensors in files, and their current ones.

Files that were written before are read through these tables and stay as they are.

Source: ours.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

RENAMED_FIELDS = {
    "score.brier_untouched": "score.brier_no_action",
    "score.desired_untouched": "score.desired_no_action",
    "score.foretold_untouched": "score.predicted_no_action",
    "trace.believed": "trace.predicted_reward",
    "trace.pushes": "trace.perturbations",
}
"""Renamed fields of a line of decisions.jsonl, for `current_fields`."""

RENAMED_CARD = {
    "least_losses": "min_losses",
    "data.laws": "data.distributions",
    "data.noise.*.deviations": "data.noise.*.stds",
    "data.horizons.least": "data.horizons.min",
    "data.horizons.largest": "data.horizons.max",
    "data.features.*.least": "data.features.*.min",
    "data.features.*.largest": "data.features.*.max",
}
"""Renamed fields of the card of a checkpoint, for `current_fields`."""

RENAMED_STATE = {
    "estimators.conjugate_regression.ConjugateRegression": {
        "middle": "posterior_mean",
        "shares": "mixture_weights",
    },
    "estimators.drifting_regression.DriftingRegression": {
        "first": "initial_rows",
        "pace": "rates",
        "reach": "radii",
        "seen": "processed",
        "trace": "fingerprint",
        "votes": "weights",
    },
    "estimators.evidence_ridge.EvidenceRidge": {"middle": "posterior_mean", "trace": "processed_rows"},
    "estimators.mixture_regression.MixtureRegression": {"shift": "noise_mean", "stretch": "noise_std"},
    "surrogates.kernel.metric.MetricRidge": {"shown": "projected"},
    "surrogates.kernel.nested_ridge.NestedRidge": {"untouched": "no_action"},
    "surrogates.network.exogenous_model.ExogenousModel": {"tried": "visited_actions"},
}
"""Renamed tensors and parts in the state of a class, by its path in the current modules."""

RENAMED_CELLS = {
    ("estimator", "observed course"): "observed trajectory",
    ("quantity", "deviation"): "std",
}
"""Renamed texts in tables: (column, text) to text."""


def current_fields(content: Mapping[str, Any], table: Mapping[str, str]) -> dict[str, Any]:
    """Plain data with the current names of renamed fields, in the same order; a field that the data holds
    under both names keeps both.

    Args:
        content: As read from a file.
        table: Old to new names, as dotted paths that differ in their last part; `*` stands for any field.
    """
    tails: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    for old, new in table.items():
        head, dot, rest = old.partition(".")
        if dot:
            tails.setdefault(head, {})[rest] = new.partition(".")[2]
        else:
            names[old] = new
    found: dict[str, Any] = {}
    for key, value in content.items():
        new = names.get(key, key)
        inner = {**tails.get("*", {}), **tails.get(key, {})}
        name = key if new in content else new
        found[name] = current_fields(value, inner) if inner and isinstance(value, Mapping) else value
    return found


def renamed_state(kind: type) -> dict[str, str]:
    """Old to new names in the state of a class, its own and those of the classes that it inherits from."""
    found: dict[str, str] = {}
    for each in kind.__mro__:
        package, _, module = each.__module__.partition(".")
        if package == __name__.partition(".")[0]:
            found = RENAMED_STATE.get(f"{module}.{each.__qualname__}", {}) | found
    return found


def current_state(module: "nn.Module", state: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
    """The tensors of a state under their current names; those that the module knows stay as they are."""
    known, found = module.state_dict(), dict(state)
    for path, part in module.named_modules():
        begin = f"{path}." if path else ""
        for old, new in renamed_state(type(part)).items():
            for name in [name for name in found if name not in known]:
                current = begin + new + name.removeprefix(begin + old)
                if f"{name}.".startswith(f"{begin}{old}.") and current not in found:
                    found[current] = found.pop(name)
    return found


def current_cell(column: str, text: str) -> str:
    """The current text for a cell of a table; others unchanged."""
    return RENAMED_CELLS.get((column, text), text)
