"""How soon the page of a run shows the first picture of it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.benchmarks.timing import in_turn
from tests.browser import start_browser
from tests.core.run.test_page import hundred_nodes, shown

if TYPE_CHECKING:
    from tests.benchmarks.timing import Comparison

# When the graph is there, and has been painted.
NOTES: Final = """
new MutationObserver((_, observer) => {
  if (document.querySelector(".node")) {
    observer.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => { window.graphWasThere = performance.now(); }));
  }
}).observe(document, {childList: true, subtree: true});
"""


def first_picture(pairs: int, folder: Path) -> Comparison:
    """From the moment on when the address is entered until the graph of a hundred nodes is there."""
    folder.mkdir()
    with shown(folder, hundred_nodes()) as run, tempfile.TemporaryDirectory() as profile:
        browser = start_browser(folder, Path(profile))
        browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": NOTES})
        run.begin()
        run.micro_batches(40)
        painted: list[float] = []

        def drawn() -> float:
            browser.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
            browser.open(run.address)
            browser.until(lambda: browser.run("return window.graphWasThere"), "the graph is there")
            first = browser.run("return performance.getEntriesByName('first-contentful-paint')[0].startTime")
            painted[:] = [first / 1000]
            return float(browser.run("return window.graphWasThere")) / 1000

        try:
            found = in_turn(drawn, lambda: painted[0] if painted else 0.0, pairs)
        finally:
            browser.driver.quit()
    return found.compared(
        "page",
        "the graph of a run of 100 nodes on its page, from the moment on when the address is entered",
        "anything on the page",
        seconds=1,
    )
