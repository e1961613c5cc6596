// A control that does nothing looks broken: what went wrong with a request stands on the page until one is answered.
{
  const say = (text) => {
    const place = document.getElementById("lost");
    place.hidden = !text;
    if (place.textContent !== text) place.textContent = text;
  };
  const failed = new Set(); // what the explorer could not answer, by what was asked for
  const send = window.fetch;
  window.fetch = async (address, request) => {
    if (!String(address.url ?? address).includes("_dash-update-component")) return send(address, request);
    const asked = /"output":"([^"]*)"/.exec(request?.body)?.[1];
    try {
      const answer = await send(address, request);
      if (answer.ok) failed.delete(asked); else failed.add(asked);
      if (answer.status === 403) say("The explorer was started again: open the address that it printed.");
      else say(failed.size ? "The explorer could not answer; where it was started it says why. What stands here may be old." : "");
      return answer;
    } catch (error) {
      if (error.name !== "AbortError")
        say("The explorer does not answer: it ended, or the ssh tunnel to it did. What stands here may be old.");
      throw error;
    }
  };
}
// What the explorer does in the browser (omb_py/dashboards/explorer/callbacks.py names these functions).
window.dash_clientside = Object.assign({}, window.dash_clientside, {
  explorer: {
    // Whether the controls are folded: at first where there is no room for them beside the figure; and what the browser
    // is like. No <details>: out of one with so many controls the keyboard does not come in every browser.
    fold: (clicks, hidden) => {
      const wide = window.innerWidth >= 700;
      const fold = clicks ? !hidden : window.innerWidth < 1000;
      document.getElementById("fold").setAttribute("aria-expanded", String(!fold));
      const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
      const room = !wide ? "narrow" : document.getElementById("content").clientWidth < 900 ? "middle" : "";
      return [fold, clicks ? dash_clientside.no_update : { room, theme: dark ? "dark" : "light" }];
    },
    // The cell of the point or row that was clicked on; of several points under one label the one nearest in height.
    click: (clicks, rows, closed) => {
      const plain = dash_clientside.callback_context.triggered.filter((one) => one.value);
      const of = (one) => one.prop_id.slice(0, one.prop_id.lastIndexOf("."));
      for (const one of plain) {
        if (of(one) === "close") return "";
        if (of(one) === "cells" && one.value[0]) return `${one.value[0].launch_id}/${one.value[0].comparability_key}`;
        const near = (point) => Math.abs((point.bbox?.y0 ?? 0) - (window.pointer?.y ?? 0));
        const points = (one.value.points ?? []).filter(
          (point) => typeof point.customdata === "string" && point.customdata,
        );
        if (points.length) return points.reduce((a, b) => (near(b) < near(a) ? b : a)).customdata;
      }
      return dash_clientside.no_update;
    },
    // The keyboard goes on in the drawer that a click has opened.
    focus: (drawn) => {
      if (drawn && drawn.length && window.pointer) document.getElementById("close").focus({ preventScroll: true });
      return dash_clientside.no_update;
    },
    // The page in the theme of its figures; the grid asks for its rows again.
    theme: (shown) => {
      document.documentElement.dataset.theme = document.body.dataset.agThemeMode = shown[2];
      try { dash_ag_grid.getApi("cells").purgeInfiniteCache(); } catch { /* not drawn yet: it asks by itself */ }
      return dash_clientside.no_update;
    },
  },
});
