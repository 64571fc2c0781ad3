"""The page of a file of trials in a browser: every control, at the width of a desktop and of a phone."""

import json
import shutil

import pytest
from playwright.sync_api import expect

from rehearsal_torch.api.optimiser import CausalOptimiser
from tests.scripts.browsing import (
    BOTH_WIDTHS,
    WIDTHS,
    chromium,
    cut_off,
    needs_browser,
    opened_page,
    serving,
    unnamed,
)
from tests.scripts.typing_in import called
from tests.toys.explored_trials import TASK, file_of_trials, system

LONG = 60_000


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A file with seven completed trials and a pending one."""
    return file_of_trials(tmp_path_factory.mktemp("first") / "trials.json", 7, 1)


@pytest.fixture(scope="module")
def served(first, tmp_path_factory):
    """The file that the page writes to, and its address."""
    file = tmp_path_factory.mktemp("served") / "trials.json"
    shutil.copy(first, file)
    with serving(file) as address:
        yield file, address


@pytest.fixture
def file(served, first):
    """The file as it was in the beginning."""
    shutil.copy(first, served[0])
    return served[0]


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(params=BOTH_WIDTHS)
def page(browser, served, file, request):
    with opened_page(browser, served[1], request.param, refused=(422,)) as found:
        found.wait_for_selector("#picture svg")
        yield found


def trial(file, number):
    """A trial in the file."""
    return next(each for each in json.loads(file.read_text())["trials"] if each["id"] == number)


def last(file):
    return json.loads(file.read_text())["trials"][-1]


def typed(page, form, nodes):
    for place, value in enumerate(nodes.values()):
        page.fill(f"#{form}-node-{place}", str(value))


def pressed(page, form, name):
    page.locator(f"#{form}").get_by_role("button", name=name).click()


@needs_browser
def test_it_begins_with_the_trials_so_far(page, file):
    assert page.inner_text("#summary").startswith(
        "8 trials: 1 pending, 7 completed; the largest reward so far"
    )
    assert page.locator("#rows tr").count() == 8
    assert page.locator("#picture svg .trial").count() == 7 + 1, "and one in the key"
    assert page.locator("#heads th").all_inner_texts() == ["Trial", "State", "a", "b", "X", "Y", "Reward"]
    assert page.inner_text("#rows tr >> nth=0").split()[:2] == ["8", "pending"]
    proposed = trial(file, 8)["asked"]
    assert float(page.input_value("#trial-8-set-0")) == pytest.approx(proposed["a"], rel=1e-3)


@needs_browser
def test_a_result_is_recorded_with_the_proposed_settings(page, file):
    nodes = system(trial(file, 8)["asked"])
    typed(page, "trial-8", nodes)
    pressed(page, "trial-8", "Record")
    expect(page.locator("#told")).to_have_text("Trial 8 is recorded.", timeout=LONG)
    found = trial(file, 8)
    assert (found["state"], found["nodes"], "ran" in found) == ("completed", nodes, False)
    expect(page.locator("#trial-8")).to_have_count(0)
    expect(page.locator("#pending-note")).to_have_text("No proposed trial is without a result.")
    expect(page.locator("#summary")).to_contain_text("8 trials: 8 completed")


@needs_browser
def test_bad_reports_are_refused_in_the_words_of_the_optimiser(page, file):
    before = file.read_bytes()
    page.fill("#trial-8-node-0", "1,5")
    pressed(page, "trial-8", "Record")
    message = page.locator("#trial-8-message")
    expect(message).to_contain_text("X: expected a finite number; got '1,5'", timeout=LONG)
    expect(message).to_contain_text("Y: no value for this node")
    assert page.input_value("#trial-8-node-0") == "1,5", "what was typed stays"
    page.fill("#trial-8-set-0", "")
    pressed(page, "trial-8", "Record")
    expect(message).to_contain_text("a: no value for this action", timeout=LONG)
    assert file.read_bytes() == before


@needs_browser
def test_trials_are_proposed(page, file):
    page.fill("#count", "2")
    page.click("#holds summary")
    page.fill("#hold-1", "2")
    page.click("#ask")
    expect(page.locator("#asked")).to_have_text(
        "Proposed: trials 9, 10. Type below what came of them.", timeout=LONG
    )
    assert [trial(file, number)["asked"]["b"] for number in (9, 10)] == [2.0, 2.0]
    expect(page.locator("#pending .report")).to_have_count(3)
    page.fill("#count", "0")
    page.click("#ask")
    expect(page.locator("#ask-message")).to_contain_text(
        "count: expected at least 1 action; got 0", timeout=LONG
    )
    page.fill("#count", "")
    page.click("#ask")
    expect(page.locator("#ask-message")).to_have_text("count: expected a whole number of trials")
    page.fill("#count", "1")
    page.fill("#hold-1", "0.5")
    page.click("#ask")
    expect(page.locator("#ask-message")).to_contain_text("b", timeout=LONG)
    page.locator("#hold-1").fill("")
    page.locator("#hold-1").press_sequentially("1e")
    page.click("#ask")
    expect(page.locator("#ask-message")).to_have_text("b: expected a number, or nothing, to hold it at")
    assert last(file)["id"] == 10


@needs_browser
def test_the_recommendation_is_that_of_the_optimiser(page, file):
    page.click("#adopt")
    expect(page.locator("#adopted")).to_be_visible(timeout=LONG)
    told = CausalOptimiser.load(file).recommend()
    assert page.inner_text("#adopted-said") == f"{told}."
    assert page.inner_text("#adopted-head").startswith("Keep a ")
    assert float(page.inner_text("#point")) == pytest.approx(told.predicted, rel=1e-3)
    assert "95% interval" in page.inner_text("#between")
    assert page.locator("#picture svg .after").count() == 1 + 1, "and one in the key"


@needs_browser
def test_an_experiment_of_ones_own_is_recorded(page, file):
    page.click("#own summary")
    pressed(page, "trial-own", "Record")
    expect(page.locator("#trial-own-message")).to_contain_text("a: no value for this action", timeout=LONG)
    for place, value in enumerate(("0.125", "1")):
        page.fill(f"#trial-own-set-{place}", value)
    typed(page, "trial-own", {"X": 0.2, "Y": 0.7})
    pressed(page, "trial-own", "Record")
    expect(page.locator("#told")).to_contain_text("Trial 9 is recorded.", timeout=LONG)
    found = trial(file, 9)
    assert (found["ran"], found["nodes"]) == ({"a": 0.125, "b": 1.0}, {"X": 0.2, "Y": 0.7})
    assert page.input_value("#trial-own-set-0") == "", "the next one begins empty"


@pytest.mark.bench
@needs_browser
def test_what_another_process_writes_appears_and_what_is_typed_stays(page, file):
    page.fill("#trial-8-node-1", "0.123")
    other = CausalOptimiser.load(file)
    other.tell(None, {"X": 0.4, "Y": 0.5}, ran={"a": 0.9, "b": 0})
    other.ask()
    expect(page.locator("#trial-10")).to_be_visible(timeout=20_000)
    expect(page.locator("#rows tr")).to_have_count(10)
    assert page.input_value("#trial-8-node-1") == "0.123"


@needs_browser
def test_nothing_is_cut_off_and_everything_has_a_name(page):
    page.click("#holds summary")
    page.click("#own summary")
    page.click("#adopt")
    expect(page.locator("#adopted")).to_be_visible(timeout=LONG)
    assert cut_off(page) == []
    assert unnamed(page) == 0


@pytest.mark.bench
@needs_browser
def test_a_run_is_shown_and_says_how_to_make_a_file(browser, tmp_path):
    file = file_of_trials(tmp_path / "trials.json")
    CausalOptimiser.load(file).write(tmp_path / "experiments.csv")
    (tmp_path / "task.yaml").write_text(json.dumps(TASK))
    asked = ["+experiment=own_system", "path=experiments.csv", "dataset.task=task.yaml", "out=run"]
    assert called(tmp_path, "decide", *asked).code == 0
    with (tmp_path / "run" / "decisions.jsonl").open("a") as stream:
        line = {"index": 1, "kind": "optimise", "status": "leave", "alteration": None, "value": None}
        line["reason"] = {"kind": "invalid", "text": "no finite answer"}
        stream.write(json.dumps(line) + "\n")
    with serving(tmp_path / "run") as address:
        for width in WIDTHS.values():
            with opened_page(browser, address, width) as page:
                page.wait_for_selector("#rows tr")
                assert page.inner_text("#rows tr >> nth=0").split() == ["2", "refused"]
                assert page.inner_text("#rows tr >> nth=1").split()[:2] == ["1", "proposed"]
                assert not page.is_visible("#ask")
                assert page.inner_text("#adopted-head") == "Nothing is recommended."
                assert "rt.CausalOptimiser('task.yaml', file=\"trials.json\")" in page.inner_text("#how")
                assert cut_off(page) == []
