"""What a run asked, read back from its folder."""

import json

import pytest

from rehearsal_torch.evaluation.run_record import (
    SCORES,
    claim,
    counterpart,
    effort,
    is_sequence,
    read,
    search_of,
)
from rehearsal_torch.files.bounded_yaml import PlainFileError
from rehearsal_torch.objectives.task_reward import WITH_DOSES, WITHOUT_DOSES
from rehearsal_torch.run_folder import RunFolder


def recorded(path, run, *kinds):
    """A folder whose run.json holds `run`, and whose decisions are of some kinds."""
    folder = RunFolder(path)
    folder.write_json("run.json", run)
    each = {"status": "leave", "value": 0.0, "given": {}}
    lines = [{"index": index, **each, **({"kind": kind} if kind else {})} for index, kind in enumerate(kinds)]
    folder.write("decisions.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return read(path)


def test_what_is_no_kind_is_refused(tmp_path):
    assert recorded(tmp_path / "none", {}, "rehearse").kind is None
    words = r"run\.json: kind: expected rehearse, optimise or look_back; got ponder"
    with pytest.raises(PlainFileError, match=words):
        recorded(tmp_path / "other", {"kind": "ponder"})


def test_a_run_is_read_with_its_seconds(sepsis_run):
    run = read(sepsis_run)
    assert [one["index"] for one in run.decisions] == list(range(5))
    assert [one["seconds"] for one in run.decisions] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert run.metrics["mechanism/train_loss"] == [(0.0, 3.0), (1.0, 2.0), (2.0, 1.0), (3.0, 0.0)]
    assert run.config["surrogate"]["doses"] == ["max_dose_vaso", "input_4hourly"]
    assert (len(run.truth), run.choices) == (30, {})
    assert {key: len(some) for key, some in run.groups().items()} == {("branch_and_bound", 3): 5}


def test_a_line_that_was_cut_off_is_left_out_and_the_rest_is_ordered(plain_run):
    path = plain_run / "decisions.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*reversed(lines), lines[0][:-5]]))
    run = read(plain_run)
    assert [one["index"] for one in run.decisions] == list(range(5))
    assert [one["seconds"] for one in run.decisions] == [0.5, None, None, None, None]
    assert run.groups() == {("decision", None): run.decisions}


def test_groups_rise_in_k(sepsis_run):
    run = read(sepsis_run)
    run.decisions[0]["trajectory"]["changes"] = 7
    run.decisions[1]["trajectory"]["changes"] = 1
    assert [key for _, key in run.groups()] == [1, 3, 7]


def test_what_a_decision_says_of_itself():
    decided = {"trace": {"search": "astar", "expanded": 5}, "estimate": {"point": 1.0}, "trajectory": {}}
    assert (search_of(decided), effort(decided, "expanded"), effort(decided, "gap")) == ("astar", 5, None)
    assert (claim(decided), claim(decided, "lower"), claim(decided, of="baseline")) == (1.0, None, None)
    assert is_sequence(decided)
    assert not is_sequence({"trajectory": None})
    assert (search_of({}), effort({"trace": None}, "gap")) == ("decision", None)


def test_curves_of_a_surrogate_are_read_as_they_were_written(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write("metrics.csv", "step,name,value\n")
    assert read(tmp_path).curves == []
    head = "panel,name,along,series,x,value,std\n"
    folder.write("surrogate.csv", f"{head}reward,reward,a,learnt,0.5,1.25,0.1\nnoise,X,,trial,-0.5,,\n")
    first, second = read(tmp_path).curves
    assert (first["along"], float(first["value"]), second["series"], second["std"]) == (
        "a",
        1.25,
        "trial",
        "",
    )


SCORE = {"true_observed": -52.0, "true_organs_observed": -40.0}


@pytest.mark.parametrize(
    ("observed", "name"),
    [(-52.0, "true"), (-40.0 + 1e-9, "true_organs"), (-39.0, None), (None, None), (float("nan"), None)],
)
def test_the_return_without_changes_tells_which_score_is_claimed(observed, name):
    assert counterpart({"observed": observed}, SCORE) == name
    assert name is None or name in SCORES


@pytest.mark.parametrize(("value", "name"), [(-30.0, "true_organs"), (-45.0, "true")])
def test_without_a_vasopressor_the_returns_with_and_without_doses_tell(value, name):
    # Nothing was given, so that both scores begin alike; the decision gives a vasopressor, which scores.
    related = {
        WITHOUT_DOSES: {"observed": -40.0, "value": -30.0},
        WITH_DOSES: {"observed": -40.0, "value": -45.0},
    }
    trajectory = {"observed": -40.0, "value": value, "related": related}
    assert counterpart(trajectory, SCORE | {"true_observed": -40.0}) == name
