"use strict";
(() => {
  const views = JSON.parse(document.getElementById("views").textContent);
  // a row lacks the values at its end that the row above has too
  for (const { rows } of views) rows.forEach((row, i) => i && row.push(...rows[i - 1].slice(row.length)));
  const drawn = new Set();
  const root = document.documentElement;
  let paper = 0; // while it is printed: what fits between the margins of A4 and of Letter, in pixels
  const narrow = () => !paper && window.innerWidth < 600;
  const theme = () => root.dataset.theme || "light";

  // what a phone shows: smaller margins, fewer ticks, panels that stand side by side get room for their labels
  const fitted = (layout, template, width) => {
    const made = structuredClone(layout);
    made.template = template;
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
      merge(made, made.meta?.narrow ?? {});
    } else if (width < 1000) merge(made, made.meta?.middle ?? {});
    return made;
  };

  const merge = (into, from) => {
    for (const [name, value] of Object.entries(from))
      into[name] = value && typeof value === "object" && !Array.isArray(value) ? { ...into[name], ...value } : value;
  };

  // the quantity that curves of several ranks show: those that cannot show it show time
  let quantity = "time";
  const switched = (data, layout) => {
    const other = layout.meta?.switch?.find((known) => known.name === quantity);
    if (!other) return data;
    for (const name of Object.keys(layout).filter((name) => /^yaxis/.test(name))) {
      const { title, showticklabels, domain, anchor } = layout[name];
      layout[name] = { ...other.axis, domain, anchor, showticklabels, title: title?.text ? other.axis.title : title };
    }
    return data.map((trace, i) => ({ ...trace, y: other.y[i], hovertemplate: trace.hovertemplate.replace(" µs", ` ${other.unit}`) }));
  };

  const draw = async (place) => {
    drawn.add(place);
    let figures;
    try { figures = await unpacked; } catch { return; }
    const spec = figures?.specs[Number(place.dataset.view)];
    if (!spec) return;
    const layout = fitted(spec.layout, figures.templates[theme()], paper || place.clientWidth);
    place.style.minHeight = layout.height + "px";
    return Plotly.react(place, switched(spec.data, layout), layout, { displaylogo: false, displayModeBar: narrow() ? false : "hover",
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] });
  };

  const fill = (details) => {
    const view = views[Number(details.dataset.table)];
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
        else if (String(value).startsWith("omb-py ")) cell.className = "command";
        else if (String(value).length <= 20) cell.className = "short";
        cell.textContent = value === null ? "-" : String(value);
      }
    }
    place.append(table);
    search(place, table);
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

  // a long table is searched: a row is shown that has all the words
  const search = (place, table) => {
    const rows = [...table.tBodies[0].rows];
    if (rows.length <= 20) return;
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const box = document.createElement("input");
    const count = document.createElement("span");
    box.type = "search";
    box.placeholder = "words that a row has";
    box.setAttribute("aria-label", "Search the table");
    count.className = "soft";
    count.setAttribute("role", "status");
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      rows.forEach((row, i) => {
        row.hidden = !words.every((word) => texts[i].includes(word));
        left += row.hidden ? 0 : 1;
      });
      count.textContent = words.length ? `${left} of ${rows.length} rows` : "";
    });
    place.before(box, count);
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
    const view = views[Number(button.dataset.copy)];
    button.addEventListener("click", () => copy(button, button.dataset.what === "csv" ? csv(view) : view.commands.join("\n")));
  }
  // what is hidden has no width: it is drawn when it is shown
  const again = () => { for (const place of [...drawn]) place.clientWidth ? draw(place) : drawn.delete(place); };
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
  const all = () => {
    root.classList.add("all");
    return Promise.all(places.filter((place) => place.clientWidth).map((place) => draw(place)));
  };
  window.addEventListener("beforeprint", () => {
    before = theme();
    root.dataset.theme = "light";
    paper = 690;
    all();
  });
  window.addEventListener("afterprint", () => {
    paper = 0;
    root.classList.remove("all");
    choose(before);
  });
  window.drawAll = all;

  // tabs, and the curves of one benchmark: without this script all are there
  const tabs = [...document.querySelectorAll('[role="tab"]')];
  const panels = tabs.map((tab) => document.getElementById(tab.getAttribute("aria-controls")));
  const select = (panel) => {
    tabs.forEach((tab, i) => {
      const chosen = panels[i] === panel;
      panels[i].hidden = !chosen;
      tab.setAttribute("aria-selected", String(chosen));
    });
  };
  const pick = (panel, name) => {
    for (const button of panel.querySelectorAll("[data-choose]"))
      button.setAttribute("aria-pressed", String(button.dataset.choose === name));
    for (const figure of panel.querySelectorAll("figure[data-choice]")) figure.hidden = figure.dataset.choice !== name;
  };
  for (const button of document.querySelectorAll("[data-quantity]")) {
    button.parentNode.hidden = false;
    button.addEventListener("click", () => {
      quantity = button.dataset.quantity;
      for (const other of document.querySelectorAll("[data-quantity]"))
        other.setAttribute("aria-pressed", String(other.dataset.quantity === quantity));
      again();
    });
  }
  for (const group of document.querySelectorAll('.chips[aria-label="Benchmark"]')) {
    group.hidden = false;
    const panel = group.closest("main");
    for (const button of group.children) button.addEventListener("click", () => pick(panel, button.dataset.choose));
    pick(panel, group.firstElementChild.dataset.choose);
  }
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const panel = target?.closest(".tab");
    if (!panel) return;
    select(panel);
    const figure = target.closest("figure[data-choice]");
    if (figure?.hidden) pick(panel, figure.dataset.choice);
    target.scrollIntoView();
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", (event) => {
      event.preventDefault();
      history.replaceState(null, "", tab.hash);
      select(panels[i]);
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (i + step + tabs.length) % tabs.length;
      select(panels[next]);
      tabs[next].focus();
    });
  });
  if (tabs.length) {
    root.classList.add("js");
    // a store of sweeps or of nights alone has its figures in another tab than the first
    const opened = panels.find((panel) => "opened" in panel.dataset);
    select(opened ?? panels.find((panel) => panel.querySelector("figure")) ?? panels[0]);
    window.addEventListener("hashchange", open);
    open();
  }
})();
