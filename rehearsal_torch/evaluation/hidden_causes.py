"""What would overturn the recommended action sequences of a run, in one sentence.

A recommendation stands against hidden common causes up to its tipping strength (`data.hidden_cause`). Over a
run, the median, the smallest and the largest one are stated, and how many recommendations a hidden cause as
strong as the strongest observed covariate would overturn.
"""

from collections.abc import Mapping, Sequence
from statistics import median_low

from rehearsal_torch.data.hidden_cause import HiddenCause, share
from rehearsal_torch.evaluation.recorded_run import Decided


def hidden_cause_of(decided: Decided) -> HiddenCause | None:
    """The recorded strengths of a decision; None if there are none."""
    found = decided.get("hidden_cause")
    return HiddenCause.of(found) if isinstance(found, Mapping) else None


def overall(decisions: Sequence[Decided], actions: str = "doses") -> str:
    """One sentence on what would overturn the recommendations; empty if none has recorded strengths."""
    found = [each for each in map(hidden_cause_of, decisions) if each is not None]
    if not found:
        return ""
    if len(found) == 1:
        text = found[0].sentence(actions)
        return f"{text[0].upper()}{text[1:]}."
    tipping = [each.tipping for each in found]
    middle = median_low(tipping)
    spread = f"of {len(found)}: {_named(min(tipping))} to {_named(max(tipping))}"
    if middle == 1:
        first = (
            f"No hidden common cause of {actions} and states can overturn most of the recommendations "
            f"({spread})"
        )
    else:
        first = (
            f"A hidden common cause that explains {share(middle)} of what the observed covariates "
            f"leave open, of the {actions} and of every next state, can overturn the median recommendation "
            f"({spread})"
        )
    known = [(each.yardstick, each) for each in found if each.yardstick is not None]
    if not known:
        return f"{first}."
    strength, strongest = max(known, key=lambda pair: pair[0])
    overturned = sum(each.tipping <= strength for each in found)
    return (
        f"{first}; one as strong as the strongest observed covariate, {strongest.covariate} "
        f"({share(strength)}), can overturn {overturned} of {len(found)}."
    )


def _named(strength: float) -> str:
    return "none" if strength == 1 else share(strength)
