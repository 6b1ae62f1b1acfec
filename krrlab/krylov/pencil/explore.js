// κ(M⁻¹A) and the iterations to a residual of τ at any λ_p between two that were measured, a ≤ λ_p ≤ b. As ZZᵀ is
// positive semidefinite, M_a ≼ M ≼ (λ_p/a)M_a and (λ_p/b)M_b ≼ M ≼ M_b, so that
//
//   max(λ_max(b), (a/λ_p)λ_max(a)) ≤ λ_max ≤ min(λ_max(a), (b/λ_p)λ_max(b)),
//
// and the same of λ_min: the interval of κ follows. κ itself and the iterations are interpolated in their logarithms.
// data: p of a fixed λ_p, or sweeps of points: p, k = [κ, lower, upper], least and most = [lower, upper], r = residuals.
(data, values, number) => {
  if (data.p !== undefined) values = [data.p, ...values];
  const [p, tau, s] = values, points = data.sweeps[s === undefined ? 0 : data.sizes.indexOf(s)];
  const end = (v) => (v === null ? Infinity : v);
  const i = Math.max(points.findIndex((q) => q.p >= p), 0), b = points[i], a = b.p === p || i === 0 ? b : points[i - 1];
  const t = a === b ? 0 : Math.log(p / a.p) / Math.log(b.p / a.p), mean = (u, v) => (a === b ? u : Math.exp((1 - t) * Math.log(u) + t * Math.log(v)));
  const span = (of) => [Math.max(b[of][0], (a.p / p) * a[of][0]), Math.min(end(a[of][1]), (b.p / p) * end(b[of][1]))];
  const [least, most] = a === b ? [] : [span("least"), span("most")];
  const lo = a === b ? a.k[1] : most[0] / least[1], hi = a === b ? end(a.k[2]) : least[0] > 0 ? most[1] / least[0] : Infinity;
  const kappa = mean(end(a.k[0]), end(b.k[0]));
  const iterations = (q) => {
    const k = q.r.findIndex((r) => r <= tau);
    if (k >= 0) return k + 1;
    const root = Math.sqrt(end(q.k[0])), last = q.r.length ? q.r[q.r.length - 1] : 1;
    return q.broken || !Number.isFinite(root) ? Infinity : Math.ceil(q.r.length + Math.log(tau / last) / Math.log((root - 1) / (root + 1)));
  };
  const its = Math.round(mean(iterations(a), iterations(b))), bound = Math.ceil((Math.sqrt(hi) / 2) * Math.log(2 / tau));
  const confidence = a === b ? data.confidence : 1 - 2 * (1 - data.confidence);
  return {
    text: `${s === undefined ? "" : `s = ${s}, `}λ_p = ${number(p)}${a === b ? "" : " (between two measured)"}: κ(M⁻¹A) ≈ ${number(kappa)}, in [${number(lo)}, ${number(hi)}] with ${number(100 * confidence, 3)} %\n` +
      `τ = ${number(tau)}: ${Number.isFinite(its) ? `${its} iterations predicted` : "no prediction of iterations"}${Number.isFinite(bound) ? `, ${bound} by ⌈(√κ/2)ln(2/τ)⌉` : ""}`,
    numbers: { kappa, lo, hi, iterations: its, bound },
    at: data.p !== undefined ? [] : s === undefined ? [{ x: p, y: kappa }] : [{ x: p, y: s }, { x: p, y: s }],
  };
}
