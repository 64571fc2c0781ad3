"""Where rows come from."""

from rehearsal_torch.studies.provenance import caution, caution_of_run, commands, minutes, origin

LINES = [{"commit": "a" * 40, "seconds": "60"}, {"commit": "b" * 40 + "+changes", "seconds": "60"}]


def test_rows_of_uncommitted_code_are_counted():
    lines = [{"commit": "1"}, {"commit": "2+changes"}, {"commit": "1+changes"}]
    assert caution(lines).startswith("> **Provenance.** 2 of 3 jobs were made from trees with uncommitted")
    assert "2 of 3 repeats" in caution(lines, "repeats")
    assert caution(lines[:1]) == caution([]) == ""


def test_a_run_has_a_single_commit():
    assert "`+changes` in run.json" in caution_of_run({"commit": "1+changes"})
    assert caution_of_run({"commit": "1"}) == caution_of_run({}) == ""


def test_the_origin_has_commands_commits_and_versions():
    found = origin({"commands": ["x", "y"], "versions": {"torch": "2", "none": None}}, LINES, "job")
    assert found == f"Made by `x`, `y`; commits: {'a' * 12} (1 jobs), {'b' * 12}+changes (1 jobs); torch 2"
    assert origin({}, [], "job") == "Made by ; commits: none; "
    assert commands({"commands": ["x", "y"]}) == "`x`, `y`"


def test_seconds_of_jobs_are_summed_to_minutes():
    assert minutes(LINES) == "2 minutes of one core"
