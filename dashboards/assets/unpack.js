"use strict";
// plotly.js and what it draws stand compressed in the page; the script runs before the first figure is drawn
window.unpacked = (async () => {
  const figures = document.getElementById("figures");
  if (!figures) return null;
  if (!("DecompressionStream" in window)) {
    for (const place of document.querySelectorAll(".plot"))
      place.textContent = "This browser is too old to draw figures from a compressed page (it has no DecompressionStream). The table below has all numbers.";
    for (const details of document.querySelectorAll("details[data-table]")) details.open = true;
    throw new Error("this browser has no DecompressionStream");
  }
  const text = (element) => {
    const bytes = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  const script = document.createElement("script");
  script.textContent = await text(document.getElementById("packed"));
  document.head.append(script);
  return JSON.parse(await text(figures));
})();
window.unpacked.catch(() => {}); // figures stay undrawn, and say why
