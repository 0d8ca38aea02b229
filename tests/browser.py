"""Gives tests a real browser: the fixture ``browser``, one Chromium a session, with a profile of its own.

Without one on the machine, and no way to install it, a test that asks for it fails with the sentence that says how to
get one. What tests see of a page is kept as a picture, in the folder that GEM_BUNDLE_PICTURES names or in pytest's.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from selenium.webdriver import Chrome

ROOT: Final = Path(__file__).resolve().parent.parent
# Ends only what would hang: a busy machine is slow.
TIMEOUT: Final = 120.0
# As WebDriver names keys.
TAB: Final = "\ue004"
ENTER: Final = "\ue007"
AXE: Final = (
    "axe-core",
    "4.14.1",
    "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745",
    "axe.min.js",
)


class Browser:
    """A browser with one window.

    Args:
        driver: What steers it.
        pictures: Where pictures of pages are kept.
    """

    def __init__(self, driver: Chrome, pictures: Path) -> None:
        self.driver = driver
        self._pictures = pictures

    def open(self, address: str, *, width: int = 1400, height: int = 1000, dark: bool = False) -> None:
        """Open a page, in a window of that size."""
        self.driver.get("about:blank")
        self.messages()
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.get(address)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a function's body in JavaScript returns."""
        return self.driver.execute_script(script, *arguments)

    def text(self, selector: str) -> str:
        """The text of an element; empty where it isn't there, or isn't shown."""
        found: str = self.run(
            "const e = document.querySelector(arguments[0]); return e && e.checkVisibility() ? e.innerText : ''",
            selector,
        )
        return found

    def until(self, wanted: Callable[[], object], what: str) -> None:
        """Wait until something is so."""
        from selenium.common.exceptions import TimeoutException
        from selenium.webdriver.support.ui import WebDriverWait

        try:
            WebDriverWait(self.driver, TIMEOUT, 0.05).until(lambda _: wanted())
        except TimeoutException:
            self.picture("timeout")
            raise AssertionError(f"{what}; the page says:\n{self.text('body')}\n{self.messages()}") from None

    def until_text(self, selector: str, part: str) -> None:
        """Wait until an element shows a text."""
        self.until(lambda: part in self.text(selector), f"`{selector}` never showed `{part}`")

    def click(self, selector: str) -> None:
        """Click an element, as a user does."""
        self.driver.find_element("css selector", selector).click()

    def press(self, *keys: str) -> None:
        """Press keys one after the other, wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def messages(self) -> list[str]:
        """What the browser's console has said since the last call, or since the page was opened."""
        entries: list[dict[str, str]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [f"{entry['level']}: {entry['message']}" for entry in entries]

    def barriers(self) -> list[str]:
        """What axe finds that keeps people from using the page, moderate things left out."""
        axe = subprocess.run([ROOT / "scripts/npm-file", *AXE], capture_output=True, text=True, check=False)
        if axe.returncode:
            pytest.fail(axe.stderr.strip(), pytrace=False)
        # Through the debugger, as the page's own policy lets in no script.
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": Path(axe.stdout.strip()).read_text()})
        found = self.driver.execute_async_script("axe.run().then(arguments[0])")
        assert found["passes"], "it has looked"
        return [
            f"{violation['id']} ({violation['impact']}): {[node['html'] for node in violation['nodes']][:3]}"
            for violation in found["violations"]
            if violation["impact"] in {"serious", "critical"}
        ]

    def picture(self, name: str, *, whole: bool = True) -> Path:
        """Keep a picture of what is shown, or of the whole page."""
        made = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": whole})
        path = self._pictures / f"{name}.png"
        path.write_bytes(base64.b64decode(made["data"]))
        return path


def start_browser(pictures: Path, profile: Path) -> Browser:
    """A browser; without one on the machine this fails with the sentence that says how to get it."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    done = subprocess.run([ROOT / "scripts/browser"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(done.stderr.strip(), pytrace=False)
    program, driver = done.stdout.strip().splitlines()[-1].split()
    options = ChromeOptions()
    options.binary_location = program
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
        "--disable-background-networking",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    pictures.mkdir(parents=True, exist_ok=True)
    return Browser(Chrome(options, ChromeService(driver)), pictures)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The browser that all tests of this process share."""
    kept = os.environ.get("GEM_BUNDLE_PICTURES")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("pictures")
    found = start_browser(folder, tmp_path_factory.mktemp("browser"))
    yield found
    found.driver.quit()


def page_numbers(browser: Browser) -> dict[str, Any]:
    """What the page shows of its run: its state, its totals, and the table of its targets."""
    found: dict[str, Any] = json.loads(
        browser.run(
            """
            const text = (element) => element.textContent.trim();
            const names = [...document.querySelectorAll("#targets thead th")].map(text);
            const rows = [...document.querySelectorAll("#targets tbody tr")].map((row) =>
              Object.fromEntries([...row.children].map((cell, at) => [names[at], text(cell)])));
            const totals = [...document.querySelectorAll("#totals div")].map((one) =>
              [text(one.children[0]), text(one.children[1])]);
            return JSON.stringify({state: text(document.querySelector("#state")),
              totals: Object.fromEntries(totals), targets: Object.fromEntries(rows.map((row) => [row.Target, row]))});
            """
        )
    )
    return found
