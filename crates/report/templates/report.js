// Read-outs under the pointer, hiding series, copying commands. The report is complete without this script.
(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, classes, text) => {
    const element = document.createElement(name);
    if (classes) element.className = classes;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // Formats times like the report: three significant digits, no trailing zeros.
  const time = (ns) => {
    const sign = ns < 0 ? "-" : "", size = Math.abs(ns);
    for (const [unit, scale] of [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]]) {
      for (const decimals of [2, 1, 0]) {
        const shift = 10 ** decimals, digits = Math.round(size * shift / scale);
        if (digits < 1000 || (unit === "s" && decimals === 0)) {
          const exact = (size * shift) % scale === 0;
          return sign + (exact ? String(digits / shift) : (digits / shift).toFixed(decimals)) + " " + unit;
        }
      }
    }
  };
  const count = (n) => n.toLocaleString("en-US");
  const clock = (s) => s < 120 ? `${s.toFixed(1)} s` : `${count(Math.floor(s / 60))} min ${String(Math.floor(s % 60)).padStart(2, "0")} s`;

  // The key shows and hides series in all charts at once.
  const key = document.getElementById("key");
  const show = (item, on) => {
    for (const s of item.dataset.s.split(" ")) {
      all(`.chart [data-s="${s}"]`).forEach((element) => element.classList.toggle("off", !on));
      key.querySelector(`.each [data-s="${s}"] button`).setAttribute("aria-pressed", String(on));
    }
    item.querySelector("button").setAttribute("aria-pressed", String(on));
  };
  if (key) {
    const items = all("li", key);
    for (const item of items) {
      const button = make("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...item.childNodes);
      button.addEventListener("click", () => show(item, button.getAttribute("aria-pressed") !== "true"));
      item.append(button);
    }
    const both = make("div");
    for (const [label, on] of [["show all", true], ["hide all", false]]) {
      const button = make("button", "all", label);
      button.type = "button";
      button.addEventListener("click", () => items.forEach((item) => show(item, on)));
      both.append(button);
    }
    if (items.length > 1) key.append(both);
  }

  // The read-out of a chart at a position: a heading and rows of [series, value].
  const parse = (path) => ({
    path,
    name: path.dataset.n,
    culprits: "c" in path.dataset ? path.dataset.c.split(" ") : [],
    end: "end" in path.dataset ? Number(path.dataset.end) : Infinity,
    points: path.dataset.p.split(" ").map((point) => {
      const [x, y] = point.split(":");
      return [Number(x), y === "" ? null : Number(y)];
    }),
  });
  const before = (points, x) => {
    let low = 0, high = points.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle][0] <= x) low = middle + 1; else high = middle;
    }
    return low ? points[low - 1] : null;
  };
  const bins = (series, x) => {
    const bin = Math.floor(x * 20 + 1e-9);
    const rows = series.map((one) => {
      const at = before(one.points, bin);
      return [one, at && at[0] === bin ? at[1] : 0];
    });
    return [`${time(10 ** (bin / 20))} to ${time(10 ** ((bin + 1) / 20))}`, rows.filter((row) => row[1] > 0), count];
  };
  const steps = (heading) => (series, x) => {
    const rows = series.map((one) => [one, x > one.end ? null : (before(one.points, x) || [0, null])[1]]);
    return [heading(x), rows.filter((row) => row[1] !== null), time];
  };
  const nines = (x) => {
    const among = 10 ** x;
    if (among < 10) return `the best ${(100 - 100 / among).toFixed(1)} %`;
    return `all but 1 in ${among < 100 ? among.toFixed(1) : count(Math.round(among))}`;
  };
  const dots = (series, x, y, scale) => {
    let best = null, nearest = 14 ** 2;
    for (const one of series) {
      for (const [n, [at, value]] of one.points.entries()) {
        const apart = ((at - x) / scale.x) ** 2 + ((Math.log10(Math.max(value, 1)) - y) / scale.y) ** 2;
        if (apart < nearest) [best, nearest] = [[one, value, at, one.culprits[n]], apart];
      }
    }
    return best ? [`at ${best[2].toFixed(3)} s`, [best], time] : ["", [], time];
  };

  // One row per part of the time line, from the top.
  const stretches = (series, x, y) => {
    const one = series[Math.floor(series.length - y)];
    return one ? [one.path.dataset.h, [[one, one.points[0][1]]], time] : ["", [], time];
  };

  for (const svg of all("svg.chart")) {
    const stage = svg.parentElement, series = all("[data-p]", svg).map(parse);
    const [x0, x1, left, right] = svg.dataset.x.split(" ").map(Number);
    const [y0, y1, bottom, top] = svg.dataset.y.split(" ").map(Number);
    const scale = { x: (x1 - x0) / (right - left), y: (y1 - y0) / (bottom - top) };
    const readOut = "bins" in svg.dataset ? bins : "nines" in svg.dataset ? steps(nines)
      : "dots" in svg.dataset ? dots : "stretches" in svg.dataset ? stretches : steps((s) => `at ${clock(s)}`);
    const culprits = JSON.parse(svg.dataset.culprits || "[]"), free = readOut === dots || readOut === stretches;
    const read = make("div", "read");
    const cursor = document.createElementNS(svg.namespaceURI, "path");
    read.hidden = true;
    read.setAttribute("role", "status");
    cursor.setAttribute("class", "cursor");
    svg.append(cursor);
    stage.append(read);

    const hide = () => { read.hidden = true; cursor.removeAttribute("d"); };
    const at = (px, py) => {
      const shown = series.filter((one) => !one.path.classList.contains("off"));
      const [heading, rows, format] = readOut(shown, x0 + (px - left) * scale.x, y0 + (bottom - py) * scale.y, scale);
      if (px < left || px > right || !rows.length) return hide();
      rows.sort((a, b) => b[1] - a[1]);
      const table = make("table");
      for (const [one, value] of rows.slice(0, 10)) {
        const row = table.insertRow();
        const swatch = key && key.querySelector(`.each [data-s="${one.path.dataset.s}"] .swatch`);
        const name = row.insertCell();
        if (swatch) name.append(swatch.cloneNode(true));
        name.append(one.name);
        row.insertCell().textContent = format(value);
      }
      read.replaceChildren(make("b", "", heading), table);
      const culprit = culprits[rows[0][3]];
      if (culprit) read.append(make("span", "soft", culprit));
      if (rows.length > 10) read.append(make("span", "soft", `and ${rows.length - 10} more`));
      read.hidden = false;
      cursor.setAttribute("d", free ? "" : `M${px} ${top}V${bottom}`);
      const to = svg.getScreenCTM(), box = stage.getBoundingClientRect();
      const x = to.a * px + to.e - box.left + stage.scrollLeft;
      const flip = x - stage.scrollLeft > box.width / 2;
      read.style.left = `${flip ? x - read.offsetWidth - 14 : x + 14}px`;
      read.style.top = `${Math.max(0, to.d * (free ? py : top + 30))}px`;
    };
    const follow = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      at(point.x, point.y);
    };
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
    svg.addEventListener("pointerleave", hide);

    // The arrow keys move the read-out, Escape hides it.
    let place = (left + right) / 2;
    if (!free) svg.setAttribute("tabindex", "0");
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -6, ArrowRight: 6 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      place = Math.min(right, Math.max(left, place + step));
      at(place, top);
    });
    svg.addEventListener("blur", hide);
  }

  const copyButton = (code) => {
    const button = make("button", "copy", "copy");
    button.type = "button";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "selected";
      }
    });
    return button;
  };
  for (const block of all(".paste")) block.append(copyButton(block.querySelector("code")));
  // Commands and kernel arguments within a sentence; a single word is not copied.
  for (const code of all(".change li code, .reasons li code, .advice code")) {
    if (code.textContent.includes(" ") && !code.closest(".paste")) code.after(" ", copyButton(code));
  }

  // A link to a folded section opens it.
  const unfold = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    const fold = target && target.querySelector(":scope > .fold");
    if (fold) fold.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();

  // On a phone, the time line of a spike has no names, so its table is open.
  if (matchMedia("(max-width: 48rem)").matches) {
    for (const table of document.querySelectorAll(".spike > details")) table.open = true;
  }

  document.documentElement.dataset.ready = "true";
})();
