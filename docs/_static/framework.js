// The framework that a reader has chosen stands in the address, and goes along to other pages.
// The tabs themselves are sphinx-design's: it keeps them alike, and reads the address.
(() => {
  "use strict";

  const GROUP = "framework";
  const NAMES = ["pytorch", "tensorflow", "jax", "mxnet"];
  const KEY = `sphinx-design-tab-id-${GROUP}`;

  const asked = () => new URLSearchParams(location.search).get(GROUP);

  function kept() {
    try { return localStorage.getItem(KEY); } catch { return null; } // storage may be forbidden
  }

  // Links to other pages name the framework, in case that nothing may be stored.
  function carry(framework) {
    for (const link of document.querySelectorAll("a[href]")) {
      const written = link.getAttribute("href");
      const inside = !/^([a-z]+:|#)/i.test(written) && /\.html($|[?#])/.test(written);
      if (!inside) continue;
      const url = new URL(link.href);
      url.searchParams.set(GROUP, framework);
      link.href = url.href;
    }
  }

  function name(framework) {
    const url = new URL(location.href);
    if (framework) url.searchParams.set(GROUP, framework);
    else url.searchParams.delete(GROUP);
    history.replaceState(history.state, "", url.href);
  }

  const labelOf = (input) =>
    input.matches?.(".sd-tab-set > input") ? input.nextElementSibling : null;

  // Other tabs above change their heights, too: what the reader has clicked stays where it is.
  let top = 0;
  document.addEventListener("change", (event) => {
    top = labelOf(event.target)?.getBoundingClientRect().top ?? 0;
  }, true);
  document.addEventListener("change", (event) => {
    const label = labelOf(event.target);
    if (label?.dataset.syncGroup !== GROUP) return;
    name(label.dataset.syncId);
    carry(label.dataset.syncId);
    scrollBy({ top: label.getBoundingClientRect().top - top, behavior: "instant" });
  });

  // At once, before sphinx-design reads the address: it would keep an unknown name.
  const wanted = [asked(), kept()].find((each) => NAMES.includes(each));
  if (wanted || asked()) name(wanted);
  document.addEventListener("DOMContentLoaded", () => {
    if (!wanted) return;
    carry(wanted);
    for (const label of document.querySelectorAll(`[data-sync-id="${wanted}"]`))
      label.previousElementSibling.checked = true; // where nothing may be stored, no other script does
  });
})();
