"use strict";
// Filters and sorts the table of experiments; its state is the address's fragment, to be shared.
(() => {
  const table = document.getElementById("experiments");
  if (!table) return;
  const form = document.getElementById("filters");
  const count = document.getElementById("count");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const keys = heads.map((head) => head.dataset.key);
  const place = (key) => keys.indexOf(key);
  const text = (row, key) => row.dataset[key] ?? row.cells[place(key)].textContent;
  const words = new Map();
  const order = new Map(rows.map((row, index) => [row, index]));
  const all = document.getElementById("all"), atOnce = Number(table.dataset.rows);
  let sort = "", descending = false, sorted = "", whole = false;

  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const key = head.dataset.key;
      if (sort !== key) { sort = key; descending = false; }
      else if (!descending) { descending = true; }
      else { sort = ""; descending = false; }
      show(); save();
    });
  }

  function holds(row, word) {
    if (!words.has(row)) words.set(row, row.textContent.toLowerCase());
    return words.get(row).includes(word);
  }

  function value(row, at) {
    const cell = row.cells[at];
    if (cell.className === "n") return "value" in cell.dataset ? Number(cell.dataset.value) : null;
    return cell.textContent || null;
  }

  function compare(one, other) {
    if (!sort) return order.get(one) - order.get(other);
    const at = place(sort), a = value(one, at), b = value(other, at);
    if (a === null || b === null) return (a === null) - (b === null) || order.get(one) - order.get(other);
    const sign = typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
    return (descending ? -sign : sign) || order.get(one) - order.get(other);
  }

  function show() {
    const wanted = form.elements.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wish = sort && (descending ? "-" : "+") + sort;
    if (wish !== sorted) { rows.sort(compare); body.append(...rows); }
    sorted = wish;
    let fitting = 0;
    for (const row of rows) {
      const fits = wanted.every((word) => holds(row, word))
        && ["kernel", "verdict", "section"].every((key) => !form.elements[key].value || text(row, key) === form.elements[key].value);
      fitting += fits;
      const hidden = !fits || (!whole && fitting > atOnce);
      if (row.hidden !== hidden) row.hidden = hidden;
    }
    for (const head of heads) {
      head.setAttribute("aria-sort", head.dataset.key !== sort ? "none" : descending ? "descending" : "ascending");
    }
    const cut = !whole && fitting > atOnce;
    count.textContent = `${fitting} of ${rows.length} rows${cut ? `, the first ${atOnce} shown` : ""}`;
    all.hidden = !cut;
    all.textContent = `Show all ${fitting}`;
  }

  function save() {
    const state = new URLSearchParams();
    for (const key of ["q", "kernel", "verdict", "section"]) {
      if (form.elements[key].value) state.set(key, form.elements[key].value);
    }
    if (sort) state.set("sort", (descending ? "-" : "") + sort);
    history.replaceState(null, "", "#" + state);
  }

  function load() {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const key of ["q", "kernel", "verdict", "section"]) form.elements[key].value = state.get(key) || "";
    const wanted = state.get("sort") || "";
    descending = wanted.startsWith("-");
    sort = keys.includes(wanted.replace(/^-/, "")) ? wanted.replace(/^-/, "") : "";
    show();
    if (location.hash.includes("=")) document.getElementById("experiments-heading").scrollIntoView();
  }

  form.addEventListener("input", () => { show(); save(); });
  form.addEventListener("reset", () => setTimeout(() => { sort = ""; descending = false; show(); save(); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", load);
  all.addEventListener("click", () => { whole = true; show(); });
  form.hidden = false;
  load();
})();
