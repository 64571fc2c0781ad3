"""Pages of every kind of run in a browser, at the width of a desktop and of a phone."""

import os
import re
import signal
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import expect

from rehearsal_torch.explorer.session_choice import session_for
from tests.golden.snapshots.small_runs import RUNS, kettles, machines
from tests.golden.snapshots.small_runs import run as small_run
from tests.scripts.browsing import chromium, needs_browser, opened_page, started, unnamed
from tests.toys.explored import run_folder, small_model
from tests.toys.explored_episodes import FREE, episodes_run
from tests.toys.explored_trials import file_of_trials, system
from tests.toys.served import Served

pytestmark = [pytest.mark.slow, needs_browser]
WIDTHS = {"desktop": 1280, "phone": 390}


def of_sets(folder):
    """Kettles whose variables are set alone or together, in many cases."""
    cases = [{"hardness": 120 + place, "maker": "Aba", "heat": 3, "descaled": "no"} for place in range(30)]
    kettles(folder, candidates=[["heat"], ["descaled"], ["heat", "descaled"]], cases=cases, method="care")


def of_states(folder):
    """Machines whose reward is one of states alone, without costs of actions."""
    machines(folder)
    problem = yaml.safe_load((folder / "problem.yaml").read_text())
    for variable in problem["variables"].values():
        variable.pop("cost", None)
    problem["reward"] = {"weights": {"wear": -1}}
    (folder / "problem.yaml").write_text(yaml.safe_dump(problem, sort_keys=False))


RUNS = RUNS | {"sets": (of_sets, ("problem.yaml",)), "states": (of_states, ("problem.yaml", "limit=2"))}
CASES = ("rehearsal", "costs", "own_table", "yes_no", "sets", "run", "saved")
EPISODES = ("sequence", "sepsis", "states", "episodes", "free")
RECORDED = ("trials", "world_trials")
TOYS = {
    "run": run_folder,
    "saved": lambda folder: small_model().save(folder),
    "episodes": episodes_run,
    "free": lambda folder: episodes_run(folder, "decision=branch_and_bound", *FREE),
    "live": lambda folder: file_of_trials(folder.with_suffix(".json"), 7, 1),
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """A function from the kind of a run to its server, which is started on first use."""
    begun, home = {}, Path.cwd()

    def served(kind):
        if kind not in begun:
            folder = tmp_path_factory.mktemp(kind)
            os.chdir(folder)
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(small_run.__globals__["RUNS"], kind, RUNS.get(kind))
                path = TOYS[kind](folder / "run") if kind in TOYS else small_run(kind, folder)
            os.chdir(home)
            begun[kind] = Served(session_for(path))
        return begun[kind]

    yield served
    for each in begun.values():
        each.end()


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(params=WIDTHS.values(), ids=WIDTHS.keys())
def opened(browser, servers, request):
    """A function that opens the page of a kind; it asked nobody else, had no fault, and is not too wide."""
    begun = []

    def open_page(kind, refused=()):
        server = servers(kind)
        context = opened_page(browser, f"http://127.0.0.1:{server.port}/", request.param, refused)
        begun.append((context, page := context.__enter__()))
        page.server = server
        return page

    yield open_page
    for context, page in begun:
        wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert (wide, unnamed(page)) == (False, 0)
        context.__exit__(None, None, None)


def answered(page, part="#charts"):
    """Waits until the answer and its pictures are there; the text of the answer, and the first picture."""
    expect(page.locator("main[aria-busy]")).to_have_count(0, timeout=60_000)
    expect(page.locator(f"{part} img").first).to_be_visible(timeout=60_000)
    expect(page.locator(".waiting")).to_have_count(0, timeout=60_000)
    return page.inner_text("#answer"), page.locator(f"{part} img").first.get_attribute("src")


def press(place, name):
    place.get_by_role("button", name=name, exact=True).click()


@pytest.mark.parametrize("kind", CASES)
def test_a_case_is_asked_about(opened, kind):
    page = opened(kind)
    answer, picture = answered(page)
    assert re.fullmatch(r".+: which action makes .+ likely\?", page.title())
    field = page.locator("#settings [data-part=set]").first
    if field.evaluate("field => field.tagName") == "SELECT":
        other = field.evaluate("field => [...field.options].find((option) => !option.selected).value")
        field.select_option(other)
    else:
        low, high = (float(field.get_attribute(end)) for end in ("min", "max"))
        field.fill(str(round(low + 0.4 * (high - low), 3)))
    new_answer, new_picture = answered(page)
    assert answer != new_answer
    assert picture != new_picture
    press(page, "What does the method recommend?")
    expect(page.locator("#recommended h3")).to_be_visible(timeout=60_000)


@pytest.mark.parametrize("kind", EPISODES)
def test_an_episode_is_looked_back_at(opened, kind):
    page = opened(kind)
    found, (answer, _) = (
        page.server.session.look_back(0, page.server.session.usual, [], 20.0),
        answered(page, "#states"),
    )
    assert found["headline"] in answer
    assert "gap" not in answer
    assert page.locator("#grid tr.altered").count() == len(found["changed"])
    picture = page.locator("#course img").get_attribute("src")
    kept = page.server.session.episode(0)
    press(page, "Begin with what was done")
    expect(page.locator("#headline")).to_have_text("As observed: nothing is changed.", timeout=60_000)
    step = kept["open"][1]
    page.locator(f"#action-{step}").focus()
    page.select_option(f"#action-{step}", value=str(kept["choices"][step][0]))
    expect(page.locator("#headline")).to_contain_text("Your own sequence: 1 of", timeout=60_000)
    answered(page, "#states")
    assert page.locator("#course img").get_attribute("src") != picture
    assert page.evaluate("document.activeElement.id") == f"action-{step}", "the keyboard stays where it was"
    page.check(f"#keep-{step}")
    answered(page, "#states")
    expect(page.locator(f"#action-{step}")).to_have_count(0)
    assert page.get_attribute("#changes", "max") == str(kept["most"] - 1)


def test_trials_are_continued(opened):
    page = opened("live", refused=(422,))
    pending = page.server.session.trials()["pending"]
    before, number = page.inner_text("#summary"), pending[-1]["id"]
    picture = page.locator("#summary img").get_attribute("src")
    press(page, "Propose")
    expect(page.locator("#asked-said")).to_contain_text("Proposed: trial ", timeout=60_000)
    form = page.locator(f"#trial-{number}")
    press(form, "Record")
    expect(form.locator("[role=alert]")).to_contain_text("no value for this node", timeout=60_000)
    proposed = next(row for row in page.server.session.trials()["pending"] if row["id"] == number)
    for place, value in enumerate(system(proposed["settings"]).values()):
        page.fill(f"#trial-{number}-nodes-{place}", str(value))
    # What is typed stays where the file is read again.
    with page.expect_response("**/api/trials", timeout=20_000):
        page.server.session.ask(1, {})
    expect(page.locator("#pending form")).to_have_count(len(pending) + 2, timeout=60_000)
    press(form, "Record")
    expect(page.locator("#told")).to_have_text(f"Trial {number} is recorded.", timeout=60_000)
    assert page.inner_text("#summary") != before
    assert page.locator("#summary img").get_attribute("src") != picture
    press(page, "Recommend")
    expect(page.locator("#adopted h3")).to_contain_text("Keep a at", timeout=60_000)


@pytest.mark.parametrize("kind", RECORDED)
def test_recorded_trials_are_shown(opened, kind):
    page = opened(kind)
    assert re.fullmatch(r".+: which setting has the largest expected .+\?", page.title())
    expect(page.locator("#adopted h3")).to_be_visible()
    assert page.locator("#rows tbody tr").count() == len(page.server.session.trials()["rows"])


def test_a_case_is_found_by_a_part_of_its_name_or_a_value(opened):
    page = opened("sets")
    answered(page)
    assert page.locator("#case option").count() == 31
    page.fill("#find", "hardness 133")
    answered(page)
    assert page.inner_text("#found") == "1 of 31"
    assert page.input_value("#given-0") == "133"
    page.fill("#find", "nobody")
    expect(page.locator("#found")).to_have_text("0 of 31")
    assert page.input_value("#given-0") == "133"


def test_every_set_has_a_row_and_can_be_chosen(opened):
    page = opened("sets")
    answered(page)
    assert page.locator("#charts tbody th").all_inner_texts() == ["heat", "descaled", "heat and descaled"]
    page.check("#chosen-2")
    answered(page)
    assert page.locator("#settings [data-part=set]").count() == 2
    assert page.inner_text("#charts tr.altered th") == "heat and descaled"


def test_bad_and_far_values_have_a_sentence_and_no_number(opened):
    page = opened("run", refused=(422,))
    answered(page)
    page.select_option("#case", label="bob")
    answered(page)
    page.check("#chosen-0")
    answered(page)
    page.fill("#set-0", "0.75")
    expect(page.locator("#message")).to_contain_text("a may be set within [0, 0.5]; got 0.75", timeout=60_000)
    expect(page.locator("#sentence")).to_be_hidden()
    page.fill("#given-0", "")
    expect(page.locator("#message")).to_contain_text("no value for x", timeout=60_000)
    page.fill("#given-0", "50")
    expect(page.locator("#message")).to_be_hidden(timeout=60_000)
    expect(page.locator("#sentence")).to_contain_text("Outside the data: x is 50; the observations")
    assert page.locator("#point").count() == 0
    expect(page.locator("#settings")).to_contain_text("this is no longer case bob")


def test_the_recommended_values_can_be_set(opened):
    page = opened("run")
    answered(page)
    page.fill("#given-0", "0.1")
    page.check("#chosen-0")
    answered(page)
    page.fill("#set-0", "0.1")
    answered(page)
    press(page, "What does the method recommend?")
    press(page, "Set these values")
    session = page.server.session
    setting = session.recommend(0, {"x": 0.1})["setting"]
    answer, _ = answered(page)
    assert session.what_if(0, {"x": 0.1}, setting)["told"]["point"] in answer
    expect(page.locator("#recommended h3")).to_have_count(1)
    page.fill("#given-0", "0.2")
    expect(page.locator("#recommended h3")).to_have_count(0, timeout=60_000)


def test_an_answer_to_an_earlier_question_is_not_shown(opened):
    page, waiting = opened("episodes"), []
    answered(page, "#states")
    page.route("**/api/look-back", lambda route: route.continue_() if waiting else waiting.append(route))
    page.fill("#changes", "3")
    expect(page.locator("#working")).to_be_visible(timeout=60_000)
    expect(page.locator("#headline")).to_be_hidden()
    page.fill("#changes", "1")
    page.wait_for_timeout(400)
    waiting[0].continue_()
    expect(page.locator("#state")).to_contain_text("at most 1 changed action", timeout=60_000)
    page.unroute("**/api/look-back")


def test_a_page_waits_for_its_turn(opened):
    page, busy = opened("episodes", refused=(409,)), []

    def turned_away(route):
        busy.append(route)
        refusal = {"message": "another question is still being answered: ask again when it is"}
        route.continue_() if len(busy) > 1 else route.fulfill(status=409, json=refusal)

    answered(page, "#states")
    page.route("**/api/look-back", turned_away)
    page.fill("#changes", "1")
    expect(page.locator("#state")).to_contain_text("at most 1 changed action", timeout=60_000)
    assert len(busy) == 2
    page.unroute("**/api/look-back")


def test_when_the_command_has_ended_the_page_says_so(browser, tmp_path):
    process, address = started(run_folder(tmp_path / "run"))
    page = browser.new_context().new_page()
    page.goto(address)
    answered(page)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    page.fill("#given-0", "0.2")
    expect(page.locator("#message")).to_contain_text(
        "the command that serves this page has ended", timeout=60_000
    )
    expect(page.locator("#sentence")).to_be_hidden()
