"""The modules that decide and check, and those of a day."""

import pytest

from tests.house.layers import ROOT
from tests.mutation.__main__ import _chosen, enough
from tests.mutation.deciding import CHECKS, FOLDERS, deciding, modules_of, own_tests, rotated
from tests.mutation.page import Judged, Survivor
from tests.mutation.trial import SLOW

PACKAGE = ROOT / "rehearsal_torch"
FOUND = deciding(PACKAGE)


def test_all_searches_objectives_and_regions_decide():
    assert set(CHECKS) <= set(FOUND) <= set(modules_of(PACKAGE))
    for folder in FOLDERS:
        inside = [path for path in (PACKAGE / folder).rglob("*.py") if path.name != "__init__.py"]
        assert len(inside) == sum(name.startswith(f"{folder}/") for name in FOUND) > 0
    assert len(FOUND) == len(set(FOUND))


@pytest.mark.parametrize("count", [1, 4, 7, 100])
def test_every_module_has_its_day(count):
    modules = [f"{place}.py" for place in range(23)]
    days = [rotated(modules, count, day) for day in range(700_000, 700_000 + -(-23 // count))]
    assert {name for day in days for name in day} == set(modules)
    assert all(len(day) == len(set(day)) == min(count, 23) for day in days)


def test_a_day_without_modules_is_refused():
    with pytest.raises(ValueError, match="at least 1 module a day; got 0"):
        rotated(["a.py"], 0, 1)


def test_a_day_is_judged_with_a_seed_of_its_own_and_leaves_the_page_alone(capsys):
    chosen = _chosen(["--rotate", "3", "--day", "8"])
    assert (chosen.modules, chosen.seed) == (rotated(FOUND, 3, 8), 8)
    assert chosen.out.name == "page.md"
    assert _chosen(["--rotate", "2", "--day", "8", "--seed", "5"]).seed == 5
    named = _chosen(["claims.py", "--least", "0.8"])
    assert (named.modules, named.seed, named.out.name, named.least) == (["claims.py"], 0, "mutation.md", 0.8)
    for words, said in (
        ([], "expected modules, or --rotate N"),
        (["claims.py", "--rotate", "2"], "expected modules, or --rotate N"),
        (["claims.py", "claims.py"], "named twice: claims.py"),
        (["claim.py"], "no such module: claim.py"),
    ):
        with pytest.raises(SystemExit):
            _chosen(words)
        assert said in capsys.readouterr().err


def test_modules_of_a_day_are_judged_together_and_named_ones_each():
    missed = (Survivor(1, "a < b", "a <= b"),)
    one, other = Judged("a.py", 9, 4, missed, 0, 6, 0, ""), Judged("b.py", 9, 6, (), 0, 6, 0, "")
    assert enough([one, other], 0.9, together=True)
    assert not enough([one, other], 0.9, together=False)
    assert not enough([one, other], 0.91, together=True)
    assert enough([one, other], 0.75, together=False)


def test_tests_of_a_module_are_its_mirrored_ones_and_those_of_its_topics(tmp_path):
    package, tests = tmp_path / "made", tmp_path / "tests"
    for name in ("made/a/b.py", "made/a/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    texts = {
        "b": "",
        "c": "from made.a.b import x",
        "topic": "from made.a.b import x",
        "other": "import made",
    }
    (tests / "a").mkdir(parents=True)
    for name, text in texts.items():
        (tests / f"a/test_{name}.py").write_text(text)
    found = own_tests(package, tests, "a/b.py")
    assert [each.name for each in found] == ["test_b.py", "test_topic.py"]
    assert [each.name for each in own_tests(package, tests, "a/c.py")] == ["test_c.py"]


def test_the_slow_lane_is_that_of_the_makefile():
    assert f'-m "{SLOW}"' in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_module_that_is_judged_has_tests_of_its_own():
    lacking = [name for name in FOUND if not own_tests(PACKAGE, ROOT / "tests", name)[0].is_file()]
    assert lacking == []
