"""Strengths of a run, from its records."""

from rehearsal_torch.data.sensitivity import HiddenCause, Sensitivity
from rehearsal_torch.evaluation.overturning_sentences import (
    graphs_overall,
    overall,
    sequences_overall,
    stands,
    typical,
    yardstick,
)

FOUND = [
    Sensitivity(3.0, "interval", 1.7, "age"),
    Sensitivity(1.0, "interval", 2.4, "sex"),
    Sensitivity(1.5, "interval", 1.7, "age"),
]
LINES = [{"sensitivity": each.to_dict()} for each in FOUND]


def test_the_median_the_share_and_the_strongest_covariate():
    assert typical(FOUND) == 2
    assert typical(FOUND[:2]) == 1
    assert [stands(FOUND, each) for each in (1.0, 1.4, 1.5, 3.0)] == [2 / 3, 2 / 3, 1 / 3, 0.0]
    assert yardstick(FOUND) == ("sex", 2.4)
    assert yardstick([Sensitivity(1.0, "point")]) is None


def test_one_sentence_about_all():
    assert overall([{}, *LINES]) == (
        "A hidden common cause would have to make the action 1.50 times as likely, or as unlikely, to "
        "overturn the median recommendation (of 3: 1.00 to 3.00); the strongest recorded variable, sex, "
        "makes the action 2.40 times as likely, or as unlikely."
    )
    assert overall(LINES[:1]) == f"A{FOUND[0].sentence()[1:]}."
    never = {"sensitivity": {"tipping": None, "basis": "point", "note": "there is none"}}
    assert overall([never, never]) == (
        "No hidden common cause can overturn most of the recommendations (strengths unlimited to unlimited), "
        "by the estimates alone where the method has no interval; there is none."
    )


def test_one_sentence_about_the_graphs():
    def line(stand, worst, judged=1.0, acted=True):
        found = {"stand": stand, "worst": worst, "worst_graph": 2, "worst_weight": 0.1, "graphs": 3}
        return {"alteration": {"a": 1.0} if acted else None, "trace": {"graphs": found | {"judged": judged}}}

    assert graphs_overall([line(1.0, 0.2), line(0.9, -0.05, 0.99), line(0.0, -0.9, acted=False)]) == (
        "Over 3 candidate graphs, better than no action under 95.0% of the posterior (least 90.0%); graphs "
        "with 1.0% of it have too few scenarios for a comparison; under the worst graph, number 2 with 10.0% "
        "of it, by -5.0 percentage points."
    )
    assert graphs_overall([line(1.0, 0.2)]) == (
        "Over 3 candidate graphs, better than no action under 100.0% of the posterior; under the worst "
        "graph, number 2 with 10.0% of it, by +20.0 percentage points."
    )
    assert graphs_overall([{"alteration": {"a": 1.0}, "trace": {}}]) == ""
    assert (
        graphs_overall([{"alteration": {"a": 1.0}, "trace": {"graphs": {"judged": 0.0, "graphs": 9}}}]) == ""
    )


def decided(*strengths):
    return [{"hidden_cause": HiddenCause(each, "x", 0.3, "y", 0.3).to_dict()} for each in strengths]


def test_one_sentence_for_all_sequences():
    said = sequences_overall([*decided(0.1, 0.2, 1.0), {"status": "leave"}])
    assert said == (
        "A hidden common cause that explains 20.0% of what the recorded variables leave open, of the doses "
        "and of every next state, can overturn the median recommendation (of 3: 10.0% to none); one as "
        "strong as the strongest recorded variable, x (30.0%), can overturn 2 of 3."
    )
    none = sequences_overall(decided(1.0, 1.0))
    assert none.startswith("No hidden common cause of doses and states can overturn most")
