/** Appointments of a day: when they are, where they overlap, and where there is room. */

export interface Slot {
  start: number; // minutes since midnight
  end: number;
}

export interface Appointment extends Slot {
  title: string;
  people?: ReadonlySet<string>;
}

type Formatter = (minutes: number) => string;

export const clock: Formatter = (minutes) => {
  const hours = Math.floor(minutes / 60);
  return `${String(hours).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
};

/** Minutes since midnight of a text such as 9:30 or 14. */
export function parseClock(text: string): number {
  const match = /^(\d{1,2})(?::(\d\d))?$/.exec(text.trim());
  if (match === null) throw new TypeError(`${text} is no time of day`);
  const [, hours, minutes] = match;
  const value = Number(hours) * 60 + Number(minutes ?? 0);
  if (value >= 24 * 60) throw new RangeError(`${text} is on another day`);
  return value;
}

export function overlap(a: Slot, b: Slot): boolean {
  return a.start < b.end && b.start < a.end;
}

export class Day {
  #appointments: Appointment[] = [];
  static readonly first = 8 * 60;
  static readonly last = 18 * 60;

  add(title: string, start: string | number, length: number, ...people: string[]): this {
    const from = typeof start === "string" ? parseClock(start) : start;
    const appointment: Appointment = { title, start: from, end: from + length };
    if (people.length > 0) appointment.people = new Set(people);
    let i = this.#appointments.length;
    while (i > 0 && from < (this.#appointments[i - 1]?.start ?? 0)) i--;
    this.#appointments.splice(i, 0, appointment);
    return this;
  }

  /** Pairs that cannot both be kept: at the same time, with someone who is in both. */
  *conflicts(): IterableIterator<[Appointment, Appointment]> {
    const all = this.#appointments;
    for (let i = 0; i < all.length; i++) {
      later: for (let j = i + 1; j < all.length; j++) {
        const one = all[i]!;
        const other = all[j]!;
        if (other.start >= one.end) break later;
        if (!one.people || !other.people) {
          yield [one, other];
          continue;
        }
        for (const person of one.people) {
          if (other.people.has(person)) {
            yield [one, other];
            continue later;
          }
        }
      }
    }
  }

  /** The first free time of that length, or undefined. */
  firstFree(length: number, after: number = Day.first): Slot | undefined {
    let start = after;
    for (const taken of this.#appointments) {
      if (taken.end <= start) continue;
      if (taken.start >= start + length) break;
      start = taken.end;
    }
    return start + length <= Day.last ? { start, end: start + length } : undefined;
  }

  /** How many minutes each person is busy. */
  load(): Map<string, number> {
    const minutes = new Map<string, number>();
    for (const { people, start, end } of this.#appointments) {
      people?.forEach((person) => minutes.set(person, (minutes.get(person) ?? 0) + end - start));
    }
    return minutes;
  }

  toString(): string {
    return this.#appointments.map(({ title, start, end }) => `${clock(start)}-${clock(end)} ${title}`).join("\n");
  }
}

/** The days on which something that repeats takes place, as numbers from 0. */
export function repeats(rule: string, days: number): number[] {
  const found: number[] = [];
  let every = 1;
  let offset = 0;
  switch (rule) {
    case "daily":
      break;
    case "weekly":
      every = 7;
      break;
    default: {
      const [name, value] = rule.split("+");
      if (name !== "weekly") throw new TypeError(rule);
      every = 7;
      offset = Number(value);
    }
  }
  let day = offset;
  do {
    if (day < days) found.push(day);
    day += every;
  } while (day < days);
  return found;
}

/** Reads appointments that were saved as JSON, and says in words what is wrong with them. */
export async function load(read: () => Promise<string>, report: (problem: string) => void): Promise<Day> {
  const day = new Day();
  let count = 0;
  try {
    const saved = JSON.parse(await read()) as Array<Partial<Appointment>>;
    for (const key in saved) {
      const { title = "?", start, end } = saved[key] as Partial<Appointment>;
      if (start === undefined || end === undefined) {
        report(`${title} has no time`);
        continue;
      }
      day.add(title, start, end - start);
      count += 1;
    }
  } catch (error) {
    report(error instanceof SyntaxError ? "this is not JSON" : String(error));
  } finally {
    report(`${count} appointments`);
  }
  return day;
}
