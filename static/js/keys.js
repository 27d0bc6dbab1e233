// Keys, sheets and evidence: shared by the grading screen and the adjudication page.
// The page carries its table of keys as JSON in #keys; each action is the element with that data-action.
"use strict";

const words = (name) => document.getElementById("words")?.dataset[name] ?? "";

const hint = (text) => {
  const place = document.getElementById("hint");
  if (place) place.textContent = text;
};

const Keys = {
  // Set by a page whose save under way must not be followed by a key meant for what was on the screen before.
  refuse: () => "",

  actionOf(key) {
    const table = JSON.parse(document.getElementById("keys")?.textContent ?? "[]");
    return table.find((entry) => entry.keys.includes(key))?.action;
  },

  use(action) {
    const element = document.querySelector(`[data-action="${CSS.escape(action)}"]`);
    if (!element) return;
    if (element instanceof HTMLDetailsElement) {
      element.open = true;
      const field = element.querySelector("textarea, input:not([type=hidden])");
      field?.focus();
      field?.setSelectionRange?.(field.value.length, field.value.length);
    } else if (element.matches("textarea")) {
      element.focus();
    } else {
      element.click();
    }
  },
};

const isTextField = (element) => element.matches("textarea, select, input:not([type=radio], [type=checkbox]), [contenteditable]");

const inTextField = (event) => {
  if (event.key === "Escape") {
    event.target.blur();
    const details = event.target.closest("details");
    if (details) details.open = false;
    document.getElementById("now")?.focus({ preventScroll: true });
    event.preventDefault();
  } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat) {
    event.target.form?.requestSubmit();
    event.preventDefault();
  }
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || !(event.target instanceof Element)) return;
  if (isTextField(event.target)) return inTextField(event);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.shiftKey && [" ", "Backspace", "Enter"].includes(event.key)) return;
  // The element that has the focus keeps the keys that belong to it.
  if ([" ", "Enter"].includes(event.key) && event.target.closest("button, a, summary, input")) return;
  const key = event.key.length === 1 && !event.shiftKey ? event.key.toLowerCase() : event.key;
  const action = Keys.actionOf(key);
  if (!action) return;
  const sheet = document.querySelector("dialog[open]");
  if (sheet) {
    if (sheet.id === sheetOf(action)?.id && !event.repeat) sheet.close();
    return;
  }
  event.preventDefault();
  if (event.repeat) return; // held down: one press is one label
  const reason = Keys.refuse(action);
  hint(reason);
  if (!reason) Keys.use(action);
});

// Sheets

const sheetOf = (action) => document.getElementById({ rubric: "rubric", keys: "keys-sheet" }[action] ?? "");

document.addEventListener("click", (event) => {
  const opener = event.target.closest?.('[data-action="rubric"], [data-action="keys"]');
  const sheet = opener && sheetOf(opener.dataset.action);
  if (!sheet) return;
  event.preventDefault();
  sheet.showModal();
});

// Evidence: words of the claim in the passages. A help to look; it says nothing about the claim.

const SHORT = /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}]{1,3}$/u;

const segmenter = Intl.Segmenter ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;

const pieces = (text) =>
  segmenter
    ? Array.from(segmenter.segment(text), (piece) => piece.segment)
    : (text.match(/[\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}]+/gu) ?? []);

const isWord = (piece) => /[\p{L}\p{N}]/u.test(piece) && !SHORT.test(piece);

const folded = (word) => word.normalize("NFKC").toLowerCase();

const light = (passage, wanted, found) => {
  const text = passage.textContent;
  const made = document.createDocumentFragment();
  for (const piece of pieces(text)) {
    if (isWord(piece) && wanted.has(folded(piece))) {
      found.add(folded(piece));
      const mark = document.createElement("mark");
      mark.textContent = piece;
      made.append(mark);
    } else if (made.lastChild instanceof Text) {
      made.lastChild.data += piece;
    } else {
      made.append(piece);
    }
  }
  passage.replaceChildren(made);
};

const NEAR = 300; // characters

// Where most different words of the claim stand close together is where to begin to read.
const showDensest = () => {
  let best = null;
  let most = 0;
  for (const passage of document.querySelectorAll("[data-passage]")) {
    const lit = [];
    let at = 0;
    for (const node of passage.childNodes) {
      if (node instanceof HTMLElement) lit.push({ node, at, word: folded(node.textContent) });
      at += node.textContent.length;
    }
    for (const [index, first] of lit.entries()) {
      const near = new Set();
      for (let next = index; next < lit.length && lit[next].at - first.at < NEAR; next += 1) near.add(lit[next].word);
      if (near.size > most) [most, best] = [near.size, first.node];
    }
  }
  best?.scrollIntoView({ block: "nearest" });
};

document.addEventListener("click", (event) => {
  const button = event.target.closest?.('[data-action="evidence"]');
  const claim = document.querySelector("[data-claim]");
  if (!button || !claim) return;
  const on = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", String(on));
  const wanted = new Set(pieces(claim.textContent).filter(isWord).map(folded));
  const found = new Set();
  for (const passage of document.querySelectorAll("[data-passage]")) {
    if (on) light(passage, wanted, found);
    else passage.replaceChildren(passage.textContent);
  }
  hint(on ? `${words("found")} ${found.size} / ${wanted.size}` : "");
  if (on) showDensest();
});

// Adjudication: a grader's chip is a choice

document.addEventListener("click", (event) => {
  const chip = event.target.closest?.("[data-choose]");
  const choice = chip && document.querySelector(`[data-action="${CSS.escape(`label-${chip.dataset.choose}`)}"]`);
  choice?.click();
});

const showScriptedParts = () => {
  for (const part of document.querySelectorAll("[data-needs-script]")) part.hidden = false;
};
document.addEventListener("htmx:afterSwap", showScriptedParts);
showScriptedParts();
