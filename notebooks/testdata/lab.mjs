// Runs notebooks in JupyterLab in a real browser: node lab.mjs SERVER CHROMIUM OUTPUT NAME...
// All their cells run, and their figures answer; in 05_lambda_p the sliders are moved and compared with Go's numbers; in the last one
// cells are typed. playwright-core is found in the folder that NODE_MODULES names, and JupyterLab shows its app in the browser
// (--LabApp.expose_app_in_browser=True). Prints a line for each step; exits with 1 if one has failed.
import { createRequire } from "node:module";
import path from "node:path";
import { sliders } from "./sliders.mjs";

const [server, browserPath, out, ...names] = process.argv.slice(2);
const { chromium } = createRequire(path.join(process.env.NODE_MODULES, "x.js"))("playwright-core");
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 1000 } });
page.setDefaultTimeout(120000);
let name = "", shots = 0, failed = 0, thrown = [];
page.on("pageerror", (e) => thrown.push(e.message));
const step = async (what, f) => {
  let wrong = "";
  try {
    wrong = (await f()) || thrown.join("; ");
  } catch (e) {
    wrong = e.message.split("\n")[0];
  }
  thrown = [];
  await page.screenshot({ path: path.join(out, `lab-${name}-${++shots}.png`) });
  console.log(`${wrong ? "FAILED" : "ok"}: JupyterLab: ${name}: ${what}${wrong ? ": " + wrong : ""}`);
  if (wrong) failed = 1;
};
// inLab calls a function of the app, the panel in front, and an argument.
const inLab = (f, arg) => page.evaluate(([f, arg]) => {
  const app = window.jupyterapp ?? window.jupyterlab;
  return Function(`return ${f}`)()(app, app.shell.currentWidget, arg);
}, [f.toString(), arg]);
const until = async (f, arg) => {
  const end = Date.now() + 600000;
  while (!(await inLab(f, arg).catch(() => false))) {
    if (Date.now() > end) throw new Error(`waited in vain for ${f}`);
    await page.waitForTimeout(50);
  }
};
const waitUntilIdle = () => until((app, panel) => panel.sessionContext.session.kernel.status === "idle");
const waitUntilBusy = () => until((app, panel) => panel.sessionContext.session.kernel.status === "busy");
const command = (id) => inLab((app, panel, id) => void app.commands.execute(id), id);
// typeCode types code into a new cell at the end.
const typeCode = async (code) => {
  await inLab(async (app, panel) => {
    panel.content.activeCellIndex = panel.content.widgets.length - 1;
    await app.commands.execute("notebook:insert-cell-below");
    await app.commands.execute("notebook:enter-edit-mode");
    panel.content.activeCell.editor.focus();
  });
  await page.keyboard.insertText(code);
};
const waitForOutput = (text) => until((app, panel, text) => panel.content.activeCell.outputArea.node.innerText.includes(text), text);
const run = async (code, text) => {
  await typeCode(code);
  await command("notebook:run-cell");
  if (text) await waitForOutput(text);
};

for (name of names) {
  await step("opens", async () => {
    await page.goto(`${server}/lab/tree/${name}.ipynb?reset`);
    await until((app, panel, path) => panel?.context?.path === path && panel.sessionContext.session.kernel.status === "idle", name + ".ipynb");
  });
  await step("all cells run", async () => {
    await command("notebook:clear-all-cell-outputs");
    await command("notebook:run-all-cells");
    await until((app, panel) => panel.content.widgets.every((w) => w.model.type !== "code" || w.model.executionCount > 0));
    await waitUntilIdle();
    return inLab((app, panel) => panel.content.widgets.map((w) => w.model.toJSON()).filter((c) => !(c.metadata.tags ?? []).includes("raises-exception"))
      .flatMap((c) => c.outputs ?? []).filter((o) => o.output_type === "error").map((o) => `${o.ename}: ${o.evalue}`).join("; "));
  });
  const figures = page.locator("figure[data-live]", { has: page.locator(".krr-hit") });
  for (let i = 0; i < (await figures.count()); i++) await step(`figure ${i + 1} answers`, async () => {
    await figures.nth(i).locator(".krr-hit").first().press("ArrowRight");
    const said = await figures.nth(i).locator(".krr-said").first().textContent();
    return /: /.test(said) ? "" : `it says ${JSON.stringify(said)}`;
  });
  if (name === "05_lambda_p") await step("sliders", async () => {
    await run("points, err := json.Marshal(sweep.Sweeps[0].Points)\nfmt.Println(string(points), err)", "<nil>");
    const points = JSON.parse((await inLab((app, panel) => panel.content.activeCell.outputArea.node.innerText)).replace("<nil>", ""));
    return (await sliders(page.locator("figure[data-live]", { has: page.locator(".krr-sliders") }).first(), points)).join("; ");
  });
  if (name !== names.at(-1)) await inLab((app, panel) => panel.sessionContext.shutdown());
}
await step("Tab completes a field", async () => {
  await run('import "github.com/krrlab/lab/krrlab"\nm := krrlab.Config{}\nfmt.Println("made")', "made");
  await typeCode("m.MaxIte");
  await page.keyboard.press("Tab");
  await until((app, panel) => panel.content.activeCell.model.sharedModel.getSource() === "m.MaxIter");
});
await step("Shift-Tab shows the documentation", async () => {
  await typeCode("krrlab.New");
  await page.keyboard.press("Shift+Tab");
  await page.locator(".jp-Tooltip", { hasText: "New returns a Lab" }).waitFor();
  await page.keyboard.press("Escape");
});
await step("an error is told on its line", () => run("one := 1\none + \"a\"", "mismatched types"));
await step("an endless cell is interrupted", async () => {
  await run("for { }");
  await waitUntilBusy();
  await command("notebook:interrupt-kernel");
  await waitForOutput("nterrupted");
  await waitUntilIdle();
});
await step("a question is answered", async () => {
  await run('who := Input("who? ")\nfmt.Println("hello", who)');
  await page.locator(".jp-Stdin-input").fill("Lab");
  await page.keyboard.press("Enter");
  await waitForOutput("hello Lab");
});
await step("output is cleared and updated", () => run('DisplayID("a", 1)\nUpdate("a", 2)\nfmt.Println("gone")\nClear()\nfmt.Println("stays")', "stays"));
await step("a kernel restarted knows nothing", async () => {
  await inLab((app, panel) => panel.sessionContext.session.kernel.restart());
  await waitUntilIdle();
  await run("who", "undefined: who");
});
await browser.close();
process.exit(failed);
