// This script makes the figures of package plots interactive: it shows values on hover, zooms, hides series, switches to
// logarithmic axes, and runs sliders. Each figure contains its drawing, which is complete without this script, and its
// data as JSON. The script needs no library and no network. If a browser forbids something, the drawing remains as it is.
(() => {
  "use strict";
  const element = (parent, name, attributes, text) => {
    const e = document.createElementNS(parent.namespaceURI, name);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    if (text !== undefined) e.textContent = text;
    parent.append(e);
    return e;
  };
  const clamp = (v, lo, hi) => Math.min(Math.max(v, lo), hi);
  const superscript = (n) => String(n).replace(/./g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
  // number formats v with about four significant digits: 1,234; 0.0123; 1.5×10⁻⁷.
  const number = (v, digits = 4) => {
    if (v === null || Number.isNaN(v)) return "–";
    if (!Number.isFinite(v)) return v > 0 ? "∞" : "−∞";
    const a = Math.abs(v);
    let s;
    if (v === 0 || (a >= 1e-3 && a < 1e6)) {
      s = Number.isInteger(v) ? String(a) : String(Number(a.toPrecision(a >= 1000 ? Math.max(digits, 5) : digits)));
      if (a >= 1e4) s = s.replace(/^\d+/, (w) => w.replace(/\B(?=(\d{3})+$)/g, ","));
    } else {
      const [m, p] = a.toExponential(digits - 1).split("e");
      s = (Number(m) === 1 ? "" : Number(m) + "×") + "10" + superscript(Number(p));
    }
    return (v < 0 ? "−" : "") + s;
  };
  // ticks returns about n round values of an axis from lo to hi.
  const ticks = (lo, hi, log, n) => {
    const out = [];
    if (log && hi / lo >= 4) {
      const decades = Math.log10(hi / lo), every = Math.max(1, Math.ceil(decades / n));
      for (let p = Math.floor(Math.log10(lo)); p <= Math.log10(hi); p++) {
        if (p % every === 0) for (const m of decades < 2 ? [1, 2, 5] : [1]) out.push(m * 10 ** p);
      }
    } else {
      const raw = (hi - lo) / n, unit = 10 ** Math.floor(Math.log10(raw));
      const step = unit * [1, 2, 5, 10].find((m) => m * unit >= raw * 0.999);
      for (let k = Math.ceil(lo / step); k * step <= hi; k++) out.push(k * step);
    }
    return out.filter((v) => v >= lo && v <= hi);
  };

  // Panel is one plot with its axes. spec contains its data, as plotData and seriesData of package draw write them, and
  // drawing contains the groups of its static drawing. In the methods, k is "x" or "y" and names an axis. [l, b, r, t] are
  // the left, bottom, right and top sides of the box. A series s has the name s.n, the style s.s, the color s.c, the dashes
  // s.d and the marker s.m. Coordinates are those of the SVG: points, with y downward.
  class Panel {
    constructor(figure, spec, drawing) {
      Object.assign(this, { figure, spec, drawing, box: spec.box });
      this.home = this.copy(spec);
      this.reset();
      if (spec.map) { // its cells are samples of three values
        const { x, y, z } = spec.map, at = (f) => z.flatMap((row, i) => row.map((v, j) => f(i, j)));
        spec.series.push({ n: spec.map.label, s: "cells", x: at((i, j) => x[j]), y: at((i, j) => y[i]), z: z.flat() });
      }
      const over = element(drawing[1].parentNode, "g", { transform: "scale(1,-1)" });
      drawing[1].after(over);
      const [l, b, r, t] = this.box, rect = { x: l, y: -t, width: r - l, height: t - b };
      const clip = "krr" + Math.random().toString(36).slice(2);
      element(element(over, "clipPath", { id: clip }), "rect", rect);
      this.drawn = element(over, "g", { class: "krr-drawn" });
      this.clip = `url(#${clip})`;
      this.hit = element(over, "rect", { ...rect, fill: "transparent", tabindex: 0, role: "application", class: "krr-hit", "aria-label": "plot" + (spec.y.label ? " of " + spec.y.label : "") + (spec.x.label ? " against " + spec.x.label : "") + ": arrows go from value to value, plus and minus zoom, Shift and arrows move, 0 shows all" });
      this.selection = element(over, "rect", { fill: "#0072B2", "fill-opacity": 0.12, stroke: "#0072B2", "pointer-events": "none", visibility: "hidden" });
      this.listen();
    }
    copy(v) { return { x: { ...v.x }, y: { ...v.y } }; }
    reset() { this.view = this.copy(this.home); }
    // to maps a value of the axis k to a coordinate. from is the inverse function. Results are limited to ±10,000 points,
    // far outside the plot.
    to(k, v) {
      const a = this.view[k], t = a.log ? Math.log : (u) => u, [p, q] = k === "x" ? [this.box[0], this.box[2]] : [-this.box[1], -this.box[3]];
      if (a.log && v <= 0) return k === "x" ? -1e4 : 1e4;
      return clamp(p + ((t(v) - t(a.min)) / (t(a.max) - t(a.min))) * (q - p), -1e4, 1e4);
    }
    from(k, at) {
      const a = this.view[k], [p, q] = k === "x" ? [this.box[0], this.box[2]] : [-this.box[1], -this.box[3]], u = (at - p) / (q - p);
      return a.log ? a.min * (a.max / a.min) ** u : a.min + u * (a.max - a.min);
    }
    shows(k, v) { return v !== null && Number.isFinite(v) && (!this.view[k].log || v > 0); }
    inside(x, y) { const [l, b, r, t] = this.box; return x >= l - 1 && x <= r + 1 && y <= -b + 1 && y >= -t - 1; }
    // extent returns the ends of an axis that show all values with a margin, or null if there are no values.
    extent(k) {
      const log = this.view[k].log;
      let lo = Infinity, hi = -Infinity;
      for (const s of this.spec.series) {
        if (this.figure.off.has(s.n)) continue;
        for (const v of s[k]) if (this.shows(k, v)) [lo, hi] = [Math.min(lo, v), Math.max(hi, v)];
      }
      for (const [v] of this.spec[k === "x" ? "v" : "h"]) if (this.shows(k, v)) [lo, hi] = [Math.min(lo, v), Math.max(hi, v)];
      if (lo > hi) return null;
      if (lo === hi) return log ? [lo / 2, hi * 2] : [lo - (Math.abs(lo) || 1) / 2, hi + (Math.abs(hi) || 1) / 2];
      const pad = log ? (hi / lo) ** 0.04 : (hi - lo) * 0.04;
      return log ? [lo / pad, hi * pad] : [lo - pad, hi + pad];
    }
    // setLog makes the axis k logarithmic or linear. It does nothing if a logarithmic axis would show no value.
    setLog(k, log) {
      const a = this.view[k];
      if (log === this.home[k].log) return void Object.assign(a, this.home[k]);
      a.log = log;
      const ends = this.extent(k);
      if (!ends) return void (a.log = !log);
      [a.min, a.max] = ends;
    }
    // range makes the axis k show the values between two coordinates, unless they are too close to be distinguished.
    range(k, p, q) {
      const [lo, hi] = [this.from(k, p), this.from(k, q)].sort((a, b) => a - b);
      if (Number.isFinite(lo) && Number.isFinite(hi) && (!this.view[k].log || lo > 0) && hi - lo > 1e-12 * Math.max(Math.abs(lo), Math.abs(hi))) Object.assign(this.view[k], { min: lo, max: hi });
    }
    // zoom multiplies the shown lengths by a factor. The point (x, y) keeps its place.
    zoom(by, x, y) {
      if (this.spec.fixed) return;
      const [l, b, r, t] = this.box;
      this.range("x", x - (x - l) * by, x + (r - x) * by);
      this.range("y", y - (y + b) * by, y + (-t - y) * by);
      this.figure.changed(this);
    }
    // move shifts the shown part of the plot by a distance.
    move(dx, dy) {
      if (this.spec.fixed) return;
      const [l, b, r, t] = this.box;
      this.range("x", l + dx, r + dx);
      this.range("y", -b + dy, -t + dy);
      this.figure.changed(this);
    }
    // same reports whether the view is that of the static drawing.
    same() { return ["x", "y"].every((k) => ["log", "min", "max"].every((p) => this.view[k][p] === this.home[k][p])); }

    // draw shows the static drawing if the view is unchanged, and otherwise draws the plot again.
    draw() {
      const off = this.spec.series.some((s) => this.figure.off.has(s.n));
      this.drawn.replaceChildren();
      const still = this.spec.fixed || (this.same() && !off);
      for (const g of this.drawing) g.style.display = still ? "" : "none";
      if (!still) this.drawAll();
      if (this.at) this.drawAt();
    }
    // drawAll draws the plot in its present view, in the style of the static drawing.
    drawAll() {
      const g = this.drawn, [l, b, r, t] = this.box;
      for (const k of ["x", "y"]) {
        const a = this.view[k], n = k === "x" ? (r - l) / 62 : (t - b) / 26;
        const all = ticks(a.min, a.max, a.log, clamp(Math.floor(n), 2, 7));
        const digits = all.length > 1 ? clamp(Math.ceil(Math.log10(Math.max(...all.map(Math.abs)) / (all[1] - all[0]))) + 1, 4, 12) : 6;
        const powers = a.log && all.length > 1 && all.every((v) => Number.isInteger(Math.log10(v)));
        const write = (v) => (powers ? "10" + superscript(Math.log10(v)) : number(v, digits)); // as the static drawing does
        for (const v of all) {
          const at = this.to(k, v), x = k === "x";
          element(g, "path", { d: x ? `M${at},${-b}V${-t}` : `M${l},${at}H${r}`, stroke: "#E4E4E4", "stroke-width": 0.6 });
          element(g, "path", { d: x ? `M${at},${-b}v4` : `M${l},${at}h-4`, stroke: "#555", "stroke-width": 0.8 });
          if (x && this.spec.hideX) continue;
          const label = this.text(g, x ? at : l - 7, x ? -b + 13.5 : at + 3.3, write(v), x ? "middle" : "end", 9.5);
          const room = l - 7 - (this.spec.y.label ? 24 : 4);
          const wide = () => (x ? 0 : label.getComputedTextLength());
          if (!powers && wide() > room && Math.abs(v) >= 1000) {
            const [unit, letter] = Math.max(...all.map(Math.abs)) >= 1e6 ? [1e6, "M"] : [1e3, "k"];
            label.textContent = number(v / unit, digits) + letter;
          }
          if (wide() > room) label.setAttribute("font-size", Math.max(6, (9.5 * room) / wide()));
        }
      }
      element(g, "path", { d: `M${l},${-t}V${-b}H${r}`, fill: "none", stroke: "#555", "stroke-width": 0.8 });
      const data = element(g, "g", { "clip-path": this.clip });
      const shown = this.spec.series.filter((s) => !this.figure.off.has(s.n));
      for (const s of shown) if (s.lo && s.s !== "points") this.band(data, s);
      for (const [k, lines] of [["y", this.spec.h], ["x", this.spec.v]]) {
        for (const [v, label] of lines) if (this.shows(k, v)) this.rule(data, k, this.to(k, v), label);
      }
      for (const s of shown) this.series(data, s);
      for (const [x, y, label] of this.spec.marks) {
        if (!this.shows("x", x) || !this.shows("y", y) || !this.inside(this.to("x", x), this.to("y", y))) continue;
        element(data, "circle", { cx: this.to("x", x), cy: this.to("y", y), r: 5.1, fill: "none", stroke: "#222", "stroke-width": 1.4 });
        this.text(data, this.to("x", x) + 8, this.to("y", y) - 6, label, "start", 9);
      }
    }
    // text adds a text s to the group g.
    text(g, x, y, s, anchor, size) {
      return element(g, "text", { x, y, "text-anchor": anchor, "font-size": size, fill: "#222", "font-family": "'Liberation Sans',Arial,Helvetica,sans-serif" }, s);
    }
    // rule draws a reference line at a coordinate of the axis k.
    rule(g, k, at, label) {
      const [l, b, r, t] = this.box, x = k === "x";
      element(g, "path", { d: x ? `M${at},${-b}V${-t}` : `M${l},${at}H${r}`, stroke: "#555", "stroke-dasharray": "4 3" });
      const e = this.text(g, x ? at - 3 : r - 4, x ? -t + 4 : at - 3, label, "end", 9);
      if (x) e.setAttribute("transform", `rotate(-90 ${at - 3} ${-t + 4})`);
    }
    // runs returns the pieces of a series between the values that the axes cannot show. y returns the coordinate of sample i.
    runs(s, y) {
      const out = [];
      let run = null, last = 0;
      s.x.forEach((x, i) => {
        const v = y(i);
        if (!this.shows("x", x) || v === null) return void (run = null);
        if (!run) out.push((run = []));
        const px = this.to("x", x);
        if (s.s === "steps" && run.length) run.push([px, last]);
        run.push([px, (last = v)]);
      });
      return out;
    }
    // end returns the coordinate of the lower or upper end of an interval. An end that the axis cannot show is far outside.
    end(v, upper) { return this.shows("y", v) ? this.to("y", v) : upper && v > 0 ? -1e4 : 1e4; }
    // band draws the shaded area between the lower and the upper ends of a series.
    band(g, s) {
      const has = (i) => s.lo[i] !== null && s.hi[i] !== null;
      const lo = this.runs(s, (i) => (has(i) ? this.end(s.lo[i], false) : null)), hi = this.runs(s, (i) => (has(i) ? this.end(s.hi[i], true) : null));
      lo.forEach((run, k) => element(g, "path", { d: "M" + run.concat(hi[k].reverse()).join("L") + "Z", fill: s.c, "fill-opacity": 0.2 }));
    }
    // series draws the line, the error bars and the markers of a series.
    series(g, s) {
      if (s.s === "cells") return;
      const places = this.runs(s, (i) => (this.shows("y", s.y[i]) ? this.to("y", s.y[i]) : null));
      if (s.s !== "points") {
        for (const run of places) element(g, "path", { d: "M" + run.join("L"), fill: "none", stroke: s.c, "stroke-width": 1.6, "stroke-dasharray": s.d });
      } else if (s.lo) {
        s.x.forEach((x, i) => {
          if (!this.shows("x", x) || s.lo[i] === null || s.hi[i] === null) return;
          const at = this.to("x", x), lo = this.end(s.lo[i], false), hi = this.end(s.hi[i], true);
          element(g, "path", { d: `M${at},${lo}V${hi}M${at - 3},${lo}h6M${at - 3},${hi}h6`, stroke: s.c });
        });
      }
      const [l, , r] = this.box, seen = places.flat().filter(([x]) => x >= l && x <= r);
      if (s.s === "points" || (s.s === "line" && seen.length <= 40)) {
        for (const [x, y] of seen) element(g, "path", { d: s.m, transform: `translate(${x},${y})`, fill: s.c, stroke: "#fff", "stroke-width": 0.6 });
      }
    }
    // drawAt marks the point that the sliders have chosen.
    drawAt() {
      const [l, b, r, t] = this.box, { x, y } = this.at, g = element(this.drawn, "g", { "clip-path": this.clip, class: "krr-at" });
      const px = this.to("x", x);
      element(g, "path", { d: `M${px},${-b}V${-t}`, stroke: "#D55E00", "stroke-width": 1.2 });
      if (y !== undefined && this.shows("y", y)) element(g, "circle", { cx: px, cy: this.to("y", y), r: 4.5, fill: "#D55E00", stroke: "#fff" });
    }

    // near returns the visible sample nearest to a point, or null.
    near(x, y) {
      let best = null, least = Infinity;
      this.spec.series.forEach((s, k) => {
        if (this.figure.off.has(s.n)) return;
        s.x.forEach((v, i) => {
          if (!this.shows("x", v) || !this.shows("y", s.y[i])) return;
          const px = this.to("x", v), py = this.to("y", s.y[i]), d = Math.hypot(px - x, py - y);
          if (d < least && this.inside(px, py)) [best, least] = [{ k, i, x: px, y: py }, d];
        });
      });
      return best;
    }
    // step shows the next sample of the series (dx = ±1), or the nearest sample of the next series (dy = ±1).
    step(dx, dy) {
      const all = this.spec.series, now = this.now || this.near(this.box[0], -this.box[3]);
      if (!now) return;
      if (!this.now) return this.show(now);
      const seen = (k, i) => {
        const s = all[k];
        if (this.figure.off.has(s.n) || !this.shows("x", s.x[i]) || !this.shows("y", s.y[i])) return null;
        const p = { k, i, x: this.to("x", s.x[i]), y: this.to("y", s.y[i]) };
        return this.inside(p.x, p.y) ? p : null;
      };
      if (dx) for (let i = now.i + dx; i >= 0 && i < all[now.k].x.length; i += dx) { const p = seen(now.k, i); if (p) return this.show(p); }
      if (dy) for (let n = 1; n <= all.length; n++) {
        const k = (now.k + dy * n + n * all.length) % all.length;
        const found = all[k].x.map((_, i) => seen(k, i)).filter((p) => p).sort((a, b) => Math.abs(a.x - now.x) - Math.abs(b.x - now.x))[0];
        if (found && k !== now.k) return this.show(found);
      }
    }
    // show shows the values of a sample, or nothing if p is null. p has the indices of its series (k) and of the sample (i).
    show(p) {
      this.now = p;
      if (!p) return this.figure.tip(null);
      const s = this.spec.series[p.k], lines = s.n && s.s !== "cells" ? [s.n] : [];
      const write = (k) => {
        const a = this.spec[k], v = s[k][p.i];
        let t = `${a.label || k}: ${(a.names && a.names[a.ticks.indexOf(v)]) ?? number(v)}`;
        if ((s.s === "bars") === (k === "x") && s.lo && s.lo[p.i] !== null && s.hi[p.i] !== null && s.lo[p.i] !== s.hi[p.i]) t += ` in [${number(s.lo[p.i])}, ${number(s.hi[p.i])}]`;
        return t;
      };
      lines.push(write("x"), write("y"));
      if (s.z) lines.push(`${s.n || "value"}: ${number(s.z[p.i])}`);
      this.figure.tip(this, p, lines);
    }
    // place returns the coordinates of a pointer event.
    place(e) {
      const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(this.hit.getScreenCTM().inverse());
      return [p.x, p.y];
    }
    // listen installs the handlers of pointer, wheel and keys.
    listen() {
      const h = this.hit, fixed = this.spec.fixed;
      let from = null;
      h.addEventListener("pointermove", (e) => {
        const [x, y] = this.place(e);
        if (!from) return this.show(this.near(x, y));
        if (e.shiftKey) {
          this.move(from[0] - x, from[1] - y);
          return void (from = this.place(e));
        }
        const a = { x: Math.min(x, from[0]), y: Math.min(y, from[1]), width: Math.abs(x - from[0]), height: Math.abs(y - from[1]), visibility: "visible" };
        for (const k in a) this.selection.setAttribute(k, a[k]);
      });
      h.addEventListener("pointerleave", () => from || this.show(null));
      h.addEventListener("pointerdown", (e) => {
        if (e.button || e.pointerType === "touch" || fixed) return;
        from = this.place(e);
        h.setPointerCapture(e.pointerId);
        this.show(null);
      });
      h.addEventListener("pointerup", (e) => {
        if (!from) return;
        const to = this.place(e), [l, b, r, t] = this.box, start = from;
        from = null;
        this.selection.setAttribute("visibility", "hidden");
        if (e.shiftKey || Math.hypot(to[0] - start[0], to[1] - start[1]) < 6) return;
        const wide = Math.abs(to[0] - start[0]), high = Math.abs(to[1] - start[1]);
        if (wide > 4) this.range("x", clamp(start[0], l, r), clamp(to[0], l, r));
        if (high > 4) this.range("y", clamp(start[1], -t, -b), clamp(to[1], -t, -b));
        this.figure.changed(this);
      });
      h.addEventListener("dblclick", () => this.figure.all());
      h.addEventListener("wheel", (e) => {
        if (fixed || (!e.ctrlKey && document.activeElement !== h)) return; // the page scrolls on
        e.preventDefault();
        this.zoom(e.deltaY < 0 ? 0.8 : 1.25, ...this.place(e));
      }, { passive: false });
      h.addEventListener("blur", () => this.show(null));
      h.addEventListener("keydown", (e) => {
        const [l, b, r, t] = this.box, arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
        if (e.ctrlKey || e.metaKey || e.altKey) return;
        if (arrow && e.shiftKey) this.move(arrow[0] * (r - l) / 10, arrow[1] * (t - b) / 10);
        else if (arrow) this.step(...arrow);
        else if (e.key === "+" || e.key === "-") this.zoom(e.key === "+" ? 0.8 : 1.25, (l + r) / 2, -(b + t) / 2);
        else if (e.key === "0" || e.key === "Escape") this.figure.all();
        else return;
        e.preventDefault();
        e.stopPropagation();
      });
    }
  }

  // Figure is a drawing with its panels, legend, buttons and sliders.
  class Figure {
    constructor(root, data) {
      let svg = root.querySelector("svg");
      const img = root.querySelector("img");
      if (!svg) { // a notebook has the drawing as an image
        const text = new TextDecoder().decode(Uint8Array.from(atob(img.src.split(",")[1]), (c) => c.charCodeAt(0)));
        svg = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
        svg.setAttribute("style", "max-width:100%;height:auto");
        img.replaceWith(svg);
      }
      this.svg = svg;
      this.data = data;
      this.off = new Set();
      // The title element would cover the values as a tooltip. Screen readers get its text from the labels.
      for (const [name, label] of [["title", "aria-label"], ["desc", "aria-description"]]) {
        const e = svg.querySelector(`:scope > ${name}`);
        if (e) svg.setAttribute(label, e.textContent), e.remove();
      }
      svg.setAttribute("role", "group");
      const [axes, values] = ["axes", "data"].map((c) => svg.querySelectorAll(`g.krr-${c}`));
      this.panels = data.panels.map((p, i) => new Panel(this, p, [axes[i], values[i]]));
      svg.querySelectorAll("g.krr-entry").forEach((g) => this.entry(g));
      this.tips = element(svg, "g", { "pointer-events": "none" });
      this.bar(root, svg);
      this.said = element(root, "output", { class: "krr-said", "aria-live": "polite" });
      if (data.controls) this.sliders(root, svg, data.controls);
    }
    // entry makes an entry of the legend a switch that hides and shows its series.
    entry(g) {
      const name = g.dataset.name;
      const having = this.panels.filter((p) => p.spec.series.some((s) => s.n === name));
      if (!having.length || having.some((p) => p.spec.fixed)) return;
      const b = g.getBBox ? g.getBBox() : null;
      if (b && b.width) g.prepend(element(g, "rect", { x: b.x, y: b.y, width: b.width, height: b.height, fill: "transparent" }));
      for (const [k, v] of [["tabindex", 0], ["role", "checkbox"], ["aria-checked", true], ["aria-label", name], ["style", "cursor:pointer"]]) g.setAttribute(k, v);
      const toggle = () => {
        const on = this.off.has(name);
        if (on) this.off.delete(name);
        else this.off.add(name);
        g.setAttribute("aria-checked", on);
        g.style.opacity = on ? 1 : 0.3;
        this.draw();
      };
      g.addEventListener("click", toggle);
      g.addEventListener("keydown", (e) => {
        if (e.key !== "Enter" && e.key !== " ") return;
        e.preventDefault();
        e.stopPropagation();
        toggle();
      });
    }
    // bar adds the buttons below the drawing, unless no panel can be zoomed.
    bar(root, svg) {
      if (this.panels.every((p) => p.spec.fixed)) return;
      const bar = element(root, "div", { class: "krr-bar", role: "toolbar", "aria-label": "view of the figure" });
      svg.after(bar);
      const button = (text, title, f, pressed) => {
        const b = element(bar, "button", { type: "button", title, ...(pressed === undefined ? {} : { "aria-pressed": pressed }) }, text);
        b.addEventListener("click", () => { f(b); this.draw(); });
        return b;
      };
      const free = this.panels.filter((p) => !p.spec.fixed), middle = (p) => [(p.box[0] + p.box[2]) / 2, -(p.box[1] + p.box[3]) / 2];
      button("+", "zoom in", () => free.forEach((p) => p.zoom(0.8, ...middle(p))));
      button("−", "zoom out", () => free.forEach((p) => p.zoom(1.25, ...middle(p))));
      button("all", "show all", () => this.all());
      this.logs = ["x", "y"].map((k) => button("log " + k, `logarithmic ${k} axis`, (b) => {
        const log = b.getAttribute("aria-pressed") !== "true";
        free.forEach((p) => p.setLog(k, log));
        b.setAttribute("aria-pressed", free.some((p) => p.view[k].log));
      }, free.some((p) => p.view[k].log)));
      element(bar, "span", {}, "drag to zoom, with Shift to move; double-click for all; click a name to hide it");
    }
    // sliders adds the sliders of Controls, and runs their computation now and after every change.
    sliders(root, svg, controls) {
      const box = element(root, "div", { class: "krr-sliders" }), said = element(root, "output", { class: "krr-answer", "aria-live": "polite" });
      (root.querySelector(".krr-bar") || svg).after(box, said);
      const inputs = controls.sliders.map((s) => {
        const label = element(box, "label", {}, s.name + " ");
        const t = (v) => (s.log ? Math.log(v) : v), back = (v) => (s.log ? Math.exp(v) : v);
        const steps = s.values ? s.values.length - 1 : 400;
        const start = s.values ? Math.max(0, s.values.indexOf(s.value)) : Math.round(((t(s.value) - t(s.min)) / (t(s.max) - t(s.min))) * steps);
        const input = element(label, "input", { type: "range", min: 0, max: steps, step: 1, value: start, "aria-label": s.name });
        const shown = element(label, "span", {});
        const first = input.value;
        const value = () => (s.values ? s.values[input.value] : input.value === first ? s.value : back(t(s.min) + (t(s.max) - t(s.min)) * (input.value / steps)));
        return { input, value, say: () => { shown.textContent = " " + number(value()); input.setAttribute("aria-valuetext", number(value())); } };
      });
      const update = () => {
        inputs.forEach((i) => i.say());
        const answer = window.krrControls[controls.name](controls.data, inputs.map((i) => i.value()), number);
        said.textContent = answer.text;
        for (const k in answer.numbers || {}) said.dataset[k] = answer.numbers[k];
        this.panels.forEach((p, i) => (p.at = (answer.at || [])[i]));
        this.draw();
      };
      inputs.forEach((i) => i.input.addEventListener("input", update));
      update();
    }
    // all shows all panels in their initial view.
    all() {
      this.panels.forEach((p) => p.reset());
      (this.logs || []).forEach((b, i) => b.setAttribute("aria-pressed", this.panels.some((p) => p.view["xy"[i]].log)));
      this.draw();
    }
    // changed redraws the figure after the view of a panel has changed. If panels share the x axis, all get its ends.
    changed(panel) {
      if (this.data.shareX) for (const p of this.panels) Object.assign(p.view.x, { min: panel.view.x.min, max: panel.view.x.max });
      this.draw();
    }
    // draw draws all panels again, without the values of a sample.
    draw() {
      this.tip(null);
      this.panels.forEach((p) => { p.now = null; p.draw(); });
    }
    // tip shows the values of a sample next to it, or nothing if panel is null.
    tip(panel, p, lines) {
      this.tips.replaceChildren();
      if (!panel) return void (this.said.textContent = "");
      this.said.textContent = lines.join(", ");
      const m = this.svg.getScreenCTM().inverse().multiply(panel.hit.getScreenCTM()), at = new DOMPoint(p.x, p.y).matrixTransform(m);
      element(this.tips, "circle", { cx: at.x, cy: at.y, r: 5, fill: "none", stroke: "#222", "stroke-width": 1.2 });
      const g = element(this.tips, "g", {}), back = element(g, "rect", { fill: "#fff", "fill-opacity": 0.94, stroke: "#555", "stroke-width": 0.6, rx: 2 });
      const texts = lines.map((s, i) => panel.text(g, 5, 12 + 12 * i, s, "start", 9.5));
      if (lines.length > 2) texts[0].setAttribute("font-weight", "bold");
      const w = Math.max(...texts.map((e) => e.getComputedTextLength())) + 10, h = 12 * lines.length + 6, all = this.svg.viewBox.baseVal;
      back.setAttribute("width", w);
      back.setAttribute("height", h);
      const x = at.x + 10 + w > all.width ? at.x - 10 - w : at.x + 10, y = clamp(at.y - h - 6, 2, all.height - h - 2);
      g.setAttribute("transform", `translate(${Math.max(x, 2)},${y})`);
    }
  }

  const style = `.krr-figure{position:relative}.krr-bar{font:12px sans-serif;color:#555;margin:2px 0;display:flex;flex-wrap:wrap;gap:4px;align-items:center}
.krr-bar button{font:inherit;color:#222;background:#f6f6f6;border:1px solid #bbb;border-radius:3px;padding:1px 8px;min-width:2em;cursor:pointer}
.krr-bar button[aria-pressed=true]{background:#cfe3f1;border-color:#0072b2}.krr-bar span{margin-left:6px}
.krr-said{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.krr-hit:focus-visible,.krr-entry:focus-visible{outline:2px solid #0072b2}.krr-hit:focus{outline:1px solid #0072b2}
.krr-sliders{font:13px sans-serif;display:flex;flex-wrap:wrap;gap:4px 18px}.krr-sliders label{display:flex;align-items:center;gap:5px}.krr-sliders input{width:11em}
.krr-answer{display:block;font:13px sans-serif;margin:4px 0;white-space:pre-line}@media print{.krr-bar,.krr-sliders{display:none}}`;
  for (const root of document.querySelectorAll("figure.krr-figure:not([data-live])")) {
    const data = root.querySelector("script[type='application/json']");
    if (!data) continue; // of a notebook that is not trusted: the drawing stays
    root.dataset.live = root.dataset.lmSuppressShortcuts = "true"; // JupyterLab leaves the figure its keys
    try {
      if (!document.getElementById("krr-style")) element(document.head, "style", { id: "krr-style" }, style);
      new Figure(root, JSON.parse(data.textContent));
    } catch (e) { // the drawing stays
      console.error("krrlab figure:", e);
    }
  }
})();
