// Numbers and times as people read them; the same words as in the terminal.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const FINE = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export function whole(number) {
  return number === null || number === undefined ? "-" : WHOLE.format(number);
}

export function rate(number) {
  if (number === null || number === undefined || !Number.isFinite(number)) return "-";
  return number >= 100 ? WHOLE.format(number) : FINE.format(number);
}

export function bytes(number) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  let left = number ?? 0;
  while (left >= 1000 && at < units.length - 1) {
    left /= 1000;
    at += 1;
  }
  return `${at ? FINE.format(left) : WHOLE.format(left)} ${units[at]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "-";
  const past = Math.max(0, seconds);
  if (past < 1) return `${Math.round(past * 1000)} ms`;
  if (past < 60) return `${FINE.format(past)} s`;
  const steps = [
    [60, "min", 60],
    [3600, "h", 60],
    [86400, "d", 24],
  ];
  const [unit, name, parts] = steps.filter(([length]) => past >= length).at(-1);
  const rest = Math.floor((past % unit) / (unit / parts));
  const smaller = { min: "s", h: "min", d: "h" }[name];
  const many = Math.floor(past / unit);
  return rest && many < 100 ? `${WHOLE.format(many)} ${name} ${rest} ${smaller}` : `${WHOLE.format(many)} ${name}`;
}

export function clock(text) {
  return text ? text.slice(0, 19).replace("T", " ") : "-";
}

export function seconds(text) {
  return text ? Date.parse(text) / 1000 : null;
}

export function place(found) {
  return [found.file, found.line, found.column].filter(Boolean).join(":");
}

export function sum(numbers) {
  return Object.values(numbers ?? {}).reduce((all, one) => all + one, 0);
}
