"""The rule that takes a method: the simplest within one standard error of the best.

1.  A method whose held-out predictions are worse than a constant, by more than one standard error of the
    paired difference of Brier scores, is not taken.
2.  Of the others, the best has the largest mean value of its decisions (`method_choice.comparison`).
3.  Taken is the simplest (`SIMPLEST_FIRST`) whose value lies at most one standard error below it.
    Doing nothing takes part: where no method is better than it by more than one standard error, nothing is
    done, and the sentence says so.

Standard errors. For a difference of values d_jq in half j by judge q, with weights alpha_q of the judges and
d_j = sum_q alpha_q d_jq,

    SE^2 = (1 / J + 1) var_j d_j + sum_q alpha_q (mean_j d_jq - mean_j d_j)^2.

The J halves of different splits share rows, so that var / J alone would be too small; the second term is what
the judges disagree on. For a difference of Brier scores it is that of a weighted mean over units.

The interval of a gain over doing nothing is that of Student's t with J - 1 degrees of freedom, as the
variance is that of J halves. Both are judged in the same cases of the same halves, by the same judges.

Where costs are weighed, values are net values, in the unit of the costs: v P(desired) less the cost.

The largest of several uncertain values is too large by chance. With m_j the best method of half j and m* the
chosen one, its value is too large by about

    bias = mean_j (v_{m_j, j} - v_{m*, j}),        at least 0,

an upper estimate: the one-standard-error rule exploits less than taking the best does.

Source: Breiman et al. (1984), Sec. 3.4.3 (the rule); Nadeau and Bengio (2003) (overlapping
splits); Tibshirani and Tibshirani (2009) (the bias); the disagreement of judges is ours.

Simpler is what has less to be estimated from the rows, and whose answer is easier to check: no action before
an action, linear Gaussian equations before kernels, one estimator before a stack of two. The order is ours.

Methods that are not compared can be chosen by name. They answer another question than which action makes a
desired outcome most probable, repeat a publication, or take too long to be fitted several times.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from scipy.special import stdtrit
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.method_choice.comparison import Compared

# The methods that are compared, simplest first, each with what makes it less simple than those before it.
SIMPLEST_FIRST = {
    "none": "nothing is set, and nothing is estimated",
    "care": "linear equations with Gaussian noise: one number for each arrow, in closed form",
    "qwz23_offline": "the same equations, with parameters drawn from their posterior",
    "outcome_regression": "smooth regressions of the outcomes, whose kernels are fitted",
    "cme": "kernel regressions of success and of the covariates, with metrics that are fitted",
    "cme_stack": "the two before it, with a weight that is fitted as well",
}
# The methods that are not compared, and why.
NOT_COMPARED = {
    "cme_published": "it repeats a publication; cme is the same estimator with settings from the rows",
    "cme_nystrom": "it repeats a publication; cme is the same estimator with settings from the rows",
    "cme_fourier": "it repeats a publication; cme is the same estimator with settings from the rows",
    "grad_rh": "it trains networks, which takes minutes for each fit",
    "micns": "it looks for the cheapest alteration, and has costs to be weighed (+objective.weights)",
    "micns_online": "it is for online runs, whose world drifts",
    "qwz23": "it looks for the most informative alteration, for runs that learn from each answer",
    "qwz23_online": "it is for online runs, which learn from each answer",
    "qwz23_published": "it repeats a publication",
    "qwz23_success": "it is for several graphs that may be true; with one, it is qwz23_offline",
}
# Methods whose models are parts of another's, fitted to the same rows with the same seed: (method, part).
PARTS = {"cme": ("cme_stack", "indicator"), "outcome_regression": ("cme_stack", "outcome")}


def place(method: str) -> int:
    """The place of a method in the order of simplicity, from 0.

    Args:
        method: A method that is compared.

    Raises:
        ValueError: if it is none.
    """
    order = list(SIMPLEST_FIRST)
    if method not in order:
        raise ValueError(f"expected a method that is compared: {', '.join(order)}; got {method!r}")
    return order.index(method)


NOTHING = "none"
LEVEL = 0.95


@dataclass(frozen=True)
class Standing:
    """Where a method stands: a row of the table of a choice. Numbers are NaN for methods not compared.

    Attributes:
        applies: Whether it can answer the task with these rows.
        reason: Why it does not apply, or was not compared; else what its place in the order rests on.
        value: Mean value of its decisions.
        gain: Its value minus that of doing nothing.
        gain_error: Standard error of the gain.
        gain_lower: The lower end of the 95 % interval of the gain.
        gain_upper: Its upper end.
        behind: The best value minus its own.
        behind_error: Standard error of that difference.
        brier: Brier score of held-out predictions at the actions that rows had.
        brier_context: The same of its predictions by the context alone.
        brier_constant: The same of a constant.
        worse: Its score minus that of the constant.
        worse_error: Standard error of that difference.
        judges: Its weight in the panel that judges decisions.
        seconds: Duration of its fits, predictions, decisions and judgements.
    """

    method: str
    applies: bool
    compared: bool
    reason: str
    value: float = math.nan
    gain: float = math.nan
    gain_error: float = math.nan
    gain_lower: float = math.nan
    gain_upper: float = math.nan
    behind: float = math.nan
    behind_error: float = math.nan
    brier: float = math.nan
    brier_context: float = math.nan
    brier_constant: float = math.nan
    worse: float = math.nan
    worse_error: float = math.nan
    judges: float = math.nan
    seconds: float = math.nan
    chosen: bool = False

    @property
    def predicts(self) -> bool:
        """Whether its predictions are not worse than a constant beyond one standard error."""
        return math.isnan(self.worse) or self.worse <= self.worse_error


@dataclass(frozen=True)
class Choice:
    """Which method was taken, and why.

    Attributes:
        best: The method with the largest value among those that predict.
        standings: All methods: those compared, simplest first, then the others.
        bias: By how much choosing makes the value of the chosen method too large, about.
        rows: The number of rows that were compared.
        of: The number of rows that there are.
        cases: The number of cases in each half.
        halves: J, the number of halves.
        worth: What a desired outcome is worth, where values are net values; else None.
    """

    chosen: str
    best: str
    standings: tuple[Standing, ...] = field(repr=False)
    bias: float
    rows: int
    of: int
    cases: int
    halves: int
    worth: float | None = None

    def standing(self, method: str) -> Standing:
        """The row of a method."""
        return next(each for each in self.standings if each.method == method)


def chosen(
    found: Compared,
    of: int,
    reasons: Mapping[str, str],
    others: Sequence[Standing] = (),
    idle: bool = True,
) -> Choice:
    """The choice by the rule of this module.

    Args:
        of: The number of rows that there are.
        reasons: Method to what its place in the order rests on.
        idle: Whether doing nothing may be taken.

    Raises:
        ValueError: if it may not, and every method predicts worse than a constant.
    """
    names = (NOTHING, *found.methods)
    judged = torch.cat([found.nothing[None], found.values]) * (found.worth or 1.0)
    values = judged @ found.panel
    means = values.mean(1)
    scores = _scores(found)
    fit = [True, *(worse <= error for *_, worse, error in scores)]
    best = max((row for row in range(len(names)) if fit[row]), key=lambda row: float(means[row]))
    behind = [value_error(judged[best] - each, found.panel) for each in judged]
    near = [row for row in range(len(names)) if fit[row] and float(means[best] - means[row]) <= behind[row]]
    if not idle:
        acting = [row for row in range(1, len(names)) if fit[row]]
        if not acting:
            raise ValueError(
                f"{', '.join(found.methods)} predict held-out rows worse than a constant: name the method to "
                "use it nevertheless, or ask for other variables"
            )
        near = [row for row in near if row] or [max(acting, key=lambda row: float(means[row]))]
    taken = min(near, key=lambda row: place(names[row]))
    allowed = values[torch.tensor(fit)]
    bias = float((allowed.amax(0) - values[taken]).mean().clamp_min(0.0))
    standings = []
    for row, name in enumerate(names):
        brier, context, constant, worse, error = scores[row - 1] if row else (math.nan,) * 5
        gain, doubt = float(means[row] - means[0]), value_error(judged[row] - judged[0], found.panel)
        half = float(stdtrit(values.shape[1] - 1, (1 + LEVEL) / 2)) * doubt if row else math.nan
        standings.append(
            Standing(
                name,
                applies=True,
                compared=True,
                reason=reasons[name],
                value=float(means[row]),
                gain=gain,
                gain_error=doubt,
                gain_lower=gain - half,
                gain_upper=gain + half,
                behind=float(means[best] - means[row]),
                behind_error=behind[row],
                brier=brier,
                brier_context=context,
                brier_constant=constant,
                worse=worse,
                worse_error=error,
                judges=float(found.panel[row - 1]) if row else math.nan,
                seconds=found.seconds[name] if row else math.nan,
                chosen=row == taken,
            )
        )
    standings.sort(key=lambda each: place(each.method))
    return Choice(
        names[taken],
        names[best],
        (*standings, *others),
        bias,
        len(found.desired),
        of,
        found.cases,
        values.shape[1],
        found.worth,
    )


def value_error(difference: Tensor, panel: Tensor) -> float:
    """Standard error of a mean difference of values over J halves that overlap.

    Args:
        difference: By half and judge, (J, q), J at least 2.
        panel: The weights of the judges, (q,), with sum 1.
    """
    halves, judges = difference @ panel, difference.mean(0)
    apart = (judges - halves.mean()).square() @ panel
    return math.sqrt((1 / len(halves) + 1) * float(halves.var()) + float(apart))


def unit_error(values: Tensor, weights: Tensor, units: Tensor) -> float:
    """Standard error of a weighted mean over rows, with whole units as what is drawn.

    Args:
        values: (n,).
        weights: (n,), with mean 1.
        units: The number of each row's unit, (n,) long, 0 ... U - 1; U at least 2.
    """
    apart = weights * (values - (weights * values).mean())
    count = int(units.max()) + 1
    sums = torch.zeros(count, dtype=values.dtype).index_add(0, units, apart)
    return math.sqrt(count / (count - 1) * float(sums.square().sum())) / len(values)


def _scores(found: Compared) -> list[tuple[float, float, float, float, float]]:
    """For each method: Brier score at the action, by context alone, of the constant, the difference of the
    first and the last, and its standard error.
    """
    weights = found.weights
    constant = (found.constant - found.desired).square().mean(0)
    rows = []
    for index in range(len(found.methods)):
        own, context = (
            (each[:, index] - found.desired).square().mean(0) for each in (found.predicted, found.untouched)
        )
        apart = own - constant
        each, alone, same, worse = (
            float((weights * loss).mean()) for loss in (own, context, constant, apart)
        )
        rows.append((each, alone, same, worse, unit_error(apart, weights, found.units)))
    return rows


# Why nothing is done in a case where no method was taken.
UNTAKEN = Finding("no_gain", "no method was taken, as none is told apart from doing nothing")
Claims = Callable[[Sequence[Any], Sequence[Decision]], list[Decision]]


@dataclass(frozen=True)
class Noted:
    """Adds the choice to the trace of decisions, after other claims were made.

    Trace: ``method``, the name of the method that decided, and ``method_choice``, why.

    Attributes:
        why: The sentence that says why.
        claims: Replaces the claims of the decisions first; None keeps them.
    """

    method: str
    why: str
    claims: Claims | None = None

    def __call__(self, cases: Sequence[Any], decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions, with the choice in their traces."""
        made = list(decisions) if self.claims is None else self.claims(cases, decisions)
        said = {"method": self.method, "method_choice": self.why}
        if self.method == NOTHING:
            made = [replace(each, reason=UNTAKEN) for each in made]
        return [replace(each, trace=each.trace | said) for each in made]
