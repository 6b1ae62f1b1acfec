// Drives the Notebook UI in a real browser: node ui.mjs URL CHROMIUM OUTPUT.
// playwright-core is found in the folder that NODE_MODULES names. Screenshots go to OUTPUT;
// prints a line for each step and exits with 1 at the first that fails.
import { createRequire } from "node:module";
import path from "node:path";

const [url, browserPath, out] = process.argv.slice(2);
const { chromium } = createRequire(path.join(process.env.NODE_MODULES, "x.js"))("playwright-core");

const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 1000 } });
page.setDefaultTimeout(120000);
let shots = 0;
const step = async (name, f) => {
  try {
    await f();
  } catch (e) {
    await page.screenshot({ path: path.join(out, "ui-failed.png") });
    console.log(`FAILED: ${name}: ${e.message.split("\n")[0]}`);
    await browser.close();
    process.exit(1);
  }
  shots++;
  await page.screenshot({ path: path.join(out, `ui-${shots}.png`) });
  console.log(`ok: ${name}`);
};
const waitUntilIdle = () => page.waitForFunction(() => window.Jupyter?.notebook?.kernel?.is_connected() && !window.Jupyter.notebook.kernel_busy);
// typeCode puts code into a new cell at the end and leaves the cursor behind it.
const typeCode = async (code) => {
  await page.evaluate((code) => {
    const nb = window.Jupyter.notebook;
    const cell = nb.insert_cell_at_bottom("code");
    nb.select(nb.ncells() - 1);
    nb.edit_mode();
    cell.set_text(code);
    cell.code_mirror.focus();
    cell.code_mirror.execCommand("goDocEnd");
    cell.element[0].scrollIntoView({ block: "center" });
  }, code);
};
const waitForOutput = (text) => page.waitForFunction((text) => {
  const nb = window.Jupyter.notebook;
  return nb.get_cell(nb.ncells() - 1).output_area.element[0].innerText.includes(text);
}, text);

await step("the notebook opens and its kernel is ready", async () => {
  await page.goto(url);
  await waitUntilIdle();
});
await step("all cells run", async () => {
  await page.evaluate(() => window.Jupyter.notebook.execute_all_cells());
  await page.waitForFunction(() => {
    const cells = window.Jupyter.notebook.get_cells().filter((c) => c.cell_type === "code");
    return cells.every((c) => typeof c.input_prompt_number === "number");
  });
  if (await page.locator(".output_error").count()) throw new Error("a cell failed");
});
await step("tabs are blank", async () => {
  const image = await page.locator(".cm-tab").first().evaluate((tab) => getComputedStyle(tab).backgroundImage);
  if (image !== "none") throw new Error(`a tab has the background ${image}`);
});
await step("a figure is seen", async () => {
  const svg = page.locator(".output_svg svg, .output_html svg").first();
  await svg.scrollIntoViewIfNeeded();
  const box = await svg.boundingBox();
  if (!box || box.width < 200 || box.height < 100) throw new Error("no figure of a size to be seen");
});
await step("a table is seen", async () => {
  const table = page.locator(".output_html table").last();
  await table.scrollIntoViewIfNeeded();
  if (!(await table.innerText()).includes("iterations")) throw new Error("the table is another");
});
await step("Tab completes a field", async () => {
  await typeCode("sol.Iterat");
  await page.keyboard.press("Tab");
  await page.waitForFunction(() => {
    const nb = window.Jupyter.notebook;
    return document.querySelector("#complete, .completions") || nb.get_cell(nb.ncells() - 1).get_text().startsWith("sol.Iterations");
  });
});
await step("Shift-Tab shows the documentation", async () => {
  await page.keyboard.press("Escape");
  await typeCode("krrlab.New");
  await page.keyboard.press("Shift+Tab");
  await page.waitForFunction(() => document.querySelector(".tooltip, #tooltip")?.innerText.includes("New returns a Lab"));
});
await step("an endless cell is interrupted", async () => {
  await page.keyboard.press("Escape");
  await typeCode("for { }");
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => window.Jupyter.notebook.kernel_busy);
  await page.evaluate(() => window.Jupyter.notebook.kernel.interrupt());
  await waitUntilIdle();
  await waitForOutput("interrupted");
});
await step("an interrupt drops the cells that wait", async () => {
  await typeCode("time.Sleep(time.Hour)\nreached := 1");
  await page.keyboard.press("Control+Enter");
  await typeCode("waited := 2");
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => window.Jupyter.notebook.kernel_busy);
  await page.evaluate(() => window.Jupyter.notebook.kernel.interrupt());
  await waitUntilIdle();
  await typeCode("waited == 2");
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => {
    const nb = window.Jupyter.notebook;
    return nb.get_cell(nb.ncells() - 1).output_area.element[0].innerText.includes("undefined: waited");
  });
});
await step("a solution shows its report and its picture", async () => {
  await typeCode("sol");
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => {
    const nb = window.Jupyter.notebook;
    const out = nb.get_cell(nb.ncells() - 1).output_area.element[0];
    const svg = out.querySelector("figure[data-live] svg");
    return out.innerText.includes("converged") && svg && svg.getBoundingClientRect().width > 200;
  });
});
await step("the picture answers", async () => {
  const plot = page.locator("figure[data-live] .krr-hit").last();
  await plot.scrollIntoViewIfNeeded();
  await plot.hover();
  await page.waitForFunction(() => [...document.querySelectorAll(".krr-said")].some((e) => e.textContent.includes("iteration: ")));
  await plot.press("+");
  if (!(await page.locator(".krr-drawn path:not(.krr-at *)").count())) throw new Error("+ does not zoom");
});
await step("the session goes on", async () => {
  await typeCode("sol.Iterations > 0");
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => {
    const nb = window.Jupyter.notebook;
    return nb.get_cell(nb.ncells() - 1).output_area.element[0].innerText.includes("true");
  });
});
await browser.close();
