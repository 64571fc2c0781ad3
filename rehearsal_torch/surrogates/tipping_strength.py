"""Sensitivity to hidden confounding: the strength that would overturn a recommendation (tipping strength).

For a decision that sets a with an estimated probability of a desired outcome, an estimate b for no action,
and l the lower end of its interval,

    Gamma* = max(l / b, (1 - b) / (1 - l))            (1 where l <= b)

is the strength that a hidden common cause of action and outcome needs (`estimators.marginal_sensitivity`). If
the estimate has no interval, l is the certificate's lower bound of the truth, or else the estimate itself. b
is used as estimated: its own error is not part of l.

If the present values of the altered variables are known, the action is compared with these. A hidden cause
biases both, and Gamma* is where the lower bound of the one meets the upper bound of the other
(`tipping_between`); from the lower end of the interval of their difference, if the method has one.

With costs, an action is overturned once its gain is not worth its cost: b is then b plus the cost in units of
the worth of a desired outcome.

The yardstick is the strength of the strongest covariate that the graph adjusts for (`graphs.separation`),
computed once for each set of altered variables. If a hidden cause of that strength suffices, a decision *do*
becomes *may*, with a finding of the kind ``hidden_cause``.

Decisions stay unchanged that set nothing, have no estimate of a probability, or rest on a model that does not
fit the rows; likewise effects by the front door, which a hidden cause of action and outcome does not change;
and all if the observations contain altered cells, whose actions were chosen by decisions with known inputs.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import torch

from rehearsal_torch.data.decision import CHANCE, Decision
from rehearsal_torch.data.estimate import copied
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.sensitivity import Against, Basis, Sensitivity
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_compatibility import Question
from rehearsal_torch.estimators.marginal_sensitivity import (
    Assignment,
    strengths,
    tipping_between,
    tipping_strength,
)
from rehearsal_torch.graphs.separation import Adjustment, adjustment

MOST_ROWS = 20_000  # more rows add nothing to a 95 % range
NO_COVARIATE = "no recorded variable is adjusted for, so there is none to compare it with"
UNRECORDED = "how strong the recorded variables are was not kept for these variables when it was fitted"
FEW_ROWS = "there are too few observations to say how strong the recorded variables are"


class Overturning:
    """The sensitivity of decisions for one task; `observations` returns the training rows."""

    def __init__(self, task: RehearsalTask, observations: Callable[[], Table]) -> None:
        self.task, self.observations = task, observations
        self._known: dict[tuple[str, ...], Mapping[str, float] | None] = {}
        self._adjustments: dict[tuple[str, ...], Adjustment] = {}

    @property
    def applies(self) -> bool:
        """Whether sensitivities are defined: not if cells of the observations were altered."""
        return self.rows is not None

    @cached_property
    def rows(self) -> Table | None:
        """At most `MOST_ROWS` observations, evenly spaced; None if some cells were altered."""
        table = self.observations()
        if bool(table.altered.any()):
            return None
        rows = torch.linspace(0, len(table) - 1, min(len(table), MOST_ROWS), dtype=torch.float64)
        values = table.values[rows.round().long()]
        return Table.observed(table.names, values.detach().to("cpu", torch.float64))

    def covariates(self, names: tuple[str, ...]) -> Mapping[str, float] | None:
        """Covariate to strength when `names` are altered, strongest first; None if rows are too few."""
        if names not in self._known:
            self._known[names] = self._strengths(names)
        return self._known[names]

    def known_for(self, names: tuple[str, ...]) -> bool:  # noqa: ARG002
        """Whether `covariates` is known for these variables."""
        return True

    def why_none(self, names: tuple[str, ...]) -> str:
        """The reason for `covariates` being None."""
        return FEW_ROWS if self.known_for(names) else UNRECORDED

    def with_sensitivity(
        self, decisions: Sequence[Decision], certificates: Sequence[Mapping[str, float | str] | None]
    ) -> list[Decision]:
        """The decisions with their sensitivities; of a certificate ``truth_lower`` alone is a valid bound."""
        answered, indices, bases = list(decisions), list[int](), list[Basis]()
        bounds = list[tuple[float, float, float]]()
        for index, (decision, certificate) in enumerate(zip(decisions, certificates, strict=True)):
            estimate, before = decision.estimate, decision.before
            if decision.alteration is None or estimate is None or before is None:
                continue
            if not estimate.of == before.of == CHANCE or not self.applies:
                continue
            # The sensitivity of a claim means nothing if the claim is wrong without a hidden cause.
            if any(finding.kind == "bad_fit" for finding in decision.findings):
                continue
            if self._adjustment_sets(decision.alteration.names).front_door:
                continue
            lower, basis = self._lower(decision, certificate)
            if decision.gain is not None and decision.gain.lower is not None:
                lower = before.point + decision.gain.lower
            price = (decision.cost or 0.0) / decision.worth if decision.worth else 0.0
            indices.append(index)
            bases.append(basis)
            bounds.append((lower, before.point, price))
        lowest, baseline, prices = torch.tensor(bounds, dtype=torch.float64).reshape(-1, 3).unbind(-1)
        lowest, worthwhile = lowest.clamp(0.0, 1.0), (baseline + prices).clamp(0.0, 1.0)
        tipping = tipping_strength(lowest, worthwhile)
        if any(decisions[index].unchanged is not None for index in indices):
            has_present = torch.tensor([decisions[index].unchanged is not None for index in indices])
            at_present = tipping_between(lowest, baseline.clamp(0.0, 1.0), prices)
            tipping = torch.where(has_present, at_present, tipping)
        yardsticks = dict[tuple[tuple[str, ...], Basis, bool], Sensitivity]()
        for index, basis, strength in zip(indices, bases, tipping.tolist(), strict=True):
            decision = answered[index]
            assert decision.alteration is not None
            key = (decision.alteration.names, basis, decision.unchanged is not None)
            if key not in yardsticks:
                yardsticks[key] = self._yardstick(*key)
            sensitivity: Sensitivity = copied(yardsticks[key], tipping=_rounded(strength))
            answered[index] = _with_warning(decision.changed(sensitivity=sensitivity), sensitivity)
        return answered

    def _yardstick(self, names: tuple[str, ...], basis: Basis, at_present: bool) -> Sensitivity:
        """The sensitivity, with tipping strength 1, and its yardstick when `names` are set."""
        against: Against = "the present values" if at_present else "no action"
        covariates = self.covariates(names)
        if covariates:
            covariate, strength = next(iter(covariates.items()))
            return Sensitivity(1.0, basis, _rounded(strength), covariate, against=against)
        note = self.why_none(names) if covariates is None else NO_COVARIATE
        return Sensitivity(1.0, basis, note=note, against=against)

    def _lower(
        self, decision: Decision, certificate: Mapping[str, float | str] | None
    ) -> tuple[float, Basis]:
        assert decision.estimate is not None
        if decision.estimate.lower is not None:
            return decision.estimate.lower, "interval"
        bound = None if certificate is None else certificate.get("truth_lower")
        if isinstance(bound, float):
            return bound, "certificate"
        return decision.estimate.point, "point"

    def _adjustment_sets(self, names: tuple[str, ...]) -> Adjustment:
        if names not in self._adjustments:
            task = self.task
            self._adjustments[names] = adjustment(task.graph, task.context, names, task.outcomes)
        return self._adjustments[names]

    def _strengths(self, names: tuple[str, ...]) -> Mapping[str, float] | None:
        if self.rows is None:
            return None
        sets = self._adjustment_sets(names)
        before = (*self.task.context, *sets.before)
        later_actions = tuple(name for name in names if name not in sets.first)
        blocks = [(sets.first, before)] if sets.first else []
        if later_actions:
            blocks.append((later_actions, (*before, *sets.first, *sets.between) if sets.first else before))
        columns = self.rows.columns
        assignments = [
            Assignment(columns(actions), columns(covariates), covariates) for actions, covariates in blocks
        ]
        if not all(assignment.estimable for assignment in assignments):
            return None
        # An earlier action is given when a later one is chosen, but is not a covariate of the alteration.
        return {name: strength for name, strength in strengths(assignments).items() if name not in names}


class RecordedStrengths(Overturning):
    """Sensitivities from strengths that were recorded for sets of variables, None where rows were few."""

    def __init__(
        self, task: RehearsalTask, known: Mapping[tuple[str, ...], Mapping[str, float] | None]
    ) -> None:
        super().__init__(task, lambda: Table.observed((), torch.zeros(0, 0, dtype=torch.float64)))
        self._known = dict(known)

    @property
    def applies(self) -> bool:
        """True: strengths are recorded only if sensitivities are defined."""
        return True

    def covariates(self, names: tuple[str, ...]) -> Mapping[str, float] | None:
        """See `Overturning.covariates`; None for variables without a record."""
        return self._known.get(names)

    def known_for(self, names: tuple[str, ...]) -> bool:
        """See `Overturning.known_for`."""
        return names in self._known


def for_question(question: Question | None, observations: Callable[[], Table]) -> Overturning | None:
    """The sensitivity of decisions that answer a question; None if it is not a rehearsal task."""
    return Overturning(question, observations) if isinstance(question, RehearsalTask) else None


def _with_warning(decision: Decision, sensitivity: Sensitivity) -> Decision:
    """The decision, no longer told from zero if a hidden cause of the yardstick's strength overturns it."""
    if (
        decision.status != "do"
        or sensitivity.yardstick is None
        or sensitivity.tipping > sensitivity.yardstick
    ):
        return decision
    strengths = {"tipping": sensitivity.tipping, "yardstick": sensitivity.yardstick}
    general = f"a hidden common cause as strong as {sensitivity.covariate} would overturn it"
    tipping, covariate = f"a strength of {sensitivity.tipping:.3g} is enough", sensitivity.covariate
    text = f"{general} ({tipping}, {covariate} has {sensitivity.yardstick:.3g})"
    return decision.told([Finding("hidden_cause", text, strengths, general)])


def _rounded(strength: float) -> float:
    """Six significant digits, so that the last bits of a sum do not show."""
    return float(f"{strength:.6g}")
