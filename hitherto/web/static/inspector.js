"use strict";
// Times in the reader's zone.
const zoned = (root) => {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const when = new Date(time.dateTime);
    time.textContent = when.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    time.title = when.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
  }
};
document.addEventListener("DOMContentLoaded", () => {
  zoned(document);
  document.getElementById("zone").textContent = `the time zone ${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
});
document.addEventListener("htmx:afterSwap", (event) => zoned(event.target));
// What a page asks again and again waits while nobody looks.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.getAttribute("hx-trigger")?.startsWith("every")) event.preventDefault();
});
// A slider says where it is, and goes there when it is let go.
for (const slider of document.querySelectorAll("input[type=range]")) {
  slider.addEventListener("input", () => { slider.nextElementSibling.value = slider.value; });
  slider.addEventListener("change", () => slider.form.requestSubmit());
}
// A key does what the button, link or field that shows it does. In a field, Escape leaves it, and Ctrl Enter sends.
document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("input, textarea, select");
  if (field && event.key === "Escape") field.blur();
  if (field && event.key === "Enter" && (event.ctrlKey || event.metaKey)) field.form?.requestSubmit();
  if (field || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const there = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!there) return;
  event.preventDefault();
  if (there.matches("textarea")) there.select();
  else there.click();
});
