// What the explorers share: shapes, and controls whose values stand in the address of the page.
globalThis.explorer = (() => {
  "use strict";

  const PAUSE = 500; // milliseconds

  function svg(name, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  const text = (x, y, words, part = "ink", anchor = "middle") =>
    svg("text", { x, y, class: `pic-${part}`, "text-anchor": anchor }, words);

  const rect = (x, y, width, height, part, share = 1) =>
    svg("rect", { x, y, width, height, rx: 2, class: `pic-${part}`, "fill-opacity": share });

  // An entry of a legend.
  function entry(part, share, words) {
    const made = document.createElement("span");
    const colour = rect(0.5, 0.5, 21, 13, part, share);
    made.append(svg("svg", { width: 22, height: 14 }, colour), ` ${words}`);
    return made;
  }

  // Three digits of a number of bytes, of which 1000 are a KB.
  function bytes(size) {
    const units = ["B", "KB", "MB", "GB", "TB", "PB"];
    let unit = 0;
    for (; size >= 999.5; size /= 1000) unit += 1;
    return `${unit ? size.toPrecision(3) : size}\u00a0${units[unit]}`;
  }

  const exact = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

  // A table of HTML: the first cell of a row is its heading. The last cell of a shorter row takes
  // the room of those that are missing.
  function table(headings, rows, caption = "") {
    const element = (name, children, attributes = {}) => {
      const made = Object.assign(document.createElement(name), attributes);
      made.append(...children);
      return made;
    };
    const head = element("tr", headings.map((each) => element("th", [each], { scope: "col" })));
    const room = (row, place) => place < row.length - 1 ? 1 : headings.length - place;
    const body = rows.map((row) => element("tr", row.map((each, place) =>
      place ? element("td", [each], { colSpan: room(row, place) })
        : element("th", [each], { scope: "row" }))));
    const parts = [element("thead", [head]), element("tbody", body)];
    return element("table", caption ? [element("caption", [caption]), ...parts] : parts);
  }

  // Numbers stay between the ends of their field, and on its steps; other text counts as what was
  // there at first.
  function valueOf(control) {
    if (!["number", "range"].includes(control.type)) return control.value;
    const typed = control.value === "" ? Number(control.defaultValue) : Number(control.value);
    const [min, max, step] = [control.min, control.max, control.step || 1].map(Number);
    const given = isNaN(step) ? typed : min + Math.round((typed - min) / step) * step; // or "any"
    return Math.min(max, Math.max(min, given));
  }

  const initial = (control) => control.tagName === "SELECT"
    ? (control.querySelector("option[selected]") ?? control.options[0]).value : control.defaultValue;

  // Makes a figure live: `draw(values)` is called at first, and after every change of a control.
  // What differs from the first values stands in the address, as `figure.control=value`.
  function start(id, begin) {
    const root = document.getElementById(id);
    if (!root) return;
    const controls = [...root.querySelectorAll("select[name], input[name]:not([type=file])")];
    const draw = begin(root);
    const values = () => Object.fromEntries(controls.map((each) => [each.name, valueOf(each)]));

    function read() {
      const asked = new URLSearchParams(location.search);
      for (const control of controls) {
        const wanted = asked.get(`${id}.${control.name}`) ?? initial(control);
        const known = control.tagName === "SELECT"
          ? [...control.options].some((each) => each.value === wanted)
          : !["number", "range"].includes(control.type) || (wanted !== "" && isFinite(wanted));
        control.value = known ? wanted : initial(control);
        if (control.type === "number") control.value = valueOf(control);
      }
    }

    function write() {
      const url = new URL(location.href);
      for (const control of controls) {
        const name = `${id}.${control.name}`, value = String(valueOf(control));
        if (value === initial(control)) url.searchParams.delete(name);
        else url.searchParams.set(name, value);
      }
      history.replaceState(history.state, "", url.href);
    }

    // Browsers refuse many changes of an address in a short time: of those that follow quickly,
    // the last one is written.
    let written = 0, waiting = null;
    function soon() {
      clearTimeout(waiting);
      const left = written + PAUSE - Date.now();
      if (left > 0) waiting = setTimeout(soon, left);
      else { written = Date.now(); write(); }
    }

    const update = () => { draw(values()); soon(); };
    for (const control of controls) control.addEventListener("input", update);
    for (const control of controls)
      control.addEventListener("change", () => {
        if (control.type === "number") control.value = valueOf(control);
        update();
      });
    root.querySelector(".explorer-still").hidden = true;
    root.querySelector(".explorer-live").hidden = false;
    read();
    draw(values());
    let width = root.clientWidth;
    new ResizeObserver(() => {
      if (root.clientWidth !== width) { width = root.clientWidth; draw(values()); }
    }).observe(root);
    addEventListener("popstate", () => { read(); draw(values()); });
  }

  const when = (id, begin) => document.readyState === "loading"
    ? document.addEventListener("DOMContentLoaded", () => start(id, begin)) : start(id, begin);

  return { svg, text, rect, entry, bytes, exact, table, start: when };
})();
