// Draws every chart of the page from the embedded data; draws again when a method or layer is switched or the width changes.
(() => {
  "use strict";

  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const MARGIN = { left: 52, right: 14, top: 8, bottom: 38 };

  // Marker outlines of radius one, by Matplotlib's letters.
  const polygon = (corners, inner = 1, turn = -90) => {
    const points = Array.from({ length: corners }, (_, i) => {
      const angle = ((turn + (360 * i) / corners) * Math.PI) / 180;
      const radius = i % 2 ? inner : 1;
      return `${(radius * Math.cos(angle)).toFixed(3)},${(radius * Math.sin(angle)).toFixed(3)}`;
    });
    return `M${points.join("L")}Z`;
  };
  const PLUS = "M-.35,-1H.35V-.35H1V.35H.35V1H-.35V.35H-1V-.35H-.35Z";
  const MARKERS = {
    o: "M1,0A1,1 0 1 1 -1,0A1,1 0 1 1 1,0Z",
    s: polygon(4, 1, 45),
    D: polygon(4),
    "^": polygon(3),
    v: polygon(3, 1, 90),
    P: PLUS,
    X: PLUS,
    "*": polygon(10, 0.45),
  };

  const create = (parent, name, attributes = {}, text = "") => {
    const node = document.createElementNS(NAMESPACE, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    parent.append(node);
    return node;
  };

  const drawMark = (parent, marker, x, y, radius) => {
    const turn = marker === "X" ? " rotate(45)" : "";
    return create(parent, "path", {
      class: "mark",
      d: MARKERS[marker],
      transform: `translate(${x.toFixed(1)},${y.toFixed(1)}) scale(${radius})${turn}`,
    });
  };

  const isShown = (kind, name) => {
    const box = document.querySelector(`.toggles input[data-${kind}="${CSS.escape(name)}"]`);
    return !box || box.checked;
  };
  const isVisible = (series) => isShown("method", series.method) && isShown("layer", series.layer);

  // The style of a layer: the default mode is solid, published numbers are hollow, the floor and other modes are dashed.
  const lookOf = (layer) => ({ [data.default]: "solid", published: "hollow", floor: "floor" })[layer] ?? "dashed";

  const paint = (node, method) => {
    const style = data.styles[method];
    if (style) node.style.setProperty("--c", `var(--c${style.color})`);
    return style?.marker;
  };

  const transformOf = (axis) =>
    ({
      linear: (value) => value,
      log: Math.log10,
      symlog: (value) => (value < axis.unit ? value / axis.unit : 1 + Math.log10(value / axis.unit)),
    })[axis.scale];

  const scaleOf = (axis, values, from, to) => {
    const transform = transformOf(axis);
    const low = transform(Math.min(...values));
    const high = transform(axis.top ?? Math.max(...values));
    const pad = 0.06 * (high - low || 1);
    return (value) => from + ((transform(value) - low + pad) / (high - low + 2 * pad)) * (to - from);
  };

  const steps = (low, high, count) => {
    const rough = (high - low) / count || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
    return found;
  };

  const ticksOf = (axis, values) => {
    if (axis.ticks.length) return axis.ticks;
    const low = Math.min(...values);
    const high = axis.top ?? Math.max(...values);
    if (axis.scale === "linear" || (axis.scale === "log" && high < 6 * low)) return steps(low, high, 5);
    const first = axis.scale === "symlog" ? Math.max(axis.unit, low) : low;
    const factors = high < 200 * first ? [1, 2, 5] : [1];
    const found = axis.scale === "symlog" && low <= 0 ? [0] : [];
    for (let power = Math.floor(Math.log10(first)); 10 ** power <= high; power++)
      found.push(...factors.map((factor) => factor * 10 ** power).filter((value) => value >= first && value <= high));
    const every = Math.ceil(found.length / 7);
    return found.filter((_, i) => i % every === 0);
  };

  const label = (value) =>
    value >= 1e6 ? `${+(value / 1e6).toPrecision(3)}M` : value >= 1e4 ? `${+(value / 1e3).toPrecision(3)}k` : `${+value.toPrecision(3)}`;

  // Names below an axis are slanted, so they need room below it and to the left of the first one.
  const shorten = (name) => (name.length > 32 ? `${name.slice(0, 31)}…` : name);
  const isSlanted = (chart) => chart.x.names.some((name) => name.length > 3);
  const bottomOf = (chart) => Math.max(MARGIN.bottom, ...chart.x.names.map((name) => isSlanted(chart) * (26 + 4.2 * shorten(name).length)));
  const leftOf = (chart) => Math.max(MARGIN.left, ...chart.x.names.slice(0, 1).map((name) => 4.2 * shorten(name).length));

  const drawAxes = (svg, chart, xs, ys, x, y, width, height, middle = height - bottomOf(chart)) => {
    const axes = create(svg, "g", { class: "axis" });
    const bottom = height - bottomOf(chart);
    for (const tick of ticksOf(chart.y, ys)) {
      create(axes, "line", { x1: leftOf(chart), x2: width - MARGIN.right, y1: y(tick), y2: y(tick) });
      create(axes, "text", { x: leftOf(chart) - 6, y: y(tick) + 4, "text-anchor": "end" }, label(tick));
    }
    for (const tick of ticksOf(chart.x, xs)) {
      create(axes, "line", { x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 4 });
      if (isSlanted(chart))
        create(axes, "text", { transform: `translate(${x(tick) + 4},${bottom + 14}) rotate(-40)`, "text-anchor": "end" }, shorten(chart.x.names[tick]));
      else create(axes, "text", { x: x(tick), y: bottom + 16, "text-anchor": "middle" }, chart.x.names[tick] ?? label(tick));
    }
    create(axes, "text", { x: (leftOf(chart) + width - MARGIN.right) / 2, y: height - 4, "text-anchor": "middle" }, chart.x.label);
    create(axes, "text", { transform: `translate(${leftOf(chart) - 42},${middle / 2}) rotate(-90)`, "text-anchor": "middle" }, chart.y.label);
  };

  const whiskerOf = (chart, [, y, spread]) => [chart.y.scale === "log" ? Math.max(y - spread, y / 2) : y - spread, y + spread];

  // A single point is drawn as a short dash; otherwise the floor of a single setting would be invisible.
  const lineThrough = (points) =>
    points.length > 1
      ? `M${points.map((point) => point.map((value) => value.toFixed(1))).join("L")}`
      : `M${points[0][0] - 9},${points[0][1]}h18`;

  const drawSeries = (svg, chart, series, x, y) => {
    const group = create(svg, "g", { class: `series ${lookOf(series.layer)}`, "data-method": series.method, "data-layer": series.layer });
    const marker = paint(group, series.method);
    // Shifted a little, so that whiskers at the same number of samples do not overlap.
    const drawn = new Set(chart.panels.flatMap((panel) => panel.series.map((other) => other.method)));
    const methods = Object.keys(data.styles).filter((method) => drawn.has(method));
    const step = chart.x.ticks.length && !chart.x.names.length && marker ? Math.min(2.5, 40 / methods.length) : 0;
    const shift = step * (methods.indexOf(series.method) - (methods.length - 1) / 2);
    const at = (mark) => [x(mark[0]) + shift, y(mark[1])];
    if (series.layer !== "published" && (series.marks.length > 1 || !marker))
      create(group, "path", { class: "line", d: lineThrough(series.marks.map(at)) });
    return series.marks.map((mark) => {
      const [px, py] = at(mark);
      if (marker && mark[2] && series.layer !== "published") {
        const [low, high] = whiskerOf(chart, mark);
        create(group, "line", { class: "whisker", x1: px, x2: px, y1: y(low), y2: y(high) });
      }
      const radius = { solid: 4, hollow: 6, dashed: 3 }[lookOf(series.layer)] * mark[4];
      const node = marker ? drawMark(group, marker, px, py, radius) : null;
      return { x: px, y: py, node, note: data.notes[mark[3]] };
    });
  };

  const showTip = (event, text) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - box.width - 8);
    const below = event.clientY + 18;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${below + box.height > innerHeight ? event.clientY - box.height - 12 : below}px`;
  };

  // Selects the nearest mark, so that small marks are easy to reach, even with a finger.
  const explain = (svg, points) => {
    let last = null;
    const leave = () => {
      last?.node?.classList.remove("pointed");
      last = null;
      tip.hidden = true;
    };
    const move = (event) => {
      const box = svg.getBoundingClientRect();
      const distance = (point) => Math.hypot(point.x - event.clientX + box.left, point.y - event.clientY + box.top);
      const nearest = points.reduce((best, point) => (distance(point) < distance(best) ? point : best), points[0]);
      if (!nearest || distance(nearest) > (nearest.reach ?? 30)) return leave();
      if (nearest !== last) leave();
      last = nearest;
      nearest.node?.classList.add("pointed");
      showTip(event, nearest.note);
    };
    svg.addEventListener("pointermove", move);
    svg.addEventListener("pointerdown", move);
    svg.addEventListener("pointerleave", leave);
  };

  const addPanel = (container, title, name) => {
    const panel = document.createElement("div");
    panel.className = "panel";
    if (title) panel.append(Object.assign(document.createElement("h4"), { textContent: title }));
    container.append(panel);
    return create(panel, "svg", { role: "img", "aria-label": [name, title].filter(Boolean).join(", ") });
  };

  const drawPanel = (svg, chart, panel) => {
    const width = svg.parentElement.clientWidth;
    const height = Math.round(Math.min(320, Math.max(210, 0.72 * width)) + bottomOf(chart) - MARGIN.bottom);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    const shown = panel.series.filter(isVisible);
    if (!shown.length) {
      create(svg, "text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "nothing is switched on");
      return;
    }
    const marks = shown.flatMap((series) => series.marks);
    const xs = chart.x.names.length ? chart.x.ticks : marks.map((mark) => mark[0]);
    const ys = shown.flatMap((s) => s.marks.flatMap((mark) => (s.layer === "published" ? [mark[1]] : whiskerOf(chart, mark))));
    const x = scaleOf(chart.x, xs, leftOf(chart), width - MARGIN.right);
    const y = scaleOf(chart.y, ys, height - bottomOf(chart), MARGIN.top);
    drawAxes(svg, chart, xs, ys, x, y, width, height);
    const inside = chart.y.top ? cut(svg, width, height - bottomOf(chart)) : svg;
    const points = shown.flatMap((series) => drawSeries(inside, chart, series, x, y));
    explain(svg, points.filter((point) => point.y > 0));
  };

  // A canvas with the same coordinates that shows nothing above its edge.
  const cut = (svg, width, height) => create(svg, "svg", { class: "cut", width, height, viewBox: `0 0 ${width} ${height}` });

  const LANE = 46;
  const drawLanes = (svg, chart, panel) => {
    const width = svg.parentElement.clientWidth;
    const lanes = panel.lanes.filter((lane) => isShown("method", lane.method));
    const below = 150; // the lanes begin here
    const height = below + LANE * lanes.length + bottomOf(chart);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    const x = scaleOf(chart.x, [-0.5, panel.values.length - 0.5], leftOf(chart), width - MARGIN.right);
    const y = scaleOf(chart.y, panel.values, below - 12, MARGIN.top);
    drawAxes(svg, chart, [], panel.values, x, y, width, height, below);
    const path = panel.values.map((value, i) => `${i ? "L" : "M"}${x(i - 0.5)},${y(value)}H${x(i + 0.5)}`).join("");
    create(create(svg, "g", { class: "floor" }), "path", { class: "line", style: "stroke-dasharray: none", d: path });
    const all = panel.lanes.flatMap((lane) => lane.amounts);
    const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
    const points = [];
    lanes.forEach((lane, row) => {
      const group = create(svg, "g", { class: lane.method ? "" : "floor", "data-method": lane.method });
      paint(group, lane.method);
      const top = below + row * LANE;
      create(group, "text", { class: "lane", x: leftOf(chart), y: top + 12 }, lane.label);
      const at = (amount) => top + 18 + ((high - amount) / (high - low || 1)) * (LANE - 22);
      create(create(svg, "g", { class: "axis" }), "line", { x1: leftOf(chart), x2: width - MARGIN.right, y1: at(0), y2: at(0) });
      lane.amounts.forEach((amount, i) => {
        if (!amount) return;
        const size = { x: x(i - 0.4), y: at(Math.max(amount, 0)), width: Math.max(0, x(i + 0.4) - x(i - 0.4)), height: Math.abs(at(amount) - at(0)) };
        const node = create(group, "rect", { class: "mark", ...size });
        const note = `${lane.label}\n${chart.x.names[i]}: takes ${label(amount)} at ${label(panel.values[i])}`;
        points.push({ x: x(i), y: (at(amount) + at(0)) / 2, node, note });
      });
    });
    explain(svg, points);
  };

  const drawMatrix = (svg, matrix) => {
    const width = svg.parentElement.clientWidth;
    const shown = matrix.columns.map((_, i) => i).filter((i) => isVisible(matrix.columns[i]));
    const left = 14 + 6.6 * Math.max(...matrix.labels.map((text) => text.length));
    const size = Math.max(14, Math.min(48, (width - left) / Math.max(shown.length, 1)));
    const height = Math.min(size, 36);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height * shown.length + 0.75 * left + 16);
    const points = [];
    shown.forEach((i, row) => {
      const group = create(svg, "g", { "data-method": matrix.columns[i].method, "data-layer": matrix.columns[i].layer });
      create(group, "text", { x: left - 8, y: (row + 0.5) * height + 4, "text-anchor": "end" }, matrix.labels[i]);
      shown.forEach((j, column) => {
        const share = matrix.shares[i][j];
        if (share === null) return;
        const [x, y] = [left + column * size, row * height];
        const cell = create(group, "rect", { x: x + 1, y: y + 1, width: size - 2, height: height - 2, rx: 3 });
        cell.style.setProperty("--c", share >= 50 ? "var(--c0)" : "var(--c1)");
        cell.setAttribute("fill-opacity", (Math.abs(share - 50) / 50) * 0.6);
        const text = create(group, "text", { x: x + size / 2, y: y + height / 2 + 4, "text-anchor": "middle" }, share.toFixed(0));
        if (size < 28) text.style.fontSize = "9px";
        const note = `${matrix.labels[i]} is below ${matrix.labels[j]}\nin ${share.toFixed(1)} % of ${matrix.meetings[i][j]} trials`;
        points.push({ x: x + size / 2, y: y + height / 2, node: null, note, reach: size });
      });
    });
    shown.forEach((i, column) => {
      const place = `translate(${left + (column + 0.5) * size + 4},${height * shown.length + 12}) rotate(-45)`;
      create(svg, "text", { transform: place, "text-anchor": "end" }, matrix.labels[i]);
    });
    explain(svg, points);
  };

  const drawAll = () => {
    tip.hidden = true;
    for (const container of document.querySelectorAll("[data-chart]")) {
      const chart = data.charts[container.dataset.chart];
      container.style.minHeight = `${container.offsetHeight}px`; // the page must not jump while a figure is redrawn
      container.replaceChildren();
      if (chart.kind === "matrix") drawMatrix(addPanel(container, "", chart.title), chart);
      else {
        // Add all panels first, because their number determines their width.
        const canvases = chart.panels.map((panel) => addPanel(container, panel.title, chart.title));
        const draw = chart.kind === "lanes" ? drawLanes : drawPanel;
        canvases.forEach((svg, i) => draw(svg, chart, chart.panels[i]));
      }
      container.style.minHeight = "";
    }
  };

  for (const box of document.querySelectorAll(".toggles input")) {
    const { method, layer } = box.dataset;
    const svg = box.nextElementSibling;
    const group = create(svg, "g", { class: method ? "solid" : lookOf(layer) });
    group.style.setProperty("--c", "var(--quiet)");
    const marker = method ? paint(group, method) : layer === "floor" ? null : "o";
    if (layer !== "published") create(group, "path", { class: "line", d: "M0,7H22" });
    if (marker) drawMark(group, marker, 11, 7, layer === "published" ? 5 : 4);
    box.addEventListener("change", drawAll);
  }

  for (const button of document.querySelectorAll(".toggles button"))
    button.addEventListener("click", () => {
      for (const box of document.querySelectorAll(".toggles input[data-method]")) box.checked = button.value === "all";
      drawAll();
    });

  let width = 0;
  new ResizeObserver(() => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    drawAll();
  }).observe(document.body);
})();
