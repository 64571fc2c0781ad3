"""Seconds of an answer of `rehearsal explore`, in the server and in a browser.

Cases: the model of docs/notebook.md (442 patients of scikit-learn's diabetes data, the default method), asked
for 50 settings. Episodes: an ensemble of four models of 300 simulated machines in maintenance, asked for 50
sequences that were put together by hand (replay), and for the best single change of 50 machines (look-back,
k = 1). One after the other:

    server     from the call of the session to its answer
    http       from sending the question to the server to having read its answer
    browser    in headless Chromium, from the change of a control to the page that shows the new answer

Run: python benchmarks/explore.py [--count 50] [--out DIR] Prints medians and maxima, and writes
DIR/explore.csv.
"""

import argparse
import csv
import http.client
import json
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from sklearn.datasets import load_diabetes

import rehearsal_torch as rt
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.evaluation.run_record import Recorded
from rehearsal_torch.explorer.episode_session import EpisodeSession
from rehearsal_torch.explorer.loopback import listening
from rehearsal_torch.explorer.open_run import OpenedEpisodes, opened
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.explorer.server import server
from rehearsal_torch.methods.run_parts import build
from rehearsal_torch.reporting.page.page_content import Material
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate
from rehearsal_torch.training.surrogate_fit import fit

PARENTS = {"bmi": ["age", "sex"], "bp": ["age", "sex", "bmi"], "progression": ["age", "sex", "bmi", "bp"]}
TASK = {
    "graph": {"parents": PARENTS},
    "context": ["age", "sex"],
    "box": {"bmi": [20, 32], "bp": [75, 110]},
    "candidates": [["bmi", "bp"], ["bmi"], ["bp"]],
    "region": {"progression": [None, 140]},
}
GIVEN = {"age": 51.0, "sex": 2.0}
# The slider is moved, and the next frame after the new number is awaited.
MOVED = """async (value) => {
    const slider = document.getElementById('set-0'), point = document.getElementById('point');
    const begun = performance.now(), before = document.getElementById('sentence').textContent;
    slider.value = value;
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    while (document.getElementById('sentence').textContent === before || !point.textContent) {
        await new Promise(requestAnimationFrame);
    }
    return (performance.now() - begun) / 1000;
}"""


MACHINES = (
    "dataset=machines",
    "decision=branch_and_bound",
    "reward=weights_score_costs",
    "dataset.machines=300",
    "trainer.max_epochs=10",
    "trainer.progress=false",
)
# Another action is chosen at a step, and the next frame after the new answer is awaited.
REPLAYED = """async ([step, action]) => {
    const answer = document.getElementById('answer');
    const chooser = () => document.getElementById(`action-${step}`);
    document.getElementById('blank').click();
    while (answer.hidden || !document.getElementById('headline').textContent.startsWith('As observed')) {
        await new Promise(requestAnimationFrame);
    }
    const begun = performance.now();
    chooser().value = action;
    chooser().dispatchEvent(new Event('change', { bubbles: true }));
    while (answer.hidden) await new Promise(requestAnimationFrame);
    return (performance.now() - begun) / 1000;
}"""


def timed(asked: Sequence[Callable[[], Any]]) -> list[float]:
    """Seconds of each question; the first one is not counted."""
    seconds = []
    for ask in asked:
        begun = time.perf_counter()
        ask()
        seconds.append(time.perf_counter() - begun)
    return seconds[1:]


def over_http(port: int, path: str, asked: Any, expected: str) -> None:
    """Asks the server one question."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", path, json.dumps(asked), {"content-type": "application/json"})
    assert expected in json.load(connection.getresponse())
    connection.close()


@contextmanager
def served(session: Any) -> Iterator[int]:
    """A session behind its server; yields the port."""
    listener = listening("127.0.0.1", 0)
    port = int(listener.getsockname()[1])
    server_ = uvicorn.Server(uvicorn.Config(server(session, port), log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server_.run, args=([listener],))
    thread.start()
    while not server_.started:
        time.sleep(0.01)
    yield port
    server_.should_exit = True
    thread.join()


def in_browser(port: int, ready: str, script: str, moves: Sequence[Any]) -> list[float]:
    """Seconds of moves of a control; empty without a browser."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        return []
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector(ready)
        # Moves come one after the other, before curves are asked for.
        seconds = [float(page.evaluate(script, move)) for move in moves]
        browser.close()
    return seconds


def of_cases(count: int) -> dict[str, list[float]]:
    """Claims of settings."""
    patients = load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": "progression"})
    with tempfile.TemporaryDirectory() as folder:
        session = RehearsalSession(opened(rt.learn(patients[:-40], TASK).save(Path(folder) / "diabetes")))
    settings = [{"bmi": 21 + 8 * place / count, "bp": 90.0} for place in range(count + 1)]
    with served(session) as port:
        asked = [{"case": None, "given": GIVEN, "set": each} for each in settings]
        return {
            "cases: server": timed([partial(session.what_if, None, GIVEN, each) for each in settings]),
            "cases: http": timed(
                [partial(over_http, port, "/api/what-if", each, "estimate") for each in asked]
            ),
            "cases: browser": in_browser(
                port, "#outcomes svg", MOVED, [21 + 8 * (place + 0.5) / count for place in range(count)]
            ),
        }


def of_episodes(count: int) -> dict[str, list[float]]:
    """Replays, and searches for the best single change."""
    config, _ = composed(MACHINES, multirun=False)
    run = build(config)
    surrogate = run.surrogate()
    fit(surrogate, run.problem.observations(), run.trainer(None))
    every = [run.problem.case(place) for place in range(min(count + 1, run.problem.count()))]
    cases = tuple(case for case in every if isinstance(case, EpisodeCase))
    assert isinstance(surrogate, EpisodeSurrogate)
    session = EpisodeSession(
        OpenedEpisodes(surrogate, run, cases, 0, Material(Recorded(Path("machines"), kind="look_back")))
    )
    first = session.episode(0)
    single = [(step, action) for step in first["open"] for action in first["choices"][step]]
    sequences = [list(first["actions"]) for _ in range(count + 1)]
    for place, actions in enumerate(sequences):
        step, action = single[place % len(single)]
        actions[step] = action
    with served(session) as port:
        asked = [{"episode": 0, "actions": each} for each in sequences]
        moves = [list(map(str, single[place % len(single)])) for place in range(count)]
        return {
            "replay: server": timed([partial(session.replay, 0, each) for each in sequences]),
            "replay: http": timed([partial(over_http, port, "/api/replay", each, "value") for each in asked]),
            "replay: browser": in_browser(port, "#answer:not([hidden])", REPLAYED, moves),
            "look-back: server": timed(
                [partial(session.look_back, place % len(cases), 1, [], 60.0) for place in range(count + 1)]
            ),
        }


def main() -> None:
    """Fits, serves, asks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found = {**of_cases(given.count), **of_episodes(given.count)}
    for name, seconds in found.items():
        if seconds:
            print(f"{name:<18} median {statistics.median(seconds):.4f} s, largest {max(seconds):.4f} s")
        else:
            print(f"{name:<18} no browser is installed")
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        with (given.out / "explore.csv").open("w", newline="") as stream:
            rows = [(name, place, each) for name, own in found.items() for place, each in enumerate(own)]
            csv.writer(stream).writerows([("where", "answer", "seconds"), *rows])


if __name__ == "__main__":
    main()
