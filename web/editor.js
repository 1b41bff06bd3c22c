// @ts-check
// The model file as text: a plain textarea that lies over a painted copy of itself, checked while one types.

import * as completion from './completion.js';
import { element, make, state, tell } from './state.js';

const area = element('text'), paint = document.querySelector('#editor .paint'), numbers = document.querySelector('#editor .numbers');
const WORDS = new RegExp(`(#.*$)|(^\\s*\\[[^\\]\\n]*\\])|\\b(${completion.FUNCTIONS.join('|')})(?=\\()|(?<![\\w.])(\\d+\\.?\\d*(?:e[+-]?\\d+)?|\\.\\d+)`, 'gim');
const CLASSES = ['comment', 'table', 'function', 'number'];

/** @type {{line: number, column: number, length: number} | null} */
let place = null;
let timer = 0;

/** One line, coloured. @param {string} line @returns {Node[]} */
function paintLine(line) {
  const out = [];
  let last = 0;
  for (const m of line.matchAll(WORDS)) {
    const k = [1, 2, 3, 4].find((g) => m[g] !== undefined) ?? 1;
    out.push(document.createTextNode(line.slice(last, m.index)));
    out.push(make('span', { className: CLASSES[k - 1] }, m[0]));
    last = (m.index ?? 0) + m[0].length;
  }
  out.push(document.createTextNode(line.slice(last)));
  return out;
}

/** The line of a mistake with the mark; columns count characters, not UTF-16 units. @param {string} line */
function paintMarked(line) {
  if (!place) return paintLine(line);
  const letters = [...line], from = place.column - 1, to = Math.max(from + 1, from + place.length);
  const part = letters.slice(from, to).join('') || ' ';
  return [...paintLine(letters.slice(0, from).join('')), make('span', { className: 'mark' }, part), ...paintLine(letters.slice(to).join(''))];
}

function repaint() {
  const lines = area.value.split('\n');
  const nodes = [];
  for (let i = 0; i < lines.length; i++) {
    nodes.push(...(place?.line === i + 1 ? paintMarked(lines[i]) : paintLine(lines[i])), document.createTextNode('\n'));
  }
  paint?.replaceChildren(...nodes);
  if (numbers) numbers.textContent = lines.map((_, i) => i + 1).join('\n');
}

/** @param {string} text */
export function setText(text) {
  area.value = text;
  state.text = text;
  showMistake(null);
}

/** Replaces a part so that Undo brings it back. @param {number} from @param {number} to @param {string} text */
export function replaceText(from, to, text) {
  const focused = document.activeElement;
  area.focus();
  area.setSelectionRange(from, to);
  if (!document.execCommand('insertText', false, text)) area.setRangeText(text, from, to, 'end');
  if (focused instanceof HTMLElement) focused.focus();
  changed(0);
}

/** @param {any} error of the program, or nothing */
export function showMistake(error) {
  place = error?.line ? error : null;
  element('editor').classList.toggle('wrong', Boolean(error));
  const box = element('mistake');
  box.hidden = !error;
  if (error) {
    const where = error.line ? make('button', { onclick: goThere, title: 'Go there' }, `line ${error.line}, column ${error.column}`) : '';
    box.replaceChildren(make('strong', {}, error.message), ' ', where, error.hint ? `\n${error.hint}` : '');
  }
  repaint();
}

function goThere() {
  if (!place) return;
  const lines = area.value.split('\n');
  let at = 0;
  for (let i = 0; i < place.line - 1; i++) at += lines[i].length + 1;
  const column = [...lines[place.line - 1]].slice(0, place.column - 1).join('').length;
  area.focus();
  area.setSelectionRange(at + column, at + column + place.length);
}

/** @param {number} wait */
function changed(wait) {
  state.text = area.value;
  place = null;  // it may have moved; the words stay until the next check
  repaint();
  clearTimeout(timer);
  timer = window.setTimeout(() => tell('text'), wait);
}

area.addEventListener('input', () => changed(120));
completion.start((from, to, word) => { replaceText(from, to, word); area.setSelectionRange(from + word.length, from + word.length); });

/**
 * Where the value of a name stands in the text: the part after "=", without the comment.
 * @param {string} table "parameters" or "initial" @param {string} name
 */
export function findValue(table, name) {
  let at = 0, inside = false;
  for (const line of state.text.split('\n')) {
    const head = /^\s*\[([^\]]+)\]/.exec(line);
    if (head) inside = head[1].trim() === table;
    const found = inside && /^(\s*([^=#\s]+)\s*=\s*)("[^"]*"|[^#]*?)(\s*(#.*)?)$/.exec(line);
    if (found && found[2].replace(/"/g, '') === name)
      return { from: at + found[1].length, to: at + found[1].length + found[3].length, comment: found[5] ?? '' };
    at += line.length + 1;
  }
  return null;
}
