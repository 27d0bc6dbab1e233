"use strict";

// The form works without this: it only says at once what the server would say after the upload.
for (const form of document.querySelectorAll("form[data-upload]")) {
  const file = form.querySelector("input[type=file]");
  const tooLarge = form.querySelector("[data-too-large]");
  const isTooLarge = () => file.files.length > 0 && file.files[0].size > Number(form.dataset.maxBytes);
  file.addEventListener("change", () => { tooLarge.hidden = !isTooLarge(); });
  form.addEventListener("submit", (event) => {
    if (isTooLarge()) {
      event.preventDefault();
      tooLarge.hidden = false;
      return;
    }
    form.querySelector("[data-under-way]").hidden = false;
    form.querySelector("button").disabled = true;
  });
}

// Coming back with the back button must not find a dead form.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-upload]")) {
    form.querySelector("[data-under-way]").hidden = true;
    form.querySelector("button").disabled = false;
  }
});
