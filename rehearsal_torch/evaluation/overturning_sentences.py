"""Sentences on what would overturn the recommendations of a run: hidden causes and other graphs.

A recommendation stands against hidden common causes up to its tipping strength (`data.sensitivity`). Over the
N recommendations of a run, the share that stands at strength Gamma is

    stands(Gamma) = #{i: tipping_i > Gamma} / N,

and the median tipping strength is where it falls to one half. The strongest covariate of a run is the
strongest of its decisions, which may alter different variables.

Methods that weigh several candidate graphs record under what share of the posterior a recommendation is
better than no action, and its gain under the worst graph (`surrogates.structural.graph_posterior`). Over a
run, the mean and the smallest share are stated, and the smallest gain.

An action sequence of an episode stands against hidden common causes up to a share of what the observed
covariates leave open (`data.sensitivity`).
"""

import math
from collections.abc import Mapping, Sequence
from statistics import mean, median_low

from rehearsal_torch.data.estimate import CHANCE, change
from rehearsal_torch.data.sensitivity import HiddenCause, Sensitivity, factor, share
from rehearsal_torch.evaluation.run_record import Decided, claim, effort
from rehearsal_torch.files.bounded_yaml import PlainFileError
from rehearsal_torch.files.redaction import beginning


def sensitivity_of(decided: Decided) -> Sensitivity | None:
    """The recorded sensitivity of a decision; None without one, PlainFileError if the record was edited."""
    record = decided.get("sensitivity")
    if not isinstance(record, Mapping):
        return None
    try:
        return Sensitivity.of(record)
    except (LookupError, TypeError, ValueError) as error:
        raise PlainFileError(
            f"decisions.jsonl: sensitivity: expected strengths of at least 1 with their basis; got "
            f"{beginning(str(dict(record)), 200)}: restore the file from a copy"
        ) from error


def yardstick(sensitivities: Sequence[Sensitivity]) -> tuple[str, float] | None:
    """The strongest observed covariate and its strength; None if no decision has one."""
    pairs = [(sensitivity.covariate, sensitivity.yardstick) for sensitivity in sensitivities]
    measured = [(covariate, strength) for covariate, strength in pairs if strength is not None]
    return max(measured, key=lambda pair: pair[1], default=None)


def typical(sensitivities: Sequence[Sensitivity]) -> int:
    """The place of the recommendation with the median tipping strength, the lower of two."""
    strengths = [sensitivity.tipping for sensitivity in sensitivities]
    return strengths.index(median_low(strengths))


def stands(sensitivities: Sequence[Sensitivity], strength: float) -> float:
    """The share of the recommendations that stand against a hidden cause of some strength."""
    return sum(sensitivity.tipping > strength for sensitivity in sensitivities) / len(sensitivities)


def graphs_overall(decisions: Sequence[Decided]) -> str:
    """One sentence on the graphs under which recommendations are better than no action; maybe empty."""
    acted = [decision for decision in decisions if decision.get("alteration") is not None]
    compared = [effort(decision, "graphs") for decision in acted]
    valid = [graphs for graphs in compared if isinstance(graphs, Mapping) and "stand" in graphs]
    if not valid:
        return ""
    shares = [float(graphs["stand"]) for graphs in valid]
    worst = min(valid, key=lambda graphs: float(graphs["worst"]))
    gain = change(float(worst["worst"]), str(claim(acted[0], "of") or CHANCE))
    smallest = f" (least {min(shares):.1%})" if len(valid) > 1 else ""
    judged = min(float(graphs["judged"]) for graphs in valid)
    if "worst_named" in worst:
        missing = f"; {1 - judged:.1%} of them have no estimates" if judged < 1 else ""
        return (
            f"Of {worst['graphs']} graphs that may be true, better than no action under {mean(shares):.1%}"
            f"{smallest}{missing}; under the worst graph ({worst['worst_named']}), by {gain}."
        )
    unjudged = (
        f"; graphs with {1 - judged:.1%} of it have too few scenarios for a comparison" if judged < 1 else ""
    )
    return (
        f"Over {valid[0]['graphs']} candidate graphs, better than no action under {mean(shares):.1%} of the "
        f"posterior{smallest}{unjudged}; under the worst graph, number {worst['worst_graph']} with "
        f"{float(worst['worst_weight']):.1%} of it, by {gain}."
    )


def overall(decisions: Sequence[Decided]) -> str:
    """One sentence on what would overturn the recommendations; empty if none has a sensitivity."""
    sensitivities = [sensitivity for sensitivity in map(sensitivity_of, decisions) if sensitivity is not None]
    if not sensitivities:
        return ""
    if len(sensitivities) == 1:
        return _capital(sensitivities[0].sentence())
    strengths = [sensitivity.tipping for sensitivity in sensitivities]
    median = median_low(strengths)
    spread = f"{factor(min(strengths))} to {factor(max(strengths))}"
    if math.isinf(median):
        first = f"No hidden common cause can overturn most of the recommendations (strengths {spread})"
    elif median == 1:
        first = (
            f"Even without a hidden common cause, {strengths.count(1)} of {len(strengths)} recommendations "
            "may be no better than no action, which their interval contains"
        )
    else:
        first = (
            f"A hidden common cause would have to make the action {factor(median)} times as likely, or as "
            f"unlikely, to overturn the median recommendation (of {len(strengths)}: {spread})"
        )
    if any(sensitivity.basis == "point" for sensitivity in sensitivities):
        first += ", by the estimates alone where the method has no interval"
    strongest = yardstick(sensitivities)
    if strongest is None:
        notes = [sensitivity.note for sensitivity in sensitivities if sensitivity.note]
        return f"{first}; {notes[0]}." if notes else f"{first}."
    name, strength = strongest
    if math.isinf(strength):
        effect = "determines the action"
    else:
        effect = f"makes the action {factor(strength)} times as likely, or as unlikely"
    return f"{first}; the strongest recorded variable, {name}, {effect}."


def hidden_cause_of(decided: Decided) -> HiddenCause | None:
    """The recorded strengths of a decision; None if there are none."""
    record = decided.get("hidden_cause")
    return HiddenCause.of(record) if isinstance(record, Mapping) else None


def sequences_overall(decisions: Sequence[Decided], actions: str = "doses") -> str:
    """One sentence on what would overturn the recommended sequences; empty without recorded strengths."""
    causes = [cause for cause in map(hidden_cause_of, decisions) if cause is not None]
    if not causes:
        return ""
    if len(causes) == 1:
        return _capital(causes[0].sentence(actions))
    tipping = [cause.tipping for cause in causes]
    median = median_low(tipping)
    if median == 1:
        first = f"No hidden common cause of {actions} and states can overturn most of the recommendations"
    else:
        first = (
            f"A hidden common cause that explains {share(median)} of what the recorded variables "
            f"leave open, of the {actions} and of every next state, can overturn the median recommendation"
        )
    first += f" (of {len(causes)}: {_strength(min(tipping))} to {_strength(max(tipping))})"
    measured = [(cause.yardstick, cause) for cause in causes if cause.yardstick is not None]
    if not measured:
        return f"{first}."
    strength, strongest = max(measured, key=lambda pair: pair[0])
    overturned = sum(cause.tipping <= strength for cause in causes)
    return (
        f"{first}; one as strong as the strongest recorded variable, {strongest.covariate} "
        f"({share(strength)}), can overturn {overturned} of {len(causes)}."
    )


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _strength(strength: float) -> str:
    return "none" if strength == 1 else share(strength)
