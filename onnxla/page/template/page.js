"use strict";
/* The page of a compiled model. Its data stand in the document as JSON; texts that are long are packed beside them.
   Names come from models of strangers: they are only ever put into the document as text. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const CATEGORIES = ["input", "contraction", "reduction", "elementwise", "movement", "control", "output"];
  const timed = data.seconds !== null;

  // Making elements

  function make(name, attributes, ...children) {
    return fill(document.createElement(name), attributes, children);
  }

  function draw(name, attributes, ...children) {
    return fill(document.createElementNS(SVG, name), attributes, children);
  }

  function fill(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "class") element.setAttribute("class", value);
      else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children);  // strings become text nodes
    return element;
  }

  // Words for numbers

  function bytes(n) {
    for (const [unit, size] of [["GB", 2 ** 30], ["MB", 2 ** 20], ["KB", 2 ** 10]])
      if (n >= size) return (n / size).toFixed(n >= 100 * size ? 0 : 1) + " " + unit;
    return n + " B";
  }

  function seconds(s) {
    if (s >= 1) return s.toFixed(2) + " s";
    if (s >= 1e-3) return (s * 1e3).toFixed(2) + " ms";
    return (s * 1e6).toFixed(1) + " µs";
  }

  function big(n) {
    for (const [unit, size] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["K", 1e3]])
      if (n >= size) return (n / size).toFixed(n >= 100 * size ? 0 : 1) + " " + unit;
    return n + " ";
  }

  const percent = (part) => (part * 100).toFixed(part < 0.1 ? 1 : 0) + "%";
  const kernelName = (symbol) => symbol.replace(/^onnxla_\d+_/, "");

  // What belongs together

  const boxes = data.boxes.map((box, number) => ({ ...box, number, steps: [], from: [], to: [] }));
  data.steps.forEach((step, number) => {
    step.number = number;
    step.users = [];
    if (step.box >= 0) boxes[step.box].steps.push(step);
  });
  for (const [from, to] of data.open.lines) {
    boxes[from].to.push(to);
    boxes[to].from.push(from);
  }
  const parents = new Map();  // of boxes inside others, by where the open picture has them
  {
    const around = [];
    for (const [number, x, y, w, h, inside] of data.open.boxes) {
      while (around.length) {
        const [, ax, ay, aw, ah] = around[around.length - 1];
        if (x >= ax && y >= ay && x + w <= ax + aw && y + h <= ay + ah) break;
        around.pop();
      }
      if (around.length) parents.set(number, around[around.length - 1][0]);
      if (inside) around.push([number, x, y, w, h]);
    }
  }
  const sum = (steps, key) => steps.reduce((total, step) => total + (step[key] || 0), 0);
  for (const box of boxes) {
    const words = [box.t, box.s, box.name, box.op, ...(box.ops || [])];
    for (const [type, name] of box.nodes || []) words.push(type, name);
    for (const step of box.steps) words.push(step.name, step.kernel >= 0 ? data.kernels[step.kernel][0] : "");
    box.words = words.filter(Boolean).join("\n").toLowerCase();
  }
  for (const step of data.steps) {
    step.words = [step.name, step.op, step.node, ...step.also, step.kernel >= 0 ? data.kernels[step.kernel][0] : "",
      step.box >= 0 ? boxes[step.box].words : ""].join("\n").toLowerCase();
  }

  let texts = null;
  function readTexts() {
    if (!texts) {
      const raw = Uint8Array.from(atob(find("texts").textContent), (c) => c.charCodeAt(0));
      const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
      texts = new Response(stream).text().then(JSON.parse);
    }
    return texts;
  }

  // The head

  find("title").textContent = data.title;
  find("facts").append(...data.facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  const system = matchMedia("(prefers-color-scheme: dark)");
  let theme = null;
  function paintTheme() {
    document.documentElement.dataset.theme = theme || (system.matches ? "dark" : "light");
  }
  system.addEventListener("change", paintTheme);
  paintTheme();
  find("theme").addEventListener("click", () => {
    theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    paintTheme();
    paintBoxes();
  });

  // The list of steps

  const ORDERS = [["order", "in order", (s) => -s.number, () => ""]];
  if (timed) ORDERS.push(["time", "by time", (s) => s.seconds, (s) => seconds(s.seconds)]);
  ORDERS.push(["bytes", "by bytes", (s) => s.bytes, (s) => bytes(s.bytes)]);
  ORDERS.push(["flops", "by operations", (s) => s.flops, (s) => (s.flops ? big(s.flops) + "FLOP" : "")]);
  find("sort").append(...ORDERS.map(([key, label]) => make("option", { value: key }, label)));
  find("sort").addEventListener("change", showSteps);
  const rows = new Map();
  let matches = null;  // numbers of the boxes that a search found

  function showSteps() {
    const [key, , value, word] = ORDERS.find(([name]) => name === find("sort").value);
    const wanted = query();
    const shown = data.steps.filter((step) => wanted.every((word) => step.words.includes(word)));
    shown.sort((a, b) => value(b) - value(a) || a.number - b.number);
    const most = key === "order" ? 0 : Math.max(...shown.map(value), 0);
    rows.clear();
    find("steps").replaceChildren(...shown.map((step) => {
      const title = titleOf(step);
      const caption = key === "order" ? (timed ? seconds(step.seconds) : "") : word(step);
      const row = make("button", { type: "button", onclick: () => chooseStep(step.number, true) },
        make("span", { class: "number" }, String(step.number)),
        make("span", { class: "name" }, "\u2003".repeat(step.depth) + title),
        make("span", { class: "value" }, caption),
        make("span", { class: "more" }, "\u2003".repeat(step.depth) + (nodeName(step) || step.name)));
      if (most) {
        const share = make("span", { class: "share" });
        share.style.width = (100 * value(step)) / most + "%";
        row.append(share);
      }
      row.title = [step.node, ...step.also].filter(Boolean).join("\n");
      rows.set(step.number, row);
      return make("li", {}, row);
    }));
    find("list-title").textContent = shown.length === data.steps.length ? shown.length + " steps" : shown.length + " of " + data.steps.length + " steps";
    paintRows();
  }

  function titleOf(step) {
    if (step.box < 0) return step.op;
    return step.op === "copy" ? "copy for " + boxes[step.box].t : boxes[step.box].t;
  }

  function nodeName(step) {  // of the node that the step ends with
    const nodes = step.box >= 0 ? boxes[step.box].nodes || [] : [];
    return nodes.length ? nodes[0][1] : "";
  }

  function paintRows() {
    for (const [number, row] of rows) row.setAttribute("aria-current", String(number === chosen.step));
  }

  // The graph

  const canvas = find("canvas"), map = find("map");
  const view = { x: 0, y: 0, scale: 1 };
  const shapes = new Map();
  let picture = null, places = new Map(), wires = [], world = null, mapView = null, mapScale = 1;

  const ruler = document.createElement("canvas").getContext("2d");
  const family = getComputedStyle(document.body).fontFamily;

  function clipped(text, width, font) {  // as much of a text as a box has room for
    ruler.font = font + " " + family;
    if (ruler.measureText(text).width <= width) return text;
    let few = 1, many = text.length;
    while (many - few > 1) {
      const middle = (few + many) >> 1;
      if (ruler.measureText(text.slice(0, middle) + "…").width <= width) few = middle;
      else many = middle;
    }
    return text.slice(0, few) + "…";
  }

  function path(points) {
    let d = "M" + points[0] + " " + points[1];
    for (let k = 2; k < points.length; k += 2) {
      const [x0, y0, x, y] = points.slice(k - 2, k + 2), middle = (y0 + y) / 2;
      d += x0 === x ? "L" + x + " " + y : "C" + x0 + " " + middle + " " + x + " " + middle + " " + x + " " + y;
    }
    return d;
  }

  function drawGraph() {
    picture = find("open").checked ? data.open : data.closed;
    places = new Map(picture.boxes.map(([number, x, y, w, h]) => [number, { x, y, w, h }]));
    shapes.clear();
    world = draw("g", {});
    const tip = draw("marker", { id: "arrow", viewBox: "0 0 8 8", refX: "7", refY: "4", markerWidth: "7", markerHeight: "7", orient: "auto" },
      draw("path", { id: "tip", d: "M0 0.8 L7.5 4 L0 7.2 z" }));
    const outer = draw("g", {}), lines = draw("g", {}), inner = draw("g", {});
    for (const [number, x, y, w, h, around] of picture.boxes) {
      const box = boxes[number];
      const shape = draw("g", {
        class: "box of " + box.c + (box.inner ? " inner" : "") + (around ? " around" : ""), "data-box": number,
        transform: "translate(" + x + " " + y + ")",
      }, draw("title", {}, [box.t, box.s, ...(box.nodes || []).map(([, name]) => name)].join("\n")),
        draw("rect", { width: w, height: h, rx: box.inner ? 6 : 8 }));
      if (box.inner) {
        shape.append(draw("text", { x: 9, y: 17 }, clipped(box.t, w - 16, "500 11.5px")));
      } else {
        shape.append(draw("text", { x: 10, y: 18 }, clipped(box.t, w - 18, "600 12.5px")),
          draw("text", { class: "type", x: 10, y: 34 }, clipped(box.s, w - 18, "400 11px")));
      }
      shapes.set(number, shape);
      (around ? outer : inner).append(shape);
    }
    wires = picture.lines.map(([from, to, points]) => {
      const far = points.length === 4 && Math.abs(points[3] - points[1]) > 1600;
      const wire = draw("path", { class: far ? "wire far" : "wire", d: path(points), "marker-end": "url(#arrow)" });
      lines.append(wire);
      return { from, to, wire };
    });
    for (const [x, y, title] of picture.titles) lines.append(draw("text", { class: "part", x, y }, title));
    world.append(outer, lines, inner);
    canvas.replaceChildren(draw("defs", {}, tip), world);
    drawMap();
    paintBoxes();
    paintChosen();
  }

  function drawMap() {
    const height = Math.max(find("graph").clientHeight - 20, 60);
    mapScale = Math.min(height / (picture.height + 40), 110 / Math.max(picture.width, 1));
    map.setAttribute("width", Math.max(picture.width * mapScale, 12) + 12);
    map.setAttribute("height", height);
    const all = draw("g", { transform: "translate(6 6) scale(" + mapScale + ")" });
    for (const [number, x, y, w, h, around] of picture.boxes)
      if (!around) all.append(draw("rect", { class: "of " + boxes[number].c, x, y, width: w, height: h }));
    mapView = draw("rect", { class: "view" });
    map.replaceChildren(all, mapView);
  }

  function move() {
    world.setAttribute("transform", "translate(" + view.x + " " + view.y + ") scale(" + view.scale + ")");
    const k = mapScale / view.scale;
    const set = (name, value) => mapView.setAttribute(name, value);
    set("x", 6 - view.x * k); set("y", 6 - view.y * k);
    set("width", canvas.clientWidth * k); set("height", canvas.clientHeight * k);
  }

  function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const scale = Math.min(Math.max(view.scale * factor, 0.02), 3), k = scale / view.scale;
    view.x = x - (x - view.x) * k; view.y = y - (y - view.y) * k; view.scale = scale;
    move();
  }

  function fit() {
    view.scale = Math.min((canvas.clientWidth - 60) / picture.width, (canvas.clientHeight - 40) / picture.height, 1.2);
    view.x = (canvas.clientWidth - picture.width * view.scale) / 2; view.y = 20;
    move();
  }

  function begin() {  // the top of the graph, at a size that reads well, beside the map
    const room = canvas.clientWidth - map.getBoundingClientRect().width - 30;
    view.scale = Math.min(1, Math.max((room - 40) / picture.width, 0.5));
    view.x = (room - picture.width * view.scale) / 2; view.y = 30;
    const top = picture.boxes.find(([number]) => boxes[number].steps.length);
    if (top && picture.width * view.scale > room) view.x = room / 2 - (top[1] + top[3] / 2) * view.scale;
    move();
  }

  function bring(number) {  // a box into the middle, unless it can be seen
    const place = places.get(number);
    if (!place) return;
    if (view.scale < 0.45) view.scale = 0.8;
    const x = view.x + place.x * view.scale, y = view.y + place.y * view.scale;
    const seen = x > 20 && y > 20 && x + place.w * view.scale < canvas.clientWidth - 130 && y + Math.min(place.h, 300) * view.scale < canvas.clientHeight - 40;
    if (!seen) {
      view.x = canvas.clientWidth / 2 - (place.x + place.w / 2) * view.scale;
      view.y = canvas.clientHeight / 2 - (place.y + Math.min(place.h, 300) / 2) * view.scale;
    }
    move();
  }

  let drag = null;
  canvas.addEventListener("pointerdown", (e) => { drag = { x: e.clientX, y: e.clientY, moved: false }; });
  addEventListener("pointermove", (e) => {
    if (!drag) return;
    const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    drag = { x: e.clientX, y: e.clientY, moved: true };
    canvas.classList.add("dragging");
    view.x += dx; view.y += dy;
    move();
  });
  addEventListener("pointerup", () => { canvas.classList.remove("dragging"); setTimeout(() => { drag = null; }); });
  canvas.addEventListener("click", (e) => {
    if (drag && drag.moved) return;
    const shape = e.target.closest(".box");
    if (shape) chooseBox(Number(shape.dataset.box), false);
    else choose({});
  });
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    const unit = e.deltaMode ? 30 : 1;
    if (e.ctrlKey || e.metaKey) {
      const place = canvas.getBoundingClientRect();
      zoom(Math.exp(-e.deltaY * unit / 300), e.clientX - place.left, e.clientY - place.top);
    } else {
      view.x -= (e.shiftKey ? e.deltaY : e.deltaX) * unit;
      view.y -= (e.shiftKey ? 0 : e.deltaY) * unit;
      move();
    }
  }, { passive: false });
  function goByMap(e) {
    if (!(e.buttons & 1) && e.type !== "pointerdown") return;
    const place = map.getBoundingClientRect(), k = view.scale / mapScale;
    view.x = canvas.clientWidth / 2 - (e.clientX - place.left - 6) * k;
    view.y = canvas.clientHeight / 2 - (e.clientY - place.top - 6) * k;
    move();
  }
  map.addEventListener("pointerdown", goByMap);
  map.addEventListener("pointermove", goByMap);
  find("smaller").addEventListener("click", () => zoom(1 / 1.3));
  find("larger").addEventListener("click", () => zoom(1.3));
  find("fit").addEventListener("click", fit);
  find("open").addEventListener("change", () => {
    const shown = chosen.box;
    drawGraph();
    begin();
    if (shown >= 0) bring(shown);
  });

  // Colours

  const COLOURS = [["kind", "by kind of work"], ["bytes", "by bytes"], ["flops", "by operations"]];
  if (timed) COLOURS.splice(1, 0, ["seconds", "by time"]);
  find("colour").append(...COLOURS.map(([key, label]) => make("option", { value: key }, label)));
  find("colour").addEventListener("change", paintBoxes);

  function paintBoxes() {
    const key = find("colour").value;
    const value = (number) => sum(boxes[number].steps, key);
    const most = key === "kind" ? 0 : Math.max(...boxes.map((_, k) => value(k)), 1e-12);
    for (const [number, shape] of shapes) {
      const rect = shape.querySelector("rect");
      const part = key === "kind" || boxes[number].inner ? null : Math.sqrt(value(number) / most);
      rect.style.fill = part === null ? "" : "color-mix(in oklab, var(--hot) " + Math.round(85 * part) + "%, var(--panel))";
    }
    const used = new Set([...shapes.keys()].map((k) => boxes[k].c));
    find("legend").replaceChildren(...(key === "kind"
      ? CATEGORIES.filter((c) => used.has(c)).map((c) => make("span", {}, make("i", { class: "of " + c }), c))
      : [make("span", {}, "darkest: " + { seconds: seconds, bytes: bytes, flops: (n) => big(n) + "FLOP" }[key](most))]));
  }

  // Choosing

  let chosen = { box: -1, step: -1 };

  function chooseBox(number, show) {
    const box = boxes[number], steps = box.steps;
    const main = steps.length ? steps.reduce((a, b) => (weight(b) > weight(a) ? b : a)) : null;
    choose({ box: number, step: main ? main.number : -1 }, show);
  }

  const weight = (step) => (timed ? step.seconds : step.flops * 4 + step.bytes);

  function chooseStep(number, show) {
    choose({ box: data.steps[number].box, step: number }, show);
  }

  function choose({ box = -1, step = -1 }, show = false) {
    chosen = { box, step };
    if (show && box >= 0 && picture) {
      if (!places.has(box) && parents.has(box) && boxes[box].inner) { find("open").checked = true; drawGraph(); }
      if (!find("graph").hidden) bring(places.has(box) ? box : parents.get(box));
    }
    history.replaceState(null, "", step >= 0 ? "#step-" + step : box >= 0 ? "#box-" + box : location.pathname + location.search);
    paintRows();
    const row = rows.get(step);
    if (row) row.scrollIntoView({ block: "nearest" });
    paintChosen();
    showDetail();
    paintMemory();
    paintTime();
  }

  function paintChosen() {
    for (const [number, shape] of shapes) {
      shape.classList.toggle("chosen", number === chosen.box);
      shape.classList.toggle("match", Boolean(matches && matches.has(number)));
    }
    canvas.classList.toggle("searching", Boolean(matches));
    for (const { from, to, wire } of wires)
      wire.classList.toggle("near-chosen", chosen.box >= 0 && (from === chosen.box || to === chosen.box));
  }

  // Details

  function number(value, label) {
    return make("div", {}, make("b", {}, value), make("span", {}, label));
  }

  function link(box) {
    return make("button", { type: "button", onclick: () => chooseBox(box, true) }, boxes[box].t);
  }

  function section(title, ...items) {
    return items.length ? [make("h3", {}, title), make("ul", { class: "links" }, ...items.map((item) => make("li", {}, ...[].concat(item))))] : [];
  }

  function showDetail() {
    const detail = find("detail"), box = boxes[chosen.box], step = data.steps[chosen.step];
    detail.scrollTop = 0;
    if (!box && !step) return detail.replaceChildren(...overview());
    const parts = [make("h2", {}, box ? box.t : step.op), make("p", { class: "dim mono" }, box ? box.s : step.name)];
    if (box && box.name) parts.push(make("p", { class: "dim mono" }, "%" + box.name));
    if (box && box.steps.length > 1)
      parts.push(...section("steps", ...box.steps.map((s) => [
        make("button", { type: "button", onclick: () => chooseStep(s.number, false), "aria-pressed": String(s === step) },
          s.number + "  " + (s.kernel >= 0 ? kernelName(data.kernels[s.kernel][0]) : s.op)),
        make("span", { class: "dim" }, timed ? seconds(s.seconds) : bytes(s.bytes))])));
    if (step) parts.push(numbers(step));
    const nodes = (box && box.nodes) || [];
    parts.push(...section("nodes of the model", ...nodes.map(([type, name]) => [make("span", { class: "word" }, type), name])));
    if (box) {
      parts.push(...section("reads", ...[...new Set(box.from)].map(link), ...(box.weights || []).map(([name, type]) => [
        make("span", { class: "word" }, "weight"), name, make("span", { class: "dim mono" }, type)])));
      parts.push(...section("read by", ...[...new Set(box.to)].map(link)));
    }
    if (step && step.buffers)
      parts.push(...section("buffers", ...step.buffers.map(([access, value, space, place, size]) => [
        make("span", { class: "word" }, access), value,
        make("span", { class: "dim mono" }, (space === "arena" ? "arena+" + place : space === "weights" ? "weights" : space + " " + place) + "  " + bytes(size))])));
    if (step && step.kernel >= 0) parts.push(...kernelParts(step));
    const code = make("div", { class: "code" });
    if (box) parts.push(make("h3", {}, "code"), code);
    detail.replaceChildren(...parts);
    if (box) showCode(code, box, step);
  }

  function numbers(step) {
    const rate = (n) => (timed && step.seconds ? n * step.rounds / step.seconds : 0);
    const cells = [];
    if (timed) cells.push(number(seconds(step.seconds), step.rounds === 1 ? percent(step.seconds / data.seconds) + " of the run" : step.rounds + " rounds"));
    if (step.floor !== undefined) {
      const floor = step.floor * (timed ? step.rounds : 1);
      cells.push(number(seconds(floor), "floor: " + step.bound));
      if (timed && floor) cells.push(number((step.seconds / floor).toFixed(1) + " ×", "time / floor"));
    }
    cells.push(number(bytes(step.bytes), rate(step.bytes) ? (rate(step.bytes) / 1e9).toFixed(1) + " GB/s" : "bytes"));
    if (step.flops) cells.push(number(big(step.flops) + "FLOP", rate(step.flops) ? (rate(step.flops) / 1e9).toFixed(1) + " GFLOP/s" : "operations"));
    if (step.flops && step.bytes) cells.push(number((step.flops / step.bytes).toFixed(1), "FLOP per byte"));
    if (step.tasks) cells.push(number(String(step.tasks), step.tasks === 1 ? "task" : "tasks"));
    return make("div", { class: "numbers" }, ...cells);
  }

  function kernelParts(step) {
    const [symbol, resources] = data.kernels[step.kernel];
    const others = data.steps.filter((s) => s.kernel === step.kernel && s !== step);
    const parts = [make("h3", {}, "kernel"), make("p", { class: "mono" }, symbol)];
    if (resources.length) parts.push(make("p", { class: "dim" }, resources.map(([k, v]) => k + ": " + v).join(" · ")));
    if (others.length)
      parts.push(make("details", {}, make("summary", { class: "dim" }, "the same code in " + others.length + " more steps"),
        make("ul", { class: "links" }, ...others.map((s) => make("li", {},
          make("button", { type: "button", onclick: () => chooseStep(s.number, true) }, s.number + "  " + s.name))))));
    return parts;
  }

  let language = "HLO";
  function showCode(place, box, step) {
    readTexts().then((all) => {
      const code = [["HLO", all.boxes[box.number] || ""]];
      if (step && step.kernel >= 0) code.push(...(all.code[data.kernels[step.kernel][0]] || []));
      const body = make("pre", {}), tabs = make("div", { class: "codes", role: "tablist" });
      const show = (name) => {
        const [found, text] = code.find(([n]) => n === name) || code[0];
        body.textContent = text;
        body.className = found === "HLO" ? "wrap" : "";
        const begin = step && step.kernel >= 0 ? text.indexOf("\n" + data.kernels[step.kernel][0] + ":") : -1;
        body.scrollTop = begin > 0 ? (text.slice(0, begin).split("\n").length - 1) * parseFloat(getComputedStyle(body).lineHeight) : 0;
        for (const tab of tabs.children) tab.setAttribute("aria-selected", String(tab.textContent === found));
      };
      for (const [name, text] of code)
        if (text) tabs.append(make("button", { type: "button", role: "tab", onclick: () => { language = name; show(name); } }, name));
      place.replaceChildren(tabs, body);
      show(language);
    });
  }

  function overview() {
    const totals = make("div", { class: "numbers" });
    if (timed) totals.append(number(seconds(data.seconds), "a run"));
    const outer = data.steps.filter((s) => s.depth === 0);
    totals.append(number(String(outer.length), "steps"), number(String(data.kernels.length), "different kernels"));
    totals.append(number(big(data.steps.reduce((t, s) => t + s.flops * (s.rounds ?? 1), 0)) + "FLOP", "in products"), number(bytes(data.memory.bytes), "arena"));
    const parts = data.notes.map((note) => make("p", { class: "note" }, note));
    parts.push(make("h2", {}, data.title), totals, make("h3", {}, "facts"),
      make("ul", { class: "links" }, ...data.facts.map(([k, v]) => make("li", {}, make("span", { class: "word" }, k), v))));
    const heavy = [...data.steps].filter((s) => s.kernel >= 0).sort((a, b) => weight(b) - weight(a)).slice(0, 10);
    parts.push(...section(timed ? "slowest" : "heaviest", ...heavy.map((s) => [
      make("button", { type: "button", onclick: () => chooseStep(s.number, true) }, titleOf(s)),
      make("span", { class: "dim" }, timed ? seconds(s.seconds) + "  " + percent(s.seconds / data.seconds) : s.flops ? big(s.flops) + "FLOP" : bytes(s.bytes))])));
    parts.push(make("p", { class: "dim" }, "Choose a box or a step for its code. / searches, f shows the whole graph, ctrl and the wheel zoom, arrow keys go from step to step."));
    return parts;
  }

  // Search

  const query = () => find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let hits = [], hit = -1;

  function search() {
    const words = query();
    hits = words.length ? boxes.filter((box) => !box.inner && words.every((word) => box.words.includes(word))).map((box) => box.number) : [];
    if (words.length && !hits.length)  // perhaps an operation inside a fusion
      hits = boxes.filter((box) => box.inner && words.every((word) => box.words.includes(word))).map((box) => box.number);
    matches = words.length ? new Set(hits) : null;
    hit = -1;
    find("found").textContent = words.length ? (hits.length ? hits.length + " found" : "nothing") : "";
    showSteps();
    paintChosen();
  }

  function nextHit(direction) {
    if (!hits.length) return;
    hit = (hit + direction + hits.length) % hits.length;
    find("found").textContent = hit + 1 + " of " + hits.length;
    chooseBox(hits[hit], true);
  }

  find("search").addEventListener("input", search);
  find("search").addEventListener("keydown", (e) => {
    if (e.key === "Enter") nextHit(e.shiftKey ? -1 : 1);
    if (e.key === "Escape") { find("search").value = ""; search(); find("search").blur(); }
  });
  addEventListener("keydown", (e) => {
    if (e.target.matches("input, select") || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "/") { e.preventDefault(); find("search").focus(); find("search").select(); }
    if (e.key === "f") fit();
    if (e.key === "Escape") choose({});
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      const order = [...rows.keys()];
      const at = order.indexOf(chosen.step) + (e.key === "ArrowDown" ? 1 : -1);
      if (order.length) chooseStep(order[Math.min(Math.max(at, 0), order.length - 1)], true);
      e.preventDefault();
    }
  });

  // Tabs

  const built = new Set(["graph"]);
  for (const tab of document.querySelectorAll("main [data-tab]")) tab.addEventListener("click", () => showTab(tab.dataset.tab));

  function showTab(name) {
    for (const tab of document.querySelectorAll("main [data-tab]")) {
      tab.setAttribute("aria-selected", String(tab.dataset.tab === name));
      find(tab.dataset.tab).hidden = tab.dataset.tab !== name;
    }
    find("graph-tools").hidden = name !== "graph";
    if (!built.has(name)) {
      built.add(name);
      if (name === "memory") drawMemory();
      if (name === "time") drawTime();
      if (name === "hlo" || name === "plan")
        readTexts().then((all) => { find(name).querySelector("pre").textContent = name === "hlo" ? all.module : all.plan; });
    }
    if (name === "graph" && chosen.box >= 0) bring(chosen.box);
  }

  // Memory over time

  let memoryNow = null, memoryRects = [];
  const memorySize = { left: 64, top: 30, width: 1000, height: 460 };

  function drawMemory() {
    const { steps, bytes: arena, all, buffers, used } = data.memory;
    const { left, top, width, height } = memorySize;
    const x = (step) => left + (width * step) / Math.max(steps, 1), y = (place) => top + height - (height * place) / Math.max(arena, 1);
    const svg = draw("svg", { viewBox: "0 0 " + (left + width + 16) + " " + (top + height + 46), class: "memory" });
    for (let k = 0; k <= 4; k++)
      svg.append(draw("line", { class: "grid", x1: left, x2: left + width, y1: y(arena * k / 4), y2: y(arena * k / 4) }),
        draw("text", { x: left - 8, y: y(arena * k / 4) + 4, "text-anchor": "end" }, bytes(Math.round(arena * k / 4))));
    const owner = new Map();
    for (const step of data.steps) for (const [access, value] of step.buffers || []) if (access !== "reads" && !owner.has(value)) owner.set(value, step);
    memoryRects = buffers.map(([name, first, last, place, size]) => {
      const step = owner.get(name) || data.steps[first];
      const kind = step && step.box >= 0 ? boxes[step.box].c : "movement";
      const rect = draw("rect", { class: "of " + kind, x: x(first) + 0.4, width: Math.max(x(last + 1) - x(first) - 0.8, 0.8), y: y(place + size), height: Math.max(y(place) - y(place + size), 0.6),
        onclick: () => step && chooseStep(step.number, false) },
        draw("title", {}, name + "\n" + bytes(size) + " at " + place + "\nsteps " + first + " to " + last));
      svg.append(rect);
      return { rect, step };
    });
    const line = used.map((n, k) => "L" + x(k) + " " + y(n) + "L" + x(k + 1) + " " + y(n)).join("");
    svg.append(draw("path", { class: "used", d: "M" + left + " " + y(0) + line + "L" + x(steps) + " " + y(0) }));
    memoryNow = draw("line", { class: "now", y1: top - 6, y2: top + height, x1: -9, x2: -9 });
    svg.append(memoryNow);
    for (let k = 0; k <= 10; k++) {
      const step = Math.round((steps * k) / 10);
      svg.append(draw("text", { x: x(step), y: top + height + 18, "text-anchor": "middle" }, String(step)));
    }
    svg.append(draw("text", { x: left + width / 2, y: top + height + 38, "text-anchor": "middle" }, "step"));
    find("memory").replaceChildren(make("div", { class: "chart memory" },
      make("h2", {}, "The arena over time"),
      make("p", { class: "dim" }, bytes(arena) + " hold " + bytes(all) + " of intermediate values; " + buffers.length + " buffers. Each lies where its box is, from its first step to its last. The dashed line is the sum of what is in use."),
      buffers.length ? svg : make("p", {}, "This program needs no memory of its own.")));
    paintMemory();
  }

  function paintMemory() {
    if (!memoryNow) return;
    const x = memorySize.left + (memorySize.width * (chosen.step + 0.5)) / Math.max(data.memory.steps, 1);
    memoryNow.setAttribute("x1", chosen.step >= 0 ? x : -9);
    memoryNow.setAttribute("x2", chosen.step >= 0 ? x : -9);
    for (const { rect, step } of memoryRects) rect.classList.toggle("chosen", chosen.step >= 0 && step && step.number === chosen.step);
  }

  // Time

  let dots = [];

  function drawTime() {
    const chart = make("div", { class: "chart" });
    const measured = data.steps.filter((s) => s.depth === 0);
    const value = timed ? (s) => s.seconds : (s) => (s.floor !== undefined ? s.floor : s.bytes);
    const word = timed || data.limits ? (s) => seconds(value(s)) : (s) => bytes(value(s));
    if (timed && data.limits) chart.append(make("h2", {}, "What the machine allows"), make("p", { class: "dim" }, "Each dot is a step. The roofs were measured on this machine with " + data.limits.threads + " threads, in fp32."), roofline());
    chart.append(make("h2", {}, timed ? "Where the time goes" : data.limits ? "The least that each step takes" : "What each step reads and writes"));
    if (!timed) chart.append(make("p", { class: "dim" }, "onnxla profile model --html page.html measures times."));
    else if (data.limits) chart.append(make("p", { class: "dim" }, "The mark in a bar is the floor: the larger of operations at the peak and bytes at the bandwidth."));
    const most = Math.max(...measured.map(value), 1e-12), total = measured.reduce((t, s) => t + value(s), 0) || 1;
    const bars = make("div", { class: "bars" });
    for (const step of [...measured].sort((a, b) => value(b) - value(a))) {
      const bar = make("div", { class: "fill" }), track = make("div", { class: "track of " + (step.box >= 0 ? boxes[step.box].c : "movement") }, bar);
      bar.style.width = (100 * value(step)) / most + "%";
      if (timed && step.floor !== undefined) {
        const floor = make("div", { class: "floor" });
        floor.style.left = Math.min((100 * step.floor * step.rounds) / most, 100) + "%";
        track.append(floor);
      }
      const ratio = timed && step.floor ? (step.seconds / (step.floor * step.rounds)).toFixed(1) + " × floor" : step.bound || "";
      const go = () => chooseStep(step.number, false);
      bars.append(make("span", { class: "label", onclick: go, title: step.node }, titleOf(step)),
        track, make("span", { class: "right" }, word(step)), make("span", { class: "right dim" }, percent(value(step) / total) + (ratio ? "  " + ratio : "")));
      track.addEventListener("click", go);
    }
    chart.append(bars);
    find("time").replaceChildren(chart);
    paintTime();
  }

  function roofline() {
    const width = 1000, height = 380, left = 60, top = 14, right = 20, bottom = 44;
    const points = data.steps.filter((s) => s.flops && s.bytes && s.seconds).map((s) => ({ step: s, x: s.flops / s.bytes, y: s.flops * s.rounds / s.seconds / 1e9 }));
    const peak = data.limits.gigaflops;
    const low = (values, other) => 10 ** Math.floor(Math.log10(Math.min(...values, other)));
    const high = (values, other) => 10 ** Math.ceil(Math.log10(Math.max(...values, other)));
    const x0 = low(points.map((p) => p.x), 0.1), x1 = high(points.map((p) => p.x), 100), y0 = low(points.map((p) => p.y), peak / 100), y1 = high(points.map((p) => p.y), peak * 1.05);
    const x = (v) => left + ((width - left - right) * Math.log10(v / x0)) / Math.log10(x1 / x0);
    const y = (v) => height - bottom - ((height - top - bottom) * Math.log10(v / y0)) / Math.log10(y1 / y0);
    const svg = draw("svg", { viewBox: "0 0 " + width + " " + height });
    for (let v = x0; v <= x1 * 1.001; v *= 10) svg.append(draw("line", { class: "grid", x1: x(v), x2: x(v), y1: top, y2: height - bottom }), draw("text", { x: x(v), y: height - bottom + 17, "text-anchor": "middle" }, Number(v.toPrecision(1)).toString()));
    for (let v = y0; v <= y1 * 1.001; v *= 10) svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }), draw("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, Number(v.toPrecision(1)).toString()));
    svg.append(draw("text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle" }, "FLOP per byte"), draw("text", { x: left + 6, y: top + 12 }, "GFLOP/s"));
    svg.append(draw("path", { class: "roof", d: "M" + x(Math.max(x0, y0 / data.limits.memories[0][2])) + " " + y(peak) + "H" + (width - right) }));
    svg.append(draw("text", { class: "strong", x: width - right - 4, y: y(peak) - 6, "text-anchor": "end" }, peak.toFixed(0) + " GFLOP/s"));
    for (const [k, [name, , speed]] of data.limits.memories.entries()) {
      const from = Math.max(x0, y0 / speed), to = peak / speed;
      if (to <= from) continue;
      svg.append(draw("line", { class: "roof", x1: x(from), y1: y(from * speed), x2: x(to), y2: y(to * speed) }),
        draw("text", { class: "strong", x: x(from) + 8, y: y(from * speed) + (k === 1 ? 18 : -6) }, name + " " + speed.toFixed(0) + " GB/s"));
    }
    const longest = Math.max(...points.map((p) => p.step.seconds), 1e-12);
    dots = points.sort((a, b) => b.step.seconds - a.step.seconds).map(({ step, x: px, y: py }) => {
      const dot = draw("circle", { class: "dot of " + (step.box >= 0 ? boxes[step.box].c : "movement"), cx: x(px), cy: y(py), r: 4 + 9 * Math.sqrt(step.seconds / longest), onclick: () => chooseStep(step.number, false) },
        draw("title", {}, step.name + "\n" + seconds(step.seconds) + ", " + py.toFixed(1) + " GFLOP/s, " + px.toFixed(1) + " FLOP per byte"));
      svg.append(dot);
      return { dot, step };
    });
    return svg;
  }

  function paintTime() {
    for (const { dot, step } of dots) dot.classList.toggle("chosen", step.number === chosen.step);
  }

  // Begin

  showSteps();
  drawGraph();
  begin();
  new ResizeObserver(() => { if (!find("graph").hidden) { drawMap(); move(); } }).observe(find("graph"));
  const place = /^#(step|box)-(\d+)$/.exec(location.hash);
  if (place && place[1] === "step" && data.steps[Number(place[2])]) chooseStep(Number(place[2]), true);
  else if (place && place[1] === "box" && boxes[Number(place[2])]) chooseBox(Number(place[2]), true);
  else showDetail();
  document.documentElement.dataset.ready = "1";
})();
