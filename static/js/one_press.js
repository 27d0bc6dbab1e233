// One press is one mark, label or decision. Until the next page is there, a further key would meet the old one.
"use strict";

let leaving = false;

document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  if (leaving) event.preventDefault();
  leaving = true;
});
window.addEventListener("pageshow", () => {
  leaving = false;
});

Keys.refuse = () => (leaving ? words("saving") : "");
