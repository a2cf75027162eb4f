// Renders /docs/openapi.json: operations by tag, with what goes in and what comes out.
// Text goes into the page as text only, never as markup.
'use strict';

const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'];
const NESTED_MAX = 6;
let spec = {};

const byId = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

function resolve(node) {
  for (let hops = 0; node && node.$ref && hops < 10; hops += 1) {
    node = node.$ref.slice(2).split('/').reduce((at, key) => at && at[key], spec);
  }
  return node || {};
}

const refName = (schema) => (schema.$ref ? schema.$ref.split('/').pop() : undefined);

// A schema as text that looks like the JSON it describes. `within` are the names of the schemas
// around it: one that contains itself is named, not written out again.
function shape(schema, indent = '', within = []) {
  if (!schema) return 'any';
  const name = refName(schema);
  if (name && (within.includes(name) || within.length >= NESTED_MAX)) return name;
  const around = name ? [...within, name] : within;
  const it = resolve(schema);
  const parts = it.oneOf || it.anyOf;
  if (parts) return [...new Set(parts.map((part) => shape(part, indent, around)))].join(' | ');
  if (it.allOf) return it.allOf.map((part) => shape(part, indent, around)).join(' & ');
  if (it.enum) return it.enum.map((value) => JSON.stringify(value)).join(' | ');
  const types = [].concat(it.type || (it.properties ? 'object' : 'any'));
  return types.map((type) => shapeOf(type, it, indent, around)).join(' | ');
}

function shapeOf(type, it, indent, around) {
  if (type === 'array') return `[ ${shape(it.items, indent, around)} ]`;
  if (type !== 'object') return it.format ? `${type} (${it.format})` : type;
  const deeper = `${indent}  `;
  const required = new Set(it.required || []);
  const lines = Object.entries(it.properties || {}).map(([key, value]) => {
    const mark = required.has(key) ? '' : '?';
    const note = value.description ? `  // ${value.description.split('\n')[0]}` : '';
    return `${deeper}${key}${mark}: ${shape(value, deeper, around)}${note}`;
  });
  if (typeof it.additionalProperties === 'object') {
    lines.push(`${deeper}[key]: ${shape(it.additionalProperties, deeper, around)}`);
  }
  return lines.length ? `{\n${lines.join('\n')}\n${indent}}` : '{}';
}

function content(body) {
  return Object.entries(body.content || {}).map(([type, media]) => element('div', {},
    element('span', { class: 'dim' }, `${type} ${refName(media.schema || {}) || ''}`),
    element('pre', { tabindex: '0' }, shape(media.schema)),
    media.example && element('pre', { tabindex: '0' }, JSON.stringify(media.example, null, 2)),
  ));
}

function table(heads, rows) {
  const head = element('tr', {}, ...heads.map((text) => element('th', { scope: 'col' }, text)));
  const body = rows.map((row) => element('tr', {}, ...row.map((cell) => element('td', {}, cell))));
  return element('table', {}, element('thead', {}, head), element('tbody', {}, ...body));
}

function parameters(list) {
  const rows = list.map(resolve).map((it) => [
    element('code', {}, it.name + (it.required ? '' : '?')),
    it.in,
    shape(it.schema),
    it.description || '',
  ]);
  return [element('h3', {}, 'Parameters'), table(['name', 'in', 'type', 'meaning'], rows)];
}

function responses(answers) {
  return Object.entries(answers || {}).flatMap(([status, answer]) => {
    const it = resolve(answer);
    return [element('h3', {}, `${status} ${it.description || ''}`), ...content(it)];
  });
}

// The inside of an operation is made when it is first opened: there are hundreds.
function fill(details, operation) {
  const inside = element('div');
  if (operation.description) inside.append(element('p', {}, operation.description));
  if (operation.parameters.length) inside.append(...parameters(operation.parameters));
  if (operation.requestBody) {
    inside.append(element('h3', {}, 'Body'), ...content(resolve(operation.requestBody)));
  }
  inside.append(...responses(operation.responses));
  details.append(inside);
}

function card(operation) {
  const { method, path, summary, id, deprecated } = operation;
  const kind = `operation ${method}${deprecated ? ' deprecated' : ''}`;
  const details = element('details', { class: kind, id },
    element('summary', {},
      element('span', { class: 'method' }, method.toUpperCase()),
      element('code', {}, path),
      element('span', { class: 'dim' }, summary)));
  const open = () => details.children.length < 2 && fill(details, operation);
  details.addEventListener('toggle', open, { once: true });
  details.searchText = [method, path, summary, operation.tag, id].join(' ').toLowerCase();
  return details;
}

function operations() {
  return Object.entries(spec.paths || {}).flatMap(([path, item]) => METHODS
    .filter((method) => item[method])
    .map((method) => ({
      ...item[method],
      method,
      path,
      tag: (item[method].tags || ['other'])[0],
      id: `op-${item[method].operationId || method + path}`,
      summary: item[method].summary || '',
      parameters: [...(item.parameters || []), ...(item[method].parameters || [])],
    })));
}

function filter() {
  const words = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const section of document.querySelectorAll('main section')) {
    let any = false;
    for (const details of section.querySelectorAll('details.operation')) {
      const fits = words.every((word) => details.searchText.includes(word));
      details.hidden = !fits;
      any ||= fits;
      shown += fits ? 1 : 0;
    }
    section.hidden = !any;
  }
  byId('count').textContent = `${shown} operation${shown === 1 ? '' : 's'}`;
}

function openFromAddress() {
  const wanted = byId(decodeURIComponent(location.hash.slice(1)));
  if (wanted instanceof HTMLDetailsElement) {
    wanted.open = true;
    wanted.scrollIntoView();
  }
}

function render() {
  byId('title').textContent = spec.info.title;
  byId('version').textContent = spec.info.version;
  byId('about').textContent = spec.info.description || '';
  const all = operations();
  for (const tag of [...new Set(all.map((operation) => operation.tag))].sort()) {
    const id = `tag-${tag}`;
    byId('tags').append(element('a', { href: `#${id}` }, tag));
    const heading = element('h2', { id }, tag);
    const section = element('section', { 'aria-labelledby': id }, heading);
    section.append(...all.filter((operation) => operation.tag === tag).map(card));
    byId('operations').append(section);
  }
  filter();
  openFromAddress();
}

document.addEventListener('keydown', (event) => {
  const search = byId('search');
  if (event.key === '/' && document.activeElement !== search) {
    event.preventDefault();
    search.focus();
  }
});
byId('search').addEventListener('input', filter);
addEventListener('hashchange', openFromAddress);

fetch('/docs/openapi.json')
  .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.status))))
  .then((json) => {
    spec = json;
    render();
  })
  .catch((error) => {
    byId('count').textContent = `openapi.json could not be read: ${error.message}`;
  });
