"""The page of `rehearsal explore` in a browser: every control, bad input, and how the command ends.

The command is started as somebody types it, on a run that `rehearsal decide` wrote; the tests drive headless
Chromium at the width of a desktop and of a phone.
"""

import json
import re
import signal

import pytest
from playwright.sync_api import expect

from rehearsal_torch.explorer.open_run import opened
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from tests.scripts.browsing import (
    BOTH_WIDTHS,
    chromium,
    cut_off,
    needs_browser,
    opened_page,
    serving,
    started,
    unnamed,
)
from tests.scripts.typing_in import called
from tests.toys.explored import rows

PROBLEM = """
data: table.csv
variables:
  x: context
  a: {role: action, range: [-4, 4]}
  m: {role: action, kind: ordinal, range: [-1, 1]}
  y: outcome
graph: [x -> a, x -> y, a -> m -> y]
desired: 1 <= y <= 2
candidates: [[a], [m], [a, m]]
cases: [{x: 0.1, a: 0.0}, {x: -0.4, a: 0.5}]
bounds: {a: [current - 0.5, current + 0.5]}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two cases with bounds of their own."""
    folder = tmp_path_factory.mktemp("explored")
    rows().to_csv(folder / "table.csv", index=False)
    (folder / "problem.yaml").write_text(PROBLEM)
    asked = ["+experiment=own_problem", "path=problem.yaml", "decision=care", "workers=1", "out=run"]
    answer = called(folder, "decide", *asked)
    assert answer.code == 0, answer.err
    return folder / "run"


@pytest.fixture(scope="module")
def session(run):
    """What the page should say."""
    return RehearsalSession(opened(run))


@pytest.fixture(scope="module")
def address(run):
    with serving(run) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(params=BOTH_WIDTHS)
def page(browser, address, request):
    """The page once it has drawn everything."""
    with opened_page(browser, address, request.param) as found:
        found.wait_for_selector("#outcomes svg")
        yield found


def settled(page):
    """Waits until the answer and the curves are those of what is set."""
    expect(page.locator("#answer")).not_to_have_class(re.compile("waiting"), timeout=60_000)
    expect(page.locator("#curves")).not_to_have_class(re.compile("waiting"), timeout=60_000)


def shown(page):
    """The number of the answer, its interval, and its sentence."""
    settled(page)
    return page.inner_text("#point"), page.inner_text("#between"), page.inner_text("#sentence")


def expected(session, case, x, setting):
    found = session.what_if(case, {"x": x}, setting)
    return found["told"]["point"], found["told"]["interval"], found["sentence"]


def decided(run, place):
    return json.loads((run / "decisions.jsonl").read_text().splitlines()[place])


@needs_browser
def test_it_begins_with_what_the_run_decided(page, run, session):
    line = decided(run, 0)
    assert shown(page) == expected(session, 0, 0.1, line["alteration"])
    assert page.input_value("#case") == "0"
    assert page.inner_text("#use").startswith("Decision support for cases like the rows of the data")
    assert "Wanted: an outcome with" in page.inner_text("#question")
    assert "no action" in page.inner_text("#interval")


@needs_browser
def test_sliders_and_numbers_set_the_action(page, session):
    page.select_option("#set", label="a and m")
    page.locator("#settings input[type=number]").fill("0.25")
    page.locator("#set-1").focus()
    for key, level in (("Home", -1.0), ("ArrowRight", 0.0), ("End", 1.0)):
        page.keyboard.press(key)
        expect(page.locator("#sentence")).to_contain_text(f"m at {level:g},", timeout=60_000)
        assert page.inner_text("#settings output") == f"{level:g}"
        assert shown(page) == expected(session, 0, 0.1, {"a": 0.25, "m": level})
    page.locator("#set-0").focus()
    page.keyboard.press("End")
    expect(page.locator("#sentence")).to_contain_text("a at 0.5 ", timeout=60_000)
    assert page.locator("#settings input[type=number]").input_value() == "0.5"
    assert shown(page) == expected(session, 0, 0.1, {"a": 0.5, "m": 1.0})
    assert page.locator("#curves svg[role=img]").count() == 2


@needs_browser
def test_a_changed_case_is_one_of_your_own_within_the_bounds_of_the_task(page, session):
    page.select_option("#set", label="a")
    page.fill("#given-0", "0.3")
    assert page.input_value("#case") == "own"
    assert page.inner_text("#set-0-hint") == "from -4 to 4"
    assert page.inner_text("#bounds-note") == "The bounds are those of the task."
    page.locator("#settings input[type=number]").fill("1.5")
    expect(page.locator("#sentence")).to_contain_text("a at 1.5", timeout=60_000)
    assert shown(page) == expected(session, None, 0.3, {"a": 1.5})


@needs_browser
def test_outside_the_data_a_sentence_replaces_the_number(page):
    page.fill("#given-0", "50")
    sentence = page.locator("#sentence")
    expect(sentence).to_have_text(re.compile("^Outside the data: x is 50; the observations"), timeout=60_000)
    settled(page)
    assert not page.is_visible("#point")
    assert page.locator("#interval svg").count() == page.locator("#outcomes svg").count() == 0
    assert "outside the data" in page.locator("#curves svg[role=img]").first.inner_html()
    assert page.locator("#curves svg[role=img] .line").count() == 0
    assert page.inner_text("#outcomes-note") == "No outcomes are drawn outside the data."
    page.fill("#given-0", "0.1")
    expect(page.locator("#point")).to_be_visible(timeout=60_000)


@needs_browser
def test_bad_input_has_a_message_and_no_number(page):
    page.select_option("#set", label="a")
    page.locator("#settings input[type=number]").fill("0.75")
    message = page.locator("#message")
    expect(message).to_have_text("a: expected a number from -0.5 to 0.5.")
    assert not page.is_visible("#answer")
    assert page.locator("#settings input[type=number]").get_attribute("aria-invalid") == "true"
    assert page.locator("#curves svg[role=img]").count() == 0
    page.locator("#settings input[type=number]").fill("")
    expect(message).to_have_text("a: expected a number from -0.5 to 0.5.")
    page.fill("#given-0", "")
    expect(message).to_contain_text("x: expected a number.")
    page.fill("#given-0", "0.1")
    page.locator("#settings input[type=number]").fill("0.5")
    expect(page.locator("#answer")).to_be_visible(timeout=60_000)
    expect(message).to_be_hidden()


@needs_browser
def test_what_the_method_recommends_is_shown_and_can_be_set(page, session):
    page.select_option("#set", label="a")
    page.click("#recommend")
    expect(page.locator("#recommended")).to_be_visible(timeout=60_000)
    found = session.recommend(0, {"x": 0.1})
    assert page.inner_text("#recommended-head") == found["headline"]
    assert page.inner_text("#recommended-said").split("\n\n") == found["said"]
    page.click("#take")
    expect(page.locator("#sentence")).to_contain_text("With ", timeout=60_000)
    assert shown(page) == expected(session, 0, 0.1, found["setting"])


@needs_browser
def test_nothing_is_cut_off(page):
    settled(page)
    assert cut_off(page) == []
    assert page.locator("#curves svg text").count() > 8
    assert unnamed(page) == 0


@pytest.mark.bench
@needs_browser
def test_when_the_command_has_ended_the_page_says_so(run, browser):
    process, address = started(run)
    page = browser.new_context().new_page()
    page.goto(address)
    page.wait_for_selector("#outcomes svg", timeout=60_000)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    page.fill("#given-0", "0.2")
    expect(page.locator("#message")).to_contain_text(
        "the command that serves this page has ended", timeout=60_000
    )
    assert not page.is_visible("#answer")
