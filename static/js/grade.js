// The grading screen: one key is one label, sent once, confirmed before anything is said to be saved.
// A response that the page has shown, or is about to show, is held here; the server then sends only what a label
// changes. The response that comes next is held before it is asked for, and shown at once with the last key.
"use strict";

(() => {
  const main = document.getElementById("main");
  const outbox = Outbox(main.dataset.store);
  const SECONDS = 1000;
  let saving = false;

  const screen = () => document.getElementById("screen");
  const work = () => document.getElementById("work");
  const labelForm = () => document.getElementById("label-form");

  // Time on a target: without the time the tab was hidden, and no pause counts for more than a minute

  const PAUSE = 60 * SECONDS;
  let spent = 0;
  let active = performance.now();
  const tick = () => {
    const now = performance.now();
    if (!document.hidden) spent += Math.min(now - active, PAUSE);
    active = now;
  };
  for (const name of ["keydown", "pointermove", "pointerdown", "scroll", "wheel", "touchmove"]) {
    document.addEventListener(name, tick, { passive: true, capture: true });
  }
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) active = performance.now(); // what lies behind was a break
    else {
      const now = performance.now();
      spent += Math.min(now - active, PAUSE);
      active = now;
    }
  });
  const milliseconds = () => {
    tick();
    return Math.round(spent);
  };
  const fieldOf = (form, name) => form?.elements.namedItem(name)?.value ?? "";
  const targetOf = (form) => ["assignment", "dimension", "claim", "passage"].map((name) => fieldOf(form, name)).join();
  let timed = targetOf(labelForm());
  const startClock = () => {
    const target = targetOf(labelForm());
    if (target === timed) return;
    timed = target;
    spent = 0;
    active = performance.now();
  };

  // What is said about a save

  const trouble = (text, detail = "", loggedOut = false) => {
    const place = document.getElementById("trouble");
    place.replaceChildren(text);
    if (text) document.getElementById("kept").replaceChildren();
    if (detail) {
      const strong = document.createElement("strong");
      strong.textContent = detail;
      place.append(" ", strong);
    }
    if (loggedOut) {
      const link = { href: words("logInAt"), target: "_blank", textContent: words("logIn") };
      place.append(" ", Object.assign(document.createElement("a"), link));
    }
  };
  let slow = null; // says what is under way once it takes longer than an instant
  const busy = (on, says = "") => {
    saving = on;
    clearTimeout(slow);
    for (const frame of [screen(), ...frames.values()]) frame.removeAttribute("aria-busy");
    if (on) screen().setAttribute("aria-busy", "true");
    if (on && says) {
      slow = setTimeout(() => document.getElementById("kept").replaceChildren(`${words("underWay")} ${says}`), 150);
    }
  };

  // The responses held, the latest last

  const HELD = 4;
  const frames = new Map();
  const hold = (frame) => {
    const id = frame?.dataset.assignment;
    if (!id) return;
    frames.delete(id);
    frames.set(id, frame);
    if (frames.size > HELD) frames.delete(frames.keys().next().value);
  };
  const holdWhatComes = (template) => hold(template?.content.firstElementChild);

  const show = (frame) => {
    if (frame !== screen()) screen().replaceWith(frame);
  };
  // Whoever had the focus on the screen has it on what is to be labelled now.
  const change = (act) => {
    const inside = screen().contains(document.activeElement);
    act();
    showScriptedParts();
    Passages.arrange();
    startClock();
    const now = document.getElementById("now") ?? screen().querySelector("h2");
    if (inside && now) {
      now.tabIndex = -1;
      now.focus({ preventScroll: true });
    }
    lookAt(document.getElementById("now"));
    watchClaim();
  };
  const lookAt = (now) => {
    scrollTo(0, 0); // the response from its start, as long as the claim fits below it
    if (!now) return;
    now.scrollIntoView({ block: "nearest" });
    const mark = document.querySelector(".response mark");
    const box = mark?.closest(".response");
    if (box && box.scrollHeight > box.clientHeight) box.scrollTop = mark.offsetTop - box.offsetTop - box.clientHeight / 3;
  };

  const swap = (html) => {
    const answer = document.createElement("template");
    answer.innerHTML = html;
    const of = (selector) => answer.content.querySelector(selector);
    const whole = of("#screen");
    const fresh = of("#work");
    const frame = whole ?? frames.get(fresh.dataset.assignment);
    if (!frame) return location.reload();
    change(() => {
      document.title = of("title").textContent.trim();
      document.getElementById("progress").replaceWith(of("#progress"));
      document.getElementById("kept").replaceChildren(...of("#kept").childNodes);
      show(frame);
      if (!whole) work().replaceWith(fresh);
    });
    hold(screen());
    holdWhatComes(of("#ahead"));
  };
  // Shows what comes next before the server has answered; the answer undoes it where it knows better.
  const goAhead = () => {
    const next = frames.get(work()?.dataset.ahead);
    if (!next) return () => {};
    const left = screen();
    change(() => show(next));
    return () => change(() => show(left));
  };

  // Asking the server

  const token = () => document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1] ?? fieldOf(labelForm(), "csrfmiddlewaretoken");
  const ask = async (url, fields = null) => {
    const body = fields && new URLSearchParams(fields).toString();
    const answer = await fetch(url, {
      method: body === null ? "GET" : "POST",
      headers: {
        "HX-Request": "true",
        "Touchstone-Held": [...frames.keys()].join(","),
        ...(body === null ? {} : { "Content-Type": "application/x-www-form-urlencoded", "X-CSRFToken": token() }),
      },
      body,
      cache: "no-store",
      keepalive: body !== null && body.length < 60_000, // the page may be closed right after the key
      signal: AbortSignal.timeout(15 * SECONDS),
    });
    if (answer.status >= 500 || answer.status === 429) throw new Error(String(answer.status));
    const html = await answer.text();
    return { status: answer.status, html, isScreen: /id="(screen|work)"/.test(html) };
  };
  const fieldsOf = (form, submitter) => {
    const fields = {};
    for (const [name, value] of new FormData(form, submitter)) {
      if (name !== "csrfmiddlewaretoken") fields[name] = name in fields ? `${fields[name]},${value}` : value;
    }
    return fields;
  };

  // Labels

  let timer = null;
  let pause = SECONDS;
  let savedLate = -Infinity;
  const retryLater = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = null;
      retry();
    }, pause);
    pause = Math.min(pause * 1.6, 15 * SECONDS);
  };
  let waitsFor = ""; // the label that this page says is waiting
  const sayWaiting = (label, loggedOut = false) => {
    waitsFor = label.says;
    trouble(words(loggedOut ? "loggedOut" : "unreachable"), label.says, loggedOut);
    retryLater();
  };
  const notTaken = (label, loggedOut = false) => {
    if (outbox.keep({ ...label, failed: true })) sayWaiting(label, loggedOut);
    else trouble(words("notKept"), label.says);
  };
  // The server knows no such target for whoever is logged in now. Is that still the person who chose the label?
  const unknown = async (label) => {
    const page = await fetch(location.pathname, { cache: "no-store" }).then((answer) => answer.text(), () => "");
    if (!page.includes(`data-store="${main.dataset.store}"`)) return notTaken(label, true);
    outbox.drop(label);
    if (isShown(label)) await act(location.pathname, null); // on to what is still the grader's own
    trouble(words("gone"), label.says);
  };
  const isShown = (label) => targetOf(labelForm()) === ["assignment", "dimension", "claim", "passage"].map((name) => label.fields[name] ?? "").join();

  const send = async (label, { late = false, back = () => {} } = {}) => {
    busy(true, label.says);
    const answer = await ask(label.url, label.fields).catch(() => null);
    busy(false);
    if (!answer?.isScreen) {
      back();
      if (answer?.status === 404) await unknown(label);
      else notTaken(label, answer !== null);
      return;
    }
    outbox.drop(label);
    pause = SECONDS;
    if (!outbox.waiting().length) {
      waitsFor = "";
      trouble("");
    }
    hint("");
    if (late) savedLate = performance.now();
    // A label of another tab, sent from here: nothing moves under the hands of whoever works in this one.
    if (!late || isShown(label)) swap(answer.html);
    else document.getElementById("kept").replaceChildren(`✓ ${words("sentLate")} ${label.says}`);
  };
  const retry = async () => {
    const [label] = outbox.waiting();
    if (!label) return;
    if (saving) return retryLater();
    await send(label, { late: true });
    if (!timer && outbox.waiting().length) retryLater();
  };
  const give = (form, submitter) => {
    const fields = { ...fieldsOf(form, submitter), milliseconds: milliseconds() };
    const label = { key: fields.key, url: form.action, fields, says: fields.label, at: Date.now() };
    outbox.keep(label);
    const back = "finishes" in submitter.dataset && work().dataset.advances === "true" ? goAhead() : () => {};
    submitter.setAttribute("aria-pressed", "true");
    return send(label, { back: () => { back(); submitter.removeAttribute("aria-pressed"); } });
  };

  addEventListener("online", retry);
  addEventListener("focus", retry);
  // Another tab holds a label back, or has sent the one that this page waited for.
  addEventListener("storage", async (event) => {
    if (event.key !== main.dataset.store) return;
    const [label] = outbox.waiting();
    if (label) return sayWaiting(label);
    if (!waitsFor || saving) return;
    const said = waitsFor;
    waitsFor = "";
    savedLate = performance.now();
    await act(location.pathname, null);
    document.getElementById("kept").replaceChildren(`✓ ${words("sentLate")} ${said}`);
  });

  // Everything else: nothing of it is sent again by itself

  const act = async (url, fields, back = () => {}) => {
    busy(true);
    const answer = await ask(url, fields).catch(() => null);
    busy(false);
    if (answer?.isScreen) {
      trouble("");
      hint("");
      swap(answer.html);
    } else if (answer?.status === 404) {
      location.replace(location.pathname); // not ours any more: show what is
    } else {
      back();
      const loggedOut = Boolean(answer);
      trouble(words(loggedOut ? "notDoneLoggedOut" : "notDone"), "", loggedOut);
    }
  };

  // What a key or a click may do now

  const MOVES = ["take-back", "skip", "onward"];
  Keys.refuse = (action) => {
    const labels = action.startsWith("label-");
    if ((labels || MOVES.includes(action)) && outbox.waiting().length) return words("waiting");
    if (saving) return words("saving");
    if (labels && performance.now() - savedLate < SECONDS) return words("justSaved");
    return "";
  };
  const actionOf = (form, submitter) => submitter?.dataset.action ?? form.closest("[data-action]")?.dataset.action ?? "";

  document.addEventListener("submit", (event) => {
    const { target: form, submitter } = event;
    if (form.method !== "post" || !screen().contains(form)) return;
    event.preventDefault();
    if (form === labelForm() && !submitter?.value) return; // Enter in a box: no label was chosen
    const reason = Keys.refuse(actionOf(form, submitter));
    hint(reason);
    if (reason) return;
    if (form === labelForm()) give(form, submitter);
    else act(form.action, fieldsOf(form, submitter), actionOf(form, submitter) === "skip" ? goAhead() : undefined);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-visit]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const reason = Keys.refuse("onward");
    hint(reason);
    if (!reason) act(link.href, null);
  });
  // The latest labels come when they are looked at; until then, and where that fails, a link leads to them.
  document.addEventListener(
    "toggle",
    async (event) => {
      const link = event.target.open && event.target.querySelector("a[data-latest]");
      if (!link) return;
      const answer = document.createElement("template");
      answer.innerHTML = (await ask(link.href).catch(() => null))?.html ?? "";
      const list = answer.content.querySelector("#latest");
      if (list) link.replaceWith(list);
    },
    true,
  );
  // The second half of a double click was meant for what stood here before.
  document.addEventListener(
    "click",
    (event) => {
      if (event.detail < 2 || !event.target.closest?.("#label-form .label")) return;
      event.preventDefault();
      event.stopPropagation();
      hint(words("doubleClick"));
    },
    true,
  );

  // On a phone the claim goes with the labels when it has left the screen
  const watch = new IntersectionObserver(([entry]) => {
    main.classList.toggle("away", !entry.isIntersecting);
  });
  const watchClaim = () => {
    watch.disconnect();
    const claim = document.getElementById("claim");
    if (claim) watch.observe(claim);
  };

  hold(screen());
  holdWhatComes(document.getElementById("ahead"));
  Passages.arrange();
  lookAt(document.getElementById("now"));
  watchClaim();
  outbox.takeOver();
  const [left] = outbox.waiting();
  if (left) notTaken(left);
})();
