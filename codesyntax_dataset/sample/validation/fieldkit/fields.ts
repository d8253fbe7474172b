/** Fields of a form: how each is read, and what is wrong with it. */

export type Read<T> = { ok: true; value: T } | { ok: false; problem: string };

export class FieldError extends Error {
  constructor(readonly field: string, problem: string) {
    super(`${field}: ${problem}`);
  }
}

/** Reads a whole number within limits. */
export function wholeNumber(text: string, { least = 0, most = Infinity } = {}): Read<number> {
  const value = Number(text);
  if (text.trim() === "" || !Number.isInteger(value)) return { ok: false, problem: "is no whole number" };
  return value < least || value > most ? { ok: false, problem: `is not within ${least}-${most}` } : { ok: true, value };
}

/** Groups of digits as people write them. */
export function grouped(value: number, separator: string = ","): string {
  let rest = Math.abs(Math.trunc(value));
  let text = "";
  do {
    const group = rest % 1000;
    rest = (rest - group) / 1000;
    text = (rest ? String(group).padStart(3, "0") : group) + (text && separator + text);
  } while (rest > 0);
  return value < 0 ? `-${text}` : text;
}

export const checksum = (digits: string): boolean => {
  let sum = 0;
  let double = false;
  for (let i = digits.length - 1; i >= 0; i--) {
    let digit = digits.charCodeAt(i) - 48;
    if (double) digit = digit > 4 ? digit * 2 - 9 : digit * 2;
    sum += digit;
    double = !double;
  }
  return sum % 10 === 0;
};

/** The name of a kind of field in a page. */
export function inputType(kind: string): string {
  switch (kind) {
    case "mail":
      return "email";
    case "secret":
      return "password";
    default:
      return "text";
  }
}

/** Sends a form; tells the fields that were refused. */
export async function send(form: Record<string, string>, post: (body: string) => Promise<void>): Promise<string[]> {
  const refused: string[] = [];
  let busy = true;
  try {
    await post(JSON.stringify(form));
  } catch (error) {
    if (error instanceof FieldError) refused.push(error.field);
    else throw error;
  } finally {
    busy = !busy;
  }
  return refused;
}
