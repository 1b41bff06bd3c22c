// @ts-check
// LaTeX as `saltus check --latex` writes it, to MathML. Own and small: the language of our printer, nothing else.

const NS = 'http://www.w3.org/1998/Math/MathML';
const GREEK = {
  alpha: 'α', beta: 'β', gamma: 'γ', delta: 'δ', epsilon: 'ϵ', varepsilon: 'ε', zeta: 'ζ', eta: 'η', theta: 'θ', iota: 'ι',
  kappa: 'κ', lambda: 'λ', mu: 'μ', nu: 'ν', xi: 'ξ', pi: 'π', rho: 'ρ', sigma: 'σ', tau: 'τ', upsilon: 'υ', phi: 'φ', varphi: 'φ',
  chi: 'χ', psi: 'ψ', omega: 'ω', Gamma: 'Γ', Delta: 'Δ', Theta: 'Θ', Lambda: 'Λ', Xi: 'Ξ', Pi: 'Π', Sigma: 'Σ', Upsilon: 'Υ',
  Phi: 'Φ', Psi: 'Ψ', Omega: 'Ω', infty: '∞', ell: 'ℓ',
};
const SIGNS = {
  le: '≤', ge: '≥', ne: '≠', perp: '⊥', in: '∈', Rightarrow: '⇒', wedge: '∧', vee: '∨', neg: '¬', cdot: '·', times: '×',
  lfloor: '⌊', rfloor: '⌋', lceil: '⌈', rceil: '⌉', lvert: '|', rvert: '|', cdots: '⋯', ldots: '…', to: '→', land: '∧', lor: '∨',
  lnot: '¬', quad: ' ', mid: '|', '|': '‖', '{': '{', '}': '}', lt: '<', gt: '>',
};
const WORDS = new Set(['sin', 'cos', 'tan', 'sinh', 'cosh', 'tanh', 'exp', 'log', 'ln', 'arcsin', 'arccos', 'arctan', 'min', 'max',
  'coth', 'arg', 'det', 'sec', 'csc', 'cot']);

/** @param {string} tag @param {...(Node | string)} children */
function math(tag, ...children) {
  const made = document.createElementNS(NS, tag);
  made.append(...children);
  return made;
}

/** @param {string} text */
function tokenize(text) {
  return text.match(/\\[a-zA-Z]+\*?|\\.|[0-9]+(?:\.[0-9]+)?|[^\s]/gu) ?? [];
}

class Parser {
  /** @param {string} text */
  constructor(text) {
    this.tokens = tokenize(text);
    this.at = 0;
  }

  peek() { return this.tokens[this.at]; }

  /** Everything up to a token of `ends`. @param {Set<string>} ends */
  row(ends) {
    const row = math('mrow');
    while (this.at < this.tokens.length && !ends.has(this.peek())) row.append(this.scripted());
    return row;
  }

  scripted() {
    const base = this.atom();
    let below, above;
    while (this.peek() === '_' || this.peek() === '^') {
      if (this.tokens[this.at++] === '_') below = this.atom(); else above = this.atom();
    }
    if (below && above) return math('msubsup', base, below, above);
    if (below) return math('msub', base, below);
    return above ? math('msup', base, above) : base;
  }

  /** The text of {...}. */
  word() {
    let text = '', depth = 0;
    do {
      const token = this.tokens[this.at++];
      if (token === '{') { if (depth++ > 0) text += token; }
      else if (token === '}') { if (--depth > 0) text += token; }
      else text += token?.startsWith('\\') && token.length === 2 ? token[1] : token ?? '';
    } while (depth > 0 && this.at < this.tokens.length);
    return text;
  }

  fence() {
    const token = this.tokens[this.at++] ?? '.';
    const sign = token.startsWith('\\') ? /** @type {any} */ (SIGNS)[token.slice(1)] ?? token.slice(1) : token;
    const fence = math('mo', sign === '.' ? '' : sign);
    fence.setAttribute('stretchy', 'true');
    return fence;
  }

  /** @returns {Element} */
  atom() {
    const token = this.tokens[this.at++] ?? '';
    if (token === '{') {
      const row = this.row(new Set(['}']));
      this.at++;
      return row;
    }
    if (!token.startsWith('\\')) {
      if (/^[0-9]/.test(token)) return math('mn', token);
      if (/^\p{L}/u.test(token)) return math('mi', token);
      return math('mo', token === '-' ? '−' : token);
    }
    const name = token.slice(1);
    switch (name) {
      case 'frac': return math('mfrac', this.atom(), this.atom());
      case 'sqrt': return math('msqrt', this.atom());
      case 'dot': return this.accent('˙');
      case 'ddot': return this.accent('¨');
      case 'left': {
        const open = this.fence(), inside = this.row(new Set(['\\right']));
        this.at++;
        return math('mrow', open, inside, this.fence());
      }
      case 'operatorname': case 'mathrm': case 'text': case 'mathtt': case 'mathit': {
        const word = math('mi', this.word());
        word.setAttribute('mathvariant', 'normal');
        return word;
      }
      case ',': case ';': case ':': case '!': case ' ': case 'quad': {
        const space = math('mspace');
        space.setAttribute('width', name === ',' ? '0.17em' : name === '!' ? '-0.1em' : '0.4em');
        return space;
      }
      case 'begin': this.word(); return this.cases();
      case 'end': this.word(); return math('mrow');
    }
    if (Object.hasOwn(GREEK, name)) return math('mi', /** @type {any} */ (GREEK)[name]);
    if (WORDS.has(name)) return math('mrow', math('mi', name), math('mo', '\u2061'));
    if (Object.hasOwn(SIGNS, name)) return math('mo', /** @type {any} */ (SIGNS)[name]);
    return math('mtext', name);
  }

  /** Rows of a brace: what, and when. */
  cases() {
    const table = math('mtable'), ends = new Set(['&', '\\\\', '\\end']);
    let row = math('mtr');
    while (this.at < this.tokens.length) {
      row.append(math('mtd', this.row(ends)));
      const end = this.tokens[this.at++];
      if (end === '&') continue;
      table.append(row);
      row = math('mtr');
      if (end === '\\end') { this.word(); break; }
    }
    const brace = math('mo', '{');
    brace.setAttribute('stretchy', 'true');
    return math('mrow', brace, table);
  }

  /** @param {string} sign */
  accent(sign) {
    const base = this.atom(), letter = base.textContent ?? '';
    if (base.localName === 'mi' && [...letter].length === 1) {  // composed: math fonts without accents are common
      const dotted = math('mi', (letter + (sign === '˙' ? '\u0307' : '\u0308')).normalize('NFC'));
      dotted.setAttribute('class', 'dotted');
      return dotted;
    }
    const over = math('mover', base, math('mo', sign));
    over.setAttribute('accent', 'true');
    return over;
  }
}

/** One formula. @param {string} latex */
export function formula(latex) {
  return math('math', new Parser(latex).row(new Set()));
}

/** The align environment as a table with one row per equation. @param {string} latex */
export function equations(latex) {
  const body = /\\begin\{align\*?\}([\s\S]*?)\\end\{align\*?\}/.exec(latex)?.[1] ?? '';
  const table = math('mtable');
  for (const line of body.split(/\\\\\s*\n/)) {
    if (!line.trim()) continue;
    const cut = line.indexOf('&'), left = line.slice(0, Math.max(cut, 0)), right = line.slice(cut + 1);
    const row = math('mtr', math('mtd', new Parser(left).row(new Set())), math('mtd', new Parser(right).row(new Set())));
    /** @type {any} */ (row.children[0]).style.textAlign = 'right';
    /** @type {any} */ (row.children[1]).style.textAlign = 'left';
    table.append(row);
  }
  table.setAttribute('displaystyle', 'true');
  return math('math', table);
}
