// Uses the panels of a notebook in a real browser, Notebook 6 with its widgets: node panels.mjs URL CHROMIUM OUTPUT.
// playwright-core is found in the folder that NODE_MODULES names. Screenshots go to OUTPUT; prints a line for each step
// and exits with 1 at the first that fails.
import { createRequire } from "node:module";
import path from "node:path";

const [url, browserPath, out] = process.argv.slice(2);
const { chromium } = createRequire(path.join(process.env.NODE_MODULES, "x.js"))("playwright-core");
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 1150 } });
page.setDefaultTimeout(60000);
const wrong = [];
page.on("pageerror", (e) => wrong.push(e.message));
page.on("console", (m) => m.type() === "error" && /krrlab|widget|comm/i.test(m.text()) && wrong.push(m.text()));
page.on("dialog", (d) => d.accept());
let shots = 0;
const step = async (name, f) => {
  let said = "", failed = "";
  try {
    said = (await f()) ?? "";
    failed = wrong.join("; ");
  } catch (e) {
    failed = e.message.split("\n")[0];
  }
  await page.screenshot({ path: path.join(out, `panels-${++shots}.png`) });
  console.log(failed ? `FAILED: panels: ${name}: ${failed}` : `ok: panels: ${name}${said && ": " + said}`);
  if (!failed) return;
  await browser.close();
  process.exit(1);
};
const ready = () => page.waitForFunction(() => window.Jupyter?.notebook?.kernel?.is_connected() && window.Jupyter.notebook.kernel.widget_manager && !window.Jupyter.notebook.kernel_busy);
const indexOf = (code) => page.evaluate((code) => window.Jupyter.notebook.get_cells().findIndex((c) => c.get_text().startsWith(code)), code);
const run = async (code) => {
  const i = await indexOf(code);
  await page.evaluate((i) => window.Jupyter.notebook.execute_cells([i]), i);
  await page.waitForFunction((i) => typeof window.Jupyter.notebook.get_cell(i).input_prompt_number === "number", i);
  await ready();
};
// panel returns the controls of the cell that begins with code, and its result.
const panel = async (code) => page.locator("#notebook-container > .cell").nth(await indexOf(code)).locator(".widget-area");
const control = (p, label) => p.locator(".widget-inline-hbox", { has: page.locator(".widget-label", { hasText: new RegExp(`^${label}$`) }) }).first();
const number = async (p, name) => {
  const m = new RegExp(`(?:${name})\\s+(.*)`).exec(await p.innerText());
  return m ? m[1].trim() : "";
};
const picture = (p) => p.locator("figure").first().innerHTML();
const until = async (f, what) => {
  for (const end = Date.now() + 60000; Date.now() < end; await page.waitForTimeout(10)) if (await f()) return;
  throw new Error(`waited in vain: ${what}`);
};
// drag moves a slider to a share of its width and waits until κ, the iterations and the picture are others.
const drag = async (p, label, share) => {
  const slider = control(p, label).locator(".slider");
  await slider.scrollIntoViewIfNeeded();
  const before = [await number(p, "κ\\(M⁻¹A\\)"), await number(p, "iterations|result"), await picture(p)];
  const box = await slider.boundingBox(), handle = await slider.locator(".ui-slider-handle").boundingBox();
  await page.mouse.move(handle.x + handle.width / 2, handle.y + handle.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + share * box.width, box.y + box.height / 2, { steps: 12 });
  const start = Date.now();
  await page.mouse.up();
  await until(async () => (await number(p, "κ\\(M⁻¹A\\)")) !== before[0] && (await picture(p)) !== before[2] && !/running/.test(await p.innerText()), "another κ");
  const readout = await control(p, label).innerText();
  return `${readout.replace(/\s+/g, " ")}: κ ${before[0]} → ${await number(p, "κ\\(M⁻¹A\\)")}, iterations ${before[1]} → ${await number(p, "iterations|result")}, ${Date.now() - start} ms`;
};

await step("the notebook opens", async () => {
  await page.goto(url);
  await ready();
});
const first = "Explore(lab, quality", second = "Explore(lab)";
await step("a panel is seen", async () => {
  await run("n := ");
  await run("train := ");
  await run(first);
  const p = await panel(first);
  await p.locator("figure").first().waitFor();
  for (const label of ["s", "λ_p", "preconditioner", "confidence"]) await control(p, label).waitFor();
  if (await page.locator(".krr-static:visible").count()) throw new Error("the static picture is seen beside the panel");
});
await step("s is dragged", async () => drag(await panel(first), "s", 0.1));
await step("λ_p is dragged", async () => drag(await panel(first), "λ_p", 0.75));
await step("another kind", async () => {
  const p = await panel(first), before = await number(p, "κ\\(M⁻¹A\\)");
  await control(p, "preconditioner").locator("select").selectOption("nystrom");
  await until(async () => (await number(p, "κ\\(M⁻¹A\\)")) !== before && /Nystrom\{/.test(await p.textContent()), "Nyström");
});
await step("two panels", async () => {
  await run(second);
  const wide = await (await panel(second)).evaluate((area) => [...area.querySelectorAll("pre")].filter((e) =>
    e.getBoundingClientRect().right > area.closest(".cell").getBoundingClientRect().right).length);
  if (wide) throw new Error("a text is wider than its cell");
  const kept = await number(await panel(first), "κ\\(M⁻¹A\\)");
  const said = await drag(await panel(second), "s", 0.6);
  if (kept !== (await number(await panel(first), "κ\\(M⁻¹A\\)"))) throw new Error("the other panel has changed");
  return said;
});
const waiting = "// a panel that waits";
await step("an interrupt ends a run", async () => {
  await page.evaluate((code) => window.Jupyter.notebook.insert_cell_at_bottom("code").set_text(code), `${waiting}
Explore(func(ctx context.Context, o struct {
	N int \`flag:"n" default:"1" check:"[1,9]"\`
}) (string, error) {
	if o.N > 1 { <-ctx.Done() }
	return fmt.Sprint("n is ", o.N), ctx.Err()
})`);
  await run(waiting);
  const p = await panel(waiting);
  await until(async () => /n is 1/.test(await p.innerText()), "n is 1");
  for (const end of [() => page.evaluate(() => window.Jupyter.notebook.kernel.interrupt()), () => p.getByText("Stop").click()]) {
    const slider = control(p, "n").locator(".ui-slider-handle");
    await slider.focus();
    await page.keyboard.press("ArrowRight");
    await until(async () => /running/.test(await p.innerText()), "running");
    await end();
    await until(async () => /partial result/.test(await p.innerText()), "a partial result");
  }
  await ready();
});
await step("the page is loaded again", async () => {
  let p = await panel(first);
  const state = async () => [await control(p, "preconditioner").locator("select").inputValue(), await control(p, "λ_p").innerText(), await number(p, "κ\\(M⁻¹A\\)")].join(" | ");
  const before = await state();
  await page.evaluate(() => window.Jupyter.notebook.save_notebook());
  await page.waitForFunction(() => !window.Jupyter.notebook.dirty);
  await page.reload();
  await ready();
  p = await panel(first);
  await p.locator("figure").first().waitFor();
  if (before !== (await state())) throw new Error(`before ${before}, now ${await state()}`);
  await control(p, "preconditioner").locator("select").selectOption("features");
  await until(async () => /Features\{|quality\.Options/.test(await p.textContent()) && !before.endsWith(await number(p, "κ\\(M⁻¹A\\)")), "another κ");
  return before;
});
await step("the saved notebook shows the result without a kernel", async () => {
  await page.evaluate(() => window.Jupyter.notebook.save_notebook());
  await page.evaluate(() => window.Jupyter.notebook.session.delete());
  await page.reload();
  await page.locator(".krr-static", { hasText: "need a running kernel" }).first().waitFor();
  await page.locator(".krr-static figure").first().waitFor();
});
await browser.close();
