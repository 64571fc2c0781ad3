import math

import pytest
import torch

from rehearsal_torch.data.decision import Decision, Estimate
from rehearsal_torch.spaces.box import Alteration
from reproduction.record import Record
from reproduction.sepsis.episode_rows import LAYOUT, STAGES, Case, frame, points, rows_of_cases
from reproduction.sepsis.jobs import EpisodeJob

CASE = Case(12, 3, "astar", "mc_lipschitz", 200, 1.0)


def episodes_in(folder):
    return Record(folder, dict.fromkeys(STAGES, LAYOUT))


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
    record.add(EpisodeJob("samples", case.key(episode), 0, case), [row], {"state": "ok"})


def test_the_file_has_exactly_the_columns_asked_for(tmp_path):
    add(episodes_in(tmp_path), "7")
    assert (tmp_path / "episodes.csv").read_text().splitlines() == [
        "episode,T,k,search,anchors,M,L_h,value,observed,improvement,"
        "expanded,generated,ebf,network_evaluations,seconds,proven",
        "7,12,3,astar,mc_lipschitz,200,1,-76.0,-80.0,0.05,700,17500,1.6,20000,1.2346,True",
    ]


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
