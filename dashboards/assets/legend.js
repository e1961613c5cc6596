"use strict";
// Plotly's legend knows only the mouse: its entries are reached by Tab, and Enter or Space is a click
(() => {
  const reach = () => {
    for (const toggle of document.querySelectorAll(".legendtoggle:not([tabindex])")) {
      toggle.setAttribute("tabindex", "0");
      toggle.setAttribute("role", "button");
      toggle.setAttribute("aria-label", "show only " + (toggle.parentNode.querySelector("text")?.textContent || ""));
    }
  };
  let waiting = 0;
  new MutationObserver(() => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(reach); })
    .observe(document.documentElement, { childList: true, subtree: true });
  document.addEventListener("keydown", (event) => {
    if ((event.key !== "Enter" && event.key !== " ") || !event.target.classList?.contains("legendtoggle")) return;
    event.preventDefault();
    for (const kind of ["mousedown", "mouseup"])
      event.target.dispatchEvent(new MouseEvent(kind, { bubbles: true, cancelable: true, view: window, button: 0 }));
  });
  // a picture that is saved has the name of its figure
  document.addEventListener("click", (event) => {
    const plot = event.target.closest?.(".modebar-btn")?.closest(".js-plotly-plot");
    const title = plot?.closest("figure, section")?.querySelector("h3")?.textContent;
    if (title) plot._context.toImageButtonOptions.filename = title.replace(/[^\p{L}\p{N}.]+/gu, "-").slice(0, 80);
  }, true);
})();
