// @ts-check
// What the page knows, and who wants to hear when it changes.

/** Whether the page is dark. */
export const dark = matchMedia('(prefers-color-scheme: dark)');

/** By names of a model, which may be any word, `__proto__` too. @returns {Record<string, any>} */
export const byName = () => Object.create(null);

export const state = {
  /** The model as the program describes it. @type {any} */
  model: null,
  /** How a command line calls it, and whether it is a file that may be saved. */
  call: 'dry_friction', file: false,
  /** The text, and the one it was opened with. */
  text: '', opened: '',
  /** What differs from the text, name -> number or formula. @type {Record<string, string>} */
  p: byName(),
  /** @type {Record<string, string>} */
  x: byName(),
  /** Options of how to compute that were given, name -> text, or true. @type {Record<string, any>} */
  solve: byName(),
  /** The last run. @type {any} */
  run: null,
  /** Time cursors; the second one is for differences. */
  cursor: 0, second: NaN,
  axes: { x: '', y: '' },
  /** Whether the text is wrong or something newer is being computed. */
  wrong: false,
};

/** @type {Map<string, Set<(detail?: any) => void>>} */
const listeners = new Map();

/** @param {string} what @param {(detail?: any) => void} listener */
export function on(what, listener) {
  if (!listeners.has(what)) listeners.set(what, new Set());
  listeners.get(what)?.add(listener);
}

/** @param {string} what @param {any} [detail] */
export function tell(what, detail) {
  for (const listener of listeners.get(what) ?? []) listener(detail);
}

/** The options of how to compute that were given and that a command takes. @param {string} command @returns {any[]} */
export function givenOptions(command) {
  return state.model.options.filter((/** @type {any} */ o) => state.solve[o.name] && o.commands.includes(command));
}

/** "v=+1, N=0" by names. @param {string} text */
export function readSettings(text) {
  const pairs = text.split(',').map((part) => part.split('=').map((side) => side.trim()));
  return Object.fromEntries(pairs.map(([name, ...value]) => [name, value.join('=')]));
}

/** What every request that computes has. @param {string} [command] */
export function settings(command = 'run') {
  /** @type {any} */
  const message = { p: state.p, x: state.x };
  for (const o of givenOptions(command)) message[o.name] = o.kind === 'settings' ? readSettings(state.solve[o.name]) : state.solve[o.name];
  return message;
}

/** @param {string} name */
export function isState(name) {
  return state.model.states.some((/** @type {any} */ s) => s.name === name);
}

/** @param {string} id @returns {any} */
export function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

/**
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes('-') || key === 'role') made.setAttribute(key, value);
    else /** @type {any} */ (made)[key] = value;
  }
  made.append(...children);
  return made;
}

let toastTimer = 0;
/** @param {string} text */
export function toast(text) {
  const box = element('toast');
  box.textContent = text;
  box.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = window.setTimeout(() => { box.hidden = true; }, 6000);
}
