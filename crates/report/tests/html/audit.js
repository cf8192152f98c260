// Returns the problems of a report in the browser, one sentence each.
const problems = [];
const report = (problem) => problems.length < 20 && problems.push(problem);
const all = (selector) => [...document.querySelectorAll(selector)];
const nameOf = (element) => `<${element.tagName.toLowerCase()} class="${element.getAttribute("class") || ""}"> ${element.textContent.trim().slice(0, 40)}`;
const root = document.documentElement;

if (root.dataset.ready !== "true") report("the script did not run to its end");
if (root.scrollWidth > innerWidth) {
  const wide = all("body *").filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".scroll, .stage"));
  report(`the page is ${root.scrollWidth} px wide, because of ${wide.length ? nameOf(wide[wide.length - 1]) : "?"}`);
}

// Time lines of spikes fit the screen of a phone.
for (const stage of all(".spike[open] .stage")) {
  const drawn = stage.querySelector("svg").getBoundingClientRect().width;
  if (drawn > stage.clientWidth + 1) report(`a time line is ${Math.round(drawn)} px wide, in ${stage.clientWidth} px`);
}

// WCAG 2.2 contrast of each visible text: 4.5, or 3 for large text.
const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const rgba = (color) => {
  pixel.clearRect(0, 0, 1, 1);
  pixel.fillStyle = color;
  pixel.fillRect(0, 0, 1, 1);
  return [...pixel.getImageData(0, 0, 1, 1).data];
};
const luminance = ([r, g, b]) => {
  const linear = [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const backdrop = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = rgba(getComputedStyle(at).backgroundColor);
    if (color[3] === 255) return color;
    if (color[3] > 0) {
      const below = at.parentElement ? backdrop(at.parentElement) : rgba(getComputedStyle(root).backgroundColor);
      return [0, 1, 2].map((i) => Math.round((color[i] * color[3] + below[i] * (255 - color[3])) / 255)).concat(255);
    }
  }
  return [255, 255, 255, 255];
};
let texts = 0;
for (const element of all("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  if (!own || element.closest("script, style, title, desc") || !element.checkVisibility()) continue;
  // Names in bars of a time line stand on the bar's own colour.
  if (element.matches(".what.in")) continue;
  const style = getComputedStyle(element), svg = element instanceof SVGElement;
  const front = luminance(rgba(svg ? style.fill : style.color)), back = luminance(backdrop(element));
  const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 600);
  if (ratio < (large ? 3 : 4.5)) report(`contrast ${ratio.toFixed(2)} of ${nameOf(element)}`);
  texts++;
}
if (texts < 20) report(`only ${texts} texts are visible`);

// Names, for those who do not see the page, and structure.
for (const element of all("button, a, summary")) if (!element.textContent.trim()) report(`no name: ${nameOf(element)}`);
for (const element of all("[role=img]")) {
  const ids = (element.getAttribute("aria-labelledby") || "").split(" ").filter(Boolean);
  const named = element.getAttribute("aria-label") || ids.length && ids.every((id) => document.getElementById(id)?.textContent.trim());
  if (!named) report(`no name: ${nameOf(element)}`);
}
for (const element of all("[tabindex='0']")) {
  if (!element.getAttribute("aria-label") && !element.getAttribute("aria-labelledby")) report(`no name: ${nameOf(element)}`);
}
for (const element of all("svg:not([role=img]):not([aria-hidden=true])")) report(`neither named nor hidden: ${nameOf(element)}`);
const ids = all("[id]").map((element) => element.id);
for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) report(`the id ${id} is not unique`);
for (const link of all("a[href^='#']")) if (!document.getElementById(link.hash.slice(1))) report(`no target: ${link.hash}`);
for (const table of all("table")) {
  for (const row of table.tBodies[0]?.rows ?? []) {
    if (!row.querySelector("th[scope=row]")?.textContent.trim()) report(`a row without a name in ${nameOf(table)}`);
    if (row.cells.length > 1 && [...row.cells].slice(1).every((cell) => cell.textContent.trim() === "-")) report(`a row of dashes: ${nameOf(row)}`);
  }
  if ([...table.rows].some((row) => row.cells.length !== table.rows[0].cells.length)) report(`rows of different lengths in ${nameOf(table)}`);
}
let level = 0;
for (const heading of all("h1, h2, h3, h4")) {
  const next = Number(heading.tagName[1]);
  if (next > level + 1) report(`level ${next} after ${level}: ${nameOf(heading)}`);
  level = next;
}
for (const block of all(".paste")) if (!block.querySelector("button")) report(`no copy button: ${nameOf(block)}`);
for (const code of all(".change li code")) {
  const command = code.textContent.includes(" ") && !code.closest(".paste");
  if (command && !code.nextElementSibling?.matches("button")) report(`no copy button: ${nameOf(code)}`);
}

// The first screen has the answer, a figure, and the next command or change.
for (const part of [".verdict .word", ".verdict h1"]) if (!document.querySelector(part)?.textContent.trim()) report(`no ${part}`);
if (!document.querySelector(".verdict .keys dd b")) report("no key figure");
if (!document.querySelector(".verdict .answers .paste, .verdict .reasons .paste")) report("no next command");
// A page without a list of its sections has its first section there.
const after = document.querySelector("nav") ?? document.querySelector("#change");
if (after.getBoundingClientRect().top + scrollY > (innerWidth < 600 ? 2 : 1.5) * 844) report("the first screen is too long");
const chart = document.querySelector("svg.chart");
if (chart && innerWidth < 600) {
  const screens = (chart.getBoundingClientRect().top + scrollY) / 844;
  if (screens > 3) report(`${screens.toFixed(1)} screens before the first chart`);
}
return problems;
