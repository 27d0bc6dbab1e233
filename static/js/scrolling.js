// A table or formula wider than its place is scrolled by the keyboard too: it takes the focus then, and has a name.
"use strict";

let named = 0;

function headingOf(place) {
  const around = place.closest("details, section, article, main");
  return place.querySelector("caption") || around?.querySelector("summary, h1, h2, h3, h4");
}

function letScroll(place) {
  if (place.scrollWidth > place.clientWidth && !place.hasAttribute("tabindex")) {
    place.tabIndex = 0;
    place.dataset.scrolls = "";
    const heading = headingOf(place);
    if (!heading) return;
    heading.id ||= `scrolled-${++named}`;
    place.setAttribute("role", "group");
    place.setAttribute("aria-labelledby", heading.id);
  } else if (place.scrollWidth <= place.clientWidth && "scrolls" in place.dataset) {
    for (const name of ["tabindex", "role", "aria-labelledby", "data-scrolls"]) place.removeAttribute(name);
  }
}

const sizes = new ResizeObserver((entries) => entries.forEach((entry) => letScroll(entry.target)));
const watch = (part) => part.querySelectorAll(".scroll, pre").forEach((place) => sizes.observe(place));

watch(document);
document.addEventListener("htmx:load", (event) => watch(event.detail.elt));
