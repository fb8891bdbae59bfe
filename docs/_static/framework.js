// The framework that a reader has chosen stands in the address, and goes along to other pages.
// The tabs themselves are sphinx-design's: it keeps them alike, and reads the address.
(() => {
  "use strict";

  const GROUP = "framework";
  const KEY = `sphinx-design-tab-id-${GROUP}`;

  function kept() {
    try { return localStorage.getItem(KEY); } catch { return null; } // storage may be forbidden
  }

  // The address and links to other pages name the framework, in case that nothing may be stored.
  function carry(framework) {
    const named = (address) => {
      const url = new URL(address);
      url.searchParams.set(GROUP, framework);
      return url.href;
    };
    history.replaceState(history.state, "", named(location.href));
    for (const link of document.querySelectorAll("a[href*='.html']"))
      if (link.protocol === location.protocol && link.host === location.host)
        link.href = named(link.href);
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
    carry(label.dataset.syncId);
    scrollBy({ top: label.getBoundingClientRect().top - top, behavior: "instant" });
  });

  document.addEventListener("DOMContentLoaded", () => {
    const wanted = new URLSearchParams(location.search).get(GROUP) ?? kept();
    if (!wanted) return;
    carry(wanted);
    for (const label of document.querySelectorAll("[data-sync-id]"))
      if (label.dataset.syncId === wanted) label.previousElementSibling.checked = true;
  });
})();
