"""The speed suite with tiny sizes: every row works, and both sides reach what they are meant to reach."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.suite import measuring
from benchmarks.suite.measuring import Contest, Quality, Timed, factor, measured, ratio_of_medians, slope
from benchmarks.suite.page import arithmetic, page
from benchmarks.suite.plain.linear import nearest
from benchmarks.suite.runner import OUT, PARTS, main, record
from benchmarks.suite.sequences import MINUTE, proofs
from tests.places import ROOT

ROWS = {job.key: job for part in PARTS.values() for job in part.jobs(small=True)}
# Groups whose sides are not meant to agree, by the first words of their quality, with what it must be in.
APART = {
    **dict.fromkeys(
        (
            *(f"{each}, model.decide" for each in ("care", "micns")),
            "care, model.decide, beside a package",
            "the default, learn and decide",
            "the default, learn and decide, beside a package",
            "rehearsal decide problem.yaml",
        ),
        ("mean true P", 0.0, 1.0),
    ),
    # Returns are minus costs.
    "machines, k = 3": ("mean true return", -np.inf, 0.0),
    # The optimum is certified to 1e-5.
    **dict.fromkeys(
        (f"causal round, {method}{nodes}" for method in ("excbo", "ucb") for nodes in ("", ", nodes")),
        ("mean simple regret", -1e-5, np.inf),
    ),
    "proofs, k = 8, 20 episodes": ("mean return", -np.inf, np.inf),
}


@pytest.mark.bench
@pytest.mark.parametrize("key", ROWS)
def test_both_sides_agree_in_quality(key, monkeypatch):
    if ROWS[key].missing:
        pytest.skip(f"{ROWS[key].needs} is not installed")
    monkeypatch.setattr(measuring, "FLOOR", 0.0)
    found = measured(ROWS[key].make(), 1)
    quality = found["quality"]
    assert np.isfinite([found["ours_ms"], found["theirs_ms"], quality["ours"], quality["theirs"]]).all()
    assert min(found["ours_ms"], found["theirs_ms"]) > 0
    assert quality["because"]
    assert (quality["tolerance"] is None) == (ROWS[key].group in APART)
    if quality["tolerance"] is not None:
        assert quality["verdict"] == "equal", quality
        return
    name, low, high = APART[ROWS[key].group]
    assert quality["name"].startswith(name)
    assert low <= min(quality["ours"], quality["theirs"]) <= max(quality["ours"], quality["theirs"]) <= high
    if ROWS[key].group.startswith("proofs"):
        facts = found["facts"]
        assert facts["proven"] == facts["within"] == facts["episodes"] == 2
        assert quality["ours"] >= quality["theirs"] - 1e-6, "what is proven is no worse than greedy changes"


@pytest.mark.bench
def test_eight_changes_in_thirty_steps_are_proven_within_a_minute():
    """The row of twenty episodes, with five."""
    contest = proofs(30, 8, 5)
    facts = contest.facts(contest.ours(), [])
    assert (facts["episodes"], facts["k"]) == (5, 8)
    assert facts["proven"] == 5
    assert 0 < facts["median_s"] <= facts["largest_s"] <= MINUTE
    assert facts["within"] == 5


@pytest.mark.bench
def test_what_was_measured_is_kept_and_written(tmp_path):
    job = ROWS["ancestors | nodes 6"]
    first = record(tmp_path, [job], 3)
    assert record(tmp_path, [job], 3)["rows"] == first["rows"]
    written = json.loads((tmp_path / "bench.json").read_text())
    assert written == first
    row = first["rows"][job.key]
    shown = (tmp_path / "README.md").read_text()
    assert shown == page(written)
    assert "| ancestors | nodes 6 | networkx |" in shown
    assert row["repetitions"] == 3
    assert row["quality"] == {
        "name": "equal answers", "ours": 20.0, "theirs": 20.0, "tolerance": 0.0, "verdict": "equal",
        "because": "answers are yes, no, or sets of names",
    }  # fmt: skip
    assert row["operations"] == {}
    assert "- `ancestors`: exact, since answers are yes, no, or sets of names." in shown


def test_the_committed_page_is_that_of_its_record():
    content = json.loads((ROOT / OUT / "bench.json").read_text(encoding="utf-8"))
    assert (ROOT / OUT / "README.md").read_text(encoding="utf-8") == page(content)
    assert not content["commit"].endswith("+changes")
    assert set(content["rows"]) == {job.key for part in PARTS.values() for job in part.jobs()}


def test_no_two_rows_have_one_name():
    keys = [job.key for part in PARTS.values() for job in part.jobs()]
    assert len(set(keys)) == len(keys)


@pytest.mark.slow
def test_rows_of_packages_that_are_not_installed_are_left_out_with_a_word(tmp_path, capsys):
    job = replace(ROWS["d-separation, pgmpy | nodes 6"], needs="no_such_package", make=pytest.fail)
    assert record(tmp_path, [job], 3)["rows"] == {}
    assert "left out: no_such_package is not installed" in capsys.readouterr().out
    assert "; pgmpy." in (tmp_path / "README.md").read_text()


def test_ratio_has_its_interval():
    times = np.array([[1.0, 2.0], [1.1, 2.2], [0.9, 1.8], [5.0, 10.0]])
    ratio, low, high = ratio_of_medians(times)
    assert ratio == pytest.approx(2.0)
    assert (low, high) == (pytest.approx(2.0), pytest.approx(2.0)), "both sides of a repetition go together"
    assert ratio_of_medians(np.array([[1.0, 1.0], [1.0, 3.0], [1.0, 2.0]]))[1:] == (1.0, 3.0)


@pytest.mark.bench
def test_sides_run_in_turns_and_may_time_themselves(monkeypatch):
    monkeypatch.setattr(measuring, "FLOOR", 0.0)
    order = []

    def side(name, seconds):
        order.append(name)
        return Timed(name, seconds)

    judged = lambda one, other: Quality(f"{one}{other}", 1.0, 2.0, None, "no", higher=False)  # noqa: E731
    contest = Contest(lambda: side("a", 0.002), lambda: side("b", 0.003), judged, units=0)
    found = measured(contest, 3)
    assert "".join(order).endswith("ababab")
    assert found["operations"] is None
    assert (found["ours_ms"], found["theirs_ms"]) == (pytest.approx(2), pytest.approx(3))
    assert found["ratio"] == pytest.approx(1.5)
    assert (found["quality"]["name"], found["quality"]["verdict"]) == ("ab", "better")


def test_exponents_are_recovered():
    assert slope([10, 100, 1000], [3 * size**2.5 for size in (10, 100, 1000)]) == pytest.approx(2.5)
    assert factor([1, 2, 4], [3 * 2.5**size for size in (1, 2, 4)]) == pytest.approx(2.5)


def test_shares_weigh_each_precision_by_its_own_limit():
    row = {"group": "fit", "peer": "another", "axis": "N", "size": 10, "ours_ms": 100.0}
    rows = [row | {"operations": {"float64": 1e9, "float32": 2e9}}, row | {"operations": {}}]
    rows += [row | {"operations": None}]
    # 1 / 50 + 2 / 100 = .04 s of .1 s.
    found = list(arithmetic(rows, [("fit", "another", "N")], {"float64": 50.0, "float32": 100.0}))
    assert found == ["| fit | N 10 | 3,000 | 30 | 40.0% |"]


def test_the_cheapest_action_of_the_reference_is_the_projection():
    # min z1^2 + 4 (z2 - 1)^2 subject to z1 + z2 >= 3: z1 = t / 2, z2 = 1 + t / 8, t = 3.2.
    box = np.full(2, -9.0), np.full(2, 9.0)
    found = nearest(np.zeros(1), np.ones(2), np.array([1.0, 4.0]), np.array([0.0, 1.0]), *box, 3.0, 9.0)
    assert found == pytest.approx(np.array([[1.6, 1.4]]))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--parts", "lineer"], "expected some of tables"),
        (["--repeat", "2"], "expected at least 3"),
        (["--small"], "choose another --out"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, told):
    with pytest.raises(SystemExit, match=told):
        main(arguments)
