// The real server and a real browser. Whatever a test does, it also fails on an error in the console, a
// violation of the page's policy, a request to another origin, and a promise that nobody waited for.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, test } from "node:test";
import { chromium } from "playwright-core";
import { Server, slow } from "./server.mjs";

export { Server, slow };
export const views = ["#/ask", "#/request", "#/engine", "#/lab", "#/lab/tokens", "#/lab/sampling", "#/journey", "#/journey/1", "#/journey/2", "#/journey/3",
  "#/journey/4", "#/journey/4?beat=4", "#/journey/4?beat=5", "#/journey/5", "#/journey/5?beat=5", "#/journey/9", "#/journey/9?beat=4",
  "#/journey/13", "#/journey/13?beat=2", "#/journey/13?beat=3", "#/journey/13?beat=5", "#/model"];
export const widths = [320, 768, 1280, 1920];
export const themes = ["light", "dark"];
export const shots = process.env.VITRINE_SHOTS ?? "shots";
mkdirSync(shots, { recursive: true });

let browser;
async function launched() {
  browser ??= await chromium.launch({
    executablePath: process.env.VITRINE_CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
  });
  return browser;
}
after(() => browser?.close());

// A page of the server. `problems` is what must stay empty; a test that provokes one takes it out.
export async function open(server, { path = "/", width = 1280, height = 900, theme = "light", ...more } = {}) {
  const context = await (await launched()).newContext({
    viewport: { width, height }, colorScheme: theme, ...more });
  const page = await context.newPage();
  page.setDefaultTimeout(20000 * slow);
  page.problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) page.problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => page.problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(server.url) && !/^(data|blob):/.test(request.url()))
      page.problems.push(`a request to another origin: ${request.url()}`);
  });
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) =>
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
    addEventListener("unhandledrejection", (event) => console.error(`unhandled: ${event.reason}`));
  });
  await page.goto(server.url + path);
  return page;
}

export async function close(page) {
  const { problems } = page;
  await page.context().close();
  assert.deepEqual(problems, []);
}

// One server on the built-in model for the tests of a file.
export function with_server(...flags) {
  let server;
  after(() => server?.stop());
  return (name, run) => test(name, async (t) => {
    server ??= await Server.spawn(flags);
    await run(server, t);
  });
}

export const tokens = (page) => page.locator("[role=listbox] [role=option]");
export const send = (page) => page.getByRole("button", { name: "Send" });

// Waits for the model, asks what is in the field, or `text`, and waits for the whole answer: its label.
export async function ask(page, text) {
  const field = page.getByLabel(/Your message|Text to continue/);
  if (text !== undefined) await field.fill(text);
  const answers = await page.getByText(/^Ended:/).count();
  await send(page).click();
  await page.getByText(/^Ended:/).nth(answers).waitFor({ timeout: 120000 * slow });
  await page.getByRole("figure", { name: "Time of this answer" }).waitFor();
  return new URL(page.url().replace("#/", "")).searchParams.get("req");
}

export async function setting(page, name, value) {
  await page.locator("details").evaluate((details) => (details.open = true));
  const field = page.getByLabel(name, { exact: true });
  await field.fill(String(value));
  await field.blur();
}

// A view with something in it: after an answer, on the request itself where it has one.
export async function visit(page, view, label) {
  const hash = view === "#/ask" || view === "#/lab/sampling" ? `${view}?req=${label}&pos=5` : view;
  await page.evaluate((to) => (location.hash = to), hash);
  const ready = {
    "#/ask": "[role=listbox] [role=option]", "#/request": "main table", "#/engine": "main canvas",
    "#/lab": "main li a", "#/lab/tokens": "main .chip", "#/lab/sampling": "main [role=figure] .line", "#/journey": "main li a", "#/model": ".pieces .token",
  };
  await page.locator(ready[view] ?? (view.startsWith("#/journey/") ? "main [role=figure], main .empty" : "main canvas")).first().waitFor();
}

// Figures without a chip that says where they come from, at one moment.
export const without_chip = (page) => page.locator("[role=figure]").evaluateAll((list) =>
  list.filter((figure) => !figure.querySelector("[data-provenance]")).map((figure) => figure.innerText.slice(0, 40)));

// What a figure's JSON button copies.
export async function figure_json(page, name) {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: `JSON of ${name}` }).click();
  await page.getByRole("button", { name: `Copied of ${name}` }).waitFor();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  await page.getByRole("button", { name: `JSON of ${name}` }).waitFor();
  return JSON.parse(text);
}

// Whether the server has the stream; a test of it is left out where not.
export async function streams(server, t) {
  const there = (await server.json("/api/snapshot?full=1")).seq !== undefined;
  if (!there) t.skip("the server has no /api/trace");
  return there;
}

// The engine's view at the moment of a snapshot that was just taken: paused there.
export async function at_moment(page, seq) {
  await page.evaluate((to) => (location.hash = `#/engine?seq=${to}`), seq);
  await page.locator(`.engine[data-seq="${seq}"]`).waitFor();
}
