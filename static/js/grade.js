// The grading screen: time on each target, and labels that could not be sent.
// A label that the server did not confirm is kept in localStorage with its idempotency key and sent again once
// the server answers; because of the key it is stored once however often it arrives.
"use strict";

(() => {
  const main = document.getElementById("main");
  const STORE = main.dataset.store;
  const isLabel = (element) => element?.id === "label-form";
  let saving = false;

  // Time on a target, without the time the tab was hidden

  let shownAt = performance.now();
  let hiddenAt = null;
  let hiddenFor = 0;
  const startClock = () => {
    shownAt = performance.now();
    hiddenFor = 0;
    hiddenAt = document.hidden ? shownAt : null;
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      hiddenAt = performance.now();
    } else if (hiddenAt !== null) {
      hiddenFor += performance.now() - hiddenAt;
      hiddenAt = null;
    }
  });
  const milliseconds = () => Math.max(0, Math.round(performance.now() - shownAt - hiddenFor));

  // The queue of labels that wait to be sent

  const waiting = () => {
    try {
      return JSON.parse(localStorage.getItem(STORE) ?? "[]");
    } catch {
      return [];
    }
  };
  const store = (labels) => {
    try {
      if (labels.length) localStorage.setItem(STORE, JSON.stringify(labels));
      else localStorage.removeItem(STORE);
      return true;
    } catch {
      return false;
    }
  };
  const keep = (label) => waiting().some((kept) => kept.key === label.key) || store([...waiting(), label]);
  const drop = (label) => store(waiting().filter((kept) => kept.key !== label.key));

  const trouble = (text, detail = "", link = "") => {
    const place = document.getElementById("trouble");
    place.replaceChildren(text);
    if (text) document.getElementById("kept").replaceChildren();
    if (detail) {
      const strong = document.createElement("strong");
      strong.textContent = detail;
      place.append(" ", strong);
    }
    if (link) {
      const anchor = Object.assign(document.createElement("a"), { href: link, target: "_blank", textContent: link });
      place.append(" ", anchor);
    }
  };

  const notTaken = (label, loggedOut = false) => {
    if (!keep(label)) return trouble(words("notKept"));
    if (loggedOut) trouble(words("loggedOut"), label.label, words("logIn"));
    else trouble(words("unreachable"), label.label);
    retryLater();
  };

  Keys.refuse = (action) => {
    if (saving) return words("saving");
    if (action.startsWith("label-") && waiting().length) return words("waiting");
    return "";
  };
  // A click is refused as a key is.
  document.addEventListener(
    "submit",
    (event) => {
      const reason = saving ? words("saving") : isLabel(event.target) && waiting().length ? words("waiting") : "";
      hint(reason);
      if (!reason) return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    true,
  );

  // Sending again

  let timer = null;
  let pause = 1000;
  const retryLater = () => {
    clearTimeout(timer);
    timer = setTimeout(retry, pause);
    pause = Math.min(pause * 1.6, 15000);
  };
  const isUp = async () => {
    try {
      return (await fetch(main.dataset.health, { cache: "no-store" })).ok;
    } catch {
      return false;
    }
  };
  const isScreen = (html) => html.includes('id="screen"');
  const send = async (label) => {
    const token = document.querySelector("#screen [name=csrfmiddlewaretoken]")?.value ?? "";
    const { url, ...fields } = label;
    const answer = await fetch(url, {
      method: "POST",
      headers: { "HX-Request": "true", "X-CSRFToken": token },
      body: new URLSearchParams(fields),
    });
    if (answer.status >= 500 || answer.status === 429) throw new Error(String(answer.status));
    const html = await answer.text();
    return { html, taken: isScreen(html) || answer.status === 404 };
  };
  let sending = false;
  const retry = async () => {
    const [label] = waiting();
    if (!label || sending) return;
    sending = true;
    try {
      if (!(await isUp())) return retryLater();
      const { html, taken } = await send(label);
      if (!taken) return notTaken(label, true);
      drop(label);
      pause = 1000;
      trouble("");
      if (isScreen(html)) htmx.swap("#screen", html, { swapStyle: "outerHTML" });
      else location.reload();
    } catch {
      retryLater();
    } finally {
      sending = false;
      if (waiting().length) retryLater();
    }
  };
  addEventListener("online", retry);
  addEventListener("focus", retry);

  // What htmx sends and gets

  let inFlight = null; // the label being sent
  document.addEventListener("htmx:configRequest", (event) => {
    inFlight = null;
    if (!isLabel(event.detail.elt)) return;
    event.detail.parameters.milliseconds = milliseconds();
    const { csrfmiddlewaretoken, ...fields } = Object.fromEntries(event.detail.formData.entries());
    inFlight = { url: event.detail.path, ...fields };
  });
  document.addEventListener("htmx:beforeRequest", () => {
    saving = true;
    document.getElementById("screen").setAttribute("aria-busy", "true");
  });
  document.addEventListener("htmx:afterRequest", () => {
    saving = false;
    document.getElementById("screen").removeAttribute("aria-busy");
  });
  const failed = () => {
    if (inFlight) notTaken(inFlight);
    else trouble(words("notDone"));
  };
  for (const name of ["htmx:sendError", "htmx:timeout"]) document.addEventListener(name, failed);

  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr } = event.detail;
    if (xhr.status >= 500 || xhr.status === 429) {
      event.detail.shouldSwap = false;
      failed();
    } else if (isScreen(xhr.responseText)) {
      event.detail.shouldSwap = true; // a refusal is a screen too, and says why
      event.detail.isError = false;
      trouble("");
      hint("");
    } else if (xhr.status < 400) {
      event.detail.shouldSwap = false; // the log-in page
      if (inFlight) notTaken(inFlight, true);
      else trouble(words("notDone"));
    } else {
      event.detail.shouldSwap = false;
      location.reload(); // not ours any more: show what is
    }
  });

  let hadFocus = false;
  document.addEventListener("htmx:beforeSwap", () => {
    hadFocus = document.getElementById("screen").contains(document.activeElement);
  });
  document.addEventListener("htmx:afterSettle", () => {
    const now = document.getElementById("now");
    if (hadFocus) now?.focus({ preventScroll: true });
    hadFocus = false;
    lookAt(now);
    startClock();
  });
  const lookAt = (now) => {
    if (!now) return scrollTo(0, 0);
    scrollTo(0, 0); // the response from its start, as long as the claim fits below it
    now.scrollIntoView({ block: "nearest" });
    const mark = document.querySelector(".response mark");
    const box = mark?.closest(".response");
    if (box && box.scrollHeight > box.clientHeight) box.scrollTop = mark.offsetTop - box.offsetTop - box.clientHeight / 3;
  };
  lookAt(document.getElementById("now"));

  if (waiting().length) notTaken(waiting()[0]);
})();
