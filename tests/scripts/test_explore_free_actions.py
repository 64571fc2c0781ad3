"""The page of episodes in a browser where actions cost nothing: a last state follows the last action."""

import pytest
from playwright.sync_api import expect

from tests.scripts.browsing import WIDTHS, chromium, cut_off, needs_browser, opened_page, serving
from tests.toys.explored_episodes import FREE, episodes_run, sepsis_run

LONG = 120_000


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(params=["sepsis", "machines"])
def page(request, browser, tmp_path):
    folder = tmp_path / "run"
    if request.param == "sepsis":
        sepsis_run(folder)
    else:
        episodes_run(folder, "decision=branch_and_bound", *FREE)
    with serving(folder) as address, opened_page(browser, address, WIDTHS["desktop"]) as found:
        expect(found.locator("#answer")).to_be_visible(timeout=LONG)
        yield found


@needs_browser
def test_every_row_of_the_table_has_an_action_and_the_curves_one_state_more(page):
    rows = page.locator("#grid tr").count()
    assert page.locator("#grid select").count() == rows
    assert page.inner_text("#changes-hint") == f"from 0 to {rows}: {rows} of {rows} steps may change"
    corners = page.locator("#courses svg polyline.none").first.get_attribute("points")
    assert len(corners.split()) == rows + 1
    assert cut_off(page) == []


@needs_browser
def test_an_action_chosen_by_hand_is_answered(page):
    rows = page.locator("#grid tr").count()
    page.click("#blank")
    page.locator(f"#action-{rows - 1}").select_option(index=1)
    expect(page.locator("#headline")).to_contain_text(f"1 of {rows} actions changed", timeout=LONG)
    expect(page.locator("#message")).to_be_hidden()
