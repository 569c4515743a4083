"use strict";
(() => {
  const panes = [...document.querySelectorAll(".pane")];
  const form = document.getElementById("choose");
  form.hidden = false;
  const mark = (at, from) => {
    for (const row of document.querySelectorAll("tr.on")) row.classList.remove("on");
    for (const pane of panes) {
      const rows = pane.querySelectorAll(`tr[data-at="${CSS.escape(at)}"]`);
      for (const row of rows) row.classList.add("on");
      if (rows.length && pane !== from) {
        const top = rows[0].getBoundingClientRect().top - pane.getBoundingClientRect().top;
        pane.scrollBy({ top: top - pane.clientHeight / 3 });
      }
    }
  };
  for (const pane of panes)
    pane.addEventListener("click", (event) => {
      const row = event.target.closest("tr[data-at]");
      if (!row || String(window.getSelection())) return;
      event.preventDefault();
      mark(row.dataset.at, pane);
    });
  const show = (box) => { document.getElementById(box.value).hidden = !box.checked; };
  for (const box of form.querySelectorAll("input")) {
    show(box);
    box.addEventListener("change", () => show(box));
  }
  const select = document.getElementById("heat");
  // A variant without the chosen figure, as one that nobody profiled, leaves its column to the source.
  const fit = () => {
    const rows = [...document.querySelectorAll(".first tr")];
    const lines = document.querySelectorAll(".first tbody tr");
    const heats = rows.length ? rows[0].cells.length - 2 : 0;
    for (let place = 1; heats > 1 && place <= heats; place++) {
      const idle = [...lines].every((line) => !line.cells[place].textContent);
      for (const row of rows) row.cells[place].hidden = idle;
    }
  };
  fit();
  const hottest = document.querySelector("td[data-heat].h5");
  if (hottest && !location.hash) mark(hottest.closest("tr").dataset.at, null);
  select.addEventListener("change", () => {
    const name = select.selectedOptions[0].text.split(" ")[0];
    document.querySelectorAll("th.heated").forEach((head) => { head.textContent = name; });
    for (const cell of document.querySelectorAll("td[data-heat]")) {
      const [shade, text] = cell.dataset.heat.split(";")[select.value].split(":");
      cell.className = `n h${shade}`;
      cell.textContent = text;
    }
    fit();
  });
})();
