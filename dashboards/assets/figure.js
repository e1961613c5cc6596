"use strict";
// a page of one figure: it is drawn, and its SVG stands in an element for whoever dumps the page
(async () => {
  const { data, layout } = JSON.parse(document.getElementById("spec").textContent);
  const figure = await Plotly.newPlot("figure", data, layout, { staticPlot: true });
  const url = await Plotly.toImage(figure, { format: "svg", width: layout.width, height: layout.height });
  const bytes = new TextEncoder().encode(decodeURIComponent(url.slice(url.indexOf(",") + 1)));
  document.getElementById("svg").textContent = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
})();
