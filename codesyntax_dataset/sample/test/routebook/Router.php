<?php

declare(strict_types=1);

namespace Routebook;

use InvalidArgumentException;

/**
 * Finds the handler of a request by its method and path.
 *
 * A pattern such as `/users/{id:\d+}` has parameters in curly brackets, each with an optional regular expression.
 */
final class Router
{
    private const METHODS = ['GET', 'POST', 'PUT', 'DELETE'];

    /** @var array<string, Route[]> method -> routes, in the order in which they were added */
    private array $routes = [];

    public function __construct(private string $base = '', private ?Logger $logger = null)
    {
        $this->base = rtrim($base, '/');
    }

    public function add(string $method, string $pattern, callable $handler, ?string $name = null): Route
    {
        if (!in_array($method, self::METHODS, strict: true)) {
            throw new InvalidArgumentException("unknown method $method");
        }
        $route = new Route($this->base . $pattern, $handler, name: $name);
        $this->routes[$method][] = $route;
        $this->logger?->debug('added', ['method' => $method, 'pattern' => $pattern]);

        return $route;
    }

    /** Routes that share a prefix, added by a callback. */
    public function group(string $prefix, callable $define): void
    {
        $outer = $this->base;
        $this->base .= $prefix;
        try {
            $define($this);
        } finally {
            $this->base = $outer;
        }
    }

    public function find(string $method, string $path): ?Found
    {
        foreach ($this->routes[$method] ?? [] as $route) {
            $values = $route->match($path);
            if ($values !== null) {
                return new Found($route, $values);
            }
        }

        return $method === 'HEAD' ? $this->find('GET', $path) : null;
    }

    /** The methods that a path answers to, for the header `Allow`. */
    public function allowed(string $path): array
    {
        return array_keys(array_filter(
            $this->routes,
            fn (array $routes) => array_filter($routes, fn (Route $route) => $route->match($path) !== null) !== [],
        ));
    }

    public function url(string $name, array $values = []): string
    {
        foreach ($this->all() as $route) {
            if ($route->name() === $name) {
                return $route->fill($values);
            }
        }
        throw new UnknownRoute($name, known: array_map(fn ($route) => $route->name(), iterator_to_array($this->all())));
    }

    /** All routes, method by method. */
    private function all(): iterable
    {
        foreach ($this->routes as $routes) {
            yield from $routes;
        }
    }

    public function dispatch(Request $request): Response
    {
        $found = $this->find($request->method, $request->path);
        if ($found === null) {
            $allowed = $this->allowed($request->path);

            return $allowed ? Response::methodNotAllowed($allowed) : Response::notFound();
        }
        try {
            $result = ($found->route->handler)($request, ...$found->values);
        } catch (HttpError $error) {
            $this->logger?->warning($error->getMessage(), ['status' => $error->status]);
            $result = new Response($error->getMessage(), status: $error->status);
        } catch (\Throwable $error) {
            $this->logger?->error((string) $error);
            $result = new Response('something went wrong', 500);
        } finally {
            $this->logger?->info($request->path, ['took' => microtime(true) - $request->began]);
        }

        return $result instanceof Response ? $result : new Response((string) $result);
    }
}
