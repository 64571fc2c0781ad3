"""The rule that takes a method: the simplest within one standard error of the best.

1.  A method whose held-out predictions are worse than a constant, by more than one standard error of the
    paired difference of Brier scores, is not taken.
    Nor is one taken whose claim without an action contradicts the rows: its mean over held-out rows and their
    share of desired outcomes differ by more than `AGREES` standard errors (1 %).
2.  Of the others, the best has the largest mean value of its decisions (`methods.method_comparison`).
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
an action, linear Gaussian equations before kernels. The order is ours.

Methods that are not compared can be chosen by name. They answer another question than which action makes a
desired outcome most probable, repeat a publication, or take too long to be fitted several times.
"""

import math
from collections.abc import Callable, Sequence
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
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.surrogate_fit import fit
from rehearsal_torch.user_error import UserError, as_user_error, did_you_mean

# The methods that are compared, simplest first, each with what makes it less simple than those before it.
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
    """Where a method stands: a row of the table of a choice. Numbers are NaN for methods not compared.

    Attributes:
        applies: Whether it can answer the task with these rows.
        reason: Why it does not apply, or was not compared; else what its place in the order rests on.
        value: Mean value of its decisions.
        gain: Its value minus that of doing nothing, with standard error and 95 % interval.
        behind: The best value minus its own, with its standard error.
        brier: Brier score of held-out predictions at the actions that rows had.
        brier_context: The same of its predictions by the context alone.
        brier_constant: The same of a constant.
        worse: Its score minus that of the constant, with its standard error.
        untouched: The mean of what it claims of held-out rows without an action.
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
        """Whether its predictions are not worse than a constant beyond one standard error."""
        return math.isnan(self.worse) or self.worse <= self.worse_error

    @property
    def agrees(self) -> bool:
        """Whether its claim without an action does not contradict the share of desired rows."""
        apart = abs(self.untouched - self.desired)
        return math.isnan(apart) or apart <= AGREES * self.apart_error


@dataclass(frozen=True)
class Choice:
    """Which method was taken, and why.

    Attributes:
        best: The method with the largest value among those that predict.
        standings: All methods: those compared, simplest first, then the others.
        bias: By how much choosing makes the value of the chosen method too large, about.
        rows: The number of rows that were compared, `of` those that there are.
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

    @property
    def model(self) -> str | None:
        """The method whose model says what happens without an action where nothing is done: the least simple
        that was compared, predicts and agrees with the rows; None without any.
        """
        fit = [
            each.method
            for each in self.standings
            if each.compared and each.predicts and each.agrees and each.method != NOTHING
        ]
        return max(fit, key=list(SIMPLEST_FIRST).index, default=None)

    def standing(self, method: str) -> Standing:
        """The row of a method."""
        return next(each for each in self.standings if each.method == method)


def chosen(found: Compared, of: int, others: Sequence[Standing] = (), idle: bool = True) -> Choice:
    """The choice by the rule of this module, of the methods compared on some `of` the rows; `idle` says
    whether doing nothing may be taken.

    Raises:
        ValueError: if it may not, and every method predicts worse than a constant.
    """
    names, order = (NOTHING, *found.methods), list(SIMPLEST_FIRST)
    judged = torch.cat([found.nothing[None], found.values]) * (found.worth or 1.0)
    values = judged @ found.panel
    means = values.mean(1)
    scores, claims = _scores(found), _claims(found)
    fit = [
        True,
        *(
            worse <= error and abs(claim - share) <= AGREES * apart
            for (*_, worse, error), (claim, share, apart) in zip(scores, claims, strict=True)
        ),
    ]
    best = max((row for row in range(len(names)) if fit[row]), key=lambda row: float(means[row]))
    behind = [value_error(judged[best] - each, found.panel) for each in judged]
    near = [row for row in range(len(names)) if fit[row] and float(means[best] - means[row]) <= behind[row]]
    if not idle:
        acting = [row for row in range(1, len(names)) if fit[row]]
        if not acting:
            raise ValueError(
                f"{', '.join(found.methods)} predict held-out rows worse than a constant, or claim another "
                "chance without an action than the rows show: name the method to use it nevertheless, or ask "
                "for other variables"
            )
        near = [row for row in near if row] or [max(acting, key=lambda row: float(means[row]))]
    taken = min(near, key=lambda row: order.index(names[row]))
    allowed = values[torch.tensor(fit)]
    bias = float((allowed.amax(0) - values[taken]).mean().clamp_min(0.0))
    standings = []
    for row, name in enumerate(names):
        brier, context, constant, worse, error = scores[row - 1] if row else (math.nan,) * 5
        untouched, share, apart = claims[row - 1] if row else (math.nan,) * 3
        gain, doubt = float(means[row] - means[0]), value_error(judged[row] - judged[0], found.panel)
        half = float(stdtrit(values.shape[1] - 1, (1 + LEVEL) / 2)) * doubt if row else math.nan
        standings.append(
            Standing(
                name,
                applies=True,
                compared=True,
                reason=SIMPLEST_FIRST[name],
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
                untouched=untouched,
                desired=share,
                apart_error=apart,
                judges=float(found.panel[row - 1]) if row else math.nan,
                seconds=found.seconds[name] if row else math.nan,
                chosen=row == taken,
            )
        )
    standings.sort(key=lambda each: order.index(each.method))
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


def _scores(found: Compared) -> list[tuple[float, ...]]:
    """For each method: Brier score at the action, by context alone, of the constant, the difference of the
    first and the last, and its standard error.
    """
    weights, constant = found.weights, (found.constant - found.desired).square().mean(0)

    def losses(predicted: Tensor) -> Tensor:
        return (predicted - found.desired).square().mean(0)

    scores = []
    for own, context in zip(losses(found.predicted), losses(found.untouched), strict=True):
        means = [float((weights * loss).mean()) for loss in (own, context, constant, own - constant)]
        scores.append((*means, unit_error(own - constant, weights, found.units)))
    return scores


def _claims(found: Compared) -> list[tuple[float, float, float]]:
    """For each method: its mean claim without an action, the share of desired rows, and the standard error of
    their difference.
    """
    even, share = torch.ones_like(found.desired), float(found.desired.mean())
    return [
        (float(claim.mean()), share, unit_error(claim - found.desired, even, found.units))
        for claim in found.untouched.mean(0)
    ]


# Why nothing is done in a case where no method was taken.
UNTAKEN = Finding("no_gain", "no method was taken, as none is told apart from doing nothing")


@dataclass(frozen=True)
class Noted:
    """Adds the choice to the trace of decisions, after other claims were made: ``method``, the name of the
    method that decided, and ``method_choice``, the sentence that says why.
    """

    method: str
    why: str
    claims: Claims | None = None

    def __call__(self, cases: Sequence[Any], decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions, with the choice in their traces."""
        claimed = list(decisions) if self.claims is None else self.claims(cases, decisions)
        why = {"method": self.method, "method_choice": self.why}
        if self.method == NOTHING:
            claimed = [replace(each, reason=UNTAKEN) for each in claimed]
        return [replace(each, trace=each.trace | why) for each in claimed]


_ASKED = {"rehearse": "cases of a table", "look_back": "a sequence", "optimise": "trials"}


def choose(
    config: DictConfig, problem: Problem, told: Callable[[str], None] | None = None, workers: int = 1
) -> Choice:
    """Compares the methods that apply to a problem, and takes one; `told` is told of the progress.

    Raises:
        UserError: if the problem is of another kind, a limit is out of range, or nothing can be compared.
    """
    same_kind(problem, "rehearse")
    task, seed, table = problem.question(), int(config.seed), problem.observations()
    assert isinstance(task, RehearsalTask)
    with as_user_error("decision=auto"):
        limits = Limits(**plain(config)[CHOOSE])
        candidates, others = applicable(config, problem)
        found = compared(table, problem.facts().units, task, candidates, limits, seed, told, workers)
        idle = all(each.method != NOTHING for each in others)
        rest = [each for each in others if each.method != NOTHING]
        refused = [Standing(name, False, False, reason) for name, reason in found.refused.items()]
        return chosen(found, len(table), [*refused, *rest], idle)


def with_method(config: DictConfig, method: str, model: str | None = None) -> DictConfig:
    """A copy of the configuration of a problem of cases in which another method decides, with its own
    settings; where it does nothing, `model` is the method whose model says what happens then.
    """
    other = deepcopy(config)
    with open_dict(other):
        other.pop(CHOOSE, None)
        other.update(nodes(method))
        if method == NOTHING and model is not None:
            other.update({group: nodes(model)[group] for group in ("surrogate", "objective")})
    return other


def applicable(config: DictConfig, problem: Problem) -> tuple[list[Candidate], list[Standing]]:
    """The methods to compare, simplest first, and all others with the reason."""
    candidates: list[Candidate] = []
    others: list[Standing] = []
    for name in (*SIMPLEST_FIRST, *NOT_COMPARED):
        try:
            run = build(with_method(config, name), problem)
            suits(run, run.surrogate())
        except (UserError, ValueError) as error:
            others.append(Standing(name, False, False, _sentence(error)))
            continue
        if name in NOT_COMPARED:
            others.append(Standing(name, True, False, NOT_COMPARED[name]))
        elif name != NOTHING:
            fitted = partial(_fitted, run)
            candidates.append(Candidate(name, fitted, run.objective, run.search))
    return candidates, others


def fits(problem: Problem, name: str) -> None:
    """Refuses a method that cannot decide for a problem of cases: it cannot be built for the task and the
    rows. Nothing is fitted.
    """
    run = build(with_method(composed("own_problem"), name), problem)
    suits(run, run.surrogate())


def wished(problem: Problem) -> str | None:
    """The method that a problem file names; None if it names none.

    Raises:
        UserError: if there is no such method for its question.
    """
    found = problem.facts().method
    if found is None:
        return None
    if decides_for(found, problem.kind):
        task = problem.question()
        weighed = isinstance(task, RehearsalTask) and task.worth is not None and task.costs
        if weighed and found != AUTO and not capabilities(found).costs:
            raise UserError(
                f"{found} does not look for the largest probability of a desired outcome, so that costs "
                "cannot be weighed against worth by it",
                "method",
                "Leave worth out, so that costs are told and do not count, or name another method, such as "
                "outcome_regression or care",
            )
        return found
    known = methods(problem.kind)
    raise UserError(
        f"there is no method {found!r} for {_ASKED[problem.kind]}",
        "method",
        did_you_mean(found, known) or f"Choose from {', '.join(sorted(known))}",
    )


def _fitted(run: Run, table: Table) -> Surrogate:
    return fit(run.surrogate(), table)


def _sentence(error: Exception) -> str:
    """What is wrong, without what to do about it."""
    text = error.what if isinstance(error, UserError) else str(error)
    return " ".join(text.split()).rstrip(".")


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
    """What was taken, and why, in one sentence."""
    one, best = choice.standing(choice.chosen), choice.standing(choice.best)
    nothing, value = choice.standing(NOTHING), "value" if choice.worth is None else "net value"
    least, error = _value(choice, nothing.value), _apart(choice, one.behind_error)
    own, most = _value(choice, one.value), _value(choice, best.value)
    if choice.chosen == NOTHING and choice.best == NOTHING:
        more = "worth more" if choice.worth is None else "worth more, less their costs,"
        return f"auto took none: no method's decisions are {more} than doing nothing ({least})"
    if choice.chosen == NOTHING:
        return (
            f"auto took none: the {value} of doing nothing, {least}, lies within one standard error "
            f"({error}) of the best, {choice.best} {most}, so that no method is told apart from doing nothing"
        )
    beside = f"doing nothing {least}"
    if choice.chosen == choice.best:
        return (
            f"auto took {choice.chosen}: its {value} {own} is the best, and no simpler method lies within "
            f"one standard error of it ({beside})"
        )
    return (
        f"auto took {choice.chosen}: its {value} {own} lies within one standard error ({error}) of the best, "
        f"{choice.best} {most}, and it is simpler ({beside})"
    )


def gained(choice: Choice) -> str:
    """What the method taken, or else the best, gains over doing nothing; empty if that is doing nothing."""
    one = choice.standing(choice.chosen if choice.chosen != NOTHING else choice.best)
    if one.method == NOTHING:
        return ""
    gain = _apart(choice, one.gain, "+")
    lower, upper = (
        f"{each:+.4g}" if choice.worth is not None else f"{100 * each:+.1f}"
        for each in (one.gain_lower, one.gain_upper)
    )
    unclear = ", so that it is not told from zero" if one.gain_lower <= 0 <= one.gain_upper else ""
    return f"Over doing nothing, {one.method} gains {gain} (95% interval {lower} to {upper}){unclear}."


def _value(choice: Choice, value: float) -> str:
    """A value as text: a chance in per cent with one decimal, an amount in four digits."""
    return f"{100 * value:.1f} %" if choice.worth is None else f"{value:.4g}"


def _apart(choice: Choice, value: float, sign: str = "") -> str:
    """A difference of two values as text: of chances in percentage points."""
    return f"{100 * value:{sign}.1f} percentage points" if choice.worth is None else f"{value:{sign}.4g}"


def sentences(choice: Choice) -> list[str]:
    """All that is to be said of a choice, one sentence each."""
    told = [each for each in (f"{sentence(choice)}.", gained(choice)) if each]
    nothing = choice.standing(NOTHING)
    if choice.chosen != NOTHING and nothing.behind <= nothing.behind_error:
        told.append(
            "No method is told apart from doing nothing, which decision=none cannot be asked for here: its "
            "linear model cannot be fitted."
        )
    compared = [each for each in choice.standings if each.compared]
    drawn = f"{choice.rows} of {choice.of} rows" if choice.rows < choice.of else f"{choice.rows} rows"
    told.append(
        f"{len(compared)} methods were compared on {drawn}, in {choice.halves} halves with {choice.cases} "
        f"cases each. Choosing among them makes the value of {choice.chosen} about "
        f"{_apart(choice, choice.bias)} too large."
    )
    poor = [each.method for each in compared if not each.predicts]
    if poor:
        verb = "predicts" if len(poor) == 1 else "predict"
        told.append(
            f"{' and '.join(poor)} {verb} held-out rows worse than a constant, by more than one standard "
            "error, and could not be taken."
        )
    told += [
        f"{each.method} claims {each.untouched:.1%} without an action where {each.desired:.1%} of the rows "
        "are desired, which is no chance: it could not be taken."
        for each in compared
        if not each.agrees
    ]
    told += [f"{each.method} does not apply: {each.reason}." for each in choice.standings if not each.applies]
    idle = [each.method for each in choice.standings if each.applies and not each.compared]
    if idle:
        told.append(f"Not compared, for the reasons in the table of the choice: {', '.join(idle)}.")
    return [*told, MEANING if choice.worth is None else NET_MEANING]


def rows(choice: Choice) -> list[dict[str, str]]:
    """The table of a choice, one row per method; numbers in six digits, empty where there is none."""
    yes = {True: "yes", False: "no"}
    return [
        {
            "method": each.method,
            "applies": yes[each.applies],
            "compared": yes[each.compared],
            "chosen": yes[each.chosen],
            **{name: _cell(getattr(each, name)) for name in NUMBERS},
            "reason": each.reason,
        }
        for each in choice.standings
    ]


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
