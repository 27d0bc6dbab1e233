"""What a grader sees in Chromium: the first page, and from a key to the next claim."""

import contextlib
from dataclasses import dataclass, field

from playwright.sync_api import sync_playwright

from tests.bench.grading.world import PASSWORD
from tests.servers import CHROMIUM_ARGUMENTS, chromium_program

# From the key to the first frame in which another target stands on the screen.
WATCH = """
window.keyToClaim = [];
document.addEventListener("keydown", (event) => {
  const shown = () => document.querySelector("#label-form [name=claim]")?.value
    + document.querySelector("#label-form [name=assignment]")?.value;
  const pressed = event.timeStamp;
  const before = shown();
  const look = () => {
    if (shown() === before) return;
    watcher.disconnect();
    requestAnimationFrame(() => setTimeout(() => window.keyToClaim.push(performance.now() - pressed)));
  };
  const watcher = new MutationObserver(look);
  watcher.observe(document.documentElement, { childList: true, subtree: true, attributes: true });
}, true);
"""
SAVED = """() => !document.querySelector("#screen[aria-busy]")"""
USABLE = """() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd"""


@dataclass
class Seen:
    bytes: int = 0
    requests: int = 0
    requests_a_label: float = 0.0
    usable: list[float] = field(default_factory=list)  # seconds
    key_to_claim: list[float] = field(default_factory=list)


def look(url: str, *, loads: int, labels: int) -> Seen:
    seen = Seen()
    with sync_playwright() as playwright, contextlib.ExitStack() as stack:
        chromium = playwright.chromium.launch(executable_path=chromium_program(), args=CHROMIUM_ARGUMENTS)
        stack.callback(chromium.close)
        for _ in range(loads):  # a new profile each time: nothing is cached
            context = chromium.new_context()
            page = context.new_page()
            _log_in(page, url)
            network = context.new_cdp_session(page)
            network.send("Network.enable")
            network.send("Network.clearBrowserCache")
            network.send("Network.setCacheDisabled", {"cacheDisabled": True})
            sizes: list[int] = []
            network.on(
                "Network.loadingFinished", lambda event, sizes=sizes: sizes.append(event["encodedDataLength"])
            )
            page.goto(f"{url}/grade/1/", wait_until="networkidle")
            seen.usable.append(page.evaluate(USABLE) / 1000)
            seen.bytes, seen.requests = max(seen.bytes, int(sum(sizes))), max(seen.requests, len(sizes))
            if len(seen.usable) < loads:
                context.close()
        page.evaluate(WATCH)
        sizes.clear()
        for number in range(1, labels + 1):
            page.keyboard.press("1")
            _wait_until(page, number)
        seen.key_to_claim = [milliseconds / 1000 for milliseconds in page.evaluate("keyToClaim")]
        seen.requests_a_label = len(sizes) / labels
    return seen


def _wait_until(page, labels: int) -> None:
    """Until the next target is shown and the label before is saved: no key is taken earlier.

    The content policy forbids Playwright's own waiting, which evaluates text in the page.
    """
    for _ in range(3000):
        if page.evaluate("keyToClaim.length") >= labels and page.evaluate(SAVED):
            return
        page.wait_for_timeout(10)
    raise AssertionError(f"after {labels} keys no other target was shown")


def _log_in(page, url: str) -> None:
    page.goto(f"{url}/login/")
    page.fill("[name=username]", "new")
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_url(f"{url}/")
