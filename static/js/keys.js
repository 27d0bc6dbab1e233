// Keys and sheets: of the grading screen, the warm-up, the adjudication page and the claim audit.
// The page carries its table of keys as JSON in #keys (and, where they change with what is asked, the keys of the
// labels in #label-keys); each action is the element with that data-action.
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
    const table = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "[]");
    return [...table("label-keys"), ...table("keys")].find((entry) => entry.keys.includes(key))?.action;
  },

  use(action) {
    const sheet = sheetOf(action);
    if (sheet) return sheet.showModal();
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
  const isSave = event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat;
  const stays = event.target.matches("[data-stays]"); // a text that goes with the next label
  if (event.key === "Escape" || (isSave && stays)) {
    const details = event.target.closest("details");
    if (details && !(stays && event.target.value)) details.open = false;
    event.target.blur();
    document.getElementById("now")?.focus({ preventScroll: true });
    event.preventDefault();
  } else if (isSave) {
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

// Adjudication: a grader's chip is a choice

document.addEventListener("click", (event) => {
  const chip = event.target.closest?.("[data-choose]");
  const choice = chip && document.querySelector(`[data-action="${CSS.escape(`label-${chip.dataset.choose}`)}"]`);
  choice?.click();
});

const showScriptedParts = () => {
  for (const part of document.querySelectorAll("[data-needs-script]")) part.hidden = false;
};
showScriptedParts();
