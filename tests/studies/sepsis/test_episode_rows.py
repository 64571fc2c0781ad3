import math

import pytest
import torch

from rehearsal_torch.data.decision import Decision, Estimate
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.studies.record import Outcome
from rehearsal_torch.studies.sepsis.episode_rows import (
    COLUMNS,
    Case,
    episodes_in,
    frame,
    points,
    rows_of_cases,
)
from rehearsal_torch.studies.sepsis.reproduction import EpisodeJob

CASE = Case(12, 3, "astar", "mc_lipschitz", 200, 1.0)


def decision(improvement=0.05, seconds=1.23456, proven=True):
    trace = {
        "expanded": 700,
        "generated": 17500,
        "network_evaluations": 20000,
        "effective_branching_factor": 1.6,
        "proven": proven,
    }
    claims = {
        "estimate": Estimate(-80.0 * (1 - improvement), "return"),
        "baseline": Estimate(-80.0, "return"),
    }
    change = Alteration(("action[1]",), torch.tensor([3]))
    return Decision(change, -76.0, **claims, trace=trace, seconds=seconds)


def add(record, episode, case=CASE, **changed):
    row = case.row(episode, decision(**changed))
    record.add(Outcome(EpisodeJob("samples", case.key(episode), 0, case), [row]))


def test_the_file_has_exactly_the_columns_asked_for(tmp_path):
    add(episodes_in(tmp_path), "7")
    assert (tmp_path / "episodes.csv").read_text().splitlines() == [
        "episode,T,k,search,anchors,M,L_h,value,observed,improvement,"
        "expanded,generated,ebf,network_evaluations,seconds,proven",
        "7,12,3,astar,mc_lipschitz,200,1,-76.0,-80.0,0.05,700,17500,1.6,20000,1.2346,True",
    ]


def test_rows_that_are_there_are_known(tmp_path):
    add(episodes_in(tmp_path), "7")
    again = episodes_in(tmp_path)
    jobs = [EpisodeJob("changes", CASE.key(episode), 0, CASE) for episode in ("7", "8")]
    assert again.todo(jobs) == jobs[1:]
    add(again, "8")
    assert frame(again)["episode"].to_list() == ["7", "8"]
    assert frame(again)["improvement"].to_list() == [0.05, 0.05]
    assert frame(again)["proven"].dtype == bool


def test_a_line_that_was_cut_off_is_dropped_and_made_again(tmp_path):
    record, path = episodes_in(tmp_path), tmp_path / "episodes.csv"
    add(record, "7")
    add(record, "8")
    path.write_text(path.read_text()[:-20])
    again = episodes_in(tmp_path)
    assert set(again.lines) == {CASE.key("7")}
    again.mend()
    add(again, "8")
    assert len(path.read_text().splitlines()) == 3


def test_a_file_with_other_columns_is_left_alone(tmp_path):
    path = tmp_path / "episodes.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(PlainFileError, match="expected the columns"):
        episodes_in(tmp_path)
    assert path.read_text() == "a,b\n1,2\n"


def test_a_file_of_a_header_alone_or_of_nothing_whole_has_no_rows(tmp_path):
    for content in ("", "episode,T", ",".join(COLUMNS) + "\n"):
        (tmp_path / "episodes.csv").write_text(content)
        assert len(frame(episodes_in(tmp_path))) == 0


def test_a_damaged_cell_is_named(tmp_path):
    path = tmp_path / "episodes.csv"
    add(episodes_in(tmp_path), "7")
    path.write_text(path.read_text().replace("True", "perhaps"))
    with pytest.raises(PlainFileError, match="proven: expected True or False; got 'perhaps'"):
        frame(episodes_in(tmp_path))


def test_a_row_with_another_column_is_refused(tmp_path):
    job = EpisodeJob("samples", CASE.key("7"), 0, CASE)
    with pytest.raises(ValueError, match="fields not in fieldnames"):
        episodes_in(tmp_path).add(Outcome(job, [{"other": 1}]))


def test_points_are_the_means_of_the_rows_of_cases(tmp_path):
    record = episodes_in(tmp_path)
    cases = [Case(12, k, "astar", "mc_lipschitz", 200, 1.0) for k in (1, 2)]
    other = Case(12, 2, "branch_and_bound", "", 0, 1.0)
    for case in (*cases, other):
        for e in range(4):
            improved = {"improvement": 0.01 * case.changes * (e + 1), "seconds": 0.5 * (e + 1)}
            add(record, str(e), case, **improved, proven=e != 3)
    found = points(rows_of_cases(frame(record), cases), "k")
    assert [point.x for point in found] == [1, 2]
    assert [point.improvement.mean for point in found] == pytest.approx([0.025, 0.05])
    assert found[0].seconds.mean == pytest.approx(1.25)
    assert found[0].proven == 0.75
    assert found[0].improvement.count == 4
    assert points(rows_of_cases(frame(record), [Case(12, 9, "astar", "mc_lipschitz", 200, 1.0)]), "k") == []
    assert math.isclose(points(rows_of_cases(frame(record), [other]), "k")[0].ebf.mean, 1.6)
