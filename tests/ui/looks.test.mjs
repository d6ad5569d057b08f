// Nothing overlaps, nothing is cut, at four widths in both themes; pictures are left for people to look at.
import assert from "node:assert/strict";
import { ask, close, open, shots, themes, tokens, views, visit, widths, with_server } from "./browser.mjs";

const served = with_server();

// What sticks out of the page, texts that are cut, and neighbours that lie over each other.
const faults = (page) => page.evaluate(() => {
  const out = [], root = document.documentElement;
  const name = (e) => `${e.tagName.toLowerCase()}.${e.className}: ${e.textContent.trim().slice(0, 40)}`;
  if (root.scrollWidth > root.clientWidth) out.push(`the page is ${root.scrollWidth} wide of ${root.clientWidth}`);
  const visible = (e) => e.checkVisibility() && !e.closest(".hidden, .skip, dialog");
  for (const e of document.querySelectorAll("main *, header *")) {
    if (!visible(e) || e.closest("svg")) continue;
    const box = e.getBoundingClientRect();
    if (box.width === 0 || box.height === 0) continue;
    const scrolls = e.closest(".scroll, .pieces, textarea");
    if (!scrolls && (box.left < -1 || box.right > root.clientWidth + 1)) out.push(`beyond the edge: ${name(e)}`);
    const style = getComputedStyle(e);
    if (style.overflowX === "hidden" && style.textOverflow !== "ellipsis" && e.children.length === 0 && e.scrollWidth > e.clientWidth + 1)
      out.push(`cut: ${name(e)}`);
  }
  const rows = [...document.querySelectorAll("[role=figure], article, .facts > div, .legend > li, button, .button, .token")].filter(visible);
  for (const a of rows) {
    const x = a.getBoundingClientRect(), b = a.nextElementSibling;
    if (!b || !rows.includes(b)) continue;
    const y = b.getBoundingClientRect();
    const over = Math.min(x.right, y.right) - Math.max(x.left, y.left) > 1 && Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top) > 1;
    if (over) out.push(`overlap: ${name(a)} and ${name(b)}`);
  }
  return out;
});

for (const theme of themes)
  for (const width of widths)
    served(`${theme}, ${width} px`, async (server) => {
      const page = await open(server, { theme, width, height: width < 500 ? 720 : 900 });
      await page.getByText("live", { exact: true }).waitFor();
      await page.screenshot({ path: `${shots}/empty-${theme}-${width}.png` });
      assert.deepEqual(await faults(page), [], "empty");
      const label = await ask(page, "Tell me a story about a fox.");
      await tokens(page).nth(4).click();
      for (const view of [...views, `#/request/${label}`, `#/request/${label}?vs=${label}&part=3`]) {
        await visit(page, view, label);
        const file = view.startsWith("#/request/") ? (view.includes("vs=") ? "two" : "one") : view.slice(2).replace(/\W+/g, "-");
        await page.screenshot({ path: `${shots}/${file}-${theme}-${width}.png`, fullPage: view !== "#/ask" });
        assert.deepEqual(await faults(page), [], view);
      }
      // The chapters after what they offer to do.
      for (const [chapter, beat] of [[4, 4], [5, 1], [9, 2], [9, 4], [13, 1], [13, 2]]) {
        await page.evaluate((to) => (location.hash = to), `#/journey/${chapter}?beat=${beat}`);
        await page.locator(".words .says").waitFor();
        if (beat !== 4 || chapter === 4) await page.locator("button.do").click();
        await page.locator("button.do:not(:disabled)").waitFor();
        await page.locator(".scene [role=figure]").first().waitFor();
        await page.screenshot({ path: `${shots}/journey-${chapter}-${beat}-done-${theme}-${width}.png`, fullPage: true });
        assert.deepEqual(await faults(page), [], `chapter ${chapter}, beat ${beat}, done`);
      }
      // The engine while many run and some wait, with all that can be chosen.
      await page.evaluate((to) => (location.hash = `#/engine?page=0:0&req=${to}`), label);
      await page.getByText("Now, as it happens.").waitFor();
      const load = await server.post("/api/lab/company", { n: 14, max_tokens: 256 });
      assert.equal(load.status, 200, await load.text());
      await page.getByRole("figure", { name: "Running" }).locator("tbody tr").nth(5).waitFor();
      for (const name of ["Step of the engine", "Step, in its parts", "Step under the roof", "A half second of the rates"]) {
        const cursor = page.getByRole("slider", { name });
        await cursor.scrollIntoViewIfNeeded();
        await cursor.focus();
        await cursor.press("ArrowLeft");
      }
      for (const figure of await page.getByRole("figure").all()) { // what is not seen is not drawn
        await figure.scrollIntoViewIfNeeded();
        await page.waitForTimeout(150);
      }
      await page.evaluate(() => scrollTo(0, 0));
      await page.screenshot({ path: `${shots}/engine-load-${theme}-${width}.png`, fullPage: true });
      assert.deepEqual(await faults(page), [], "the engine under load");
      await close(page);
      await server.expect_idle(60000);
    });

served("a page of twice the size still fits", async (server) => {
  const page = await open(server, { width: 640, height: 450, deviceScaleFactor: 2 });
  const label = await ask(page, "Why is the sky blue?");
  for (const view of [...views, `#/request/${label}`]) {
    await visit(page, view, label);
    assert.deepEqual(await faults(page), [], view);
  }
  await close(page);
});
