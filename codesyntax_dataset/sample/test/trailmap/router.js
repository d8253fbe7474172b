/** Routes of a small server: patterns such as /users/:id, and the handlers behind them. */

class RouteError extends Error {}

/** Splits a path at its slashes, without empty parts. */
function segments(path) {
  return path.split("/").filter((part) => part !== "");
}

/** The parameters that a pattern finds in a path, or null if it does not match. */
function matchPattern(pattern, path) {
  const wanted = segments(pattern);
  const given = segments(path);
  const found = {};
  if (wanted.length > given.length) {
    return null;
  }
  for (let i = 0; i < given.length; i++) {
    const name = wanted[i];
    if (name === "*") {
      found.rest = given.slice(i).join("/");
      return found;
    } else if (name !== undefined && name.startsWith(":")) {
      found[name.slice(1)] = decodeURIComponent(given[i]);
    } else if (name !== given[i]) {
      return null;
    }
  }
  return found;
}

class Router {
  #routes = new Map();
  fallback = null;

  /** Adds a handler for a method and a pattern. */
  on(method, pattern, handler) {
    if (typeof handler !== "function") throw new RouteError(`no handler for ${pattern}`);
    const key = method.toUpperCase();
    if (!this.#routes.has(key)) this.#routes.set(key, []);
    this.#routes.get(key).push({ pattern, handler, hits: 0 });
    return this;
  }

  /** The first route that matches, with its parameters. */
  find(method, path) {
    for (const route of this.#routes.get(method) ?? []) {
      const parameters = matchPattern(route.pattern, path);
      if (parameters) return { route, parameters };
    }
    return undefined;
  }

  /** Answers a request; what a handler throws becomes a status. */
  async dispatch(request, log = console) {
    const started = Date.now();
    let status = 200;
    try {
      const [path, query] = request.url.split("?", 2);
      const match = this.find(request.method, path);
      if (!match) return this.fallback ? await this.fallback(request) : { status: 404, body: "" };
      match.route.hits += 1;
      const body = await match.route.handler({ ...match.parameters, query: parseQuery(query) });
      return { status, body };
    } catch (error) {
      status = error instanceof RouteError ? 400 : 500;
      return { status, body: String(error?.message ?? error) };
    } finally {
      log.debug?.(request.method, request.url, status, Date.now() - started);
    }
  }

  /** Patterns by the number of their hits, those without any last. */
  *busiest(limit = Infinity) {
    const all = [...this.#routes.values()].flat();
    all.sort((a, b) => b.hits - a.hits || a.pattern.localeCompare(b.pattern));
    for (const { pattern, hits } of all) {
      if (limit-- <= 0) return;
      yield [pattern, hits];
    }
  }
}

/** The values of a query string; a name that occurs again gives a list. */
function parseQuery(query) {
  const values = {};
  for (const part of (query || "").split("&")) {
    if (!part) continue;
    const equals = part.indexOf("=");
    const name = equals < 0 ? part : part.slice(0, equals);
    const value = equals < 0 ? true : decodeURIComponent(part.slice(equals + 1).replace(/\+/g, " "));
    if (!(name in values)) values[name] = value;
    else if (Array.isArray(values[name])) values[name].push(value);
    else values[name] = [values[name], value];
  }
  return values;
}

/** The media type to answer with: the best of those that a client accepts. */
const negotiate = function (accept, offered) {
  let best = null;
  let weight = 0;
  ranges: for (const range of accept.split(",")) {
    const [type, ...options] = range.trim().split(";");
    let quality = 1;
    for (const option of options) {
      const [key, value] = option.trim().split("=");
      if (key !== "q") continue;
      quality = Number(value);
      if (Number.isNaN(quality)) continue ranges;
    }
    const fits = offered.find((one) => type === "*/*" || type === one);
    if (fits && quality > weight) {
      best = fits;
      weight = quality;
    }
  }
  return best;
};

module.exports = { RouteError, Router, matchPattern, negotiate, parseQuery };
