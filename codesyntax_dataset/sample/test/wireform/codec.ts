/** Values as bytes: whole numbers of any length, texts, lists and records. */

export namespace Tags {
  export const NUMBER = 0x01;
  export const TEXT = 0x02;
  export const LIST = 0x03;
  export const RECORD = 0x04;
  export const NOTHING = 0x05;
}

export type Value = number | string | null | Value[] | { [key: string]: Value };

export class WireError extends Error {
  override name = "WireError";
}

export abstract class Sink {
  protected size = 0;

  abstract write(byte: number): void;

  /** Writes a number that is not negative, seven bits in each byte. */
  varint(value: number): void {
    let rest = value;
    do {
      const low = rest % 128;
      rest = Math.floor(rest / 128);
      this.write(rest > 0 ? low | 0x80 : low);
    } while (rest > 0);
  }
}

export class ByteSink extends Sink {
  private bytes: Uint8Array<ArrayBuffer> = new Uint8Array(16);

  write(byte: number): void {
    if (this.size === this.bytes.length) {
      const larger = new Uint8Array(this.bytes.length * 2);
      larger.set(this.bytes);
      this.bytes = larger;
    }
    this.bytes[this.size++] = byte & 0xff;
  }

  done(): Uint8Array {
    return this.bytes.subarray(0, this.size);
  }
}

function isRecord(value: unknown): value is Record<string, Value> {
  return typeof value === "object" && value !== null && !(value instanceof Array);
}

export function encode(value: Value, sink: ByteSink = new ByteSink()): ByteSink {
  if (value === null) {
    sink.write(Tags.NOTHING);
  } else if (typeof value === "number") {
    sink.write(Tags.NUMBER);
    sink.varint(value < 0 ? -2 * value - 1 : 2 * value);
  } else if (typeof value === "string") {
    const bytes = new TextEncoder().encode(value);
    sink.write(Tags.TEXT);
    sink.varint(bytes.length);
    for (let i = 0; i < bytes.length; i++) sink.write(bytes[i]);
  } else if (Array.isArray(value)) {
    sink.write(Tags.LIST);
    sink.varint(value.length);
    value.forEach((one) => encode(one, sink));
  } else {
    const names = Object.keys(value);
    sink.write(Tags.RECORD);
    sink.varint(names.length);
    for (const name of names) {
      encode(name, sink);
      encode(value[name], sink);
    }
  }
  return sink;
}

export class Source {
  #at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  get left(): number {
    return this.bytes.length - this.#at;
  }

  byte(): number {
    if (this.left <= 0) throw new WireError("ends too early");
    return this.bytes[this.#at++];
  }

  varint(): number {
    let value = 0;
    let scale = 1;
    let byte: number;
    do {
      byte = this.byte();
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte & 0x80);
    return value;
  }

  take(length: number): Uint8Array {
    if (length > this.left) throw new WireError(`${length} bytes announced, ${this.left} left`);
    const start = this.#at;
    this.#at += length;
    return this.bytes.subarray(start, this.#at);
  }
}

export function decode(source: Source, depth = 0): Value {
  if (depth > 100) throw new WireError("too deep");
  const tag = source.byte();
  switch (tag) {
    case Tags.NOTHING:
      return null;
    case Tags.NUMBER: {
      const folded = source.varint();
      return folded % 2 ? -(folded + 1) / 2 : folded / 2;
    }
    case Tags.TEXT:
      return new TextDecoder().decode(source.take(source.varint()));
    case Tags.LIST: {
      const list: Value[] = [];
      for (let left = source.varint(); left > 0; left--) list.push(decode(source, depth + 1));
      return list;
    }
    case Tags.RECORD: {
      const record: { [key: string]: Value } = {};
      for (let left = source.varint(); left > 0; left--) {
        const name = <string>decode(source, depth + 1);
        record[name] = decode(source, depth + 1);
      }
      return record;
    }
    default:
      throw new WireError(`tag ${tag}`);
  }
}

/** Values from chunks as they arrive; what is not yet whole waits for more. */
export async function* values(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Value> {
  let waiting = new Uint8Array(0);
  for await (const chunk of chunks) {
    const joined = new Uint8Array(waiting.length + chunk.length);
    joined.set(waiting);
    joined.set(chunk, waiting.length);
    waiting = joined;
    pieces: while (waiting.length > 0) {
      const source = new Source(waiting);
      let whole = false;
      try {
        yield decode(source);
        whole = true;
      } catch (problem) {
        if (!(problem instanceof WireError)) throw problem;
        break pieces;
      } finally {
        if (whole) waiting = waiting.slice(waiting.length - source.left);
      }
    }
  }
}

/** What differs between two values, as paths with slashes. */
export const differences = function (one: Value, other: Value, path = ""): string[] {
  if (isRecord(one) && isRecord(other)) {
    const found: string[] = [];
    for (const name in { ...one, ...other }) {
      if (!(name in one && name in other)) found.push(`${path}/${name}`);
      else found.push(...differences(one[name], other[name], `${path}/${name}`));
    }
    return found;
  }
  return JSON.stringify(one) === JSON.stringify(other) ? [] : [path || "/"];
};

/** Runs a task for every value; failures are counted, and the sink is always closed. */
export async function drain(
  all: Value[],
  task: (value: Value) => Promise<void>,
  close: () => Promise<void>,
): Promise<Record<"done" | "failed", number>> {
  const counts = { done: 0, failed: 0 };
  try {
    for (const value of all) {
      await task(value);
      counts.done += 1;
    }
  } catch {
    counts["failed"] = all.length - counts["done"];
  } finally {
    await close();
  }
  return counts;
}
