"use strict";
(() => {
  const data = JSON.parse(document.getElementById("views").textContent);
  const drawn = new Set();
  const root = document.documentElement;
  let paper = 0; // while it is printed: what fits between the margins of A4 and of Letter, in pixels
  const narrow = () => !paper && window.innerWidth < 600;
  const theme = () => root.dataset.theme || "light";

  // what a phone shows: smaller margins, fewer ticks, panels that stand side by side get room for their labels
  const fitted = (layout, width) => {
    const made = structuredClone(layout);
    made.template = data.templates[theme()];
    made.width = width;
    made.autosize = false;
    if (narrow()) {
      made.margin = { ...made.margin, l: 52, r: 6 };
      made.font = { size: 11 };
      made.legend = { ...made.legend, font: { size: 11 } };
      for (const [name, axis] of Object.entries(made)) {
        if (!/^xaxis/.test(name) || !axis.tickvals || axis.tickvals.length < 6) continue;
        const keep = (_, i) => i % 2 === 0;
        axis.tickvals = axis.tickvals.filter(keep);
        axis.ticktext = axis.ticktext.filter(keep);
      }
      stack(made);
      merge(made, made.meta?.narrow ?? {});
    }
    return made;
  };

  const merge = (into, from) => {
    for (const [name, value] of Object.entries(from))
      into[name] = value && typeof value === "object" && !Array.isArray(value) ? { ...into[name], ...value } : value;
  };

  // two panels side by side become two panels one above the other
  const stack = (layout) => {
    const [left, right] = [layout.xaxis, layout.xaxis2];
    if (!left || !right || !left.domain || !right.domain || left.domain[1] > right.domain[0]) return;
    left.domain = right.domain = [0, 1];
    layout.yaxis = { ...layout.yaxis, domain: [0.58, 1] };
    layout.yaxis2 = { ...layout.yaxis2, domain: [0, 0.4] };
    left.anchor = "y";
    layout.height = Math.round(layout.height * 1.5);
  };

  const draw = async (place) => {
    drawn.add(place);
    try { await unpacked; } catch { return; }
    const view = data.views[Number(place.dataset.view)];
    if (!view.spec) return;
    const layout = fitted(view.spec.layout, paper || place.clientWidth);
    place.style.minHeight = layout.height + "px";
    return Plotly.react(place, view.spec.data, layout, { displaylogo: false, displayModeBar: narrow() ? false : "hover",
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] });
  };

  const fill = (details) => {
    const view = data.views[Number(details.dataset.table)];
    const place = details.querySelector(".scroll");
    if (place.firstChild) return;
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const name of view.columns) {
      const cell = document.createElement("th");
      cell.textContent = name;
      cell.scope = "col";
      head.append(cell);
    }
    const body = table.createTBody();
    for (const row of view.rows) {
      const line = body.insertRow();
      for (const value of row) {
        const cell = line.insertCell();
        if (typeof value === "number") cell.className = "number";
        cell.textContent = value === null ? "-" : String(value);
      }
    }
    place.append(table);
  };

  const csv = (view) => [view.columns, ...view.rows].map((row) => row.map((v) => {
    // a spreadsheet would run a text that begins like a formula
    const text = v === null ? "" : typeof v === "string" && /^\s*[=+@-]/.test(v) ? `'${v}` : String(v);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }).join(",")).join("\n") + "\n";

  const copy = async (button, text) => {
    const said = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      button.textContent = document.execCommand("copy") ? "copied" : "not allowed by the browser";
      area.remove();
    }
    setTimeout(() => { button.textContent = said; }, 1500);
  };

  const places = [...document.querySelectorAll(".plot")];
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting && !drawn.has(entry.target)) draw(entry.target);
  }, { rootMargin: "300px" });
  for (const place of places) seen.observe(place);
  for (const details of document.querySelectorAll("details[data-table]")) {
    if (details.open) fill(details);
    details.addEventListener("toggle", () => { if (details.open) fill(details); });
  }
  for (const button of document.querySelectorAll("button[data-copy]")) {
    const view = data.views[Number(button.dataset.copy)];
    button.addEventListener("click", () => copy(button, button.dataset.what === "csv" ? csv(view) : view.commands.join("\n")));
  }
  const again = () => { for (const place of drawn) draw(place); };
  const toggle = document.getElementById("theme");
  const choose = (name) => {
    root.dataset.theme = name;
    if (toggle) toggle.textContent = name === "dark" ? "light" : "dark";
    again();
  };
  toggle?.addEventListener("click", () => choose(theme() === "dark" ? "light" : "dark"));
  if (toggle) choose(window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  let waiting = 0;
  window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(again, 150); });
  let before = "light";
  const all = () => Promise.all(places.map((place) => draw(place)));
  const folded = [];
  window.addEventListener("beforeprint", () => {
    before = theme();
    root.dataset.theme = "light";
    paper = 690;
    // nobody can unfold paper: the commands are shown, the tables stay where they are
    for (const details of document.querySelectorAll("details:not([data-table]):not([open])")) {
      folded.push(details);
      details.open = true;
    }
    all();
  });
  window.addEventListener("afterprint", () => {
    paper = 0;
    for (const details of folded.splice(0)) details.open = false;
    choose(before);
  });
  window.drawAll = all;
})();
