"""Shards of a sweep as one run."""

import json

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.verbs.collect import collect, main, shards
from rehearsal_torch.run_folder import SECONDS, RunFolder


def shard(sweep, job, number, indices, shards=2, state="ok", **config):
    folder = RunFolder(sweep / str(job))
    folder.write_yaml(
        "config.yaml", {"name": "toy", "shard": number, "shards": shards, "out": str(job), **config}
    )
    folder.write_json(
        "run.json",
        {"seconds": 1.5, "overrides": [f"shard={number}", f"shards={shards}", "seed=0"], "script": "decide"},
    )
    folder.write(
        "decisions.jsonl",
        "".join(f'{{"index": {index}, "status": "no_action", "value":  {index}.50}}\n' for index in indices),
    )
    folder.write_metrics([(index, SECONDS, 0.1) for index in indices])
    folder.close(state, "", [], 1.5)


def test_lines_are_merged_as_they_are_in_the_order_of_their_indices(tmp_path):
    shard(tmp_path, 0, 1, [1, 3])
    shard(tmp_path, 1, 0, [0, 2, 4])
    (merged,) = collect(tmp_path)
    assert merged.path == tmp_path
    assert (tmp_path / "decisions.jsonl").read_text() == "".join(
        f'{{"index": {index}, "status": "no_action", "value":  {index}.50}}\n' for index in range(5)
    )
    assert [step for step, _, _ in merged.metrics()] == list(range(5))
    assert merged.read_json("run.json") == {
        "seconds": 3.0,
        "overrides": ["seed=0"],
        "script": "decide",
        "merged_from": 2,
    }
    content = {"name": "toy", "shard": 0, "shards": 1, "out": str(tmp_path)}
    assert list(merged.read_yaml("config.yaml").items()) == list(content.items()), "in the order of a job"


def test_several_cohorts_are_kept_apart(tmp_path):
    for job, (seed, number) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        shard(tmp_path, job, number, [number], seed=seed)
    assert [merged.path.name for merged in collect(tmp_path)] == ["cohort-0", "cohort-1"]
    assert [merged.read_yaml("config.yaml")["seed"] for merged in collect(tmp_path)] == [0, 1]


def test_a_damaged_shard_is_named_and_what_was_merged_stays(tmp_path, capsys):
    shard(tmp_path, 0, 0, [0, 2])
    shard(tmp_path, 1, 1, [1, 3])
    collect(tmp_path)
    merged = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with (tmp_path / "1/decisions.jsonl").open("a") as file:
        file.write("hello\n")
    assert main([str(tmp_path)]) == 2
    assert "1/decisions.jsonl, line 3: " in capsys.readouterr().err
    (tmp_path / "0/config.yaml").write_text("shards: many\n")
    assert main([str(tmp_path)]) == 2
    assert "shards: expected a whole number; got many" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == merged


def test_what_this_command_did_not_write_is_not_written_over(tmp_path):
    shard(tmp_path, 0, 0, [0, 2])
    shard(tmp_path, 1, 1, [1])
    (tmp_path / "run.json").write_text('{"seconds": 1}')
    (tmp_path / "decisions.jsonl").write_text("mine\n")
    with pytest.raises(
        UserError, match=r"holds run.json and decisions.jsonl that this command did not write"
    ):
        shards(tmp_path)
    assert (tmp_path / "decisions.jsonl").read_text() == "mine\n"


def test_merging_again_changes_nothing_and_a_new_shard_line_is_taken_up(tmp_path):
    shard(tmp_path, 0, 0, [0, 2])
    shard(tmp_path, 1, 1, [1])
    (first,) = collect(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    (again,) = collect(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    shard(tmp_path, 1, 1, [1, 3])
    assert [each["index"] for each in collect(tmp_path)[0].decisions()] == [0, 1, 2, 3]
    assert first.path == again.path == tmp_path


def test_the_comparisons_with_the_truth_follow_the_order_of_the_situations(tmp_path):
    for job, (number, indices) in enumerate([(0, [0, 2]), (1, [1, 3])]):
        shard(tmp_path, job, number, indices)
        folder = RunFolder(tmp_path / str(job))
        named = [
            json.loads(text) | {"identity": f"stay-{9 - json.loads(text)['index']}"}
            for text, _ in folder.decided()
        ]
        folder.write("decisions.jsonl", "".join(f"{json.dumps(each)}\n" for each in named))
        rows = [f"stay-{9 - index},{quantity},{index}" for index in indices for quantity in ("a", "b")]
        folder.write("truth.csv", "\n".join(["episode,quantity,value", *rows, ""]))
    (merged,) = collect(tmp_path)
    assert (merged.path / "truth.csv").read_text().splitlines() == [
        "episode,quantity,value",
        *(f"stay-{9 - index},{quantity},{index}" for index in range(4) for quantity in ("a", "b")),
    ]


def test_jobs_that_are_no_shards_are_left_alone(tmp_path):
    shard(tmp_path, 0, 0, [0, 2])
    shard(tmp_path, 1, 1, [1])
    shard(tmp_path, 2, 0, [0, 1, 2], shards=1, name="whole")
    (tmp_path / "figures").mkdir()
    assert [each.path for each in collect(tmp_path)] == [tmp_path]
