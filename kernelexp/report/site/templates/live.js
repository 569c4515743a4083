"use strict";
// Shows the page again once the server has a newer one.
(() => {
  let known = null;
  async function look() {
    try {
      const version = await (await fetch("/version", { cache: "no-store" })).text();
      if (known !== null && version !== known) location.reload();
      known = version;
    } catch { /* the server has ended: the page stays */ }
  }
  setInterval(look, 2000);
  look();
})();
