"""Claims of chosen actions: judged by rows that did not choose."""

import math
from dataclasses import replace

import pytest
import torch

from rehearsal_torch import task_pool
from rehearsal_torch.claims.cross_fitting import CrossFittedClaims, cross_fitted
from rehearsal_torch.claims.rows_as_cases import Untouched
from rehearsal_torch.data.decision import Decision, Estimate, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.mean_gain import GainDraws
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, chance
from rehearsal_torch.search.search import BatchSearch, Budget, Search, chosen
from rehearsal_torch.spaces.box import Alteration, Box
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate

DOUBLE = torch.float64
LEVELS = 10
TASK = RehearsalTask(
    RehearsalGraph.of({"x": (), "a": (), "y": ("a",)}),
    ("x",),
    Box.of({"a": (0.0, LEVELS - 1.0)}),
    Polytope.of({"y": (0.5, None)}),
)
ACTION = Alteration(("a",), torch.tensor([3.0], dtype=DOUBLE))


class Shares(RehearsalSurrogate):
    """The share of desired rows for each whole-numbered action: the simplest model that a choice exploits."""

    def __init__(self):
        super().__init__(TASK)
        self.shares = torch.zeros(LEVELS, dtype=DOUBLE)

    def parts(self, table):
        desired = (table.columns(("y",))[:, 0] >= 0.5).double()
        level = table.columns(("a",))[:, 0].long()
        count = torch.bincount(level, minlength=LEVELS)
        self.shares = torch.bincount(level, weights=desired, minlength=LEVELS) / count.clamp_min(1)
        self.whole = float(desired.mean())
        return iter(())


class Share(AlterationObjective):
    def __init__(self, surrogate, cases, names, draws=None):
        super().__init__(cases, names)
        self.model, self.draws = surrogate, draws

    def __call__(self, actions):
        return self.model.shares[actions[..., 0].round().long()]

    def starts(self, count):
        return torch.arange(LEVELS, dtype=DOUBLE)[:count, None, None].expand(-1, len(self.cases), 1)

    def appraise(self, actions):
        return [
            Appraisal(chance(value), chance(self.model.whole), draws=self.draws)
            for value in self(actions).tolist()
        ]


class Best(BatchSearch):
    kind = "rehearse"
    batch_size = 7

    def batch_search(self, objective):
        (one,) = objective.sets
        actions = one.starts(LEVELS)
        values = one(actions)
        best = actions[values.argmax(0), torch.arange(len(objective.cases))]
        return chosen(objective, [best], values.amax(0)[None], "best", Budget(None), declines=self.declines)


def rows(count, seed, chance_of=0.5):
    stream = torch.Generator().manual_seed(seed)
    values = torch.rand(count, 3, generator=stream, dtype=DOUBLE)
    values[:, 1] = torch.randint(LEVELS, (count,), generator=stream).double()
    values[:, 2] = (values[:, 2] < chance_of).double()
    return Table.observed(("x", "a", "y"), values)


def fitted(table):
    made = Shares()
    for _ in made.parts(table):
        pass
    return made


def claims(table, **settings):
    return cross_fitted(table, None, TASK, fitted, Share, Best(), **settings)


def cases(count=3):
    return [
        RehearsalCase(str(index), {"x": torch.tensor(0.5, dtype=DOUBLE)}, TASK.box.bounds())
        for index in range(count)
    ]


@pytest.mark.slow
def test_the_optimism_of_a_choice_among_equals_is_taken_off():
    # Every action succeeds with probability .5: whatever exceeds it is chance.
    own, corrected, held, nothing = [], [], [], []
    for seed in range(40):
        table = rows(400, seed)
        objective = Share.for_cases(fitted(table), cases(1))
        decisions = Best().batch_search(objective)
        (found,) = claims(table, seed=seed)(objective.cases, decisions)
        assert decisions[0].estimate is not None
        assert found.estimate is not None
        assert found.estimate.lower is not None
        assert found.estimate.upper is not None
        assert found.trace["claimed_in_sample"] == decisions[0].estimate.point
        assert torch.equal(found.alteration.values, decisions[0].alteration.values)
        own.append(decisions[0].estimate.point - 0.5)
        corrected.append(found.estimate.point - 0.5)
        held.append(found.estimate.lower <= 0.5 <= found.estimate.upper)
        assert found.gain is not None
        assert found.gain.point == pytest.approx(found.estimate.point - found.baseline.point, abs=2e-6)
        nothing.append(found.gain.lower <= 0 <= found.gain.upper)
    assert sum(own) / 40 > 0.09
    assert abs(sum(corrected) / 40) < 0.03
    assert sum(held) >= 37
    # No action gains anything over doing nothing.
    assert sum(nothing) >= 37


def gone(decision):
    return [each.text for each in decision.findings if each.kind == "claim"]


def test_a_claim_that_is_gone_is_told_and_the_action_stays():
    decision = Decision(ACTION, 0.6, estimate=Estimate(0.6, "chance"), baseline=Estimate(0.5, "chance"))
    model = fitted(rows(200, 0))
    scale = math.sqrt(2) + math.sqrt(2)
    made = CrossFittedClaims(
        [model, model], [model, model], Share, torch.tensor([0.2, 0.2], dtype=DOUBLE) * scale
    )
    (found,) = made(cases(1), [decision])
    assert (made.optimism, made.error) == (pytest.approx(0.2), pytest.approx(0.0))
    assert found.estimate is not None
    assert found.estimate.point == pytest.approx(0.4)
    judged = float(model.shares[3])
    assert found.estimate.upper == pytest.approx(0.4 + 1.959964 * abs(0.4 - judged), abs=1e-5)
    assert gone(found) == [
        "estimated from rows that did not choose it, no better than no action (0.400 against 0.500)"
    ]
    assert found.alteration is not None
    present = replace(decision, unchanged=Estimate(0.3, "chance"), gain=Estimate(0.3, "difference"))
    known = [replace(each, present={"a": 1.0}) for each in cases(1)]
    (beside,) = made(known, [present])
    assert (gone(beside), beside.unchanged) == ([], present.unchanged)
    (told,) = made(known, [replace(present, unchanged=Estimate(0.45, "chance"))])
    assert gone(told)[0].endswith("no better than leaving the present values (0.400 against 0.450)")


def judging(*shares):
    """Models that say these shares of the third action."""
    made = []
    for share in shares:
        made.append(fitted(rows(200, 0)))
        made[-1].shares[3] = share
    return made


@pytest.mark.parametrize("draws", [None, 50])
def test_the_variance_of_a_claim_is_the_sum_of_its_parts(draws):
    excess = torch.tensor([0.10, 0.30, 0.26], dtype=DOUBLE)
    made = CrossFittedClaims(
        judging(0.50, 0.62, 0.59),
        judging(0.40, 0.52, 0.49),
        lambda surrogate, some: Share.for_cases(surrogate, some, draws=draws),
        excess,
    )
    scale = math.sqrt(1.5) + math.sqrt(3)
    optimism = 0.22 / scale
    assert made.optimism == pytest.approx(optimism)
    decision = Decision(ACTION, 0.7, estimate=Estimate(0.7, "chance"))
    (found,) = made(cases(1), [decision])
    point = 0.7 - optimism
    variance = (
        2 / 3 * (0.07**2 + 0.05**2 + 0.02**2)
        + (0.07**2 + 0.05**2 + 0.02**2) / 2 / 3
        + (0.12**2 + 0.08**2 + 0.04**2) / 2 / 3 / scale**2
        + (point - 0.47) ** 2
        + (0 if draws is None else point * (1 - point) / draws)
    )
    half = 1.959964 * math.sqrt(variance)
    assert found.estimate.point == pytest.approx(point, abs=1e-6)
    assert found.estimate.lower == pytest.approx(point - half, abs=2e-6)
    assert found.estimate.upper == pytest.approx(min(point + half, 1.0), abs=2e-6)
    (wide,) = made.intervals(cases(1), [decision], (0.5, 0.95))
    assert wide[0.95] == (found.estimate.lower, found.estimate.upper)
    assert wide[0.5] == pytest.approx((point - half * 0.344134, point + half * 0.344134), abs=2e-6)
    written = [found.estimate.point, found.estimate.lower, found.trace["optimism"], *wide[0.5]]
    assert written == [round(each, 6) for each in written], "six digits are written"
    several = [
        replace(decision, estimate=Estimate(each, "chance")) for each in torch.linspace(0.4, 0.9, 20).tolist()
    ]
    stated = [each.estimate for each in made(cases(20), several)]
    ends = [each[0.95] for each in made.intervals(cases(20), several, (0.95,))]
    assert ends == [(each.lower, each.upper) for each in stated], "to the last digit"
    none = Decision(None, 0.7, estimate=Estimate(0.7, "chance"))
    assert made.intervals(cases(1), [none], (0.5,)) == [{}]
    assert made(cases(1), [none])[0].estimate == none.estimate


def test_the_optimism_is_what_each_half_claims_beyond_what_the_other_says():
    made = claims(rows(200, 5), count=4)
    excess = []
    for most, few in zip(made.complements, made.folds, strict=True):
        both = [(one.shares, other.shares) for one, other in ((most, few), (few, most))]
        excess.append(sum(float(own.max() - other[own.argmax()]) for own, other in both))
    rates = torch.tensor(excess, dtype=DOUBLE) / (math.sqrt(4 / 3) + 2)
    assert min(excess) > 0
    assert made.optimism == pytest.approx(float(rates.mean()))
    assert made.error == pytest.approx(float(rates.std()) / 2)


def test_the_models_of_the_folds_choose_whatever_they_think_of_it():
    seen = []

    class Watched(Best):
        def batch_search(self, objective):
            seen.append((self.declines, len(objective.cases)))
            return super().batch_search(objective)

    search = Watched()
    made = cross_fitted(rows(100, 0), None, TASK, fitted, Share, search)
    assert search.declines
    assert {declines for declines, _ in seen} == {False}
    assert sum(count for _, count in seen) == 5 * 2 * 20, "20 cases for both models of each of 5 folds"
    assert made.optimism == claims(rows(100, 0), seed=0).optimism
    assert made.optimism != claims(rows(100, 0), seed=1).optimism


def test_a_search_that_answers_for_one_case_at_a_time_finds_the_same():
    class Single(Search):
        def __call__(self, objective):
            assert len(objective.cases) == 1
            return Best()(objective)

    table = rows(100, 0)
    one = cross_fitted(table, None, TASK, fitted, Share, Single(), reference=3)
    assert one.optimism == claims(table, reference=3).optimism > 0


def test_folds_are_shared_only_where_processes_are_asked_for_and_pay(monkeypatch):
    shared, table = [], rows(100, 0)

    def here(work, common, tasks, workers, ahead):
        shared.append((len(tasks), workers, ahead))
        return (work(common, task) for task in tasks)

    monkeypatch.setattr(task_pool, "_in_processes", here)
    alone = claims(table)
    claims(table, workers=3)
    assert shared == [], "folds of a moment"
    monkeypatch.setattr(task_pool, "PAYS", 0.0)
    claims(table)
    assert shared == []
    assert claims(table, workers=3).optimism == alone.optimism
    assert shared == [(4, 3, 1)], "all but the first, of which few models wait"


def test_the_gain_has_the_errors_of_the_difference():
    one, other = fitted(rows(200, 0)), fitted(rows(200, 1))
    made = CrossFittedClaims([one, other], [other, one], Share, torch.zeros(2, dtype=DOUBLE))
    a, o = 3, 5
    decision = Decision(ACTION, 0.6, estimate=Estimate(0.6, "chance"), baseline=Estimate(0.5, "chance"))
    apart = torch.stack([each.shares[a] - each.shares[o] for each in (one, other)])
    without = torch.stack([each.shares[a] - each.whole for each in (one, other)])
    (case,) = cases(1)
    at_present = replace(case, present={"a": float(o)})
    told = replace(decision, unchanged=Estimate(0.45, "chance"))
    for given, asked, differences, gain in (
        (case, decision, without, 0.1),
        (at_present, decision, without, 0.1),
        (at_present, told, apart, 0.15),
    ):
        (found,) = made([given], [asked])
        # K = 2: half the squared distances of the complements, half the variance of the folds.
        spread = 0.5 * (differences - differences.mean()).square().sum() + differences.var() / 2
        error = float(spread + (gain - differences.mean()).square()) ** 0.5
        assert found.gain.point == pytest.approx(gain)
        assert found.gain.upper == pytest.approx(gain + 1.959964 * error, abs=1e-5)
        assert found.gain.lower == pytest.approx(gain - 1.959964 * error, abs=1e-5)
    # What both models say too high of everything cancels in the difference, and not in the estimate.
    for each in (one, other):
        each.shares = each.shares + 0.2
    (again,) = made([at_present], [told])
    assert again.gain == found.gain
    assert again.estimate != found.estimate


def sure(baseline, **settings):
    """Claims by models that all say .5 of the third action and the same of no action."""
    models = judging(0.5, 0.5)
    for each in models:
        each.whole = baseline
    return CrossFittedClaims(
        models,
        models,
        lambda surrogate, some: Share.for_cases(surrogate, some, **settings),
        torch.zeros(2, dtype=DOUBLE),
    )


HALF = Decision(ACTION, 0.5, estimate=Estimate(0.5, "chance"), baseline=Estimate(0.2, "chance"))


def test_where_the_models_say_nothing_of_no_action_the_gain_has_no_interval():
    (found,) = sure(math.nan)(cases(1), [HALF])
    assert (found.gain, found.estimate.point) == (None, 0.5)


def test_each_row_is_predicted_by_a_model_that_has_not_seen_it():
    table = rows(100, 2)
    untouched = claims(table, seed=5).untouched
    assert untouched is not None
    assert torch.equal(untouched.rows, torch.arange(100))
    assert torch.equal(untouched.desired, table.columns(("y",))[:, 0])
    # This model predicts the share of its own rows, which is the constant.
    torch.testing.assert_close(untouched.predicted, untouched.constant, rtol=0, atol=1e-6)
    total = float(untouched.desired.sum())
    assert (untouched.constant * 80 <= total).all()
    assert untouched.brier()[0] == pytest.approx(untouched.brier()[1])
    exact = Untouched(*torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.5], [0.5, 0.5]]))
    assert exact.brier() == (pytest.approx(0.125), pytest.approx(0.25))
    third = Untouched(*torch.tensor([[0.0], [0.0], [1 / 3], [1 / 7]], dtype=DOUBLE))
    models = judging(0.5, 0.5)
    scored = CrossFittedClaims(models, models, Share, torch.zeros(2, dtype=DOUBLE), third)
    assert scored.score == {"brier": 0.111111, "brier_constant": 0.020408}


def test_equal_seeds_give_equal_claims_and_units_stay_together():
    table = rows(120, 3)
    one, two = claims(table, seed=1), claims(table, seed=1)
    assert (one.optimism, one.error) == (two.optimism, two.error)
    seen: list[int] = []

    def counted(part):
        seen.append(len(part))
        return fitted(part)

    units = [f"u{row % 6}" for row in range(120)]
    lines: list[str] = []
    made = cross_fitted(table, units, TASK, counted, Share, Best(), 3, seed=1, told=lines.append)
    assert seen == [80, 40] * 3
    assert len(made.folds) == len(lines) == 3
    assert lines[0] == "claims: fold 1 of 3, two fits and two searches"


def test_too_few_rows_or_units_are_told():
    with pytest.raises(ValueError, match=r"claims=cross_fitted: each of 5 folds .* got a fold of 8 \(of 40"):
        claims(rows(40, 0))
    assert len(claims(rows(50, 0)).folds) == 5, "ten rows are enough"
    with pytest.raises(ValueError, match="5 folds and 2 units"):
        cross_fitted(rows(100, 0), ["a", "b"] * 50, TASK, fitted, Share, Best())

    def refused(part):
        raise ValueError("x: all 20 values are 1")

    with pytest.raises(ValueError, match=r"fold 1 of 5 \(20 rows\) cannot be fitted to: x: all 20 values"):
        cross_fitted(rows(100, 0), None, TASK, refused, Share, Best())
    with pytest.raises(TypeError, match="needs an objective that appraises given actions"):
        cross_fitted(rows(100, 0), None, TASK, fitted, lambda surrogate, some: "none", Best())


def test_a_model_that_predicts_nothing_is_acted_on_where_other_rows_tell_the_gain():
    doubt = Finding("score", "no better than a constant")
    draws = GainDraws(*torch.linspace(0.2, 0.4, 20, dtype=DOUBLE).expand(2, -1), 0.0)
    estimates = {"estimate": Estimate(0.8, "chance"), "baseline": Estimate(0.5, "chance")}
    decision = Decision(ACTION, 0.8, **estimates, gain=Estimate(0.3, "d"), findings=[doubt], draws=draws)
    assert decision.status == "may"
    sure, unsure = (
        CrossFittedClaims(judging(*shares), judging(*shares), Share, torch.zeros(3, dtype=DOUBLE))
        for shares in ((0.79, 0.80, 0.81), (0.2, 0.8, 0.99))
    )
    ((told,), (rest,)) = (made(cases(1), [decision]) for made in (sure, unsure))
    assert (told.status, told.findings[0].kind, told.draws.untouched) == ("do", "note", True)
    assert (rest.status, rest.findings[0]) == ("may", doubt)
    assert told.draws.gain.mean().item() == pytest.approx(told.gain.point)


def test_beyond_the_rows_the_hull_stays_and_the_gain_is_told_anew():
    """What no row shows was once sure by models that all continue the same line."""
    gain, lowest = torch.full((2, 20), 0.3, dtype=DOUBLE)
    estimates = {"estimate": Estimate(0.8, "chance"), "baseline": Estimate(0.5, "chance")}
    trace = {"beyond": 1.0, "hull": {"estimate": [0.0, 1.0], "gain": [-0.5, 0.5]}}
    near = Decision(ACTION, 0.8, **estimates, draws=GainDraws(gain, lowest, 0.0))
    near = near.told([Finding("gain", "not told apart from no action")])
    far = replace(near, trace=trace, draws=GainDraws(gain, lowest - 0.8, 1.0))
    models = judging(0.79, 0.80, 0.81)
    made = CrossFittedClaims(models, models, Share, torch.zeros(3, dtype=DOUBLE))
    ((one,), (other,)) = (made(cases(1), [each]) for each in (near, far))
    assert (one.status, [each.kind for each in one.findings]) == ("do", [])
    assert (other.status, [each.kind for each in other.findings]) == ("may", ["gain"])
    assert (other.estimate.lower, other.estimate.upper) == (0.0, 1.0)
    assert other.gain == other.draws.estimate()
    assert other.gain.lower < -0.45
