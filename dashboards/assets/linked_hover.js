"use strict";
// panels side by side with one kind of x axis: what is hovered in one shows its values in all
(() => {
  const link = (plot) => {
    if (plot.dataset.linked || !plot._fullLayout?._plots) return;
    plot.dataset.linked = "yes";
    let inside = false;
    plot.on("plotly_hover", (event) => {
      const layout = plot._fullLayout;
      const panels = Object.keys(layout._plots).filter((id) => layout._plots[id].xaxis.matches || id === "xy");
      if (inside || panels.length < 2 || !layout.hovermode?.startsWith("x") || !event.points?.length) return;
      inside = true;
      try { Plotly.Fx.hover(plot, { xval: event.points[0].x }, panels); } finally { inside = false; }
    });
  };
  let waiting = 0;
  new MutationObserver(() => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => document.querySelectorAll(".js-plotly-plot").forEach(link));
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
