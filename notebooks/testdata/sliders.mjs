// sliders moves the first slider of a figure, of λ_p at one s, to the points that Go has computed, and returns what differs.
export async function sliders(figure, points) {
  const slider = figure.locator(".krr-sliders input").first(), answer = figure.locator(".krr-answer"), wrong = [];
  const same = (a, b) => Math.abs(Number(a) - b) <= 1e-9 * Math.abs(b);
  for (let i = 0; i < points.length; i += 3) { // eight steps of the slider lead from one to the next
    await slider.fill(String(8 * i));
    const p = points[i], said = await answer.evaluate((e) => ({ ...e.dataset }));
    if (!same(said.kappa, p.kappa.value) || !same(said.lo, p.kappa.lo) || !same(said.hi, p.kappa.hi) || Number(said.iterations) !== p.iterations_predicted)
      wrong.push(`at λ_p = ${p.lambda_p} the sliders say ${JSON.stringify(said)}, Go κ ${JSON.stringify(p.kappa)} and ${p.iterations_predicted} iterations`);
  }
  await slider.focus();
  const before = await answer.textContent();
  await slider.press("ArrowLeft");
  if (before === (await answer.textContent())) wrong.push("an arrow key does not move the slider");
  return wrong;
}
