"""Intervals of the same decisions at further nominal levels.

A method's interval has one nominal level, which also has a say in the decision: an alteration whose whole
interval lies below the estimate for no action is declined. To see how often intervals of other levels hold
the truth, the decisions are made once, at the method's own level, and appraised again at the others.

Source: Dawid (1982) (calibration at every level); Brehmer and Gneiting (2021) (interval forecasts).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rehearsal_torch.claims.cross_fitting import CrossFittedClaims
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.objectives.objective import Candidates, objective_for
from rehearsal_torch.surrogates.surrogate import Surrogate

# The entry of the trace: level, as text, to the two ends.
TRACE = "intervals"
# Further levels, in percent, and the columns of their intervals in rows.
LEVELS = (50, 80)
FURTHER = tuple(f"{end}{level}" for level in LEVELS for end in ("lower", "upper"))
# How far an estimate may be from that of the decision.
SAME = 1e-5


@dataclass(frozen=True)
class IntervalLevels:
    """Adds intervals at further levels to the trace of decisions (`TRACE`); nothing else of them changes.

    It is passed to the loop of decisions as its claims. Decisions without an alteration, or of a method
    without intervals, get none.

    Attributes:
        surrogate: The fitted surrogate of the decisions.
        objective: Builds the objective of the decisions (`objectives.objective.objective_for`).
        levels: Coverage probabilities, in (0, 1).
        claims: Replaces the claims; the intervals are those of its claims then. None keeps the method's own.
    """

    surrogate: Surrogate
    objective: Callable[..., Any]
    levels: Sequence[float]
    claims: CrossFittedClaims | None = None

    def __call__(self, cases: Sequence[RehearsalCase], decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions, with intervals in their traces."""
        if self.claims is None:
            found, claimed = self._own(cases, decisions), list(decisions)
        else:
            found, claimed = (
                self.claims.intervals(cases, decisions, self.levels),
                self.claims(cases, decisions),
            )
        return [
            replace(
                each, trace=each.trace | {TRACE: {f"{level:g}": list(ends) for level, ends in one.items()}}
            )
            if one
            else each
            for each, one in zip(claimed, found, strict=True)
        ]

    def _own(
        self, cases: Sequence[RehearsalCase], decisions: Sequence[Decision]
    ) -> list[dict[float, tuple[float, float]]]:
        """The method's own intervals at the levels, for each decision."""
        found: list[dict[float, tuple[float, float]]] = [{} for _ in decisions]
        objective = objective_for(self.objective, self.surrogate, cases)
        if not isinstance(objective, Candidates):
            return found
        for level in self.levels:
            sets = [each for each in (one.at_level(level) for one in objective.whole) if each is not None]
            for index, appraisal in enumerate(Candidates(cases, sets).appraisals(decisions)):
                estimate, own = None if appraisal is None else appraisal.estimate, decisions[index].estimate
                if estimate is None or own is None or estimate.lower is None or estimate.upper is None:
                    continue
                if abs(estimate.point - own.point) > SAME:
                    raise ValueError(
                        f"{cases[index].identity}: expected the estimate of the decision, {own.point:.6g}, "
                        f"at level {level:g}; got {estimate.point:.6g}"
                    )
                found[index][level] = (estimate.lower, estimate.upper)
        return found


def further_intervals(decided: Mapping[str, Any]) -> dict[str, float]:
    """The intervals at further levels of a line of ``decisions.jsonl``, `FURTHER` to number.

    NaN stands for a level without an interval, and for a decision without an alteration.
    """
    known = (decided.get("trace") or {}).get(TRACE, {}) if decided.get("alteration") is not None else {}
    ends = [known.get(f"{level / 100:g}", (None, None)) for level in LEVELS]
    return dict(zip(FURTHER, (number(end) for pair in ends for end in pair), strict=True))
