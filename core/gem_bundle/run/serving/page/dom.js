// Elements, made without ever reading text as HTML.

export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "onclick") element.addEventListener("click", value);
    else if (key === "text") element.textContent = value;
    else element.setAttribute(key === "className" ? "class" : key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function show(element, shown) {
  element.hidden = !shown;
}

export function table(caption, names, rows) {
  const head = make("tr", {}, ...names.map((name) => make("th", { scope: "col", text: name })));
  return [
    make("caption", { text: caption }),
    make("thead", {}, head),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row))),
  ];
}

export function cell(text, properties = {}) {
  return make("td", { ...properties, text });
}
