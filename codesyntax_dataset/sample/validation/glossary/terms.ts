/** Terms with their meanings, and the links between them. */

export interface Term {
  name: string;
  meaning: string;
  see?: string[];
}

export class Glossary<T extends Term = Term> {
  private readonly terms = new Map<string, T>();

  constructor(terms: Iterable<T> = []) {
    for (const term of terms) this.add(term);
  }

  private static key(name: string): string {
    return name.toLocaleLowerCase().replace(/\s+/g, " ").trim();
  }

  add(term: T): void {
    const key = Glossary.key(term.name);
    if (this.terms.has(key)) {
      throw new Error(`${term.name} is there already`);
    } else {
      this.terms.set(key, term);
    }
  }

  /** The term of that name, or the one that it is most like. */
  look(name: string): T | undefined {
    const key = Glossary.key(name);
    const exact = this.terms.get(key);
    if (exact !== undefined) return exact;
    let best: T | undefined;
    let least = key.length / 2;
    this.terms.forEach((term, other) => {
      const distance = editDistance(key, other);
      if (distance < least) {
        least = distance;
        best = term;
      }
    });
    return best;
  }

  /** Terms by their first letters. */
  *byLetter(): Generator<[string, T[]]> {
    const groups: Record<string, T[]> = {};
    for (const [key, term] of this.terms) (groups[key[0]!.toUpperCase()] ??= []).push(term);
    for (const letter of Object.keys(groups).sort()) yield [letter, groups[letter]!];
  }

  /** The shortest way from one term to another along their links. */
  path(from: string, to: string): string[] | null {
    const goal = Glossary.key(to);
    let ways: string[][] = [[Glossary.key(from)]];
    const seen = new Set<string>(ways[0]);
    search: while (ways.length > 0) {
      const longer: string[][] = [];
      for (const way of ways) {
        const last = way[way.length - 1] as string;
        if (last === goal) return way;
        for (const name of this.terms.get(last)?.see ?? []) {
          const key = Glossary.key(name);
          if (seen.has(key)) continue;
          if (seen.size > 1000) break search;
          seen.add(key);
          longer.push([...way, key]);
        }
      }
      ways = longer;
    }
    return null;
  }
}

/** How many letters must be changed, added or left out. */
export function editDistance(a: string, b: string): number {
  let before = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      row[j] = Math.min(row[j - 1] + 1, before[j] + 1, before[j - 1] + cost);
    }
    before = row;
  }
  return before[b.length];
}
