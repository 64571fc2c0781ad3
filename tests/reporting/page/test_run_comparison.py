"""The page that compares runs."""

from rehearsal_torch.reporting.page.page_content import material
from rehearsal_torch.reporting.page.run_comparison import comparing_page, differences, labelled
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def run(path, decision="cme", seed=3, point=0.8, **more):
    record = (
        recorded_runs.RECORD | {"choices": {"decision": decision, "dataset": "table"}, "seed": seed} | more
    )
    lines = [recorded_runs.recommended(point=point), recorded_runs.refused()]
    return material(recorded_runs.alterations(path, lines, record=record), ended=False)


def test_runs_that_cannot_be_compared_say_so_first(tmp_path):
    runs = [run(tmp_path / "a"), run(tmp_path / "b", data_fingerprint="other", commit="other")]
    assert differences(runs) == [
        "The runs learnt from different data (their fingerprints differ).",
        "The runs were made by different versions of the code (their commits differ).",
    ]
    mixed = [runs[0], material(recorded_runs.trials(tmp_path / "c"))]
    assert "The runs are of different kinds, which answer different questions." in differences(mixed)
    page = Page(comparing_page(mixed, 20))
    assert page.faults == []
    assert page.said.index("different kinds") < page.said.index("Case by case")


def test_labels_are_short_and_different(tmp_path):
    runs = [run(tmp_path / "a"), run(tmp_path / "b", "care")]
    assert labelled(runs) == ["cme", "care"]
    assert labelled([run(tmp_path / "c"), run(tmp_path / "d", seed=4)]) == [
        "cme table seed 3",
        "cme table seed 4",
    ]
    assert labelled([runs[0], runs[0]]) == ["1: cme table seed 3", "2: cme table seed 3"]


def test_episodes_and_trials(tmp_path, sepsis_run):
    found = material(sepsis_run)
    page = Page(comparing_page([found, found], 2))
    assert page.faults == []
    assert "stay-0" in page.said
    # In the sign of what is summed, not of the return.
    first = found.run.decisions[0]
    observed, after = (first["trajectory"][key] for key in ("observed", "value"))
    assert found.words.sign == -1
    first |= {"estimate": {"point": after, "of": "return"}, "baseline": {"point": observed, "of": "return"}}
    page = Page(comparing_page([found, found], 2))
    assert len(first["alteration"]) == 1
    assert f"{found.words.total}: as observed" in page.said
    assert f"change 1 action {-observed:g} {-after:g}" in page.said
    trials = material(recorded_runs.trials(tmp_path))
    page = Page(comparing_page([trials, trials], 2))
    assert page.faults == []
    assert "1: excbo dropwave seed 3 a at 0.25 4" in page.said
