"use strict";
// plotly.js stands compressed in the page; it runs before the first figure is drawn
window.unpacked = (async () => {
  const packed = document.getElementById("packed");
  if (!packed) return;
  if (!("DecompressionStream" in window)) {
    for (const place of document.querySelectorAll(".plot"))
      place.textContent = "This browser is too old to draw figures from a compressed page (it has no DecompressionStream). The table below has all numbers.";
    for (const details of document.querySelectorAll("details[data-table]")) details.open = true;
    throw new Error("this browser has no DecompressionStream");
  }
  const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(plain).text();
  document.head.append(script);
})();
window.unpacked.catch(() => {}); // figures stay undrawn, and say why
