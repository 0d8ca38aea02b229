// The pipeline as a graph: dagre says where everything goes, this draws it.

import { make, say } from "./dom.js";

const WIDTH = 176;
const HEIGHT = 68;
const TARGET_HEIGHT = 108;
const LABEL = { width: 74, height: 20 };
const NARROW = 640;
const READABLE = 0.6;
const SVG = "http://www.w3.org/2000/svg";
const SMALLEST = 0.1;

export class Graph {
  constructor(region, onChoose) {
    this.region = region;
    this.onChoose = onChoose;
    this.nodes = new Map();
    this.scale = 1;
    this.size = { width: 0, height: 0 };
    this.isFitted = true;
    this.isNarrow = false;
    this.told = new Map();
    new ResizeObserver(() => this.resized()).observe(region);
  }

  draw(pipeline) {
    this.pipeline = pipeline;
    this.isNarrow = this.region.clientWidth < NARROW;
    const layout = new dagre.graphlib.Graph({ multigraph: true });
    layout.setGraph({ rankdir: this.isNarrow ? "TB" : "LR", nodesep: 24, ranksep: 34, marginx: 14, marginy: 14 });
    const known = new Map(pipeline.nodes.map((node) => [node.id, node]));
    for (const node of pipeline.nodes) {
      layout.setNode(node.id, { width: WIDTH, height: node.kind === "target" ? TARGET_HEIGHT : HEIGHT });
    }
    const edges = [];
    for (const node of pipeline.nodes) {
      node.inputs.forEach((input, at) => {
        const from = known.get(input.node);
        if (!from) return;
        const flow = from.outputs.find((output) => output.output === input.output);
        const label = edgeLabel(input, flow);
        const name = `${node.id}:${at}`;
        layout.setEdge(input.node, node.id, label ? { ...LABEL, labelpos: "c" } : {}, name);
        edges.push({ v: input.node, w: node.id, name, label, flow });
      });
    }
    dagre.layout(layout);
    const canvas = make("div", { className: "canvas" });
    const { width, height } = layout.graph();
    this.size = { width, height };
    canvas.append(this.lines(layout, edges));
    for (const edge of edges.filter((one) => one.label)) {
      const { x, y } = layout.edge(edge);
      const element = make("span", { className: "edge-label", text: edge.label, title: columnsOf(edge.flow) });
      put(element, x - LABEL.width / 2, y - LABEL.height / 2, LABEL.width, LABEL.height);
      canvas.append(element);
    }
    this.nodes.clear();
    for (const node of pipeline.nodes) {
      const at = layout.node(node.id);
      const element = make(
        "button",
        { type: "button", className: `node ${node.kind}`, "data-id": node.id, onclick: () => this.choose(node.id) },
        make("strong", { text: node.id }),
        make("span", { className: "gem", text: `${node.kind} ${node.gem}` }),
        make("span", { className: "numbers" }),
        node.kind === "target" ? make("span", { className: "numbers" }) : null,
        node.kind === "target" ? make("span", { className: "numbers" }) : null,
      );
      put(element, at.x - at.width / 2, at.y - at.height / 2, at.width, at.height);
      canvas.append(element);
      this.nodes.set(node.id, element);
    }
    this.region.replaceChildren(make("div", { className: "sized" }, canvas));
    this.update(this.told);
    this.fit();
    if (!known.has(this.chosen)) this.chosen = null;
    this.mark();
  }

  lines(layout, edges) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("width", this.size.width);
    svg.setAttribute("height", this.size.height);
    svg.setAttribute("aria-hidden", "true");
    const head = document.createElementNS(SVG, "path");
    head.setAttribute("d", "M0,0 L8,4 L0,8 z");
    head.setAttribute("class", "arrow");
    const marker = document.createElementNS(SVG, "marker");
    for (const [name, value] of Object.entries({
      id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 10, markerHeight: 10, markerUnits: "userSpaceOnUse", orient: "auto",
    })) {
      marker.setAttribute(name, value);
    }
    marker.append(head);
    svg.append(marker);
    for (const edge of edges) {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", curve(layout.edge(edge).points));
      path.setAttribute("class", edge.flow?.streaming === false ? "edge static" : "edge");
      path.setAttribute("marker-end", "url(#arrow)");
      path.dataset.from = edge.v;
      path.dataset.to = edge.w;
      svg.append(path);
    }
    return svg;
  }

  // What each node says of itself: lines of numbers, and how it is (`failed`, `running`, `idle`).
  update(told) {
    this.told = told;
    for (const [id, element] of this.nodes) {
      const { lines = [], state = "", problem = "" } = told.get(id) ?? {};
      element.querySelectorAll(".numbers").forEach((line, at) => say(line, lines[at] ?? ""));
      element.dataset.state = state;
      element.dataset.problem = problem;
      const node = this.pipeline.nodes.find((one) => one.id === id);
      // What doesn't fit into the box is here.
      const whole = [`${node.kind} ${id}`, node.gem, problem, ...lines].filter(Boolean).join(", ");
      if (element.title !== whole) element.title = whole;
    }
  }

  choose(id) {
    this.chosen = id;
    this.mark();
    this.onChoose(id);
  }

  mark() {
    const id = this.chosen;
    for (const [name, element] of this.nodes) element.setAttribute("aria-pressed", name === id);
    for (const path of this.region.querySelectorAll(".edge")) {
      path.classList.toggle("chosen", path.dataset.from === id || path.dataset.to === id);
    }
  }

  // As large as there is room for in width; what would be too small to read is scrolled instead.
  fit(smallest = READABLE) {
    const room = this.region.clientWidth - 4;
    this.zoom(Math.max(smallest, Math.min(1, room / this.size.width)), true);
  }

  // All of it at once, however small.
  fitWhole() {
    const { width, height } = this.size;
    const high = innerHeight * 0.68;
    this.zoom(Math.min(1, (this.region.clientWidth - 4) / width, high / height));
  }

  zoom(scale, isFitted = false) {
    this.isFitted = isFitted;
    this.scale = Math.max(SMALLEST, Math.min(2, scale));
    const sized = this.region.firstElementChild;
    if (!sized) return;
    sized.style.width = `${Math.ceil(this.size.width * this.scale)}px`;
    sized.style.height = `${Math.ceil(this.size.height * this.scale)}px`;
    sized.firstElementChild.style.transform = `scale(${this.scale})`;
  }

  resized() {
    if (!this.pipeline) return;
    if (this.region.clientWidth < NARROW !== this.isNarrow) {
      this.draw(this.pipeline);
    } else if (this.isFitted) {
      this.fit();
    }
  }
}

export function columnsOf(flow) {
  if (!flow?.columns) return "columns unknown";
  return flow.columns.map((column) => `${column.name} ${column.type ?? "?"}`).join(", ");
}

function edgeLabel(input, flow) {
  if (input.output) return input.output;
  if (!flow?.columns) return "";
  return flow.columns.length === 1 ? "1 column" : `${flow.columns.length} columns`;
}

function put(element, left, top, width, height) {
  element.style.left = `${left}px`;
  element.style.top = `${top}px`;
  element.style.width = `${width}px`;
  element.style.height = `${height}px`;
}

// A smooth line through the points: straight to the middle of each piece, and round each corner.
function curve(points) {
  const [first, ...rest] = points;
  const parts = [`M${first.x},${first.y}`];
  rest.slice(0, -1).forEach((point, at) => {
    const next = rest[at + 1];
    const end = at === rest.length - 2 ? next : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    parts.push(`Q${point.x},${point.y} ${end.x},${end.y}`);
  });
  if (rest.length === 1) parts.push(`L${rest[0].x},${rest[0].y}`);
  return parts.join(" ");
}
