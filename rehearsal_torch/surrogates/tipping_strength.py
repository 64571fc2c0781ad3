"""What would overturn each recommendation: its tipping strength, and the strongest observed covariate.

For a decision that sets a with an estimated probability of a desired outcome, an estimate b for no action,
and l the lower end of its interval,

    Gamma* = max(l / b, (1 - b) / (1 - l))            (1 where l <= b)

is the strength that a hidden common cause of action and outcome would need (`estimators.marginal_sensitivity`
). Where the estimate has no interval, l is the lower bound of the truth in the certificate, and without one
the estimate itself. b is used as estimated: its own error is not part of l.

Where the present values of what is set are known, the action is compared with these. A hidden cause biases
both, and Gamma* is where the lower bound of the one meets the upper bound of the other (`tipping_between`);
from the lower end of the interval of their difference, if the method has one.

Where costs count, an action overturns already where its gain is not worth its cost: b is then b plus the
cost in units of the worth of a desired outcome.

Beside it stands the strength of the strongest covariate (`estimators.marginal_sensitivity`) among those that
the graph says to adjust for (`graphs.separation`), computed once for each set of altered variables. Where a
hidden cause that strong is enough, a decision that would be *do* carries a finding of the kind
``hidden_cause``, and is *may*.

Nothing is added to decisions that set nothing, have no estimate of such a probability, or rest on a model
that does not fit the rows; nor where the front door tells the effect, which a hidden cause of action and
outcome does not change; nor where the
observations contain altered cells: then the actions were chosen by decisions, of which it is known on what
they depended.
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

# More rows add nothing to a 95 % range.
MOST_ROWS = 20_000
NO_COVARIATE = "no observed covariate is adjusted for, so there is none to compare it with"
UNRECORDED = "how strong the observed covariates are was not recorded for these variables when it was fitted"
FEW_ROWS = "there are too few observations to say how strong the observed covariates are"


class Overturning:
    """The sensitivity of decisions for one task, given what returns the rows of the surrogate's fit."""

    def __init__(self, task: RehearsalTask, observations: Callable[[], Table]) -> None:
        self.task, self.observations = task, observations
        self._known: dict[tuple[str, ...], Mapping[str, float] | None] = {}
        self._adjustments: dict[tuple[str, ...], Adjustment] = {}

    @property
    def applies(self) -> bool:
        """Whether something can be said: not where cells of the observations were altered."""
        return self.rows is not None

    @cached_property
    def rows(self) -> Table | None:
        """The observations, at most `MOST_ROWS` of them, evenly spaced; None if some cells were altered."""
        table = self.observations()
        if bool(table.altered.any()):
            return None
        places = torch.linspace(0, len(table) - 1, min(len(table), MOST_ROWS), dtype=torch.float64)
        kept = table.values[places.round().long()]
        return Table.observed(table.names, kept.detach().to("cpu", torch.float64))

    def covariates(self, names: tuple[str, ...]) -> Mapping[str, float] | None:
        """Covariate to strength when `names` are altered, strongest first; None if rows are too few."""
        if names not in self._known:
            self._known[names] = self._strengths(names)
        return self._known[names]

    def known_for(self, names: tuple[str, ...]) -> bool:  # noqa: ARG002
        """Whether `covariates` rests on rows: not where nothing was recorded of these variables."""
        return True

    def why_none(self, names: tuple[str, ...]) -> str:
        """Why `covariates` has nothing for altered variables."""
        return FEW_ROWS if self.known_for(names) else UNRECORDED

    def with_sensitivity(
        self, decisions: Sequence[Decision], certificates: Sequence[Mapping[str, float | str] | None]
    ) -> list[Decision]:
        """The decisions with their sensitivities where these apply. ``truth_lower`` of a certificate is used
        where the estimate has no interval; a bound of the posterior mean says nothing about the truth.
        """
        answered, asked, bases = list(decisions), list[int](), list[Basis]()
        ends, by_front_door = list[tuple[float, float, float]](), dict[tuple[str, ...], bool]()
        for place, (decision, certificate) in enumerate(zip(decisions, certificates, strict=True)):
            estimate, before = decision.estimate, decision.before
            if decision.alteration is None or estimate is None or before is None:
                continue
            if not estimate.of == before.of == CHANCE or not self.applies:
                continue
            # How far a hidden cause could move a claim says nothing where the claim is wrong without one.
            if any(each.kind == "bad_fit" for each in decision.findings):
                continue
            names = decision.alteration.names
            if names not in by_front_door:
                by_front_door[names] = self._sets(names).front_door
            if by_front_door[names]:
                continue
            lower, basis = self._lower(decision, certificate)
            if decision.gain is not None and decision.gain.lower is not None:
                lower = before.point + decision.gain.lower
            paid = (decision.cost or 0.0) / decision.worth if decision.worth else 0.0
            asked.append(place)
            bases.append(basis)
            ends.append((lower, before.point, paid))
        lowest, baseline, price = torch.tensor(ends, dtype=torch.float64).reshape(-1, 3).unbind(-1)
        lowest, priced = lowest.clamp(0.0, 1.0), (baseline + price).clamp(0.0, 1.0)
        tipping = tipping_strength(lowest, priced)
        if any(decisions[place].unchanged is not None for place in asked):
            stated = torch.tensor([decisions[place].unchanged is not None for place in asked])
            between = tipping_between(lowest, baseline.clamp(0.0, 1.0), price)
            tipping = torch.where(stated, between, tipping)
        known = dict[tuple[tuple[str, ...], Basis, bool], Sensitivity]()
        for place, basis, strength in zip(asked, bases, tipping.tolist(), strict=True):
            decision = answered[place]
            assert decision.alteration is not None
            key = (decision.alteration.names, basis, decision.unchanged is not None)
            if key not in known:
                known[key] = self._yardstick(*key)
            weighed: Sensitivity = copied(known[key], tipping=_rounded(strength))
            answered[place] = _doubted(decision.changed(sensitivity=weighed), weighed)
        return answered

    def _yardstick(self, names: tuple[str, ...], basis: Basis, at_present: bool) -> Sensitivity:
        """What a tipping strength, here of 1, is compared with when `names` are set."""
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

    def _sets(self, names: tuple[str, ...]) -> Adjustment:
        if names not in self._adjustments:
            given = self.task.graph, self.task.context, names, self.task.outcomes
            self._adjustments[names] = adjustment(*given)
        return self._adjustments[names]

    def _strengths(self, names: tuple[str, ...]) -> Mapping[str, float] | None:
        """See `covariates`."""
        if self.rows is None:
            return None
        sets = self._sets(names)
        before = (*self.task.context, *sets.before)
        later = tuple(name for name in names if name not in sets.first)
        blocks = [(sets.first, before)] if sets.first else []
        if later:
            blocks.append((later, (*before, *sets.first, *sets.between) if sets.first else before))
        columns = self.rows.columns
        assignments = [Assignment(columns(actions), columns(given), given) for actions, given in blocks]
        if not all(each.estimable for each in assignments):
            return None
        # An earlier action is given when a later one is chosen, but is not a covariate of the alteration.
        return {name: each for name, each in strengths(assignments).items() if name not in names}


class RecordedStrengths(Overturning):
    """The same without the rows: strengths were recorded for sets of variables, None where rows were few."""

    def __init__(
        self, task: RehearsalTask, known: Mapping[tuple[str, ...], Mapping[str, float] | None]
    ) -> None:
        super().__init__(task, lambda: Table.observed((), torch.zeros(0, 0, dtype=torch.float64)))
        self._known = dict(known)

    @property
    def applies(self) -> bool:
        """True: strengths are recorded only where they apply."""
        return True

    def covariates(self, names: tuple[str, ...]) -> Mapping[str, float] | None:
        """See `Overturning.covariates`; None for variables of which nothing was recorded."""
        return self._known.get(names)

    def known_for(self, names: tuple[str, ...]) -> bool:
        """See `Overturning.known_for`."""
        return names in self._known


def for_question(question: Question | None, observations: Callable[[], Table]) -> Overturning | None:
    """The sensitivity of decisions that answer a question; None if it is not a rehearsal task."""
    return Overturning(question, observations) if isinstance(question, RehearsalTask) else None


def _doubted(decision: Decision, weighed: Sensitivity) -> Decision:
    """The decision, as one that is not told from zero where a hidden cause as strong as an observed covariate
    would overturn it.
    """
    if decision.status != "do" or weighed.yardstick is None or weighed.tipping > weighed.yardstick:
        return decision
    strengths = {"tipping": weighed.tipping, "yardstick": weighed.yardstick}
    text = (
        f"a hidden common cause as strong as {weighed.covariate} would overturn it (a strength of "
        f"{weighed.tipping:.3g} is enough, {weighed.covariate} has {weighed.yardstick:.3g})"
    )
    general = f"a hidden common cause as strong as {weighed.covariate} would overturn it"
    return decision.told([Finding("hidden_cause", text, strengths, general)])


def _rounded(strength: float) -> float:
    """Six significant digits, so that the last bits of a sum do not show."""
    return float(f"{strength:.6g}")
