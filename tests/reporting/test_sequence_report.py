import json
import math
from pathlib import Path

import pytest

from rehearsal_torch.evaluation.run_record import Recorded, read
from rehearsal_torch.files.csv_rows import as_csv
from rehearsal_torch.reporting.labels import Dose, Wording
from rehearsal_torch.reporting.page.html import sentences
from rehearsal_torch.reporting.page.page_content import material
from rehearsal_torch.reporting.page.run_page import notes_of_sequences, overall_of_sequences
from rehearsal_torch.reporting.run_report import report
from rehearsal_torch.reporting.sequence_report import (
    changed_doses,
    contradicted,
    observed_groups,
    summary,
    wilson,
)
from tests.conftest import decision

WORDS = Wording("SOFA", -1.0, "points")


def test_a_sequence_run_is_summed_up(sepsis_run):
    (row,) = summary(read(sepsis_run), WORDS)
    # Improvements .02, .10, .04, .06, .03; observed outcomes -50, -60, -40, -80, -20; the last is unproven.
    assert (row["search"], row["k"], row["patients"], row["observed"]) == ("branch_and_bound", 3, 5, 50.0)
    assert row["improvement"] == pytest.approx(0.05)
    assert row["improvement_median"] == pytest.approx(0.04)
    assert row["improvement_low"] < 0.05 < row["improvement_high"]
    assert row["proven"] == pytest.approx(0.8)
    assert row["seconds_median"] == pytest.approx(0.3)
    assert row["expanded_median"] == 30
    assert row["ebf"] == pytest.approx(1.2)
    assert row["score/true_improvement"] == pytest.approx(0.025)
    assert row["score/regret"] == pytest.approx(1.0)
    # truth.csv: learnt errors of SOFA are 1, 2, 3, 4, 5, those of fresh noise three more.
    assert row["truth/rmse, learnt"] == pytest.approx(3.0)
    assert row["truth/rmse, fresh noise"] == pytest.approx(6.0)
    assert not any("GCS" in name for name in row)


def test_other_decisions_are_summed_up_by_value(plain_run):
    (row,) = summary(read(plain_run), Wording())
    assert (row["search"], row["decisions"], row["refused"]) == ("decision", 5, 1)
    assert row["value"] == pytest.approx(2.0)
    assert row["score/success"] == pytest.approx(0.5)
    assert row["seconds_median"] == pytest.approx(0.5), "of the one that was timed"


def test_rows_of_several_searches_say_nothing_of_the_truth(sepsis_run):
    run = read(sepsis_run)
    for one in run.decisions[:2]:
        one["trajectory"]["changes"] = 1
    assert [(row["k"], row["patients"]) for row in summary(run, WORDS)] == [(1, 2), (3, 3)]
    assert not any(name.startswith("truth/") for row in summary(run, WORDS) for name in row)


def test_refusals_and_bookkeeping_are_sentences(sepsis_run):
    run = read(sepsis_run)
    for one, kind in zip(run.decisions, ("losing_members", "no_gain"), strict=False):
        one |= {"alteration": None, "reason": {"kind": kind, "text": "why"}}
    for index, one in enumerate(run.decisions):
        one["trajectory"]["related"] = {
            "without doses": {"value": -9.0, "observed": -10.0},
            "with doses": {"value": -20.0 - index, "observed": -20.0},
        }
    (row,) = summary(run, WORDS)
    assert (row["refused"], row["no_action"]) == (1, 1)
    assert row["improvement without doses"] == pytest.approx(0.1)
    assert row["improvement with doses"] == pytest.approx(-0.1)
    text = " ".join(notes_of_sequences(material(sepsis_run)))
    assert text == ""
    text = " ".join(sentences("episodes_notes", row, WORDS, []))
    beginning = "Nothing is recommended for 2 of 5: no change lowers SOFA for 1 and for 1 the fitted models"
    assert beginning in text
    assert "without the points of doses gets better by 10%, and with them by -10%" in text


@pytest.mark.parametrize(("true", "told"), [(-0.03, True), (0.02, False)])
def test_a_truth_that_contradicts_the_model_is_said_beside_its_claim(sepsis_run, true, told):
    run = read(sepsis_run)
    for one in run.decisions:
        one["trajectory"]["improvement"] = 0.04
        one["score"] = {"true_improvement": true, "true_organs_improvement": 0.01}
    (row,) = summary(run, WORDS)
    (first,) = overall_of_sequences(row, WORDS)
    assert first.startswith("By the model, the cumulative SOFA is better by 4% on average over 5 episodes")
    told_columns = contradicted(row)
    assert told_columns == ["score/true_improvement"] * told
    caution = (
        "Caution: the truth contradicts the model: true improvement, as a share of what was observed is -3%"
    )
    notes = sentences("episodes_notes", row, WORDS, told_columns)
    assert [text.startswith(caution) for text in notes] == [True] * told


def decided(index: int, status: str, improvement: float, died: float | None) -> dict:
    outcomes = {} if died is None else {"observed_outcomes": {"died_in_hosp": died}}
    trajectory = {
        "horizon": 3,
        "changes": 2,
        "actions": [0, 1],
        "observed_actions": [0, 0],
        "rewards": [-1.0, -1.0, -1.0],
        "observed_rewards": [-1.0, -1.0, -2.0],
        "doses": [[0.0], [1.0]],
        "observed_doses": [[0.0], [0.0]],
        "value": -4.0 * (1 - improvement),
        "observed": -4.0,
        "improvement": improvement,
    }
    return {
        "index": index,
        "kind": "look_back",
        "identity": str(index),
        **outcomes,
        "status": "may" if status == "recommended" else "leave",
        "alteration": {"action[1]": 1} if status == "recommended" else None,
        "value": -3.0,
        "estimate": None,
        "baseline": None,
        "findings": [],
        "reason": None,
        "trace": {"search": "greedy_changes"},
        "trajectory": trajectory,
        "score": {},
    }


DECISIONS = [decided(place, "recommended", 0.01 * (place + 1), float(place < 2)) for place in range(6)]
DECISIONS += [
    decided(6, "no_action", 0.0, 1.0),
    decided(7, "refused", 0.0, 0.0),
    decided(8, "no_action", 0.0, None),
]


def test_every_changed_dose_has_a_row_in_names_and_units():
    one = decision(1) | {
        "identity": "=7",
        "alteration": {"action[1]": 5, "action[0]": 2},
        "times": ["a", "b"],
    }
    one["trajectory"] |= {"observed_doses": [[0, 3.5], [2, 1.5]], "doses": [[1, 3.5], [0, 4.0]]}
    one["trajectory"]["support"] = {"0": 12}
    one["parts"] = {"action[0]": {"point": 0.4, "lower": 0.1, "upper": 0.7}}
    one["hidden_cause"] = {"tipping": 0.5, "parts": {"action[0]": 0.25}}
    beyond = decision(2) | {"alteration": {"action[9]": 1}}
    left = decision(3) | {"alteration": None, "status": "leave"}
    doses = (Dose("V", "valve", "", ("shut", "half", "open")), Dose("O", "oil", "ml"))
    found = changed_doses(Recorded(Path(), [one, beyond, left]), Wording(doses=doses))
    assert as_csv(found).splitlines() == [
        "unit,step,time,action,from,to,dose_unit,support,part,part_low,part_high,tipping",
        "'=7,1,a,valve,shut,half,,12,0.4,0.1,0.7,0.25",
        "'=7,2,b,valve,open,shut,,,,,,",
        "'=7,2,b,oil,1.5,4.0,ml,,,,,",
    ]


def test_intervals_are_wilson_s():
    assert wilson(0, 10) == pytest.approx((0.0, 0.0, 0.2775), abs=1e-4)
    assert wilson(5, 10) == pytest.approx((0.5, 0.2366, 0.7634), abs=1e-4)
    assert all(map(math.isnan, wilson(0, 0)))
    nobody = observed_groups(Recorded(Path(), DECISIONS[:6]))
    assert sentences("observed", nobody)[0].endswith("nothing recommended: no episode.")


@pytest.mark.slow
def test_the_report_of_a_run_has_the_table(tmp_path: Path):
    lines = "".join(json.dumps(one) + "\n" for one in DECISIONS)
    (tmp_path / "decisions.jsonl").write_text(lines)
    shown = report(tmp_path)
    told = (tmp_path / "report.html").read_text()
    assert "change recommended: 2 of 6, 33.3%" in told
    assert "not an effect" in told
    assert "changes.csv" in shown
    assert (tmp_path / "observed_outcomes.csv").read_text().splitlines()[0] == (
        "search,k,outcome,group,episodes,observed,share,low,high"
    )
    assert "observed_outcomes.csv" in shown
