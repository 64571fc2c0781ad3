"""Seconds of an answer of `rehearsal explore`, in the server and in a browser, on the diabetes data.

The model is that of docs/notebook.md (442 patients of scikit-learn, the default method). 50 settings are
asked for, one after the other:

    server     from the call of the session to its answer
    http       from sending the question to the server to having read its answer
    browser    in headless Chromium, from the change of a slider to the page that shows the new number

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from sklearn.datasets import load_diabetes

import rehearsal_torch as rt
from rehearsal_torch.explorer.loopback import listening
from rehearsal_torch.explorer.recorded_model import opened
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.explorer.server import server

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


def timed(ask: Callable[[float], Any], count: int) -> list[float]:
    """Seconds of `count` answers, each to a setting of its own; one is asked before, which is not counted."""
    seconds = []
    for place in range(count + 1):
        begun = time.perf_counter()
        ask(21 + 8 * place / count)
        seconds.append(time.perf_counter() - begun)
    return seconds[1:]


def over_http(port: int, value: float) -> None:
    """Asks the server one question."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    asked = {"case": None, "given": GIVEN, "set": {"bmi": value, "bp": 90.0}}
    connection.request("POST", "/api/what-if", json.dumps(asked), {"content-type": "application/json"})
    assert "estimate" in json.load(connection.getresponse())
    connection.close()


def in_browser(port: int, count: int) -> list[float]:
    """Seconds of `count` moves of a slider; empty without a browser."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        return []
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector("#outcomes svg")
        # Moves come one after the other, before curves are asked for.
        moves = [21 + 8 * (place + 0.5) / count for place in range(count)]
        seconds = [float(page.evaluate(MOVED, value)) for value in moves]
        browser.close()
    return seconds


def main() -> None:
    """Fits, serves, asks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    patients = load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": "progression"})
    with tempfile.TemporaryDirectory() as folder:
        session = RehearsalSession(opened(rt.learn(patients[:-40], TASK).save(Path(folder) / "diabetes")))
    listener = listening("127.0.0.1", 0)
    port = int(listener.getsockname()[1])
    served = uvicorn.Server(uvicorn.Config(server(session, port), log_level="warning", lifespan="off"))
    thread = threading.Thread(target=served.run, args=([listener],))
    thread.start()
    while not served.started:
        time.sleep(0.01)
    found = {
        "server": timed(lambda value: session.what_if(None, GIVEN, {"bmi": value, "bp": 90.0}), given.count),
        "http": timed(lambda value: over_http(port, value), given.count),
        "browser": in_browser(port, given.count),
    }
    served.should_exit = True
    thread.join()
    for name, seconds in found.items():
        if seconds:
            print(f"{name:<8} median {statistics.median(seconds):.4f} s, largest {max(seconds):.4f} s")
        else:
            print(f"{name:<8} no browser is installed")
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        with (given.out / "explore.csv").open("w", newline="") as stream:
            rows = [(name, place, each) for name, own in found.items() for place, each in enumerate(own)]
            csv.writer(stream).writerows([("where", "answer", "seconds"), *rows])


if __name__ == "__main__":
    main()
