"""Choice of a method (``decision=auto``) by the one-standard-error rule: the simplest near the best.

1.  A method is ineligible if its held-out predictions are worse than a constant, by more than one standard
    error of the paired difference of Brier scores, or if its claim without an action contradicts the rows:
    its mean over held-out rows and their share of desired outcomes differ by more than `AGREES` standard
    errors (1 %).
2.  Of the others, the best has the largest mean value of its decisions (`methods.method_comparison`).
3.  The simplest (`SIMPLEST_FIRST`) whose value lies at most one standard error below the best is chosen.
    Doing nothing takes part: it is chosen where no method is better by more than one standard error.

Standard errors. For a difference of values d_jq in half j by judge q, with weights alpha_q of the judges and
d_j = sum_q alpha_q d_jq,

    SE^2 = (1 / J + 1) var_j d_j + sum_q alpha_q (mean_j d_jq - mean_j d_j)^2.

The J halves of different splits share rows, so that var / J alone would be too small; the second term is the
disagreement of the judges. For a difference of Brier scores it is that of a weighted mean over units.

The interval of a gain over doing nothing is that of Student's t with J - 1 degrees of freedom. Both are
judged in the same cases of the same halves, by the same judges.

Where costs are weighed, values are net values, in the unit of the costs: v P(desired) less the cost.

The largest of several uncertain values is too large by chance. With m_j the best method of half j and m* the
chosen one, its value is too large by about

    bias = mean_j (v_{m_j, j} - v_{m*, j}),        at least 0,

an upper estimate: the one-standard-error rule exploits less than the choice of the best does.

Simpler is a method that estimates less from the rows, and whose answer is easier to check: no action before
an action, linear Gaussian equations before kernels.

Methods that are not compared can be chosen by name. They answer another question than which action makes a
desired outcome most probable, repeat a publication, or take too long to be fitted several times.

Source: Breiman et al. (1984), Sec. 3.4.3 (the rule); Nadeau and Bengio (2003) (overlapping splits);
Tibshirani and Tibshirani (2009) (the bias); the disagreement of judges and the order of methods are ours.
"""

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import torch
from omegaconf import DictConfig, open_dict
from scipy.special import ndtri, stdtrit
from torch import Tensor

from rehearsal_torch.claims.abstention_rules import Claims
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.methods.hydra_config import composed, plain
from rehearsal_torch.methods.instantiate import same_kind
from rehearsal_torch.methods.method_comparison import Candidate, Compared, Limits, compared
from rehearsal_torch.methods.presets import AUTO, CHOOSE, capabilities, decides_for, methods, nodes
from rehearsal_torch.methods.run_parts import Run, build, suits
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.progress import Progress
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.surrogate_fit import fit
from rehearsal_torch.user_error import UserError, as_user_error, did_you_mean

# The methods that are compared, simplest first, with the reason of each one's place.
SIMPLEST_FIRST = {
    "none": "nothing is set, and nothing is estimated",
    "care": "linear equations with Gaussian noise: one number for each arrow, in closed form",
    "qwz23_offline": "the same equations, with parameters drawn from their posterior",
    "outcome_regression": "smooth regressions of the outcomes, whose kernels are fitted",
    "cme": "kernel regressions of success and of the covariates, with metrics that are fitted",
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

NOTHING = "none"
LEVEL = 0.95
AGREES = float(ndtri(0.995))


@dataclass(frozen=True)
class Standing:
    """A method's row of the table of a choice. Numbers are NaN for methods not compared.

    Attributes:
        applies: Whether it can answer the task with these rows.
        reason: Why it does not apply, or was not compared; else the reason of its place in the order.
        value: Mean value of its decisions.
        gain: Its value minus that of doing nothing, with standard error and 95 % interval.
        behind: The best value minus its own, with its standard error.
        brier: Brier score of held-out predictions at the rows' actions; by context alone; of a constant.
        worse: Its score minus that of the constant, with its standard error.
        untouched: The mean predicted P(desired) of held-out rows without an action.
        desired: The share of desired rows.
        apart_error: The standard error of their difference.
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
    untouched: float = math.nan
    desired: float = math.nan
    apart_error: float = math.nan
    judges: float = math.nan
    seconds: float = math.nan
    chosen: bool = False

    @property
    def predicts(self) -> bool:
        """Whether its predictions are worse than a constant by at most one standard error."""
        return math.isnan(self.worse) or self.worse <= self.worse_error

    @property
    def agrees(self) -> bool:
        """Whether its claim without an action agrees with the share of desired rows."""
        difference = abs(self.untouched - self.desired)
        return math.isnan(difference) or difference <= AGREES * self.apart_error


@dataclass(frozen=True)
class Choice:
    """The chosen method, with the comparison that it rests on.

    Attributes:
        best: The eligible method with the largest value.
        standings: All methods: those compared, simplest first, then the others.
        bias: By how much the choice makes the value of the chosen method too large, about.
        rows: The number of rows that were compared, of `of` rows.
        worth: The worth of a desired outcome, where values are net values; else None.
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

    @property
    def model(self) -> str | None:
        """The least simple eligible method: its model predicts where nothing is done; None without any."""
        candidates = [
            row.method
            for row in self.standings
            if row.compared and row.predicts and row.agrees and row.method != NOTHING
        ]
        return max(candidates, key=list(SIMPLEST_FIRST).index, default=None)

    def standing(self, method: str) -> Standing:
        """The row of a method."""
        return next(row for row in self.standings if row.method == method)


def chosen(found: Compared, of: int, others: Sequence[Standing] = (), idle: bool = True) -> Choice:
    """The choice by the rule of this module, from a comparison on some of `of` rows; `idle` says whether
    doing nothing may be chosen. ValueError if it may not, and no method is eligible.
    """
    names, order = (NOTHING, *found.methods), list(SIMPLEST_FIRST)
    by_judge = torch.cat([found.nothing[None], found.values]) * (found.worth or 1.0)
    values = by_judge @ found.panel
    means, measures = values.mean(1).tolist(), [dict[str, float](), *_measures(found)]
    eligible = [not of_method or _is_eligible(of_method) for of_method in measures]
    candidates = [row for row in range(len(names)) if eligible[row]]
    best = max(candidates, key=means.__getitem__)
    behind_errors = [value_error(by_judge[best] - by_method, found.panel) for by_method in by_judge]
    contenders = [row for row in candidates if means[best] - means[row] <= behind_errors[row]]
    if not idle:
        acting = [row for row in candidates if row]
        if not acting:
            raise ValueError(
                f"{', '.join(found.methods)} predict held-out rows worse than a constant, or claim another "
                "chance without an action than the rows show: name the method to use it nevertheless, or ask "
                "for other variables"
            )
        contenders = [row for row in contenders if row] or [max(acting, key=means.__getitem__)]
    chosen_row = min(contenders, key=lambda row: order.index(names[row]))
    bias = float((values[candidates].amax(0) - values[chosen_row]).mean().clamp_min(0.0))
    quantile = float(stdtrit(values.shape[1] - 1, (1 + LEVEL) / 2))
    standings = []
    for row, name in enumerate(names):
        gain, gain_error = means[row] - means[0], value_error(by_judge[row] - by_judge[0], found.panel)
        half_width = quantile * gain_error if row else math.nan
        standings.append(
            Standing(
                name,
                applies=True,
                compared=True,
                reason=SIMPLEST_FIRST[name],
                value=means[row],
                gain=gain,
                gain_error=gain_error,
                gain_lower=gain - half_width,
                gain_upper=gain + half_width,
                behind=means[best] - means[row],
                behind_error=behind_errors[row],
                chosen=row == chosen_row,
                **measures[row],
            )
        )
    standings.sort(key=lambda standing: order.index(standing.method))
    numbers = (bias, len(found.desired), of, found.cases, values.shape[1], found.worth)
    return Choice(names[chosen_row], names[best], (*standings, *others), *numbers)


def value_error(difference: Tensor, panel: Tensor) -> float:
    """Standard error of a mean difference of values over J halves that overlap.

    Args:
        difference: By half and judge, (J, q), J at least 2.
        panel: The weights of the judges, (q,), with sum 1.
    """
    by_half, by_judge = difference @ panel, difference.mean(0)
    disagreement = (by_judge - by_half.mean()).square() @ panel
    return math.sqrt((1 / len(by_half) + 1) * float(by_half.var()) + float(disagreement))


def unit_error(values: Tensor, weights: Tensor, units: Tensor) -> float:
    """Standard error of a weighted mean over rows that are sampled in whole units.

    Args:
        values: (n,).
        weights: (n,), with mean 1.
        units: The number of each row's unit, (n,) long, 0 ... U - 1; U at least 2.
    """
    deviations = weights * (values - (weights * values).mean())
    count = int(units.max()) + 1
    sums = torch.zeros(count, dtype=values.dtype).index_add(0, units, deviations)
    return math.sqrt(count / (count - 1) * float(sums.square().sum())) / len(values)


def _measures(result: Compared) -> list[dict[str, float]]:
    """The numbers of each method on held-out rows, by the field of `Standing`."""
    weights, constant = result.weights, (result.constant - result.desired).square().mean(0)
    losses, losses_by_context = (
        (predicted - result.desired).square().mean(0) for predicted in (result.predicted, result.untouched)
    )
    return [
        {
            "brier": float((weights * loss).mean()),
            "brier_context": float((weights * by_context).mean()),
            "brier_constant": float((weights * constant).mean()),
            "worse": float((weights * (loss - constant)).mean()),
            "worse_error": unit_error(loss - constant, weights, result.units),
            "untouched": float(claimed.mean()),
            "desired": float(result.desired.mean()),
            "apart_error": unit_error(claimed - result.desired, torch.ones_like(weights), result.units),
            "judges": float(weight),
            "seconds": result.seconds[method],
        }
        for method, loss, by_context, claimed, weight in zip(
            result.methods, losses, losses_by_context, result.untouched.mean(0), result.panel, strict=True
        )
    ]


def _is_eligible(measures: Mapping[str, float]) -> bool:
    apart = abs(measures["untouched"] - measures["desired"])
    return measures["worse"] <= measures["worse_error"] and apart <= AGREES * measures["apart_error"]


# The reason for no action where no method was chosen.
UNTAKEN = Finding("no_gain", "no method was taken, as none is told apart from doing nothing")


@dataclass(frozen=True)
class Noted:
    """Adds the chosen method and the sentence that says why to the trace of decisions, after other claims."""

    method: str
    why: str
    claims: Claims | None = None

    def __call__(self, cases: Sequence[Any], decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions, with the choice in their traces."""
        updated = list(decisions) if self.claims is None else self.claims(cases, decisions)
        trace = {"method": self.method, "method_choice": self.why}
        if self.method == NOTHING:
            updated = [replace(decision, reason=UNTAKEN) for decision in updated]
        return [replace(decision, trace=decision.trace | trace) for decision in updated]


_QUESTIONS = {"rehearse": "cases of a table", "look_back": "a sequence", "optimise": "trials"}


def choose(
    config: DictConfig, problem: Problem, progress: Progress | None = None, workers: int = 1
) -> Choice:
    """Compares the methods that apply to a problem, and chooses one, as a phase of `progress`.
    UserError if the problem is of another kind, a limit is out of range, or nothing can be compared.
    """
    same_kind(problem, "rehearse")
    task, seed, table = problem.question(), int(config.seed), problem.observations()
    assert isinstance(task, RehearsalTask)
    with as_user_error("decision=auto"):
        limits = Limits(**plain(config)[CHOOSE])
        candidates, others = applicable(config, problem)
        comparison = compared(table, problem.facts().units, task, candidates, limits, seed, progress, workers)
        may_do_nothing = all(row.method != NOTHING for row in others)
        remaining = [row for row in others if row.method != NOTHING]
        refused = [Standing(name, False, False, reason) for name, reason in comparison.refused.items()]
        return chosen(comparison, len(table), [*refused, *remaining], may_do_nothing)


def with_method(config: DictConfig, method: str, model: str | None = None) -> DictConfig:
    """A copy of the configuration with another method; where that does nothing, `model` predicts."""
    copy = deepcopy(config)
    with open_dict(copy):
        copy.pop(CHOOSE, None)
        copy.update(nodes(method))
        if method == NOTHING and model is not None:
            copy.update({group: nodes(model)[group] for group in ("surrogate", "objective")})
    return copy


def applicable(config: DictConfig, problem: Problem) -> tuple[list[Candidate], list[Standing]]:
    """The methods to compare, simplest first, and all others with the reason."""
    candidates: list[Candidate] = []
    others: list[Standing] = []
    for name in (*SIMPLEST_FIRST, *NOT_COMPARED):
        try:
            run = build(with_method(config, name), problem)
            suits(run, run.surrogate())
        except (UserError, ValueError) as error:
            others.append(Standing(name, False, False, _fault_of(error)))
            continue
        if name in NOT_COMPARED:
            others.append(Standing(name, True, False, NOT_COMPARED[name]))
        elif name != NOTHING:
            fitted = partial(_fit_to, run)
            candidates.append(Candidate(name, fitted, run.objective, run.search))
    return candidates, others


def fits(problem: Problem, name: str) -> None:
    """Raises a UserError if a method cannot be built for the task and rows of a problem; fits nothing."""
    run = build(with_method(composed("own_problem"), name), problem)
    suits(run, run.surrogate())


def wished(problem: Problem) -> str | None:
    """The method that a problem file names, or None; UserError if it does not exist for the question."""
    method = problem.facts().method
    if method is None:
        return None
    if decides_for(method, problem.kind):
        task = problem.question()
        has_costs = isinstance(task, RehearsalTask) and task.worth is not None and task.costs
        if has_costs and method != AUTO and not capabilities(method).costs:
            raise UserError(
                f"{method} does not look for the largest probability of a desired outcome, so that costs "
                "cannot be weighed against worth by it",
                "method",
                "Leave worth out, so that costs are told and do not count, or name another method, such as "
                "outcome_regression or care",
            )
        return method
    suitable = methods(problem.kind)
    fault = f"there is no method {method!r} for {_QUESTIONS[problem.kind]}"
    remedy = did_you_mean(method, suitable) or f"Choose from {', '.join(sorted(suitable))}"
    raise UserError(fault, "method", remedy)


def _fit_to(run: Run, table: Table) -> Surrogate:
    return fit(run.surrogate(), table)


def _fault_of(error: Exception) -> str:
    """The fault of an error, without the remedy."""
    message = error.what if isinstance(error, UserError) else str(error)
    return " ".join(message.split()).rstrip(".")


MEANING = (
    "A value is what models of other rows think of the decisions of a method fitted to half of the rows: the "
    "mean estimated probability of a desired outcome, each method's models weighted by how well they predict "
    "held-out rows. It is no outcome of these decisions, which no table has."
)
NET_MEANING = (
    "A net value is what models of other rows think of the decisions of a method fitted to half of the rows, "
    "each method's models weighted by how well they predict held-out rows: the mean of worth times the "
    "estimated probability of a desired outcome, less the cost of the decision from the usual values of the "
    "actions. It is no outcome of these decisions, which no table has."
)
NUMBERS = tuple(
    each.name
    for each in fields(Standing)
    if each.name not in ("method", "applies", "compared", "reason", "chosen")
)


def sentence(choice: Choice) -> str:
    """The chosen method and the reason, in one sentence."""
    row, best = choice.standing(choice.chosen), choice.standing(choice.best)
    nothing, kind = choice.standing(NOTHING), "value" if choice.worth is None else "net value"
    idle, error = _value(choice, nothing.value), _difference(choice, row.behind_error)
    value, top = _value(choice, row.value), _value(choice, best.value)
    if choice.chosen == NOTHING and choice.best == NOTHING:
        more = "worth more" if choice.worth is None else "worth more, less their costs,"
        return f"auto took none: no method's decisions are {more} than doing nothing ({idle})"
    if choice.chosen == NOTHING:
        return (
            f"auto took none: the {kind} of doing nothing, {idle}, lies within one standard error "
            f"({error}) of the best, {choice.best} {top}, so that no method is told apart from doing nothing"
        )
    baseline = f"doing nothing {idle}"
    if choice.chosen == choice.best:
        return (
            f"auto took {choice.chosen}: its {kind} {value} is the best, and no simpler method lies within "
            f"one standard error of it ({baseline})"
        )
    return (
        f"auto took {choice.chosen}: its {kind} {value} lies within one standard error ({error}) of the "
        f"best, {choice.best} {top}, and it is simpler ({baseline})"
    )


def gained(choice: Choice) -> str:
    """The gain of the chosen method, or else the best, over doing nothing; empty if that is doing nothing."""
    row = choice.standing(choice.chosen if choice.chosen != NOTHING else choice.best)
    if row.method == NOTHING:
        return ""
    gain = _difference(choice, row.gain, "+")
    lower, upper = (
        f"{bound:+.4g}" if choice.worth is not None else f"{100 * bound:+.1f}"
        for bound in (row.gain_lower, row.gain_upper)
    )
    unclear = ", so that it is not told from zero" if row.gain_lower <= 0 <= row.gain_upper else ""
    return f"Over doing nothing, {row.method} gains {gain} (95% interval {lower} to {upper}){unclear}."


def _value(choice: Choice, value: float) -> str:
    """A value as text: a probability in per cent with one decimal, an amount in four digits."""
    return f"{100 * value:.1f} %" if choice.worth is None else f"{value:.4g}"


def _difference(choice: Choice, value: float, sign: str = "") -> str:
    """A difference of two values as text: of probabilities in percentage points."""
    return f"{100 * value:{sign}.1f} percentage points" if choice.worth is None else f"{value:{sign}.4g}"


def sentences(choice: Choice) -> list[str]:
    """The sentences that report a choice."""
    texts = [text for text in (f"{sentence(choice)}.", gained(choice)) if text]
    nothing = choice.standing(NOTHING)
    if choice.chosen != NOTHING and nothing.behind <= nothing.behind_error:
        texts.append(
            "No method is told apart from doing nothing, which decision=none cannot be asked for here: its "
            "linear model cannot be fitted."
        )
    compared = [row for row in choice.standings if row.compared]
    sample = f"{choice.rows} of {choice.of} rows" if choice.rows < choice.of else f"{choice.rows} rows"
    texts.append(
        f"{len(compared)} methods were compared on {sample}, in {choice.halves} halves with {choice.cases} "
        f"cases each. Choosing among them makes the value of {choice.chosen} about "
        f"{_difference(choice, choice.bias)} too large."
    )
    poor = [row.method for row in compared if not row.predicts]
    if poor:
        verb = "predicts" if len(poor) == 1 else "predict"
        texts.append(
            f"{' and '.join(poor)} {verb} held-out rows worse than a constant, by more than one standard "
            "error, and could not be taken."
        )
    texts += [
        f"{row.method} claims {row.untouched:.1%} without an action where {row.desired:.1%} of the rows "
        "are desired, which is no chance: it could not be taken."
        for row in compared
        if not row.agrees
    ]
    texts += [f"{row.method} does not apply: {row.reason}." for row in choice.standings if not row.applies]
    not_compared = [row.method for row in choice.standings if row.applies and not row.compared]
    if not_compared:
        texts.append(f"Not compared, for the reasons in the table of the choice: {', '.join(not_compared)}.")
    return [*texts, MEANING if choice.worth is None else NET_MEANING]


def rows(choice: Choice) -> list[dict[str, str]]:
    """The table of a choice, one row per method; numbers in six digits, empty where there is none."""
    yes_no = {True: "yes", False: "no"}
    return [
        {
            "method": row.method,
            "applies": yes_no[row.applies],
            "compared": yes_no[row.compared],
            "chosen": yes_no[row.chosen],
            **{name: _cell(getattr(row, name)) for name in NUMBERS},
            "reason": row.reason,
        }
        for row in choice.standings
    ]


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
