// The page: what the server tells, put where it belongs.

import { Charts } from "./charts.js";
import { byId, cell, make, say, show, table } from "./dom.js";
import { Graph, columnsOf } from "./graph.js";
import { NeedsToken, get, keepToken, listen, post } from "./server.js";
import { bytes, clock, duration, place, rate, seconds, sum, whole } from "./words.js";

const MOST_POINTS = 720;
const MOST_RECENT = 20;
const REFRESH_MS = 1000;
const IDLE_MS = 5000;

const state = { pipeline: null, run: null, history: null, over: false, listening: false };
const graph = new Graph(byId("graph"), (id) => showDetails(id));
const charts = new Charts(byId("charts"));
const rows = new Map();
let waiting = null;

async function begin() {
  show(byId("token"), false);
  show(byId("again"), false);
  state.over = false;
  try {
    await load();
  } catch (error) {
    if (error instanceof NeedsToken) {
      show(byId("token"), true);
      byId("token-text").focus();
      return;
    }
    say(byId("connection"), `The server can't be asked: ${error.message}`);
  }
  if (state.listening) return;
  state.listening = true;
  await listen({ on, lost, refused: () => show(byId("token"), true), isOver: () => state.over });
  state.listening = false;
}

async function load() {
  [state.pipeline, state.history] = await Promise.all([get("/api/v1/pipeline"), get("/api/v1/history")]);
  drawPipeline();
}

function on(event, content) {
  say(byId("connection"), "");
  if (event === "run") {
    const isOther = state.run && state.run.id !== content.id;
    state.run = content.id ? content : null;
    if (isOther) load().then(render, () => {});
    else if (state.pipeline?.kind === "file") keepHistory();
  } else if (event === "pipeline") {
    state.pipeline = content;
    drawPipeline();
    say(byId("connection"), "The file was read again.");
  } else if (event === "states" && state.run) {
    state.run.state = content.state;
    for (const [id, found] of Object.entries(content.targets)) {
      if (state.run.targets[id]) state.run.targets[id].state = found;
    }
    refresh();
  } else if (event === "progress" && state.run) {
    const { target, ...batch } = content;
    const known = state.run.targets[target];
    if (known) known.recent = [...known.recent, batch].slice(-MOST_RECENT);
    remember(target, batch);
    refresh();
  } else if (["unhealthy", "healthy", "restarting"].includes(event)) {
    refresh();
  } else if (event === "ended" && state.run) {
    state.over = true;
    clearTimeout(waiting);
    waiting = null;
    state.run.state = content.status;
    state.run.ended = content.ended;
    state.run.seconds = content.seconds;
    state.run.diagnostics = content.diagnostics;
    for (const [id, totals] of Object.entries(content.targets)) {
      const known = state.run.targets[id];
      if (!known) continue;
      known.totals = totals;
      if (["running", "stopping", "starting"].includes(known.state)) known.state = content.status;
      known.failure = content.diagnostics.find((found) => found.node === id) ?? known.failure;
    }
    say(byId("connection"), "The run has ended. These are its last numbers.");
    show(byId("again"), true);
  }
  render();
}

function lost(pause) {
  say(byId("connection"), `No answer from the server; asking again in ${duration(pause / 1000)}.`);
}

// The totals are the server's own: asked again at most once a second while something happens.
function refresh() {
  waiting ??= setTimeout(async () => {
    waiting = null;
    try {
      const found = await get("/api/v1/status");
      if (state.over || !found.id) return;
      state.run = found;
      render();
    } catch {
      // The events tell when the server is gone.
    }
  }, REFRESH_MS);
}

// Where nothing arrives, the run gets older all the same, and its watermark falls behind.
setInterval(() => {
  if (isLive() && !document.hidden) refresh();
}, IDLE_MS);

function remember(target, batch) {
  const ended = seconds(batch.timestamp) + batch.duration_ms / 1000;
  const found = (state.history.targets[target] ??= emptyHistory());
  const point = {
    time: ended,
    micro_batches: 1,
    rows_in: batch.rows_in,
    rows_out: batch.rows_out,
    busy_ms: batch.duration_ms,
    late_rows: batch.late_rows,
    rejected_rows: sum(batch.rejected),
    state_rows: batch.state_rows,
    state_bytes: batch.state_bytes,
    watermark_seconds: batch.watermark ? ended - seconds(batch.watermark) : null,
    lag_seconds: longest(batch.lag_seconds),
  };
  if (found.time.length && found.time.at(-1) >= ended) return; // it came with the history
  const before = found.time.length;
  for (const [name, value] of Object.entries(point)) found[name].push(value);
  rememberEach(found.phases_ms, batch.phases_ms ?? {}, before, 0);
  rememberEach(found.lag, lagByUnit(batch), before, null);
  if (found.time.length > MOST_POINTS) {
    keepHistory(); // the server thins what it keeps
  }
}

// Columns that begin when there is something to put into them; at other times they hold what stands for nothing.
function rememberEach(columns, values, before, nothing) {
  for (const [name, value] of Object.entries(values)) {
    (columns[name] ??= new Array(before).fill(nothing))[before] = value;
  }
  for (const column of Object.values(columns)) if (column.length === before) column.push(nothing);
}

function lagByUnit(batch) {
  const found = {};
  for (const [source, behind] of Object.entries(batch.lag ?? {})) {
    const unit = batch.lag_units?.[source] ?? "records";
    found[unit] = (found[unit] ?? 0) + behind;
  }
  return found;
}

function longest(seconds) {
  const all = Object.values(seconds ?? {});
  return all.length ? Math.max(...all) : null;
}

async function keepHistory() {
  try {
    state.history = await get("/api/v1/history");
    render();
  } catch {
    // The events tell when the server is gone.
  }
}

function emptyHistory() {
  const names = ["time", "micro_batches", "rows_in", "rows_out", "busy_ms", "late_rows", "rejected_rows"];
  names.push("state_rows", "state_bytes", "watermark_seconds", "lag_seconds");
  return { ...Object.fromEntries(names.map((name) => [name, []])), lag: {}, phases_ms: {} };
}

function drawPipeline() {
  const found = state.pipeline;
  document.title = `${found.pipeline ?? "gem-bundle"} · gem-bundle`;
  say(byId("title"), `${found.pipeline ?? "gem-bundle"} ${found.version ?? ""}`);
  say(byId("about"), [found.description, found.file].filter(Boolean).join(" · "));
  show(byId("graph-section"), Boolean(found.nodes?.length));
  if (found.nodes?.length) graph.draw(found);
  drawFile();
  render();
}

let due = false;
function render() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    showRun();
    showProblems();
    showGraph();
    showTargets();
    showHistory();
    refreshDetails();
  });
}

function isLive() {
  return state.run && !state.over && ["starting", "running", "stopping"].includes(state.run.state);
}

function showRun() {
  const run = state.run;
  const badge = byId("state");
  show(badge, run);
  show(byId("summary-section"), run);
  show(byId("stop"), isLive() && state.pipeline?.control);
  if (!run) return;
  say(badge, run.state);
  badge.dataset.state = run.state;
  byId("stop").disabled = run.state === "stopping";
  const targets = Object.values(run.targets);
  const lasted = duration(run.seconds);
  const words = [`${run.state} since ${clock(run.started)} UTC, for ${lasted}`];
  if (run.ended) words[0] = `${run.state} at ${clock(run.ended)} UTC after ${lasted}`;
  if (run.reason) words.push(run.reason);
  if (run.process?.host) words.push(`process ${run.process.pid} on ${run.process.host}`);
  if (run.gem_bundle) words.push(`gem-bundle ${run.gem_bundle}`);
  say(byId("summary"), words.join(" · "));
  const queries = onePerQuery(targets);
  const unknown = targets.some(({ totals }) => totals.rows_out === null);
  const figures = {
    "micro-batches": whole(total(queries, "micro_batches")),
    "rows in": whole(total(queries, "rows_in")),
    "rows out": unknown ? "-" : whole(total(targets, "rows_out")),
    "late rows": whole(total(queries, "late_rows")),
    "rejected rows": whole(sum(rejectedOf(targets))),
  };
  for (const [name, value] of Object.entries(figures)) {
    const id = `total-${name.replaceAll(" ", "-")}`;
    if (!byId(id)) {
      byId("totals").append(make("div", {}, make("dt", { text: name }), make("dd", { id })));
    }
    say(byId(id), value);
  }
}

// Targets of one group read the same rows; they count once, as in the report.
function onePerQuery(targets) {
  const groups = new Set();
  return targets.filter(({ totals }) => {
    const isFirst = !totals.group || !groups.has(totals.group);
    if (totals.group) groups.add(totals.group);
    return isFirst;
  });
}

function total(targets, name) {
  return targets.reduce((all, { totals }) => all + (totals[name] ?? 0), 0);
}

function rejectedOf(targets) {
  const found = {};
  for (const { totals } of targets) {
    for (const [node, many] of Object.entries(totals.rejected ?? {})) {
      found[node] = Math.max(found[node] ?? 0, many);
    }
  }
  return found;
}

function problems() {
  const run = state.run;
  const failures = [...(run?.diagnostics ?? [])];
  for (const [id, { failure, unwell }] of Object.entries(run?.targets ?? {})) {
    if (failure) failures.push(failure);
    for (const found of unwell ?? []) failures.push(limit(id, found));
  }
  const all = [...failures, ...(state.pipeline?.diagnostics ?? [])];
  const seen = new Set();
  return all.filter((found) => {
    const key = JSON.stringify([found.code, found.message, found.line, found.column]);
    return !seen.has(key) && seen.add(key);
  });
}

// A broken limit of a target's health, as a problem at the target.
function limit(id, found) {
  const severity = found.level === "fail" ? "error" : "warning";
  const message = `target \`${id}\` is unwell: ${found.reason}`;
  return { severity, code: "health", message, hint: `Since ${clock(found.since)} UTC.`, node: id };
}

let shownProblems = "";
function showProblems() {
  const found = problems();
  const key = JSON.stringify(found);
  if (key === shownProblems) return;
  shownProblems = key;
  show(byId("problems-section"), found.length);
  byId("problems").replaceChildren(...found.map((one) => problemItem(one)));
  markLines(found);
}

function problemItem(found) {
  const own = found.line && found.file === state.pipeline?.file && byId(`line-${found.line}`);
  const where = place(found);
  return make(
    "li",
    { className: `problem ${found.severity}` },
    make("strong", { text: `${found.severity}[${found.code}]` }),
    " ",
    own ? make("a", { href: `#line-${found.line}`, text: where }) : make("span", { className: "place", text: where }),
    make("p", { text: found.message }),
    found.hint ? make("p", { className: "hint", text: found.hint }) : null,
  );
}

function drawFile() {
  const text = state.pipeline.text ?? "";
  show(byId("file-section"), text);
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const made = lines.map((line, at) =>
    make("div", { className: "line", id: `line-${at + 1}` }, make("span", { className: "number", text: at + 1 }), make("code", { text: line })),
  );
  byId("file").replaceChildren(...made);
  shownProblems = "";
}

function markLines(found) {
  for (const note of document.querySelectorAll("#file .note")) note.remove();
  for (const line of document.querySelectorAll("#file .line[data-severity]")) delete line.dataset.severity;
  for (const one of found) {
    const line = one.file === state.pipeline?.file && byId(`line-${one.line}`);
    if (!line) continue;
    line.dataset.severity ??= one.severity;
    line.after(make("div", { className: `note ${one.severity}`, text: `${one.severity}[${one.code}]: ${one.message}` }));
  }
}

function lastOf(target) {
  return target?.totals?.last ?? target?.recent?.at(-1) ?? null;
}

function rateOut(last) {
  if (!last || last.rows_out === null) return null;
  return last.rows_out / Math.max(last.duration_ms / 1000, 0.001);
}

function showGraph() {
  const told = new Map();
  const found = problems();
  const targets = state.run?.targets ?? {};
  const rejected = rejectedOf(Object.values(targets));
  for (const node of state.pipeline?.nodes ?? []) {
    const own = found.filter((one) => one.node === node.id);
    const worst = ["error", "warning"].find((severity) => own.some((one) => one.severity === severity)) ?? "";
    const lines = [];
    let is = "";
    if (targets[node.id]) {
      const target = targets[node.id];
      const last = lastOf(target);
      is = target.state;
      lines.push(target.unwell?.length ? `${target.state}, unwell` : target.state);
      lines.push(last ? `in ${rate(last.rows_per_second)} rows/s, out ${rate(rateOut(last))}` : "no micro-batch yet");
      if (last) lines.push(`${whole(target.totals.rows_in)} in, ${whole(target.totals.rows_out)} out`);
    } else if (node.kind === "target" && state.run) {
      lines.push("not in this run");
    }
    if (node.id in rejected) lines.push(`${whole(rejected[node.id])} rejected`);
    if (worst === "error" && !is && !lines.includes("failed")) lines.unshift(state.run ? "failed" : "error");
    else if (worst === "warning") lines.push("warning");
    told.set(node.id, { lines, state: is, problem: worst });
  }
  graph.update(told);
}

const COLUMNS = [
  ["State", (target) => target.state],
  ["Rows/s in", (target, last) => rate(last?.rows_per_second)],
  ["Rows/s out", (target, last) => rate(rateOut(last))],
  ["Rows in", (target) => whole(target.totals.rows_in)],
  ["Rows out", (target) => whole(target.totals.rows_out)],
  ["Micro-batches", (target) => whole(target.totals.micro_batches)],
  ["Last took", (target, last) => (last ? duration(last.duration_ms / 1000) : "-")],
  ["Behind", (_, last) => lagWords(last)],
  ["Watermark behind", (target) => watermarkWords(target.totals.watermark)],
  ["State store", (target, last) => (last?.state_rows ? `${whole(last.state_rows)} rows, ${bytes(last.state_bytes)}` : "-")],
  ["Late", (target) => whole(target.totals.late_rows)],
  ["Rejected", (target) => whole(sum(target.totals.rejected))],
  ["Restarts", (target) => whole(target.totals.restarts ?? 0)],
];

function lagWords(last) {
  const since = last?.lag_seconds ?? {};
  const units = last?.lag_units ?? {};
  const said = Object.entries(last?.lag ?? {}).map(([source, behind]) =>
    [source, whole(behind), units[source], since[source] ? `for ${duration(since[source])}` : ""].filter(Boolean).join(" "),
  );
  return said.join(", ") || "-";
}

function watermarkWords(watermark) {
  if (!watermark) return "-";
  return duration(Date.now() / 1000 - seconds(watermark));
}

let shownTargets = "";
function showTargets() {
  const run = state.run;
  show(byId("targets-section"), run);
  if (!run) return;
  const names = Object.keys(run.targets);
  const canSteer = state.pipeline?.control === true;
  const key = JSON.stringify([names, canSteer]);
  if (key !== shownTargets) {
    shownTargets = key;
    rows.clear();
    for (const name of names) {
      const cells = COLUMNS.map(() => cell(""));
      const button = make("button", { type: "button", onclick: () => steer(name) });
      const steering = canSteer ? [make("td", {}, button)] : [];
      const row = [make("th", { scope: "row", text: name }), ...cells, ...steering];
      rows.set(name, { cells, button, row });
    }
    const head = ["Target", ...COLUMNS.map(([title]) => title), ...(canSteer ? ["Steer"] : [])];
    byId("targets").replaceChildren(...table("Numbers of each target", head, [...rows.values()].map(({ row }) => row)));
    const options = names.map((name) => make("option", { value: name, text: name }));
    byId("chosen").replaceChildren(...options);
  }
  for (const [name, { cells, button }] of rows) {
    const target = run.targets[name];
    const last = lastOf(target);
    COLUMNS.forEach(([, word], at) => say(cells[at], word(target, last)));
    cells[0].dataset.state = target.state;
    const canStop = target.state === "running";
    const canResume = ["stopped", "finished"].includes(target.state) && isLive();
    show(button, isLive() && (canStop || canResume));
    say(button, canResume ? `Resume ${name}` : `Stop ${name}`);
  }
}

function showHistory() {
  const chosen = byId("chosen").value;
  const target = state.run?.targets[chosen];
  show(byId("history-section"), target);
  show(byId("plan-part"), state.pipeline?.kind === "run");
  if (!target) return;
  charts.update(state.history?.targets[chosen] ?? emptyHistory());
  const names = ["Micro-batch", "Began (UTC)", "Rows in", "Rows out", "Rows/s", "Took", "Longest phase"];
  names.push("Watermark", "State rows", "Late", "Rejected");
  const found = [...target.recent].reverse().map((batch) => {
    const [phase, took] = Object.entries(batch.phases_ms ?? {})
      .filter(([name]) => name !== "triggerExecution")
      .reduce((one, other) => (other[1] > one[1] ? other : one), ["-", 0]);
    return [
      make("th", { scope: "row", text: batch.batch_id }),
      cell(clock(batch.timestamp)),
      cell(whole(batch.rows_in)),
      cell(whole(batch.rows_out)),
      cell(rate(batch.rows_per_second)),
      cell(duration(batch.duration_ms / 1000)),
      cell(`${phase} ${duration(took / 1000)}`),
      cell(clock(batch.watermark)),
      cell(whole(batch.state_rows)),
      cell(whole(batch.late_rows)),
      cell(whole(sum(batch.rejected))),
    ];
  });
  byId("batches").replaceChildren(...table(`The newest first, of ${chosen}`, names, found));
}

let shownDetails = "";
function refreshDetails() {
  const node = state.pipeline?.nodes?.find((one) => one.id === graph.chosen);
  const key = node ? JSON.stringify([node, problems().filter((found) => found.node === node.id)]) : "";
  if (key !== shownDetails) showDetails(node?.id);
}

function showDetails(id) {
  const panel = byId("details");
  const node = state.pipeline?.nodes?.find((one) => one.id === id);
  shownDetails = node ? JSON.stringify([node, problems().filter((found) => found.node === id)]) : "";
  show(panel, node);
  if (!node) return;
  const about = { gem: node.gem };
  for (const key of ["mode", "output_mode", "trigger", "group"]) if (node[key]) about[key.replace("_", " ")] = node[key];
  const facts = Object.entries(about).map(([name, value]) => [make("th", { scope: "row", text: name }), cell(value)]);
  const options = Object.entries(node.options).map(([name, value]) => [
    make("th", { scope: "row", text: name }),
    cell(typeof value === "string" ? value : JSON.stringify(value)),
  ]);
  panel.replaceChildren(
    make(
      "div",
      { className: "bar" },
      make("h3", { text: `${node.kind} ${node.id}` }),
      make("button", { type: "button", text: "Close", onclick: () => graph.choose(null) }),
    ),
    ...(node.description ? [make("p", { text: node.description })] : []),
    make("table", {}, ...table("What it is", ["", ""], facts).filter((part) => part.localName !== "thead")),
    ...(options.length
      ? [make("table", {}, ...table("Options", ["", ""], options).filter((part) => part.localName !== "thead"))]
      : []),
    ...node.inputs.map((input) => flowTable(`Reads ${input.node}${input.output ? `.${input.output}` : ""}`, flowOf(input))),
    ...node.outputs.map((output) => flowTable(output.output ? `Gives ${output.output}` : "Gives", output)),
    make("ul", {}, ...problems().filter((found) => found.node === id).map((found) => problemItem(found))),
    state.pipeline.kind === "file" ? previewOf(node) : "",
  );
}

function flowOf(input) {
  const from = state.pipeline.nodes.find((node) => node.id === input.node);
  return from?.outputs.find((output) => output.output === input.output);
}

function flowTable(title, flow) {
  const kind = flow?.streaming === false ? "static" : flow?.streaming ? "stream" : "";
  const caption = [title, kind && `(${kind})`].filter(Boolean).join(" ");
  if (!flow?.columns) return make("p", { text: `${caption}: ${columnsOf(flow)}` });
  const columns = flow.columns.map((column) => [
    make("th", { scope: "row", text: column.name }),
    cell([column.type ?? "?", column.watermark && `watermark ${column.watermark}`].filter(Boolean).join(", ")),
  ]);
  return make("table", {}, ...table(caption, ["Column", "Type"], columns));
}

function previewOf(node) {
  const shown = make("div", { role: "status" });
  const button = make("button", {
    type: "button",
    text: "First rows",
    onclick: async () => {
      button.disabled = true;
      say(shown, "Asking Spark; its start takes some seconds.");
      try {
        const found = await post("/api/v1/preview", { node: node.id });
        const values = found.rows.map((row) => row.map((value) => cell(value === null ? "null" : value)));
        const names = found.columns.map(({ name, type }) => `${name} ${type}`);
        const caption = `${found.rows.length} rows${found.complete ? ", all there are" : ", the first ones"}`;
        const region = { className: "scroll", role: "region", "aria-label": `Rows of ${node.id}`, tabindex: 0 };
        shown.replaceChildren(make("div", region, make("table", {}, ...table(caption, names, values))));
      } catch (error) {
        const list = (error.diagnostics ?? []).map((one) => problemItem(one));
        shown.replaceChildren(list.length ? make("ul", {}, ...list) : error.message);
      }
      button.disabled = false;
    },
  });
  return make("div", { className: "preview" }, button, shown);
}

function sure(text) {
  const dialog = byId("ask");
  say(byId("ask-text"), text);
  dialog.showModal();
  return new Promise((answer) => {
    byId("ask-yes").onclick = () => dialog.close("yes");
    byId("ask-no").onclick = () => dialog.close("no");
    dialog.onclose = () => answer(dialog.returnValue === "yes");
    dialog.returnValue = "";
  });
}

async function ask(action, content) {
  try {
    await post(`/api/v1/${action}`, content);
  } catch (error) {
    say(byId("connection"), error.message);
  }
}

async function steer(target) {
  if (state.run.targets[target].state !== "running") await ask("resume", { target });
  else if (await sure(`The query of ${target} stops when its running micro-batch has ended. The others go on.`)) {
    await ask("stop", { target });
  }
}

byId("stop").addEventListener("click", async () => {
  if (await sure("All queries stop when their running micro-batches have ended. The next run goes on there.")) {
    await ask("stop", {});
  }
});
byId("again").addEventListener("click", begin);
byId("chosen").addEventListener("change", () => {
  charts.clear();
  show(byId("plan"), false);
  render();
});
byId("smaller").addEventListener("click", () => graph.zoom(graph.scale / 1.25));
byId("larger").addEventListener("click", () => graph.zoom(graph.scale * 1.25));
byId("fit").addEventListener("click", () => graph.fitWhole());
byId("show-plan").addEventListener("click", async () => {
  const shown = byId("plan");
  show(shown, true);
  try {
    const found = await get(`/api/v1/plan?target=${encodeURIComponent(byId("chosen").value)}`);
    say(shown, found.plan || "There is none yet.");
  } catch (error) {
    say(shown, error.message);
  }
});
byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(byId("token-text").value);
  byId("token-text").value = "";
  begin();
});
begin();
