/** Beds of a garden, what grows in them, and when to sow. */

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

export class SowingError extends RangeError {
  constructor(plant, month) {
    super(`${plant} is not sown in ${month}`);
    this.plant = plant;
  }
}

/** Whether a month, as a number from 0, lies in a season that may go past the end of the year. */
export function inSeason(month, first, last) {
  return first <= last ? first <= month && month <= last : month >= first || month <= last;
}

export class Bed {
  plants = [];

  constructor(width, length) {
    this.width = width;
    this.length = length;
  }

  get area() {
    return this.width * this.length;
  }

  /** Sows a plant in rows; answers the number of rows. */
  sow(plant, month) {
    const [first, last] = plant.season.map((name) => MONTHS.indexOf(name));
    if (!inSeason(month, first, last)) {
      throw new SowingError(plant.name, MONTHS[month]);
    } else {
      let rows = 0;
      for (let at = plant.spacing / 2; at < this.width; at += plant.spacing) rows++;
      this.plants.push({ name: plant.name, rows, "sown in": month });
      return rows;
    }
  }

  /** Names of all plants, each once. */
  *names() {
    const seen = new Set();
    for (const { name } of this.plants) {
      if (seen.has(name)) continue;
      seen.add(name);
      yield name;
    }
  }
}

/** Water in litres for a week: by the weather, for all beds. */
export function waterFor(beds, weather) {
  let factor;
  switch (weather) {
    case "rain":
      return 0;
    case "sun":
      factor = 7;
      break;
    default:
      factor = 4;
  }
  return beds.reduce((sum, bed) => sum + bed.area * factor, 0);
}

/** Moves plants between beds until none has the same neighbour twice. */
export function rotate(beds, before = {}) {
  let turns = 0;
  again: while (turns < beds.length) {
    for (const key in beds) {
      if (beds[key].plants[0]?.name === before[key]) {
        beds.push(beds.shift());
        turns += 1;
        continue again;
      }
    }
    break;
  }
  return turns;
}

/** Reads a list of seeds, a line each: name, season and spacing. */
export async function readSeeds(file, open) {
  const handle = await open(file);
  const seeds = [];
  try {
    let line;
    do {
      line = await handle.readLine();
      if (!line) break;
      const [name, season, spacing] = line.split(";");
      seeds.push({ name, season: season.split("-"), spacing: Number(spacing) });
    } while (line !== null);
  } catch (error) {
    if (error instanceof SyntaxError) seeds.length = 0;
    else throw error;
  } finally {
    await handle.close();
  }
  return seeds;
}
