// This function estimates κ(M⁻¹A) and the iterations to a residual of τ for M = ZZᵀ+λ_pI at any λ_p between two measured
// values a ≤ λ_p ≤ b. ZZᵀ is positive semidefinite, so M_a ≼ M ≼ (λ_p/a)M_a and (λ_p/b)M_b ≼ M ≼ M_b, and therefore
//
//   max(λ_max(b), (a/λ_p)λ_max(a)) ≤ λ_max ≤ min(λ_max(a), (b/λ_p)λ_max(b)).
//
// The same holds for λ_min, and the interval of κ follows. The logarithms of κ and of the iterations are interpolated.
//
// data has p for a fixed λ_p, and sweeps, one list of points for each s in sizes, ascending in λ_p. A point has
// p = λ_p, k = [κ, lower, upper], least and most = [lower, upper] of λ_min and λ_max, r = residuals, and broken if the
// iterations cannot be predicted. values are those of the sliders λ_p (unless fixed), τ and s. The result has the text
// below the figure, its numbers, and the points to mark.
(data, values, number) => {
  if (data.p !== undefined) values = [data.p, ...values];
  const [p, tau, s] = values, points = data.sweeps[s === undefined ? 0 : data.sizes.indexOf(s)];
  const finiteOr = (v) => (v === null ? Infinity : v);
  const next = Math.max(points.findIndex((point) => point.p >= p), 0), b = points[next];
  const a = b.p === p || next === 0 ? b : points[next - 1], measured = a === b;
  const position = measured ? 0 : Math.log(p / a.p) / Math.log(b.p / a.p);
  const interpolate = (u, v) => (measured ? u : Math.exp((1 - position) * Math.log(u) + position * Math.log(v)));
  const interval = (end) => [
    Math.max(b[end][0], (a.p / p) * a[end][0]),
    Math.min(finiteOr(a[end][1]), (b.p / p) * finiteOr(b[end][1])),
  ];
  const [min, max] = measured ? [] : [interval("least"), interval("most")];
  const lower = measured ? a.k[1] : max[0] / min[1];
  const upper = measured ? finiteOr(a.k[2]) : min[0] > 0 ? max[1] / min[0] : Infinity;
  const kappa = interpolate(finiteOr(a.k[0]), finiteOr(b.k[0]));
  const iterationsAt = (point) => {
    const k = point.r.findIndex((residual) => residual <= tau);
    if (k >= 0) return k + 1;
    const root = Math.sqrt(finiteOr(point.k[0])), last = point.r.length ? point.r[point.r.length - 1] : 1;
    if (point.broken || !Number.isFinite(root)) return Infinity;
    return Math.ceil(point.r.length + Math.log(tau / last) / Math.log((root - 1) / (root + 1)));
  };
  const iterations = Math.round(interpolate(iterationsAt(a), iterationsAt(b)));
  const bound = Math.ceil((Math.sqrt(upper) / 2) * Math.log(2 / tau));
  const confidence = measured ? data.confidence : 1 - 2 * (1 - data.confidence);
  return {
    text: `${s === undefined ? "" : `s = ${s}, `}λ_p = ${number(p)}${measured ? "" : " (between two measured)"}: κ(M⁻¹A) ≈ ${number(kappa)}, in [${number(lower)}, ${number(upper)}] with ${number(100 * confidence, 3)} %\n` +
      `τ = ${number(tau)}: ${Number.isFinite(iterations) ? `${iterations} iterations predicted` : "no prediction of iterations"}${Number.isFinite(bound) ? `, ${bound} by ⌈(√κ/2)ln(2/τ)⌉` : ""}`,
    numbers: { kappa, lo: lower, hi: upper, iterations, bound },
    at: data.p !== undefined ? [] : s === undefined ? [{ x: p, y: kappa }] : [{ x: p, y: s }, { x: p, y: s }],
  };
}
