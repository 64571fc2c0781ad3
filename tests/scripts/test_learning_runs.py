"""Runs that learn round by round, as somebody types them: watched, interrupted, taken up again, refused."""

import csv
import json

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

from rehearsal_torch.cli.main import CONF
from rehearsal_torch.methods.instantiate import problem_of
from rehearsal_torch.methods.run_parts import learning
from rehearsal_torch.user_error import UserError
from tests.scripts.typing_in import called, lines

SMALL = (
    "+experiment=ride_hailing",
    "limit=6",
    "objective.search_scenarios=200",
    "objective.validation_scenarios=200",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with one finished run: `run`."""
    folder = tmp_path_factory.mktemp("place")
    answer = called(folder, "decide", *SMALL, "out=run")
    assert answer.code == 0, answer.err
    (folder / "answer.txt").write_text(answer.out)
    return folder


def test_a_run_says_round_by_round_what_came_of_it(place):
    made = lines(place / "run")
    wins = sum(line["success"] for line in made)
    told = (place / "answer.txt").read_text()
    assert (
        f"decided 6 of 6, {told.split('decided 6 of 6, ')[1].split(' s')[0]} s, {wins} successes in 6 rounds"
        in told
    )
    assert f"qwz23_online: 6 online rounds, {wins} of them successful" in " ".join(told.split())
    assert all(line["success"] == (0.8 <= line["answer"]["rows"]["rating"][0] <= 1) for line in made)
    with (place / "run/rounds.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["world"], row["method"], row["tau"], row["round"]) for row in rows] == [
        ("ride_hailing", "qwz23_online", "0.7", str(n)) for n in range(1, 7)
    ]
    assert {path.name for path in (place / "run/figures").glob("*.png")} == {
        "rounds.png",
        "probability.png",
        "calibration.png",
        "answer.png",
    }


def test_an_interrupted_run_learns_from_what_it_recorded(place):
    whole, run = lines(place / "run"), place / "run"
    with (run / "decisions.jsonl").open("w") as file:
        file.write("".join(f"{json.dumps(line)}\n" for line in whole[:3]) + '{"index": 3, "ide')
    answer = called(place, "decide", "resume=run")
    assert answer.code == 0, answer.err
    assert "decided 6 of 6" in answer.out
    assert "decided 3 of 6" not in answer.out
    found = lines(run)
    assert found[:3] == whole[:3]
    assert [line["index"] for line in found] == list(range(6))
    assert [line["success"] for line in found] == [line["success"] for line in whole]
    for line, other in zip(found, whole, strict=True):
        assert line["alteration"] == pytest.approx(other["alteration"], rel=1e-6)
        assert line["value"] == pytest.approx(other["value"], rel=1e-6)


def configured(*overrides):
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", list(overrides))


def test_a_table_of_ones_own_does_not_answer(tmp_path):
    (tmp_path / "task.yaml").write_text(
        "graph: {parents: {x: [], z: [x], y: [x, z]}}\ncontext: [x]\nbox: {z: [0, 1]}\nregion: {y: [0, 1]}\n"
    )
    (tmp_path / "table.csv").write_text("x,z,y\n" + "".join(f"{i},{i % 3},{i % 5}\n" for i in range(30)))
    config = configured(
        "+experiment=own_table",
        f"path={tmp_path}/table.csv",
        f"dataset.task={tmp_path}/task.yaml",
        "learn=true",
    )
    with pytest.raises(UserError, match="does not respond to decisions"):
        learning(config, problem_of(config))
    assert learning(configured("+experiment=auf"), problem_of(configured("+experiment=auf"))) is False
