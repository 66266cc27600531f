// Opens pages in a real browser and says what it found, as JSON; judging is the caller's.
//
//   node check.mjs CHROMIUM full|brief PAGE.html...
//
// `full` opens every page at desktop and phone width, in light and dark, uses it, runs the
// accessibility rules, and looks at it without scripts and in print; `brief` opens it on a phone. Over
// the DevTools protocol.

import { readFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { HtmlValidate } from "html-validate";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");
const [executablePath, extent, ...files] = process.argv.slice(2);
const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const VIEWS = extent === "full"
  ? [
      { width: 1280, height: 900, colorScheme: "light", full: true },
      { width: 390, height: 844, colorScheme: "dark", full: true },
      { width: 360, height: 740, colorScheme: "light", full: false },
    ]
  : [{ width: 390, height: 844, colorScheme: "light", full: false }];

// What a page is made of, as the browser's parser sees it.
const structure = () => ({
  elements: [...new Set([...document.querySelectorAll("*")].map((e) => e.localName))].sort(),
  scripts: document.scripts.length,
  handlers: [...document.querySelectorAll("*")].flatMap((e) =>
    [...e.attributes].filter((a) => a.name.startsWith("on")).map((a) => `${e.localName} ${a.name}`)),
  targets: [...document.querySelectorAll("[href], [src]")].map((e) => e.getAttribute("href") ?? e.getAttribute("src")),
  deadLinks: [...document.querySelectorAll('a[href^="#"]')]
    .filter((a) => !document.getElementById(decodeURIComponent(a.hash.slice(1)))).map((a) => a.hash),
  tables: [...document.querySelectorAll("table")].map((t) => ({
    caption: t.caption?.textContent ?? null,
    scoped: [...t.querySelectorAll("thead th")].every((th) => th.scope === "col")
      && [...t.querySelectorAll("tbody tr")].every((tr) => tr.cells[0]?.scope === "row"),
    columns: t.tHead.rows[0].cells.length,
    ragged: [...t.rows].filter((r) => r.cells.length !== t.tHead.rows[0].cells.length).length,
    firstColumn: [...t.tBodies[0].rows].map((r) => r.cells[0].textContent),
  })),
  charts: [...document.querySelectorAll("figure.chart svg")].map((svg) => ({
    label: svg.getAttribute("aria-label"),
    texts: [...svg.querySelectorAll("text")].map((t) => t.textContent.trim()),
    smallestTextPx: Math.min(...[...svg.querySelectorAll("text")].map((t) =>
      parseFloat(t.getAttribute("font-size")) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)),
    textOutside: [...svg.querySelectorAll("text")].filter((t) => {
      const a = t.getBoundingClientRect(), b = svg.getBoundingClientRect();
      return a.left < b.left - 1 || a.right > b.right + 1 || a.bottom > b.bottom + 1;
    }).map((t) => t.textContent.trim()),
  })),
});

// First row before and after clicks on the head of the last column, and after Enter on it; rows that
// the filter leaves.
const use = async (page) => {
  const table = page.locator(".table > table").filter({ has: page.locator("thead button") });
  if (await table.count() === 0) return null;
  const one = table.nth(await table.count() - 1);
  const first = () => one.locator("tbody tr").first().textContent();
  const button = one.locator("thead button").last();
  const rows = [await first()];
  await button.click();
  rows.push(await first());
  await button.click();
  rows.push(await first());
  await button.focus();
  await page.keyboard.press("Enter");
  rows.push(await first());
  const box = page.locator(".filter input").first();
  if (await box.count() === 0) return { rows, filter: null };
  const body = page.locator(".filter + .table tbody").first();
  const all = await body.locator("tr:visible").count();
  await box.fill("verify");
  const some = await body.locator("tr:visible").count();
  return { rows, filter: { all, some } };
};

// What there is to read, and what only a script or a screen can show.
const content = () => {
  const seen = (e) => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && getComputedStyle(e).visibility === "visible";
  };
  const all = (what) => [...document.querySelectorAll(what)];
  const main = document.querySelector("main").cloneNode(true);
  main.querySelectorAll(".filter").forEach((e) => e.remove());
  const paper = getComputedStyle(document.documentElement);
  return {
    text: main.textContent.replace(/\s+/g, " ").trim(),
    rows: all("tbody tr").length,
    hiddenRows: all("tbody tr").filter((e) => !seen(e)).length,
    charts: all("figure.chart svg").length,
    hiddenCharts: all("figure.chart svg").filter((e) => !seen(e)).length,
    controls: all("input, th button").filter(seen).length,
    inputs: all("input").filter(seen).length,
    scrollWidth: document.documentElement.scrollWidth,
    innerWidth: window.innerWidth,
    cutTables: all(".table").filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible")
      .map((e) => e.querySelector("caption").textContent),
    colours: [paper.backgroundColor, paper.color],
  };
};

// The page without scripts on a phone, and on paper: A4 at 96 dots per inch less margins of 1 cm, asked
// for by a reader who prefers the dark.
const without = async (browser, file) => {
  const url = pathToFileURL(file).href;
  const looked = async (options, media) => {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    await page.goto(url);
    await page.emulateMedia({ media, colorScheme: options.colorScheme });
    const found = await page.evaluate(content);
    if (media === "print") found.pdfBytes = (await page.pdf({ format: "A4" })).length;
    await context.close();
    return found;
  };
  const phone = { viewport: { width: 390, height: 844 }, colorScheme: "light" };
  return {
    scripted: await looked(phone, "screen"),
    scriptless: await looked({ ...phone, javaScriptEnabled: false }, "screen"),
    print: await looked({ viewport: { width: 718, height: 1047 }, colorScheme: "dark" }, "print"),
  };
};

const open = async (browser, file, view) => {
  const { width, height, colorScheme } = view;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  const messages = [], requests = [];
  page.on("console", (m) => messages.push(`${m.type()}: ${m.text()}`));
  page.on("pageerror", (e) => messages.push(`error: ${e.message}`));
  page.on("dialog", (d) => { messages.push(`dialog: ${d.message()}`); d.dismiss(); });
  page.on("request", (r) => requests.push(r.url()));
  const url = pathToFileURL(file).href;
  await page.goto(url);
  const found = { view: `${width} ${colorScheme}`, ...await page.evaluate(structure) };
  found.scrollWidth = await page.evaluate(() => document.documentElement.scrollWidth);
  found.innerWidth = await page.evaluate(() => window.innerWidth);
  found.requests = requests.filter((r) => r !== url && !r.startsWith("data:"));
  const { violations } = view.full
    ? await page.evaluate(axe).then(() => page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] })))
    : { violations: [] };
  found.violations = violations.filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" ; ")}`);
  found.use = view.full ? await use(page) : null;
  found.messages = messages;
  await context.close();
  return found;
};

const validator = new HtmlValidate({
  root: true,
  extends: ["html-validate:recommended"],
  // Void elements and the case of the doctype are matters of taste; both forms are valid HTML.
  rules: { "void-style": "off", "doctype-style": "off", "long-title": "off" },
});

const profile = await mkdtemp(join(tmpdir(), "pages-"));
const browser = await chromium.launch({ executablePath, args: FLAGS, env: { ...process.env, HOME: profile } });
const result = [];
try {
  for (const file of files) {
    const report = await validator.validateString(await readFile(file, "utf8"), file);
    const invalid = report.results.flatMap((r) => r.messages)
      .map((m) => `${m.line}:${m.column} ${m.ruleId}: ${m.message}`);
    const views = [];
    for (const view of VIEWS) views.push(await open(browser, file, view));
    result.push({ file, invalid, views, without: extent === "full" ? await without(browser, file) : null });
  }
} finally {
  await browser.close();
  await rm(profile, { recursive: true, force: true });
}
process.stdout.write(JSON.stringify(result));
