"use strict";
// Shows what commands are doing, and the page again once the server has a newer one.
(() => {
  const place = document.getElementById("live");
  const root = place.dataset.root; // the pages may lie below another address
  let known = null;

  function element(name, ...content) {
    const made = document.createElement(name);
    made.append(...content); // texts stay texts, whatever is in them
    return made;
  }

  function line(step) {
    const bar = element("progress");
    bar.max = step.total || 1;
    bar.value = step.done;
    bar.setAttribute("aria-label", step.phase);
    return element("li", element("span", step.phase), bar, `${step.done} of ${step.total}`, element("span", step.now || ""));
  }

  function show(work) {
    const seconds = (each) => Math.max(0, Math.round((Date.now() - Date.parse(each.since)) / 1000));
    place.hidden = !work.length;
    place.replaceChildren(...work.flatMap((each) => [
      element("p", element("code", each.command), ` for ${seconds(each)} s`),
      element("ul", ...each.steps.map(line)),
    ]));
  }

  // While experiments.yaml is being edited there may be no page to show.
  async function isThere() {
    return (await fetch(location.pathname, { method: "HEAD", cache: "no-store" })).ok;
  }

  async function look() {
    try {
      show(await (await fetch(`${root}progress`, { cache: "no-store" })).json());
      const version = await (await fetch(`${root}version`, { cache: "no-store" })).text();
      if (known === null) known = version;
      if (version !== known && await isThere()) location.reload();
    } catch { // the server has ended: the page stays
      show([]);
    }
    setTimeout(look, 1000);
  }
  look();
})();
