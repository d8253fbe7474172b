/** A small subset of Markdown: blocks first, then what is inside a line. */

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

export const escapeHtml = (text) => text.replace(/[&<>"]/g, (sign) => ESCAPES[sign]);

/** What kind of block a line begins. */
export function kindOf(line) {
  const trimmed = line.trimStart();
  switch (trimmed[0]) {
    case "#":
      return "heading";
    case "-":
    case "*":
      return trimmed[1] === " " ? "item" : "text";
    case ">":
      return "quote";
    case "`":
      if (trimmed.startsWith("```")) return "fence";
      return "text";
    case undefined:
      return "blank";
    default:
      return "text";
  }
}

/** The number of signs of one kind at the start of a line. */
export function runLength(line, sign, most = Infinity) {
  let length = 0;
  while (length < most && line[length] === sign) length++;
  return length;
}

/** Yields the blocks of a text, each with its kind and its lines. */
export function* blocks(source) {
  const lines = source.split(/\r?\n/);
  let row = 0;
  while (row < lines.length) {
    const kind = kindOf(lines[row]);
    if (kind === "blank") {
      row += 1;
      continue;
    }
    const inside = [];
    if (kind === "fence") {
      row++;
      do {
        inside.push(lines[row]);
        row++;
      } while (row < lines.length && kindOf(lines[row]) !== "fence");
      row++;
    } else {
      do inside.push(lines[row++]);
      while (row < lines.length && kind !== "heading" && kindOf(lines[row]) === kind);
    }
    yield { kind, lines: inside };
  }
}

/** Emphasis, code and links of a line, as HTML. */
export function inline(text) {
  let html = "";
  let rest = text;
  outer: while (rest) {
    for (const [mark, tag] of [["**", "strong"], ["_", "em"], ["`", "code"]]) {
      if (!rest.startsWith(mark)) continue;
      const end = rest.indexOf(mark, mark.length);
      if (end < 0) continue;
      const inside = rest.slice(mark.length, end);
      html += `<${tag}>${tag === "code" ? escapeHtml(inside) : inline(inside)}</${tag}>`;
      rest = rest.slice(end + mark.length);
      continue outer;
    }
    const link = /^\[([^\]]+)\]\(([^)\s]+)\)/.exec(rest);
    if (link) {
      html += `<a href="${escapeHtml(link[2])}">${inline(link[1])}</a>`;
      rest = rest.slice(link[0].length);
    } else {
      html += escapeHtml(rest[0]);
      rest = rest.slice(1);
    }
  }
  return html;
}

export class Renderer {
  static defaults = { wrap: false, slugs: true };

  constructor(options = {}) {
    this.options = { ...Renderer.defaults, ...options };
    this.slugs = new Set();
  }

  /** A name for a heading that no other has. */
  slug(title) {
    const base = title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    let slug = base;
    for (let n = 2; this.slugs.has(slug); n++) slug = `${base}-${n}`;
    this.slugs.add(slug);
    return slug;
  }

  block({ kind, lines }) {
    const join = this.options.wrap ? " " : "\n";
    switch (kind) {
      case "heading": {
        const level = runLength(lines[0], "#", 6);
        const title = lines[0].slice(level).trim();
        const id = this.options.slugs ? ` id="${this.slug(title)}"` : "";
        return `<h${level}${id}>${inline(title)}</h${level}>`;
      }
      case "item":
        return "<ul>" + lines.map((line) => `<li>${inline(line.trim().slice(2))}</li>`).join("") + "</ul>";
      case "quote":
        return `<blockquote>${inline(lines.map((line) => line.replace(/^\s*> ?/, "")).join(join))}</blockquote>`;
      case "fence":
        return `<pre>${lines.map(escapeHtml).join("\n")}</pre>`;
      default:
        return `<p>${lines.map(inline).join(join)}</p>`;
    }
  }

  /** The HTML of a whole text. */
  render(source) {
    if (source instanceof Uint8Array) source = new TextDecoder().decode(source);
    const html = [];
    for (const block of blocks(source)) html.push(this.block(block));
    return html.join("\n");
  }
}
