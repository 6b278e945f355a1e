"use strict";
// Times in the reader's zone.
const zoned = (root) => {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const when = new Date(time.dateTime);
    time.textContent = when.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    time.title = time.dateTime;
  }
};
document.addEventListener("DOMContentLoaded", () => zoned(document));
document.addEventListener("htmx:afterSwap", (event) => zoned(event.target));
// A slider says where it is, and goes there when it is let go.
for (const slider of document.querySelectorAll("input[type=range]")) {
  slider.addEventListener("input", () => { slider.nextElementSibling.value = slider.value; });
  slider.addEventListener("change", () => slider.form.requestSubmit());
}
