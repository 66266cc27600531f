"use strict";
(() => {
  const unit = { G: 1e9, M: 1e6, k: 1e3, s: 1, ms: 1e-3, "µs": 1e-6, ns: 1e-9, KiB: 1024, MiB: 1048576, "%": 1 };
  // A cell as a number, in units that make cells of one column comparable; null for a text.
  const number = (text) => {
    const match = /^[<≈±\s]*([-−]?[\d.]+(?:e[+-]?\d+)?)\s*([A-Za-zµ%]*)/.exec(text);
    if (!match) return text.startsWith("–") ? Infinity : null;
    const factor = unit[match[2]] || 1;
    return parseFloat(match[1].replace("−", "-")) * factor;
  };
  const plain = (cell) => {
    const copy = cell.cloneNode(true);
    copy.querySelectorAll("sup").forEach((mark) => mark.remove());
    return copy.textContent.trim();
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const sort = (table, head, index) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("thead th").forEach((th) => th.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const numeric = head.classList.contains("n");
    const rows = Array.from(body.rows, (row) => {
      const text = plain(row.cells[index]);
      const value = numeric ? number(text) : null;
      return { row, key: value === null ? text : value };
    });
    rows.sort((a, b) => compare(a.key, b.key) * (down ? -1 : 1));
    body.append(...rows.map((entry) => entry.row));
  };
  const filter = (table, box) => {
    const label = document.createElement("label");
    label.className = "filter";
    const input = document.createElement("input");
    input.type = "search";
    label.append("Show rows with", input);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/);
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
    box.before(label);
  };
  for (const table of document.querySelectorAll(".table > table")) {
    const body = table.tBodies[0];
    if (!body || body.rows.length < 2) continue;
    Array.from(table.tHead.rows[0].cells).forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, head, index));
    });
    // A list of names and values has nothing to be searched for.
    if (body.rows.length >= 12 && table.tHead.rows[0].cells.length > 3) filter(table, table.parentElement);
  }
})();
