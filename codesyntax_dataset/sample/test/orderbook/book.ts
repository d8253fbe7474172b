/** Orders to buy and to sell, matched by price and then by time. */

export type Side = "buy" | "sell";

export interface Order {
  readonly id: number;
  side: Side;
  price: number;
  amount: number;
}

export interface Trade {
  buyer: number;
  seller: number;
  price: number;
  amount: number;
}

export enum State {
  Open = 1,
  Filled = 2,
  Cancelled = 4,
}

export class UnknownOrder extends Error {
  constructor(public readonly id: number) {
    super(`no order ${id}`);
  }
}

/** Which of two orders comes first; the better price, or else the lower number. */
export function compare(a: Order, b: Order): number {
  const sign = a.side === "buy" ? -1 : 1;
  return a.price !== b.price ? sign * (a.price - b.price) : a.id - b.id;
}

export class OrderBook {
  private readonly sides: Record<Side, Order[]> = { buy: [], sell: [] };
  private readonly states = new Map<number, State>();
  private next = 1;

  constructor(private readonly onTrade: (trade: Trade) => void = () => {}) {}

  /** Adds an order, after it has traded with those that are there. */
  place(side: Side, price: number, amount: number): Order {
    if (!(price > 0) || !Number.isInteger(amount)) throw new RangeError(`cannot ${side} ${amount} at ${price}`);
    const order: Order = { id: this.next++, side, price, amount };
    const others = this.sides[side === "buy" ? "sell" : "buy"];
    while (order.amount > 0 && others.length) {
      const best = others[0] as Order;
      if (side === "buy" ? best.price > price : best.price < price) break;
      const traded = Math.min(order.amount, best.amount);
      order.amount -= traded;
      best.amount -= traded;
      this.onTrade({
        buyer: side === "buy" ? order.id : best.id,
        seller: side === "buy" ? best.id : order.id,
        price: best.price,
        amount: traded,
      });
      if (best.amount === 0) {
        others.shift();
        this.states.set(best.id, State.Filled);
      }
    }
    if (order.amount > 0) {
      this.insert(order);
      this.states.set(order.id, State.Open);
    } else {
      this.states.set(order.id, State.Filled);
    }
    return order;
  }

  /** Puts an order in its place, by halving. */
  private insert(order: Order): void {
    const orders = this.sides[order.side];
    let low = 0;
    let high = orders.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(orders[middle]!, order) <= 0) low = middle + 1;
      else high = middle;
    }
    orders.splice(low, 0, order);
  }

  cancel(id: number): boolean {
    const state = this.states.get(id);
    if (state === undefined) throw new UnknownOrder(id);
    if (state !== State.Open) return false;
    search: for (const side of ["buy", "sell"] as const) {
      for (let i = 0; i < this.sides[side].length; i++) {
        if (this.sides[side][i]?.id === id) {
          this.sides[side].splice(i, 1);
          break search;
        }
      }
    }
    this.states.set(id, State.Cancelled);
    return true;
  }

  /** The amounts by price, best price first. */
  *depth(side: Side, levels = 5): Generator<[price: number, amount: number]> {
    let shown = 0;
    let i = 0;
    const orders = this.sides[side];
    while (i < orders.length && shown < levels) {
      const price = orders[i]!.price;
      let amount = 0;
      do {
        amount += orders[i]!.amount;
        i++;
      } while (i < orders.length && orders[i]?.price === price);
      yield [price, amount];
      shown++;
    }
  }

  get spread(): number | undefined {
    const [buy, sell] = [this.sides.buy[0], this.sides.sell[0]];
    return buy && sell ? sell.price - buy.price : undefined;
  }
}

/** Replays orders from lines such as `buy 10 5`; answers the lines that could not be read. */
export function replay(book: OrderBook, lines: Iterable<string>): string[] {
  const failed: string[] = [];
  for (const line of lines) {
    const [word, ...numbers] = line.trim().split(/\s+/);
    try {
      switch (word) {
        case "buy":
        case "sell":
          book.place(word, Number(numbers[0]), Number(numbers[1]));
          break;
        case "cancel":
          book.cancel(Number(numbers[0]));
          break;
        default:
          throw new SyntaxError(`what is ${word}?`);
      }
    } catch (error: unknown) {
      if (error instanceof UnknownOrder) failed.push(`${line}: ${error.id}`);
      else if (error instanceof Error) failed.push(line);
      else throw error;
    }
  }
  return failed;
}
