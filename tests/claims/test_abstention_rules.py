"""The rule by itself: over a surrogate that has learnt nothing but where its rows lie."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.claims.claim_context import Context
from rehearsal_torch.claims.sequence_rules import model_error, sequences, unknown_noise
from rehearsal_torch.data.costs import ActionCost, CaseCosts
from rehearsal_torch.data.decision import Decision, Estimate, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.graph_notation import graph_of
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.objective import Candidates, chance
from rehearsal_torch.objectives.step_reward import LinearReward, Reward
from rehearsal_torch.objectives.task_reward import WITH_DOSES, WITHOUT_DOSES, EpisodeReward, StepScore
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from tests.toys.episodes import equation_episode, transition_episode
from tests.toys.linear_truth import chain

WORLD = chain()
DOUBLE = torch.float64
# Nothing leads from a or m to y.
CUT = replace(WORLD.task, graph=RehearsalGraph.of({"a": ["x"], "m": ["a"], "y": ["x"]}))


class Rows(RehearsalSurrogate):
    """Where the rows of a task lie, and nothing else."""

    def parts(self, table):
        yield self.overlap, self.overlap.examples(table)


def objective(task=WORLD.task, table=None, x=0.0, graphs=None):
    """Candidate sets of one case over a surrogate that has seen a table; over none where task is None."""
    case = RehearsalCase("case", {"x": torch.tensor(x, dtype=DOUBLE)}, WORLD.task.box.bounds())
    if task is None:
        return Candidates([case], [])
    known = Rows(task, graphs)
    rows = WORLD.table(60) if table is None else table
    known.overlap.solve(*known.overlap.examples(rows))
    return Candidates([case], [], known)


def setting(name="a", value=0.2, done=0.6, undone=0.4, **more):
    names = (name,) if isinstance(name, str) else name
    values = torch.tensor([value] * len(names), dtype=DOUBLE)
    more.setdefault("estimate", chance(done))
    more.setdefault("baseline", chance(undone))
    return Decision(Alteration(names, values), 1.5, trace={"search": "test"}, **more)


NOTHING = Decision(None, 0.0, reason=Finding("no_gain", "nothing helps"))


def test_what_is_above_doing_nothing_and_among_the_observations_is_left_as_it_is():
    decision = setting()
    for declines in (True, False):
        searched = objective()
        (kept,) = ruled(searched, [decision], declines)
        distance = kept.trace["distance"]
        assert kept.to_dict() == decision.to_dict() | {"trace": {"search": "test", "distance": distance}}
        assert searched.surrogate is not None
        assert 0 < distance <= searched.surrogate.overlap.limit(("a",))


@pytest.mark.parametrize("declines", [True, False])
@pytest.mark.parametrize(("done", "undone"), [(0.3, 0.3), (0.2, 0.3)])
def test_an_estimate_that_is_not_above_doing_nothing_is_no_reason_to_act(done, undone, declines):
    (kept,) = ruled(objective(None), [setting(done=done, undone=undone)], declines)
    message = f"predicted no better than doing nothing ({100 * done:.0f} % against 30 %)"
    if declines:
        assert (kept.alteration, kept.reason) == (None, Finding("no_gain", message))
        assert kept.trace == {"search": "test", "would_set": {"a": 0.2}}
    else:
        assert (kept.status, kept.warnings) == ("may", (message,))
    assert kept.estimate == chance(done)
    assert kept.value == 1.5


def apart(lower, upper):
    return Estimate((lower + upper) / 2, "difference", lower, upper, 0.95)


def claimed(lower, upper):
    return Estimate(0.6, "chance", lower, upper, 0.95)


@pytest.mark.parametrize(
    ("more", "doubt"),
    [
        (
            {"gain": apart(-0.1, 0.5)},
            "the interval of the difference, -10 to 50 percentage points, contains zero",
        ),
        (
            {"gain": apart(0.0, 0.5)},
            "the interval of the difference, 0 to 50 percentage points, contains zero",
        ),
        (
            {"gain": apart(-0.001, 0.5)},
            "the interval of the difference, -0.1 to 50.0 percentage points, contains zero",
        ),
        ({"gain": apart(0.001, 0.5)}, ""),
        ({"gain": apart(0.5, 0.9), "estimate": claimed(0.3, 0.9)}, ""),
        (
            {"gain": Estimate(0.2, "difference"), "estimate": claimed(0.3, 0.9)},
            "the interval of the estimate, 30 % to 90 %, contains what no action gives, 40 %",
        ),
        (
            {"estimate": claimed(0.4, 0.9)},
            "the interval of the estimate, 40 % to 90 %, contains what no action gives, 40 %",
        ),
        ({"estimate": claimed(0.41, 0.9)}, ""),
    ],
)
def test_a_gain_that_may_be_none_is_warned_of(more, doubt):
    (kept,) = ruled(objective(None), [setting(**more)])
    assert kept.warnings == ((f"not told apart from no action: {doubt}",) if doubt else ())
    assert kept.alteration is not None


def test_a_gain_over_the_present_value_is_told_in_its_words():
    (case,) = objective(None).cases
    known = Candidates([replace(case, present={"a": 0.1})], [])
    (kept,) = ruled(known, [setting(unchanged=chance(0.45), gain=apart(-0.1, 0.5))])
    (told,) = kept.warnings
    assert told.startswith("not told apart from leaving a at 0.1: ")
    assert told.endswith("the interval of the difference, -10 to 50 percentage points, contains zero")
    (kept,) = ruled(known, [setting(unchanged=chance(0.45), estimate=claimed(0.3, 0.9))])
    assert kept.warnings[0].endswith("contains what leaving it gives, 45 %")


def weighed(decision, present=0.0, declines=True):
    """A decision about a, of which a unit costs 10 and a desired outcome is worth 100."""
    (case,) = objective(None).cases
    costs = CaseCosts({"a": ActionCost(10.0, 10.0)}, {"a": present}, 100.0)
    (kept,) = ruled(
        Candidates([replace(case, present={"a": present}, costs=costs)], []), [decision], declines
    )
    return kept


@pytest.mark.parametrize(("value", "nets"), [(0.5, True), (1.9, True), (2.1, False)])
@pytest.mark.parametrize("declines", [True, False])
def test_where_costs_count_an_action_must_net_more_than_no_change(value, nets, declines):
    kept = weighed(setting(value=value, done=0.6, undone=0.4, unchanged=chance(0.4)), 0.0, declines)
    if nets:
        assert (kept.status, kept.warnings) == ("may", ())
        assert kept.net_gain.point == pytest.approx(20 - 10 * value)
        return
    told = (
        "nothing nets more than leaving a at 0: the best change found costs 21, and a probability of 0.600 "
        "in place of 0.400 is worth 20"
    )
    if declines:
        general = told.replace("leaving a at 0", "leaving a as it is")
        assert (kept.alteration, kept.reason) == (None, Finding("no_gain", told, general=general))
        assert kept.trace["would_set"] == {"a": 2.1}
    else:
        assert (kept.status, kept.warnings) == ("may", (told,))


def test_keeping_the_present_values_is_no_action_where_nothing_nets_more():
    kept = weighed(setting(value=0.3, done=0.4, undone=0.2, unchanged=chance(0.4)), 0.3)
    assert (kept.status, kept.alteration, kept.cost) == ("leave", None, 0.0)
    assert kept.reason.text == "no change nets more than leaving a at 0.3"
    assert "would_set" not in kept.trace, "it would have set nothing"


@pytest.mark.parametrize(("lower", "told"), [(0.04, True), (0.06, False)])
def test_a_net_gain_that_may_be_none_is_warned_of(lower, told):
    kept = weighed(setting(value=0.5, done=0.6, undone=0.4, unchanged=chance(0.4), gain=apart(lower, 0.4)))
    doubt = "not told apart from leaving a at 0: the interval of the net gain, -1 to +35, contains zero"
    assert kept.warnings == ((doubt,) if told else ())


@pytest.mark.parametrize("left_out", ["estimate", "baseline"])
def test_without_a_claim_or_a_baseline_nothing_is_compared(left_out):
    decision = setting(done=0.1, undone=0.9, **{left_out: None})
    assert ruled(objective(None), [decision])[0].to_dict() == decision.to_dict()


def test_what_leads_nowhere_is_refused_whatever_its_estimate_says():
    for done in (0.9, 0.1):
        (kept,) = ruled(objective(CUT), [setting(("a", "m"), done=done)])
        assert kept.undecided
        assert kept.reason.text == (
            "the graph has no directed path from a, m to y: setting a, m changes no outcome; add the missing "
            "edge to the graph, or remove it from the variables that may be set"
        )
        assert kept.trace["would_set"] == {"a": 0.2, "m": 0.2}
    (kept,) = ruled(objective(CUT), [setting("a")], declines=False)
    assert kept.alteration is not None
    assert any(text.startswith("the graph has no directed path from a to y") for text in kept.warnings)


def test_nothing_is_known_of_variables_outside_the_graph_nor_without_a_surrogate():
    assert objective(CUT).linked(("elsewhere",))
    assert objective(None).linked(("a",))


def test_only_bi_directional_edges_to_an_outcome_are_warned_of():
    graph = graph_of({"parents": {"a": ["x"], "m": ["a"], "y": ["a"]}, "bidirected": [["m", "y"]]})
    task = replace(WORLD.task, graph=graph)
    message = (
        "m and y are connected through bi-directional edges only; if these stand for a hidden common "
        "cause, setting m changes nothing"
    )
    (kept,) = ruled(objective(task), [setting("m", 0.3)])
    assert kept.alteration is not None
    assert any(text.startswith(message) for text in kept.warnings)
    (kept,) = ruled(objective(task), [setting("a")])
    assert not any("bi-directional" in text for text in kept.warnings)


def test_a_case_and_a_setting_beyond_the_rows_are_warned_of():
    (kept,) = ruled(objective(x=40.0), [setting(value=30.0)])
    assert [text.split(";")[0].split(" is ")[0] for text in kept.warnings[:2]] == ["x", "a"]
    assert kept.warnings[2].startswith("few rows are like this case with these settings: the fifth ")
    assert kept.warnings[2].endswith("the answer is an extrapolation")
    (kept,) = ruled(objective(x=40.0), [NOTHING])
    assert len(kept.warnings) == 1
    assert kept.reason.kind == "no_gain"
    assert kept.reason.text == "nothing helps"


def test_a_setting_of_everything_that_may_be_set_is_compared_with_the_rows_too():
    names = WORLD.task.box.names
    (kept,) = ruled(objective(), [setting(names, 9.0)])
    assert all(any(name in each for each in kept.warnings) for name in names)


def test_a_hole_among_the_rows_is_told_although_no_range_is_left():
    # A ring: its middle lies within the range of x and of a, and far from every row.
    angle = torch.linspace(0, 6.28, 60, dtype=DOUBLE)
    x, a = angle.cos(), angle.sin()
    rows = Table.observed(("x", "a", "m", "y"), torch.stack([x, a, x * a, a], -1))
    (kept,) = ruled(objective(table=rows), [setting(value=0.0)])
    assert len(kept.warnings) == 1
    # A distance is said in digits that tell it from the limit.
    overlap = objective(table=rows).surrogate.overlap
    names, near = ("a",), torch.zeros(1, 1, dtype=DOUBLE)
    far = float(overlap.distance(names, near, near)[0])
    one = objective(table=rows)
    one.surrogate.overlap.limits = one.surrogate.overlap.limits * 0 + far - 2e-4
    (told,) = ruled(one, [setting(value=0.0)])[0].warnings
    assert re.search(r"is (\d\.\d{3,}) standard.* it is within (\d\.\d{3,}):", told)
    # Six rows of sixty on the ring are at most 0.32 radii apart; the radius is 2^0.5 standard deviations.
    assert "is 1.4" in kept.warnings[0]
    (kept,) = ruled(objective(table=rows, x=1.0), [setting(value=0.0)])
    assert kept.warnings == ()


def test_many_cases_get_what_each_gets_alone():
    given, decisions = (
        [0.0, 40.0, -3.0, 0.2, 1.0],
        [
            setting(),
            setting("a", 30.0),
            setting("m", -2.0),
            NOTHING,
            setting(("a", "m"), 9.0, done=0.3, undone=0.5),
        ],
    )
    alone = [ruled(objective(x=x), [each])[0] for x, each in zip(given, decisions, strict=True)]
    one = objective()
    cases = [replace(one.cases[0], given={"x": torch.tensor(x, dtype=DOUBLE)}) for x in given]
    together = ruled(Candidates(cases, [], one.surrogate), decisions)
    assert [each.to_dict() for each in together] == [each.to_dict() for each in alone]
    assert {len(each.warnings) for each in alone} == {0, 2, 3}


def test_between_the_few_values_that_rows_repeat_is_said_in_other_words():
    four = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=DOUBLE)] * 3).repeat(12, 1)
    rows = Table.observed(("x", "a", "m", "y"), torch.cat([four, four.sum(-1, keepdim=True)], -1))
    (kept,) = ruled(objective(table=rows, x=1.0), [setting(value=0.5)])
    (message,) = kept.warnings
    assert "the rows repeat the same few values, and this is not one of them" in message
    assert ruled(objective(table=rows, x=1.0), [setting(value=-1.0)])[0].warnings == ()


def test_of_a_set_that_is_no_candidate_only_the_ranges_are_known():
    task = replace(WORLD.task, candidates=(("m",),))
    (kept,) = ruled(objective(task), [setting("a", 30.0)])
    assert [each.text[:9] for each in kept.findings if each.kind == "range"] == ["a is set "]


def test_contradictions_between_graph_and_table_stand_beside_every_answer():
    for decision in (setting("a"), NOTHING):
        (kept,) = ruled(objective(CUT, WORLD.table(200)), [decision])
        assert sum("in the observations they depend on it" in text for text in kept.warnings) == 2


def test_what_is_taken_back_is_remembered():
    decision = setting(("a", "m"), 0.25, findings=(Finding("note", "few rows"),))
    kept = decision.withdrawn(Finding("no_support", "too far away"))
    assert kept.to_dict() == {
        **decision.to_dict(),
        "status": "leave",
        "alteration": None,
        "reason": {"kind": "no_support", "text": "too far away"},
        "trace": {"search": "test", "would_set": {"a": 0.25, "m": 0.25}},
    }


def replayed(objective, decision, declines=True):
    """The decision for an episode after the rules."""
    context = Context(objective, [None], declines)
    (found,) = sequences(context, [decision])
    return found


def singles(episode):
    """Every sequence with one change."""
    for step in episode.open.tolist():
        for action in episode.candidate_actions(step).tolist():
            sequence = episode.observed.clone()
            sequence[step] = action
            yield sequence


def changed(episode, sequence):
    places = [step for step, action in enumerate(sequence) if action != int(episode.observed[step])]
    return Alteration(tuple(f"action[{step}]" for step in places), torch.tensor(sequence)[places])


@pytest.mark.parametrize("declines", [True, False])
def test_an_episodes_claim_is_compared_with_its_replay(declines):
    episode = transition_episode(3, horizon=5, changes=2)
    found = sorted((float(episode(sequence)), sequence.tolist()) for sequence in singles(episode))
    (low, worst), (high, best) = found[0], found[-1]
    assert low < episode.outcome() < high
    kept = replayed(episode, Decision(changed(episode, worst), high + 5.0), declines)
    message = f"the search claims a return of {high + 5:.6g}; replayed by the model, it is {low:.6g}"
    worse = f"by the model's own estimate no better than the observed actions ({low:.6g} against "
    assert message in kept.warnings
    assert kept.status == ("leave" if declines else "may")
    assert (kept.reason or kept.findings[-1]).text.startswith(worse)
    kept = replayed(episode, Decision(changed(episode, best), high + 5.0), declines)
    assert kept.alteration == changed(episode, best)
    assert any("replayed by the model" in text for text in kept.warnings)
    honest = Decision(changed(episode, best), high, estimate=Estimate(high, "return of the episode"))
    kept = replayed(episode, honest, declines)
    told = (*episode.warnings(), *unknown_noise(episode))
    assert kept.to_dict() == replace(honest, findings=told).to_dict()
    assert replayed(episode, NOTHING, declines) is NOTHING


class Replayed(CounterfactualReturn):
    """An episode of one step whose return is 1 as observed and 3 changed, and what each member gains. Members
    differ in what they say of the observed actions."""

    observed, rules, support = torch.tensor([0]), None, None

    def __init__(self, gains, agreement="all"):
        self.gains, self.agreement = torch.tensor(gains, dtype=DOUBLE), agreement
        self.reward = SimpleNamespace(reads=("x",))
        self.surrogate = SimpleNamespace(
            members=len(gains), claimant=None, predictable_noise=None, noise_shares=lambda: {"x": 0.1}
        )

    def sequence(self, decision):
        return self.observed if decision.alteration is None else torch.tensor([1])

    def outcome(self):
        return 1.0

    def __call__(self, sequence):
        return 1.0 + 2.0 * float(sequence)

    def member_returns(self, sequence):
        return 10.0 - 15.0 * torch.arange(len(self.gains)) + self.gains * float(sequence)

    def warnings(self):
        return ()

    def guarded_gains(self, sequence):
        return {}

    def rounding(self, share, size):
        return share * size


@pytest.mark.parametrize("declines", [True, False])
@pytest.mark.parametrize("agreement", ["all", "none"])
@pytest.mark.parametrize(
    ("gains", "losing"),
    [([2.0, 2.0], 0), ([4.5, -0.5], 1), ([4.0, 0.0], 1), ([7.0, 0.0, -1.0], 2), ([-1.0], 0)],
)
def test_a_member_that_predicts_no_gain_refuses_unless_agreement_is_none(gains, losing, agreement, declines):
    one = Decision(Alteration(("action[0]",), torch.tensor([1.0])), 3.0)
    kept = replayed(Replayed(gains, agreement), one, declines)
    against = f"{losing} of the {len(gains)} members of the model predict no improvement"
    if not losing:
        assert kept == one, "one model alone is not compared with itself"
    elif declines and agreement == "all":
        assert kept.undecided
        assert kept.reason.text.startswith(against)
        assert kept.reason.kind == "losing_members"
        assert kept.reason.text.endswith(f"(their gains: {', '.join(f'{each:g}' for each in gains)})")
    else:
        assert (kept.status, kept.alteration) == (one.status, one.alteration)
        (told,) = kept.warnings
        assert told.startswith(against)


def test_a_sequence_that_returns_what_was_observed_is_no_better():
    one = Decision(Alteration(("action[0]",), torch.tensor([1.0])), 1.0)
    same = Replayed([0.0])
    same.__class__ = type("Same", (Replayed,), {"__call__": lambda self, sequence: 1.0})
    kept = replayed(same, one)
    assert kept.reason.kind == "no_gain"
    assert kept.reason.text == "by the model's own estimate no better than the observed actions (1 against 1)"


def scored(points, agreement="all"):
    """An episode with a score of its state x0 and of the dose drug0, and the same without the dose."""
    found = transition_episode(3, horizon=5, changes=1, effects="dense")
    score = StepScore(
        {"a": {"x0": {"> -1": 1, "> 0": 2, "> 1": 3}}, "b": {"drug0": {"> 0": points}}}, ["drug0"]
    )
    return CounterfactualReturn(found.surrogate, found.case, score, 1, agreement=agreement)


@pytest.mark.parametrize("declines", [True, False])
@pytest.mark.parametrize("agreement", ["all", "none"])
def test_a_change_that_pays_for_one_score_by_the_other_is_refused(declines, agreement):
    dear, free = scored(9.0, agreement), scored(9.0, agreement)
    free = CounterfactualReturn(
        free.surrogate, free.case, free.related[WITHOUT_DOSES], 1, agreement=agreement
    )
    seen = set()
    for objective, other in ((dear, WITHOUT_DOSES), (free, WITH_DOSES)):
        for sequence in singles(objective):
            gains = objective.guarded_gains(sequence)
            value = float(objective(sequence))
            if value <= objective.outcome():
                continue
            kept = replayed(objective, Decision(changed(objective, sequence.tolist()), value), declines)
            falls = float(gains[other]) < 0
            seen.add((other, falls))
            if not falls:
                assert kept.alteration is not None
                assert not any("by the score" in text for text in kept.warnings)
                continue
            refused = declines and agreement == "all"
            assert kept.undecided == refused
            told = kept.reason if refused else kept.findings[-1]
            assert told.kind == "falling_score"
            assert told.text.startswith(
                f"by the score {other}, the model predicts a worse outcome (its gain: -"
            )
    assert {(WITHOUT_DOSES, True), (WITH_DOSES, True)} <= seen


def test_a_reward_with_costs_may_trade_states_for_costs():
    found = transition_episode(3, horizon=5, changes=1)
    costly = EpisodeReward([LinearReward({"x0": -1.0})], {"drug0": 5.0})
    objective = CounterfactualReturn(found.surrogate, found.case, costly, 1)
    assert set(objective.related) == {"without costs", "with costs"}
    assert objective.guarded_gains(objective.observed) == {}


def test_sequences_that_are_not_allowed_are_refused():
    episode = transition_episode(3, horizon=5, changes=2)
    many = Alteration(
        tuple(f"action[{step}]" for step in range(3)), (episode.observed[:3] + 1) % episode.actions
    )
    with pytest.raises(ValueError, match="expected at most 2 changed actions; got 3"):
        replayed(episode, Decision(many, 0.0))
    with pytest.raises(ValueError, match="whole numbers"):
        replayed(episode, Decision(Alteration(("action[0]",), torch.tensor([0.4])), 0.0))


def test_a_replay_may_differ_by_a_millionth_of_the_larger_return():
    episode = transition_episode(3, horizon=5, changes=2)
    high, best = max((float(episode(sequence)), sequence.tolist()) for sequence in singles(episode))
    allowed = 1e-6 * max(1.0, abs(high), abs(episode.outcome()))
    for error, told in ((0.9 * allowed, False), (1.1 * allowed, True), (-1.1 * allowed, True)):
        kept = replayed(episode, Decision(changed(episode, best), high + error))
        assert any("replayed by the model" in text for text in kept.warnings) is told


def test_graphs_are_asked_once_for_all_cases(monkeypatch):
    one = objective()
    several = Candidates(one.cases * 30, [], one.surrogate)
    asked, whole = [], RehearsalGraph.descendants
    monkeypatch.setattr(
        RehearsalGraph,
        "descendants",
        lambda self, names, cut=(): asked.append((names, cut)) or whole(self, names, cut),
    )
    decisions = [setting("a"), setting("m"), NOTHING] * 10
    found = ruled(several, decisions)
    assert len(set(asked)) == len(asked) == 4
    alone = [ruled(one, [each])[0] for each in decisions]
    assert [each.trace for each in found] == [each.trace for each in alone]
    assert [each.warnings for each in found] == [each.warnings for each in alone]
    assert [each.status for each in found] == [each.status for each in alone]


def episode(*shares: float, reward: Reward | None = None) -> CounterfactualReturn:
    found = transition_episode(3, horizon=5, changes=2)
    found.surrogate.noise_check.shares = torch.tensor(shares, dtype=torch.float64)
    return CounterfactualReturn(found.surrogate, found.case, reward or found.reward, 2)


def test_states_of_the_reward_are_judged_and_others_are_not():
    assert model_error(episode()) == model_error(episode(0.1, 0.9)) is None
    both = LinearReward({"x1": 1.0, "x0": -1.0})
    told = model_error(episode(0.48, 0.101, reward=both))
    assert "(R2: x1 0.1, x0 0.48; at most 0.1 is noise)" in told.text


def test_a_recommendation_says_where_the_noise_was_never_checked():
    unknown, known = episode(), episode(0.05, 0.0)
    found = Exhaustive()(known)
    (kept,) = ruled(unknown, [found])
    assert kept.alteration is not None
    (told,) = (each.text for each in kept.findings if each.kind == "noise")
    assert "it is not known" in told
    assert "fewer than 100 steps" in told
    assert not any(each.kind == "noise" for each in ruled(known, [found])[0].findings)
    assert unknown_noise(equation_episode(0)) == []  # the truth is no model of rows


@pytest.mark.parametrize("declines", [True, False])
def test_a_model_with_errors_recommends_nothing_and_says_why(declines):
    good, bad = episode(0.05, 0.0), episode(0.48, 0.0)
    found = Exhaustive()(good)
    assert found.alteration is not None
    (kept,) = ruled(good, [found], declines)
    assert kept.alteration is not None
    (kept,) = ruled(bad, [found], declines)
    assert kept.undecided == declines
    told = kept.reason if declines else kept.findings[-1]
    assert told.kind == "model_error"
    assert told.text.startswith("the model has errors where its answers come from")
    assert "x0 0.48" in told.text
    assert "trainer.max_epochs" in told.text
    agreed = CounterfactualReturn(bad.surrogate, bad.case, bad.reward, 2, agreement="none")
    assert ruled(agreed, [found], declines)[0].alteration is not None
    nothing = Decision(None, bad.outcome())
    assert replayed(bad, nothing) is nothing
