"""Pages of `rehearsal explore` in headless Chromium: the command as typed, and what every page keeps."""

import shutil
import subprocess
from contextlib import contextmanager

import pytest
from playwright.sync_api import sync_playwright

from tests.scripts.typing_in import command, surroundings

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((found for name in BROWSERS if (found := shutil.which(name))), None)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
)
WIDTHS = {"desktop": 1200, "phone": 390}
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason=f"the page is tested in a browser; none of {', '.join(BROWSERS)} is installed"
)


def started(run, *options, cwd=None):
    """The process, and the address that it printed."""
    process = subprocess.Popen(
        command("explore", run, *options),
        cwd=cwd,
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline()
    assert line.startswith("The page is at http://127.0.0.1:"), process.stderr.read()
    return process, line.split()[-1]


@contextmanager
def serving(run, *options, cwd=None):
    """The address of a page; its command is ended afterwards."""
    process, found = started(run, *options, cwd=cwd)
    try:
        yield found
    finally:
        process.terminate()
        process.communicate(timeout=60)


@contextmanager
def chromium():
    """A headless browser."""
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
        yield found
        found.close()


@contextmanager
def opened_page(browser, address, width, refused=()):
    """A page; in the end it must have asked nobody else, and had no fault.

    Args:
        browser: The browser.
        address: What is opened.
        width: Its width in pixels.
        refused: Statuses of answers that the test provokes, which the browser reports as errors.
    """
    context = browser.new_context(viewport={"width": width, "height": 844})
    found = context.new_page()
    found.set_default_timeout(60_000)
    faults, outside = [], []
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    found.on(
        "request", lambda sent: None if sent.url.startswith((address, "data:")) else outside.append(sent.url)
    )
    found.goto(address)
    yield found
    faults = [text for text in faults if not any(f"status of {status}" in text for status in refused)]
    assert (faults, outside) == ([], [])
    context.close()


def unnamed(page):
    """How many controls have neither a label nor a name."""
    return page.evaluate(
        """() => [...document.querySelectorAll('input, select, textarea')].filter(
            (one) => one.type !== "hidden" && !one.labels.length && !one.getAttribute('aria-label')).length"""
    )
