// Uses an interactive figure, a page of its own, in a real browser: node figure.mjs FILE CHROMIUM OUTPUT [JSON].
// With the JSON of krrlab lambda-p its sliders are moved, and what they say is compared with Go's numbers.
// playwright-core is found in the folder that NODE_MODULES names.
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { sliders } from "./sliders.mjs";

const [file, browserPath, out, json] = process.argv.slice(2);
const { chromium } = createRequire(path.join(process.env.NODE_MODULES, "x.js"))("playwright-core");
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1000, height: 900 } });
page.setDefaultTimeout(30000);
const failures = [];
page.on("pageerror", (e) => failures.push(e.message));
page.on("request", (r) => /^(file|data|blob):/.test(r.url()) || failures.push(`a request to ${r.url()}`));
const check = (ok, what) => { if (!ok) failures.push(what); };
const announcedText = () => page.locator(".krr-said").first().textContent();
const redrawnPathCount = () => page.locator(".krr-drawn path:not(.krr-at *)").count();
const labels = () => page.locator(".krr-drawn text").allTextContents();
await page.goto(pathToFileURL(file).href);
await page.locator("figure[data-live] .krr-bar").first().waitFor();
await page.screenshot({ path: path.join(out, "figure-1.png") });

const plot = page.locator(".krr-hit").first();
const box = await plot.boundingBox();
const at = (x, y) => [box.x + x * box.width, box.y + y * box.height];
await page.mouse.move(...at(0.5, 0.5));
check(/: [\d,.×⁻⁰-⁹]+/.test(await announcedText()), `hovering says ${await announcedText()}`);
check((await redrawnPathCount()) === 0, "the drawing is not the static one before it is touched");
await page.mouse.down();
await page.mouse.move(...at(0.8, 0.8), { steps: 4 });
await page.mouse.up();
check((await redrawnPathCount()) > 5, "dragging does not zoom");
if (json) check(!(await labels()).includes("least time"), "a mark out of sight keeps its label");
await page.screenshot({ path: path.join(out, "figure-2.png") });
await plot.press("0");
check((await redrawnPathCount()) === 0, "0 does not show all again");
await plot.press("ArrowRight");
const first = await announcedText();
await plot.press("ArrowRight");
check(first && first !== (await announcedText()), `the arrows say ${first} and ${await announcedText()}`);
const entry = page.locator(".krr-entry").first();
await entry.press("Enter");
const all = await labels();
check((await entry.getAttribute("aria-checked")) === "false" && (await redrawnPathCount()) > 5, "Enter on a name does not hide it");
if (json) check(["10¹", "10³"].every((s) => all.includes(s)), `a logarithmic axis drawn anew has ${all}`);
await entry.press("Enter");
const log = page.locator(".krr-bar button", { hasText: "log y" });
const was = await log.getAttribute("aria-pressed");
await log.click();
check((await log.getAttribute("aria-pressed")) !== was && (await redrawnPathCount()) > 5, "log y does not switch");
await page.screenshot({ path: path.join(out, "figure-3.png") });
if (json) {
  failures.push(...(await sliders(page, JSON.parse(fs.readFileSync(json)).sweeps[0].points)));
  await page.screenshot({ path: path.join(out, "figure-4.png") });
}
const staticPage = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
await staticPage.goto(pathToFileURL(file).href);
check((await staticPage.locator("figure svg text").count()) > 5 && !(await staticPage.locator(".krr-bar").count()), "without scripts there is no picture");
await staticPage.screenshot({ path: path.join(out, "figure-5.png") });
await browser.close();
for (const w of failures) console.log(`FAILED: ${path.basename(file)}: ${w}`);
if (failures.length) process.exit(1);
console.log(`ok: ${path.basename(file)} answers`);
