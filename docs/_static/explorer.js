// The forms of the explorers. Python computes and draws: notebooks/explorers, in this browser. A
// page loads nothing but the site's own files.

const ASSETS = new URL(".", import.meta.url);
const WRITTEN = 500; // milliseconds from the last change until it stands in the address
const PLAY = { step: 1000, all: 30_000 }; // milliseconds that a step and all of them take at least
const MOST = 10_000; // steps, as in forms.py
const KEYS = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last" };

let loading = null;

// Python, loaded once for all figures of a page.
function python() {
  return loading ??= (async () => {
    const { loadPyodide } = await import(new URL("pyodide/pyodide.mjs", ASSETS));
    const runtime = await loadPyodide();
    const archive = await fetch(new URL("explorers.zip", ASSETS));
    runtime.unpackArchive(new Uint8Array(await archive.arrayBuffer()), "zip");
    return runtime.pyimport("notebooks.explorers.figures").answer;
  })();
}

const first = (control) =>
  control.querySelector("option[selected]")?.value ?? control.defaultValue;

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

function begin(root) {
  const shown = root.querySelector(".explorer-answer"), form = root.querySelector(".explorer-form");
  const status = root.querySelector(".explorer-status"), file = root.querySelector("[type=file]");
  const controls = [...form.querySelectorAll("select, input[name]")];
  const named = (name) => form.querySelector(`[name=${name}]`);
  const slider = form.querySelector("[type=range]");
  let record = "", opened = "", asked = 0, writing = null, playing = false;

  // Puts an answer into its place, block by block, so that the focus and what is open stay.
  function put(answer, whole) {
    [...answer.children].forEach((block, i) => {
      const place = shown.children[i];
      if (place.innerHTML !== block.innerHTML) place.innerHTML = block.innerHTML;
      place.hidden = block.hidden;
    });
    settle(JSON.parse(answer.dataset.settled), whole);
  }

  // What controls show. A number that is being typed is left alone until it is `whole`.
  function settle({ values, last }, whole) {
    if (slider) {
      slider.max = last;
      slider.defaultValue = Math.min(last, slider.dataset.first);
    }
    for (const control of controls) {
      if (whole || control.type !== "number") control.value = values[control.name];
    }
    if (!slider) return;
    slider.setAttribute("aria-valuetext", `${slider.value} of ${last}`);
    const { min, max } = slider;
    for (const [name, end] of Object.entries({ first: min, back: min, next: max, last: max }))
      named(name).setAttribute("aria-disabled", slider.value === end);
  }

  // Asks Python; if more has changed before it is loaded, only the last change counts.
  async function ask(whole = true) {
    const mine = asked += 1;
    try {
      status.textContent = "Python is loading.";
      const answer = await python();
      if (mine !== asked) return;
      const choice = Object.fromEntries(controls.map((each) => [each.name, each.value]));
      const html = answer(root.id, JSON.stringify({ ...choice, record, opened }));
      const page = new DOMParser().parseFromString(html, "text/html");
      opened = "";
      put(page.querySelector(".explorer-answer"), whole);
      status.textContent = "";
    } catch (error) {
      status.textContent = `Python cannot be loaded, and this picture stays: ${error.message}`;
    }
    clearTimeout(writing); // browsers refuse many changes of an address in a short time
    writing = setTimeout(write, WRITTEN);
  }

  // What differs from the first values stands in the address, as `figure.control=value`.
  function write() {
    const url = new URL(location.href);
    for (const control of controls) {
      const name = `${root.id}.${control.name}`;
      if (control.value === first(control)) url.searchParams.delete(name);
      else url.searchParams.set(name, control.value);
    }
    history.replaceState(history.state, "", url.href);
  }

  function read() {
    const wanted = new URLSearchParams(location.search);
    if (slider) slider.max = MOST;
    for (const control of controls) {
      const begun = control.dataset.first ?? first(control);
      control.value = wanted.get(`${root.id}.${control.name}`) ?? begun;
      if (control.value === "") control.value = begun; // where that is no value
    }
    const named = [...wanted.keys()].some((name) => name.startsWith(`${root.id}.`));
    if (named || asked) return ask();
    settle(JSON.parse(shown.dataset.settled), true);
  }

  function go(step) {
    slider.value = step;
    return ask();
  }

  const moves = slider && {
    first: () => slider.min, back: () => Number(slider.value) - 1,
    next: () => Number(slider.value) + 1, last: () => slider.max,
  };

  function jump(step) {
    playing = false;
    go(step);
  }

  async function play() {
    playing = !playing;
    if (playing && slider.value === slider.max) await go(slider.min);
    while (playing) {
      named("play").textContent = "pause";
      await sleep(Math.min(PLAY.step, PLAY.all / slider.max));
      if (playing) await go(moves.next());
      playing &&= slider.value !== slider.max;
    }
    named("play").textContent = "play";
  }

  form.addEventListener("input", async ({ target }) => {
    playing = false;
    if (slider && target !== slider) {
      slider.max = MOST;
      slider.value = slider.dataset.first;
    }
    if (target === file) {
      record = await file.files[0]?.text() ?? "";
      opened = "yes";
    }
    ask(target.type !== "number");
  });
  form.addEventListener("change", ({ target }) => {
    if (target.type === "number") ask();
  });
  if (slider) {
    for (const [name, move] of Object.entries(moves))
      named(name).addEventListener("click", () => jump(move()));
    named("play").addEventListener("click", play);
    named("play").hidden = matchMedia("(prefers-reduced-motion: reduce)").matches;
    root.addEventListener("keydown", (event) => {
      // Lists and fields have these keys to themselves; with a modifier they are the browser's.
      if (!(event.key in KEYS) || event.altKey || event.ctrlKey || event.metaKey ||
          event.target.matches("select, input")) return;
      event.preventDefault();
      jump(moves[KEYS[event.key]]());
    });
  }
  form.addEventListener("pointerdown", python, { once: true });
  form.addEventListener("focusin", python, { once: true });
  addEventListener("popstate", read);
  form.hidden = false;
  read();
}

// A link to another choice on this page needs no other page: Python stays loaded.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='?']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  dispatchEvent(new PopStateEvent("popstate"));
  document.getElementById(link.hash.slice(1))?.scrollIntoView();
});

document.querySelectorAll(".explorer:has(.explorer-form)").forEach(begin);
