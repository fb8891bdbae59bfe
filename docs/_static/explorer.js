// What the explorers share: shapes, and controls whose values stand in the address of the page.
globalThis.explorer = (() => {
  "use strict";

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

  // A table of HTML: the first cell of a row is its heading.
  function table(headings, rows) {
    const element = (name, children, attributes = {}) => {
      const made = Object.assign(document.createElement(name), attributes);
      made.append(...children);
      return made;
    };
    const head = element("tr", headings.map((each) => element("th", [each], { scope: "col" })));
    const body = rows.map((row) => element("tr", row.map((each, place) =>
      place ? element("td", [each]) : element("th", [each], { scope: "row" }))));
    return element("table", [element("thead", [head]), element("tbody", body)]);
  }

  // Numbers stay between the ends of their field, and on its steps; other text counts as what was
  // there at first.
  function valueOf(control) {
    if (control.type === "checkbox") return control.checked;
    if (!["number", "range"].includes(control.type)) return control.value;
    const given = control.value === "" ? Number(control.defaultValue) : Number(control.value);
    const [min, max, step] = [control.min, control.max, control.step || 1].map(Number);
    return Math.min(max, Math.max(min, min + Math.round((given - min) / step) * step));
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
        const known = control.tagName !== "SELECT" ||
          [...control.options].some((each) => each.value === wanted);
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

    // A slider says much in little time: browsers refuse so many addresses.
    let waiting;
    function update({ target }) {
      draw(values());
      clearTimeout(waiting);
      if (target.type === "range") waiting = setTimeout(write, 300);
      else write();
    }
    for (const control of controls) control.addEventListener("input", update);
    for (const control of controls)
      control.addEventListener("change", (event) => {
        if (control.type === "number") control.value = valueOf(control);
        update(event);
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

  return { svg, text, rect, table, start: when };
})();
