"""What a page has said below its work, also where the page has gone since."""

WATCH = """() => {
  sessionStorage.setItem("said", "");
  const hint = document.getElementById("hint");
  const said = () => sessionStorage.getItem("said");
  const note = () => sessionStorage.setItem("said", said() + hint.textContent + "\\n");
  new MutationObserver(note).observe(hint, { childList: true, characterData: true, subtree: true });
}"""


def hints(page):
    """A page that waits for the next one answers no question: it takes notes, and is asked later."""
    page.evaluate(WATCH)
    return lambda: page.evaluate("() => sessionStorage.getItem('said')")
