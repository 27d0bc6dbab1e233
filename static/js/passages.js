// The passages beside what is judged: words lit on demand, a way from one to the next, long ones folded around
// them, and which passage decided the label. A help to look; it says nothing about the claim.
"use strict";

const Passages = (() => {
  const all = () => [...document.querySelectorAll(".evidence .passage")];
  const texts = () => [...document.querySelectorAll("[data-passage]")];
  const lightButton = () => document.querySelector('[data-action="evidence"]');

  const reveal = (element) => {
    const box = element.closest(".evidence");
    const scrollsItself = box && box.scrollHeight > box.clientHeight && getComputedStyle(box).overflowY !== "visible";
    if (!scrollsItself) return element.scrollIntoView({ block: "center" });
    const above = element.getBoundingClientRect().top - box.getBoundingClientRect().top;
    box.scrollTop += above - box.clientHeight / 4;
  };

  // Words

  const SHORT = /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}]{1,3}$/u;
  const segmenter = Intl.Segmenter ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;
  const pieces = (text) =>
    segmenter
      ? Array.from(segmenter.segment(text), (piece) => piece.segment)
      : (text.match(/[\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}]+/gu) ?? []);
  const isWord = (piece) => /[\p{L}\p{N}]/u.test(piece) && !SHORT.test(piece);
  const folded = (word) => word.normalize("NFKC").toLowerCase();

  const light = (passage, wanted, found) => {
    const made = document.createDocumentFragment();
    for (const piece of pieces(passage.textContent)) {
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

  // Long passages are folded around the lit words; nothing is removed, and one click brings it back.

  const LONG = 3000; // characters of a passage
  const AROUND = 240; // kept on each side of a lit word
  const GAP = 400; // less than this is not worth a fold

  const wordBoundary = (text, at) => {
    const space = text.slice(at, at + 60).search(/\s/u);
    if (space >= 0) return at + space;
    return /[\uDC00-\uDFFF]/.test(text[at] ?? "") ? at + 1 : at;
  };
  const foldAround = (passage) => {
    if (passage.textContent.length < LONG || !passage.closest(".passage")) return; // an audited response stays whole
    for (const node of [...passage.childNodes]) {
      if (!(node instanceof Text)) continue;
      const text = node.data;
      const from = node.previousSibling || !node.nextSibling ? wordBoundary(text, AROUND) : 0;
      const to = node.nextSibling ? wordBoundary(text, Math.max(from, text.length - AROUND - 60)) : text.length;
      if (to - from < GAP) continue;
      const hidden = document.createElement("span");
      hidden.hidden = true;
      hidden.textContent = text.slice(from, to);
      const button = document.createElement("button");
      const says = `${(to - from).toLocaleString(document.documentElement.lang)} ${words("characters")}`;
      Object.assign(button, { type: "button", className: "gap" });
      Object.assign(button.dataset, { says }); // drawn by the style sheet: the passage's text stays its text
      button.setAttribute("aria-label", `${words("unfold")} ${says}`);
      node.replaceWith(text.slice(0, from), button, hidden, text.slice(to));
    }
    passage.normalize();
  };
  document.addEventListener("click", (event) => {
    const gap = event.target.closest?.(".gap");
    if (!gap) return;
    const article = gap.closest(".passage");
    gap.nextElementSibling.hidden = false;
    gap.remove();
    article.focus({ preventScroll: true });
  });

  // From one lit word to the next

  const lit = () => [...document.querySelectorAll(".evidence mark")];
  const NEAR = 300; // characters

  // Where most different words of the claim stand close together is where to begin to read.
  const densest = () => {
    let best = null;
    let most = 0;
    for (const passage of texts()) {
      const marks = [];
      let at = 0;
      for (const node of passage.childNodes) {
        if (node.nodeName === "MARK") marks.push({ node, at, word: folded(node.textContent) });
        at += node.textContent.length;
      }
      for (const [index, first] of marks.entries()) {
        const near = new Set();
        for (let next = index; next < marks.length && marks[next].at - first.at < NEAR; next += 1) near.add(marks[next].word);
        if (near.size > most) [most, best] = [near.size, first.node];
      }
    }
    return best;
  };

  const goTo = (mark) => {
    for (const other of lit()) other.classList.toggle("here", other === mark);
    if (mark) reveal(mark);
  };
  const step = (by) => {
    if (!lit().length) turn(true);
    const marks = lit();
    if (!marks.length) return;
    const at = marks.findIndex((mark) => mark.classList.contains("here"));
    const next = (at + by + marks.length) % marks.length;
    goTo(marks[next]);
    hint(`${words("litWord")} ${next + 1} / ${marks.length}`);
  };

  const SOURCES = ["[data-claim]", ".question", ".response"]; // the first of them that the page shows
  const lightSource = () => SOURCES.map((source) => document.querySelector(source)).find(Boolean);
  let litFor = "";
  const turn = (on) => {
    const source = lightSource();
    if (!source) return;
    litFor = source.textContent;
    lightButton()?.setAttribute("aria-pressed", String(on));
    const wanted = new Set(pieces(source.textContent).filter(isWord).map(folded));
    const found = new Set();
    for (const passage of texts()) {
      passage.replaceChildren(passage.textContent);
      if (!on) continue;
      light(passage, wanted, found);
      foldAround(passage);
    }
    hint(on ? `${words("found")} ${found.size} / ${wanted.size}` : "");
    if (on) goTo(densest());
  };

  // Which passage decided the label: the boxes of the label's form hold it, the passages show it

  const box = (rank) => document.querySelector(`#label-form [name=evidence][value="${CSS.escape(rank)}"]`);
  const showMarks = () => {
    for (const article of all()) {
      const decides = box(article.dataset.rank);
      const button = article.querySelector("[data-mark]");
      article.classList.toggle("decides", Boolean(decides?.checked));
      button?.setAttribute("aria-pressed", String(Boolean(decides?.checked)));
      if (button) button.hidden = !decides;
    }
  };
  const toggle = (rank) => {
    const decides = box(rank);
    if (!decides) return hint(words("notMarked"));
    decides.checked = !decides.checked;
    showMarks();
    hint(`${words(decides.checked ? "marked" : "unmarked")} ${rank}`);
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches?.("#label-form [name=evidence]")) showMarks();
  });

  const inHand = () => document.querySelector(".passage.hand");
  const move = (by) => {
    const articles = all();
    if (!articles.length) return;
    const at = articles.indexOf(inHand());
    const next = articles[at < 0 ? (by > 0 ? 0 : articles.length - 1) : Math.min(articles.length - 1, Math.max(0, at + by))];
    for (const article of articles) article.classList.toggle("hand", article === next);
    next.focus({ preventScroll: true });
    reveal(next);
  };

  const actions = {
    evidence: () => turn(lightButton().getAttribute("aria-pressed") !== "true"),
    "next-hit": () => step(1),
    "previous-hit": () => step(-1),
    "next-passage": () => move(1),
    "previous-passage": () => move(-1),
    mark: () => {
      const article = inHand() ?? all()[0];
      if (article) toggle(article.dataset.rank);
    },
  };
  document.addEventListener("click", (event) => {
    const action = event.target.closest?.("[data-action]")?.dataset.action;
    if (Object.hasOwn(actions, action ?? "")) return actions[action]();
    const rank = event.target.closest?.("[data-mark]")?.dataset.mark;
    if (rank) toggle(rank);
  });

  // What is asked has changed, the response has not: the passages in their new order, the claim marked in the text

  const markClaim = (at) => {
    const response = document.querySelector(".grade .response");
    if (!response) return;
    const text = response.textContent;
    const [from, to] = at ? at.split("-").map(Number) : [0, 0];
    if (from === to) return response.replaceChildren(text);
    const mark = document.createElement("mark");
    mark.textContent = text.slice(from, to);
    response.replaceChildren(text.slice(0, from), mark, text.slice(to));
  };

  const arrange = () => {
    const work = document.getElementById("work");
    const aside = document.getElementById("passages");
    if (!work || !aside) return;
    const { about, claimAt } = work.dataset;
    const cites = new Set(work.dataset.cites.split(" "));
    const place = (article) => [article.dataset.rank !== about, !cites.has(article.dataset.rank), Number(article.dataset.rank)];
    const before = (one, other) => {
      const [a, b] = [place(one), place(other)];
      const first = a.findIndex((value, index) => value !== b[index]);
      return first < 0 ? 0 : a[first] - b[first];
    };
    const isLit = lightButton()?.getAttribute("aria-pressed") === "true";
    if (isLit && lightSource()?.textContent !== litFor) turn(false); // another question of the same claim keeps its light
    const articles = all();
    const sorted = [...articles].sort(before);
    if (sorted.some((article, index) => article !== articles[index])) aside.append(...sorted);
    for (const article of articles) {
      article.classList.remove("hand");
      article.classList.toggle("asked", article.dataset.rank === about);
      article.querySelector("[data-cited]").hidden = !cites.has(article.dataset.rank);
      article.querySelector("[data-asked]").hidden = article.dataset.rank !== about;
    }
    aside.scrollTop = 0;
    markClaim(claimAt);
    showMarks();
  };

  return { arrange };
})();
