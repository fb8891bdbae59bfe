// What the explorers share: shapes, steps, and controls whose values stand in the page's address.
globalThis.explorer = (() => {
  "use strict";

  const WRITTEN = 500; // milliseconds from the last change until it stands in the address
  const PLAY = { step: 1000, all: 30_000 }; // milliseconds that a step and all of them take at most

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

  const initial = (control) =>
    control.querySelector("option[selected]")?.value ?? control.defaultValue;

  // Buttons, arrow keys and, where there is a button for it, time move a slider step by step.
  function steps(root, slider) {
    const button = (name) => root.querySelector(`button[name=${name}]`);
    const at = () => Number(slider.value), last = () => Number(slider.max);
    const moves = { first: () => 0, back: () => at() - 1, next: () => at() + 1, last };
    const keys = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last" };
    const play = button("play");
    let timer = null, known;

    function go(step) {
      slider.value = step;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    }

    function pause() {
      clearInterval(timer);
      timer = null;
      if (play) play.textContent = "play";
    }

    function jump(step) {
      pause();
      go(step);
    }

    // Another walk begins at its first step, except for the one that the page has at first.
    function walk(key, end, step) {
      if (key === known) return;
      slider.max = end;
      slider.value = known === undefined ? step : 0;
      known = key;
    }

    // Says where the slider is. Buttons are not `disabled` at the end: the focus stays on them.
    function shown() {
      const ends = { first: 0, back: 0, next: last(), last: last() };
      for (const [name, end] of Object.entries(ends))
        button(name).setAttribute("aria-disabled", at() === end);
      slider.setAttribute("aria-valuetext", `${at()} of ${last()}`);
      if (at() === last()) pause();
    }

    root.addEventListener("input", (event) => { if (event.isTrusted) pause(); });
    root.addEventListener("keydown", (event) => {
      // Lists and fields have these keys to themselves; with a modifier they are the browser's.
      const other = event.altKey || event.ctrlKey || event.metaKey;
      if (!(event.key in keys) || other ||
          event.target.matches("select, [type=number], [type=file]")) return;
      event.preventDefault();
      jump(moves[keys[event.key]]());
    });
    for (const name of Object.keys(moves))
      button(name).addEventListener("click", () => jump(moves[name]()));
    if (play) {
      play.addEventListener("click", () => {
        if (timer !== null) return pause();
        if (at() === last()) go(0);
        timer = setInterval(() => go(moves.next()), Math.min(PLAY.step, PLAY.all / last()));
        play.textContent = "pause";
      });
      play.hidden = matchMedia("(prefers-reduced-motion: reduce)").matches;
    }
    return { jump, pause, shown, walk };
  }

  // Makes a figure live: `draw(values)` is called at first, and after every change of a control.
  // What differs from the first values stands in the address, as `figure.control=value`.
  function start(id, begin) {
    const root = document.getElementById(id);
    if (!root) return;
    const controls = [...root.querySelectorAll("select[name], input[name]:not([type=file])")];
    const draw = begin({
      root,
      data: JSON.parse(root.querySelector("script[type='application/json']").textContent),
      find: (name) => root.querySelector(`.explorer-${name}`),
      named: (name) => root.querySelector(`[name=${name}]`),
      show: (name, shown) => { root.querySelector(`[data-for=${name}]`).hidden = !shown; },
    });
    const update = () =>
      draw(Object.fromEntries(controls.map((each) => [each.name, valueOf(each)])));

    function read() {
      const asked = new URLSearchParams(location.search);
      for (const control of controls) {
        control.value = asked.get(`${id}.${control.name}`) ?? initial(control);
        if (control.value === "") control.value = initial(control); // where that is no value
        if (control.type === "number") control.value = valueOf(control);
      }
      update();
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

    let waiting = null; // browsers refuse many changes of an address in a short time
    root.addEventListener("input", () => {
      update();
      clearTimeout(waiting);
      waiting = setTimeout(write, WRITTEN);
    });
    for (const control of controls.filter((each) => each.type === "number"))
      control.addEventListener("change", () => {
        control.value = valueOf(control);
        update();
      });
    root.querySelector(".explorer-still").hidden = true;
    root.querySelector(".explorer-live").hidden = false;
    read();
    let width = root.clientWidth;
    new ResizeObserver(() => {
      if (root.clientWidth !== width) { width = root.clientWidth; update(); }
    }).observe(root);
    addEventListener("popstate", read);
  }

  return { svg, text, rect, entry, bytes, exact, table, steps, start };
})();
