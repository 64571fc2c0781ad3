"""The speed suite with tiny sizes: every row works, and both sides reach what they are meant to reach."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.suite import measuring
from benchmarks.suite.measuring import Contest, Quality, Timed, factor, measured, ratio_of_medians, slope
from benchmarks.suite.page import factors, page
from benchmarks.suite.plain.linear import nearest
from benchmarks.suite.runner import OUT, PARTS, main, record
from tests.places import ROOT

ROWS = {job.key: job for part in PARTS.values() for job in part.jobs(small=True)}


@pytest.mark.nightly
@pytest.mark.parametrize("key", ROWS)
def test_both_sides_agree_in_quality(key, monkeypatch):
    if ROWS[key].missing:
        pytest.skip(f"{ROWS[key].needs} is not installed")
    monkeypatch.setattr(measuring, "FLOOR", 0.0)
    found = measured(ROWS[key].make(), 1)
    quality = found["quality"]
    assert np.isfinite([found["ours_ms"], found["theirs_ms"], quality["ours"], quality["theirs"]]).all()
    assert min(found["ours_ms"], found["theirs_ms"]) > 0
    if quality["tolerance"] is not None:
        assert quality["verdict"] == "equal", quality


@pytest.mark.nightly
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
    }  # fmt: skip


def test_the_committed_page_is_that_of_its_record():
    content = json.loads((ROOT / OUT / "bench.json").read_text(encoding="utf-8"))
    assert (ROOT / OUT / "README.md").read_text(encoding="utf-8") == page(content)
    assert not content["commit"].endswith("+changes")
    assert set(content["rows"]) == {job.key for part in PARTS.values() for job in part.jobs()}


def test_no_two_rows_have_one_name():
    keys = [job.key for part in PARTS.values() for job in part.jobs()]
    assert len(set(keys)) == len(keys)


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


@pytest.mark.nightly
def test_sides_run_in_turns_and_may_time_themselves(monkeypatch):
    monkeypatch.setattr(measuring, "FLOOR", 0.0)
    order = []

    def side(name, seconds):
        order.append(name)
        return Timed(name, seconds)

    judged = lambda one, other: Quality(f"{one}{other}", 1.0, 2.0, higher=False)  # noqa: E731
    found = measured(Contest(lambda: side("a", 0.002), lambda: side("b", 0.003), judged), 3)
    assert "".join(order).endswith("ababab")
    assert (found["ours_ms"], found["theirs_ms"]) == (pytest.approx(2), pytest.approx(3))
    assert found["ratio"] == pytest.approx(1.5)
    assert (found["quality"]["name"], found["quality"]["verdict"]) == ("ab", "better")


def test_exponents_are_recovered():
    assert slope([10, 100, 1000], [3 * size**2.5 for size in (10, 100, 1000)]) == pytest.approx(2.5)
    assert factor([1, 2, 4], [3 * 2.5**size for size in (1, 2, 4)]) == pytest.approx(2.5)


def test_factors_stand_on_the_page_of_rows_that_grow_exponentially():
    row = {"group": "search", "peer": "another", "axis": "k"}
    rows = [
        row | {"size": size, "exponential": True, "ours_ms": 2.0 * 3**size, "theirs_ms": 5.0 * 4**size}
        for size in (1, 2, 3)
    ]
    groups = [("search", "another", "k")]
    assert list(factors(rows, groups)) == ["| search, beside another | k 1 to 3 | 3.00 | 4.00 |"]
    assert list(factors(rows[:1], groups)) == []
    assert list(factors([each | {"exponential": False} for each in rows], groups)) == []


def test_the_cheapest_action_of_the_reference_is_the_projection():
    # min z1^2 + 4 (z2 - 1)^2 subject to z1 + z2 >= 3: z1 = t / 2, z2 = 1 + t / 8, t = 3.2.
    box = np.full(2, -9.0), np.full(2, 9.0)
    found = nearest(np.zeros(1), np.ones(2), np.array([1.0, 4.0]), np.array([0.0, 1.0]), *box, 3.0, 9.0)
    assert found == pytest.approx(np.array([[1.6, 1.4]]))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--parts", "lineer"], "expected some of linear"),
        (["--repeat", "2"], "expected at least 3"),
        (["--small"], "choose another --out"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, told):
    with pytest.raises(SystemExit, match=told):
        main(arguments)
