"""The page of a run of episodes in a browser: every control, at the width of a desktop and of a phone."""

import re

import pytest
from playwright.sync_api import expect

from rehearsal_torch.explorer.session_choice import session_for
from tests.scripts.browsing import (
    BOTH_WIDTHS,
    chromium,
    cut_off,
    needs_browser,
    opened_page,
    serving,
    unnamed,
)
from tests.toys.explored_episodes import episodes_run

LONG = 60_000


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return episodes_run(tmp_path_factory.mktemp("episodes") / "run")


@pytest.fixture(scope="module")
def session(run):
    """What the page should say."""
    return session_for(run)


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
    with opened_page(browser, address, request.param, refused=(409, 422)) as found:
        found.wait_for_selector("#answer:not([hidden])")
        yield found


def short(value):
    return f"{float(f'{value:.4g}'):g}"


def shown(page):
    """Headline, the return before and after, and the proof."""
    expect(page.locator("#working")).to_be_hidden(timeout=LONG)
    expect(page.locator("#answer")).to_be_visible(timeout=LONG)
    point = page.inner_text("#point") if page.is_visible("#point") else None
    state = page.inner_text("#state").partition(" It took")[0]
    return page.inner_text("#headline"), page.inner_text("#before"), point, state


def expected(found):
    point = None if found["value"] is None or not found["changed"] else short(found["value"])
    return found["headline"], short(found["observed"]), point, found["state"]


def steps(page):
    """The places of the steps that are marked as changed; the table counts weeks from 1."""
    texts = page.locator("#grid tr.altered th").all_inner_texts()
    return [int(text.removeprefix("Week ")) - 1 for text in texts]


@needs_browser
def test_it_begins_with_the_decision_for_the_first_episode(page, session):
    found = session.look_back(0, 2, [], 20.0)
    assert shown(page) == expected(found)
    assert steps(page) == found["changed"]
    assert page.inner_text("#episode-label") == "Machine"
    assert page.input_value("#changes") == "2"
    assert page.inner_text("#said").split("\n\n") == found["said"]
    assert page.inner_text("#overturned") == found["overturned"]
    assert page.locator("#courses svg[role=img]").count() == 4
    assert page.locator("#courses svg .altered").count() == 4 * len(found["changed"])
    assert page.locator("#grid tr").count() == 10


@needs_browser
def test_steps_have_the_times_of_the_table(page):
    shown(page)
    heads = page.locator("#grid th").all_inner_texts()
    assert heads == [f"Week {week}" for week in range(1, 11)]
    assert page.locator("#grid-heads th").first.inner_text() == "Week"
    assert page.get_by_label("action at Week 1", exact=True).get_attribute("id") == "action-0"
    assert page.get_by_label("keep Week 10 as it was", exact=True).get_attribute("id") == "keep-9"
    along = page.locator("#courses svg").first.locator("text[text-anchor=middle]").all_text_contents()
    assert (along[0], along[-1]) == ("1", "Week")


@pytest.mark.bench
@needs_browser
def test_kept_steps_stay_and_limit_the_slider(page, session):
    shown(page)
    first = steps(page)[0]
    page.check(f"#keep-{first}")
    found = session.look_back(0, 2, [first], 20.0)
    expect(page.locator(f"#keep-{first}")).to_be_checked()
    assert shown(page) == expected(found)
    assert first not in steps(page)
    assert page.locator(f"#action-{first}").is_disabled()
    assert page.get_attribute("#changes", "max") == "8"
    assert page.evaluate("document.activeElement.id") == f"keep-{first}", "the keyboard stays where it was"
    page.uncheck(f"#keep-{first}")
    assert shown(page) == expected(session.look_back(0, 2, [], 20.0))
    assert page.locator("#keep-9").is_disabled(), "the run keeps the last action"


@pytest.mark.bench
@needs_browser
def test_a_sequence_of_ones_own_is_replayed(page, session):
    shown(page)
    page.click("#blank")
    expect(page.locator("#headline")).to_have_text("As observed: nothing is changed.", timeout=LONG)
    assert steps(page) == []
    before = session.episode(0)
    actions = list(before["actions"])
    actions[1] = before["choices"][1][1]
    page.locator("#action-1").focus()
    page.select_option("#action-1", value=str(actions[1]))
    expect(page.locator("#headline")).to_contain_text("1 of 10 actions changed", timeout=LONG)
    assert shown(page) == expected(session.replay(0, actions))
    assert steps(page) == [1]
    assert page.evaluate("document.activeElement.id") == "action-1", "the keyboard stays where it was"
    assert "→" in page.locator("#grid tr.altered").inner_text()
    page.click("#again")
    assert shown(page) == expected(session.look_back(0, 2, [], 20.0))
    expect(page.locator("#again")).to_be_hidden()


@pytest.mark.bench
@needs_browser
def test_it_shows_that_it_is_working_and_asks_one_question_at_a_time(page, session):
    shown(page)
    waiting = []
    page.route("**/api/look-back", lambda route: route.continue_() if waiting else waiting.append(route))
    page.locator("#changes").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#working")).to_contain_text(
        "Searching among sequences with at most 3 changed actions"
    )
    expect(page.locator("#clock")).to_have_text(re.compile("s, at most about 20 s$"), timeout=LONG)
    expect(page.locator("#answer")).to_be_hidden()
    expect(page.locator("#grid")).to_have_class("waiting")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(600)
    expect(page.locator("#answer")).to_be_hidden()
    waiting[0].continue_()
    expect(page.locator("#state")).to_contain_text("at most 1 changed action", timeout=LONG)
    assert shown(page) == expected(session.look_back(0, 1, [], 20.0))
    page.unroute("**/api/look-back")


@pytest.mark.bench
@needs_browser
def test_an_episode_that_is_picked_meanwhile_is_not_mixed_up(page, session):
    shown(page)
    waiting = []
    page.route("**/api/episode", lambda route: route.continue_() if waiting else waiting.append(route))
    page.locator("#changes").focus()
    page.keyboard.press("ArrowRight")
    page.select_option("#episode", label="Machine 15")
    page.wait_for_timeout(600)
    expect(page.locator("#working")).to_contain_text("Reading the episode")
    expect(page.locator("#answer")).to_be_hidden()
    waiting[0].continue_()
    found = session.look_back(1, 3, [], 20.0)
    expect(page.locator("#before")).to_have_text(short(found["observed"]), timeout=LONG)
    assert shown(page) == expected(found)
    assert steps(page) == found["changed"]
    page.unroute("**/api/episode")


@pytest.mark.bench
@needs_browser
def test_a_page_waits_for_its_turn(page, session):
    shown(page)
    busy = []

    def turned_away(route):
        busy.append(route)
        if len(busy) < 3:
            route.fulfill(status=409, content_type="application/json", body='{"message": "busy"}')
        else:
            route.continue_()

    page.route("**/api/look-back", turned_away)
    page.select_option("#seconds", label="60 seconds")
    expect(page.locator("#working")).to_contain_text("Waiting for the answer to another page")
    expect(page.locator("#working")).to_be_hidden(timeout=LONG)
    assert shown(page) == expected(session.look_back(0, 2, [], 60.0))
    assert len(busy) == 3
    page.unroute("**/api/look-back")


@pytest.mark.bench
@needs_browser
def test_outside_the_data_a_sentence_replaces_the_number(page, session):
    shown(page)
    far = session.look_back(0, 2, [], 20.0) | {
        "withheld": "outside the data: under these actions wear lies between 1 and 99",
        "value": None,
        "range": None,
    }
    far["course"]["rewards"] |= {"after": None, "lower": None, "upper": None}
    for one in far["course"]["states"]:
        one |= {"after": None, "lower": None, "upper": None}
    page.route("**/api/look-back", lambda route: route.fulfill(json=far))
    page.select_option("#seconds", label="60 seconds")
    expect(page.locator("#withheld")).to_have_text(
        "Outside the data: under these actions wear lies between 1 and 99.", timeout=LONG
    )
    assert not page.is_visible("#point")
    assert page.locator("#courses svg .line").count() == 0
    assert page.inner_text("#courses-note").startswith("Nothing is drawn of the replay")
    page.unroute("**/api/look-back")


@needs_browser
def test_nothing_is_cut_off_and_everything_has_a_name(page):
    shown(page)
    page.select_option("#episode", label="Machine 17")
    shown(page)
    assert cut_off(page) == []
    assert page.locator("#courses svg text").count() > 20
    assert unnamed(page) == 0
    labels = page.locator("#courses svg[role=img]").evaluate_all("them => them.map((one) => one.ariaLabel)")
    assert all("as observed and under the other actions" in text for text in labels)
