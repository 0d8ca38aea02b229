// The history of a target as charts, drawn by uPlot.

import { make } from "./dom.js";
import { bytes, duration, rate, whole } from "./words.js";

const HEIGHT = 160;
const MOST_PHASES = 4;
// Half a file is no mark at an axis.
const WHOLE_STEPS = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

// The numbers of a chart are columns of the history; a chart without any number isn't shown.
const FIRST = [
  {
    title: "Rows per second",
    word: rate,
    series: (found) => ({ "rows in": perSecond(found, found.rows_in), "rows out": perSecond(found, found.rows_out) }),
  },
  {
    title: "Duration of micro-batches, by phase",
    word: duration,
    series: (found) => ({ "whole micro-batch": each(found, found.busy_ms), ...phases(found) }),
  },
];
const BEHIND_FOR = { title: "Behind for", word: duration, spansGaps: true, series: (found) => ({ time: found.lag_seconds }) };
const LAST = [
  { title: "Watermark behind", word: duration, series: (found) => ({ watermark: found.watermark_seconds }) },
  { title: "Rows in the state", word: whole, series: (found) => ({ rows: some(found.state_rows) }) },
  { title: "Memory of the state", word: bytes, series: (found) => ({ memory: some(found.state_bytes) }) },
  {
    title: "Late and rejected rows",
    word: whole,
    series: (found) => ({ late: some(found.late_rows), rejected: some(found.rejected_rows) }),
  },
];

// One for each unit that occurs: records, files, versions are no sum. Sources that take long are asked now and then.
function chartsOf(found) {
  const behind = Object.keys(found.lag).map((unit) => ({
    title: `${unit[0].toUpperCase()}${unit.slice(1)} behind`,
    word: whole,
    spansGaps: true,
    series: () => ({ behind: found.lag[unit] }),
  }));
  return [...FIRST, ...behind, BEHIND_FOR, ...LAST];
}

function some(column) {
  return column.some((value) => value) ? column : null;
}

function perSecond(found, column) {
  return column.map((value, at) => {
    if (value === null) return null;
    const since = at ? found.time[at] - found.time[at - 1] : found.busy_ms[at] / 1000;
    return value / Math.max(since, found.busy_ms[at] / 1000, 0.001);
  });
}

function each(found, column) {
  return column.map((value, at) => value / 1000 / found.micro_batches[at]);
}

function phases(found) {
  const longest = Object.entries(found.phases_ms)
    .filter(([name]) => name !== "triggerExecution")
    .map(([name, values]) => [name, values, values.reduce((all, one) => all + one, 0)])
    .filter(([, , all]) => all > 0)
    .sort(([, , one], [, , other]) => other - one)
    .slice(0, MOST_PHASES);
  return Object.fromEntries(longest.map(([name, values]) => [name, each(found, values)]));
}

export class Charts {
  constructor(region) {
    this.region = region;
    this.drawn = new Map();
    new ResizeObserver(() => this.resized()).observe(region);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.clear();
      if (this.found) this.update(this.found);
    });
  }

  clear() {
    for (const { plot } of this.drawn.values()) plot.destroy();
    this.drawn.clear();
    this.region.replaceChildren();
  }

  update(found) {
    this.found = found;
    const charts = chartsOf(found);
    // Another run may have no source that counts what those of the last one did.
    for (const [title, { plot, figure }] of this.drawn) {
      if (charts.some((chart) => chart.title === title)) continue;
      plot.destroy();
      figure.remove();
      this.drawn.delete(title);
    }
    for (const chart of charts) {
      const series = Object.entries(found.time.length > 1 ? chart.series(found) : {}).filter(
        ([, values]) => values && values.some((value) => value !== null && value !== undefined),
      );
      const names = series.map(([name]) => name).join();
      const old = this.drawn.get(chart.title);
      if (old && old.names !== names) {
        old.plot.destroy();
        old.figure.remove();
        this.drawn.delete(chart.title);
      }
      if (!series.length) continue;
      const data = [found.time, ...series.map(([, values]) => values)];
      if (this.drawn.has(chart.title)) this.drawn.get(chart.title).plot.setData(data);
      else this.drawn.set(chart.title, { ...this.make(chart, series, data), names });
      this.tell(this.drawn.get(chart.title), null);
    }
    // In the order of the list, wherever one has come or gone.
    const figures = charts.map(({ title }) => this.drawn.get(title)?.figure).filter(Boolean);
    figures.forEach((figure, at) => {
      if (this.region.children[at] !== figure) this.region.insertBefore(figure, this.region.children[at] ?? null);
    });
  }

  make(chart, series, data) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const values = series.map(() => make("b"));
    const legend = series.map(([name], at) =>
      make("span", { className: "key" }, make("i", { className: `line-${at}` }), `${name} `, values[at]),
    );
    const holder = make("div", { role: "img" });
    const figure = make("figure", {}, make("figcaption", {}, make("strong", { text: chart.title }), ...legend), holder);
    this.region.append(figure);
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false } };
    const words = (_, ticks) => ticks.map((tick) => chart.word(tick));
    const drawn = { figure, holder, chart, values, names: "" };
    drawn.plot = new uPlot(
      {
        width: Math.max(200, figure.clientWidth),
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, drag: { x: true, y: false } },
        tzDate: (stamp) => uPlot.tzDate(new Date(stamp * 1000), "UTC"),
        scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] } },
        axes: [
          { ...axis, values: (_, ticks) => ticks.map((tick) => new Date(tick * 1000).toISOString().slice(11, 19)), space: 80, size: 30 },
          { ...axis, values: words, size: 72, ...(chart.word === whole ? { incrs: WHOLE_STEPS } : {}) },
        ],
        series: [
          {},
          ...series.map(([name], at) => ({
            label: name,
            stroke: colour(`--line-${at}`),
            width: 1.75,
            spanGaps: chart.spansGaps ?? false,
            points: { show: data[0].length < 60, size: 5 },
          })),
        ],
        hooks: { setCursor: [(plot) => this.tell(drawn, plot.cursor.idx)] },
      },
      data,
      holder,
    );
    return drawn;
  }

  // The newest values, or those under the pointer.
  tell({ plot, values, chart, holder }, at) {
    if (!plot) return;
    const index = at ?? plot.data[0].length - 1;
    values.forEach((element, number) => {
      const value = plot.data[number + 1][index];
      element.textContent = value === null || value === undefined ? "-" : chart.word(value);
    });
    if (at === null) {
      const told = plot.series.slice(1).map((one, number) => `${one.label} ${values[number].textContent}`);
      holder.setAttribute("aria-label", `${chart.title}, newest: ${told.join(", ")}`);
    }
  }

  resized() {
    for (const { plot, figure } of this.drawn.values()) {
      const width = Math.max(200, figure.clientWidth);
      if (plot.width !== width) plot.setSize({ width, height: HEIGHT });
    }
  }
}
