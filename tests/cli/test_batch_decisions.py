"""Which situations are decided, in what order they are taken up again, and what is told of them."""

import time
from types import SimpleNamespace

import pytest
import torch

from rehearsal_torch import progress
from rehearsal_torch.cli import batch_decisions
from rehearsal_torch.cli.batch_decisions import Trials, decide, processes, watched
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.round_record import Round
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.training.surrogate_fit import fit
from rehearsal_torch.user_error import UserError
from tests.toys.foresight import GridTogether, LinearResponse, Market, NearOneTogether


def rounds(count, success=None, reward=None, score=None, begin=0):
    nothing = Decision(None, 0.0)
    return [
        Round(index, RehearsalCase(str(index), {}, {}), nothing, None, score or {}, None, success, reward)
        for index in range(begin, begin + count)
    ]


@pytest.fixture
def made(monkeypatch):
    """What `played` was asked for; it answers with rounds that decide nothing."""
    asked = []

    def played(run, surrogate, indices, *, begin, answers, earlier, workers, claims=None):
        assert len(earlier) == len(answers)
        assert claims is None, "the claims are the method's own unless asked for"
        asked.append({"indices": list(indices), "begin": begin, "answers": answers, "workers": workers})
        return iter([each for each in rounds(run.problem.count()) if each.index in list(indices)[begin:]])

    monkeypatch.setattr(batch_decisions, "played", played)
    return asked


def run(count=10, learn=False, search=None, **config):
    config = {"shard": 0, "shards": 1, "workers": 1} | config
    problem = SimpleNamespace(count=lambda: count)
    return SimpleNamespace(problem=problem, learn=learn, search=search, config=config)


@pytest.mark.parametrize(
    ("shard", "shards", "limit", "planned"),
    [
        (0, 1, None, list(range(10))),
        (0, 1, 3, [0, 1, 2]),
        (0, 1, 30, list(range(10))),
        (1, 3, None, [1, 4, 7]),
        (0, 3, None, [0, 3, 6, 9]),
        (2, 3, 5, [2]),
        (2, 3, 2, []),
    ],
)
def test_a_shard_decides_every_nth_situation_below_the_limit_of_all(
    tmp_path, made, shard, shards, limit, planned
):
    folder = RunFolder(tmp_path)
    assert decide(run(shard=shard, shards=shards), folder, None, limit=limit) == len(planned)
    assert [line["index"] for line in folder.decisions()] == planned
    assert made[0]["indices"] == planned


@pytest.mark.parametrize(
    ("count", "limit", "shards"), [(11, None, 3), (11, 7, 2), (3, None, 2), (16, None, 4)]
)
def test_shards_hold_the_batches_of_the_whole_run(tmp_path, made, count, limit, shards):
    # What a batch search finds in a case depends on its batch, in the last digits.
    search = ProjectedAscent(batch_size=4)
    whole = cut(list(range(count if limit is None else limit)), search)
    for shard in range(shards):
        folder = RunFolder(tmp_path / str(shard))
        decide(run(count, search=search, shard=shard, shards=shards), folder, None, limit=limit)
        assert cut(made[shard]["indices"], search) == whole[shard::shards]
        assert (folder.path / "decisions.jsonl").is_file(), "also of a shard without cases"


def cut(indices, search):
    return [indices[start : start + search.batch_size] for start in range(0, len(indices), search.batch_size)]


def test_what_is_done_is_left_out_and_a_torn_line_is_done_again(tmp_path, made):
    folder = RunFolder(tmp_path)
    decide(run(), folder, None, limit=4)
    whole = (tmp_path / "decisions.jsonl").read_text()
    lines = whole.splitlines(keepends=True)
    (tmp_path / "decisions.jsonl").write_text("".join(lines[:2]) + lines[2][:9])
    assert decide(run(), folder, None, limit=4) == 4
    assert made[-1]["begin"] == 2
    assert (tmp_path / "decisions.jsonl").read_text() == whole
    assert decide(run(), folder, None, limit=6) == 6, "a larger limit goes on"
    assert made[-1]["begin"] == 4


def test_decisions_for_other_situations_are_refused_and_kept(tmp_path, made):
    folder = RunFolder(tmp_path)
    decide(run(shard=1, shards=2), folder, None)
    before = (tmp_path / "decisions.jsonl").read_bytes()
    for other in (run(), run(shard=0, shards=2)):
        with pytest.raises(UserError, match="holds other cases than those of this run"):
            decide(other, folder, None)
    assert (tmp_path / "decisions.jsonl").read_bytes() == before
    assert len(made) == 1


def test_a_run_that_learns_needs_the_answers_that_were_recorded(tmp_path, made):
    folder = RunFolder(tmp_path)
    decide(run(), folder, None, limit=2)
    with pytest.raises(UserError, match="holds decisions without the world's responses"):
        decide(run(learn=True), folder, None)


@pytest.mark.parametrize(
    ("learn", "sweep", "workers", "used"),
    [(False, False, 3, 3), (True, False, 3, 1), (False, True, None, 1), (False, True, 2, 2)],
)
def test_rounds_that_learn_are_one_process_and_so_are_jobs_of_a_sweep(
    tmp_path, made, learn, sweep, workers, used
):
    decide(run(learn=learn, workers=workers), RunFolder(tmp_path), None, limit=1, sweep=sweep)
    assert made[0]["workers"] == used


def test_an_online_run_is_not_shared_by_a_cluster(tmp_path):
    online = run(learn=True, parallel="dask", dask={"address": None})
    with pytest.raises(UserError, match="parallel=dask: each round of an online run needs those before it"):
        decide(online, RunFolder(tmp_path), None, limit=1)


def test_a_run_that_is_finished_asks_for_no_cluster(tmp_path, made):
    folder = RunFolder(tmp_path)
    decide(run(), folder, None, limit=2)
    with_cluster = run(parallel="dask", dask={"address": "tcp://127.0.0.1:1"})
    assert decide(with_cluster, folder, None, limit=2) == 2
    assert made[-1]["begin"] == 2


def test_left_to_itself_a_run_takes_every_core(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 7)
    assert processes(None, sweep=False) == 7
    assert processes(None, sweep=True) == 1
    assert processes(2, sweep=False) == 2


def test_progress_is_written_to_the_standard_error_while_rounds_are_made(capsys, monkeypatch):
    monkeypatch.setattr(progress, "REDRAWN", 0.005)
    monkeypatch.setattr(progress, "LOGGED", 0.0)
    monkeypatch.setattr(progress, "_last_line", [])
    for each in watched(iter(rounds(3)), 0, 3):
        if each.index == 1:
            time.sleep(0.1)
    assert "deciding: 2 of 3, about " in capsys.readouterr().err


def test_successes_are_counted_where_the_world_has_a_word_on_them(capsys):
    given = [*rounds(1, success=True), *rounds(1), *rounds(1, success=False)]
    list(watched(iter(given), 0, 3))
    assert capsys.readouterr().out.partition(" s")[2] == ", 1 successes in 2 rounds\n"


SCORE = {"expected": 0.25, "start": 0.125, "optimum": 1.0}


def tried(score, reward=0.5, value=0.123456):
    decision = Decision(Alteration(("a",), torch.tensor([value], dtype=torch.float64)), 0.0)
    return Round(0, RehearsalCase("0", {}, {}), decision, None, score, None, None, reward)


def test_a_trial_is_told_with_the_best_so_far_the_start_design_included():
    trials = Trials()
    first = trials.note(tried(SCORE))
    assert first.startswith("a 0.123; reward 0.5, best expected 0.25 of 1, ")
    assert first.endswith(" s")
    assert "best expected 0.25 of" in trials.note(tried(SCORE | {"expected": 0.1}))
    assert "best expected 0.5 of" in trials.note(tried(SCORE | {"start": 0.5}))
    assert "best expected" not in trials.note(tried({"expected": 0.9}))


def test_a_run_that_goes_on_remembers_the_best_of_before():
    trials = Trials([{"score": {"expected": 0.75}}, {"score": None}, {}])
    assert "best expected 0.75 of 1" in trials.note(tried(SCORE))


def test_trials_are_told_round_by_round_on_request(capsys):
    given = [tried(SCORE), *rounds(1, begin=1)]
    list(watched(iter(given), 0, 100, Trials(), tables=True))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("round 1 of 100: a 0.123; ")
    list(watched(iter(given), 0, 100, Trials()))
    assert "round" not in capsys.readouterr().out


def test_rounds_are_played_from_the_same_seed_however_often():
    market = Market()
    surrogate = fit(LinearResponse(), market.observations())
    # The objective draws noise of its own for each group of situations.
    whole = SimpleNamespace(
        problem=market,
        objective=lambda model, cases: NearOneTogether.for_cases(model, cases, noise=0.1),
        search=GridTogether(),
        certify=None,
        seed=3,
        learn=False,
        trainer=None,
    )

    def actions(seed, *indices, begin=0):
        whole.seed = seed
        made = batch_decisions.played(whole, surrogate, indices or None, begin=begin)
        return {each.index: each.decision.to_dict()["alteration"] for each in made}

    torch.manual_seed(0)
    first = actions(3)
    assert len(first) == 40
    torch.manual_seed(1)
    assert actions(3) == first
    assert actions(4) != first
    assert list(actions(3, 5, 7, 9, begin=1)) == [7, 9]
