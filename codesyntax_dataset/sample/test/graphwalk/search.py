"""Searching in graphs.

A graph is a mapping from each node to a mapping of its neighbours to edge weights.
"""

import heapq
from collections import deque
from math import inf


class NoPath(Exception):
    """The target cannot be reached."""


def breadth_first(graph, start):
    """Visit all nodes that can be reached, nearest first.

    Yields pairs of a node and its distance in edges.
    """
    distance = {start: 0}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        yield node, distance[node]
        for neighbour in graph[node]:
            if neighbour not in distance:
                distance[neighbour] = distance[node] + 1
                queue.append(neighbour)


def rebuild_path(parents, target):
    """Follow parent links from the target back to the root and return the way there."""
    path = [target]
    while parents[path[-1]] is not None:
        path.append(parents[path[-1]])
    path.reverse()
    return path


def cheapest_path(graph, source, target):
    """Find a path of least total weight with Dijkstra's algorithm.

    Returns the path as a list of nodes and its weight. Raises NoPath if there is none and
    ValueError on a negative weight.
    """
    distances = {source: 0}
    parents = {source: None}
    done = set()
    heap = [(0, source)]
    while heap:
        distance, node = heapq.heappop(heap)
        if node in done:
            continue
        if node == target:
            return rebuild_path(parents, target), distance
        done.add(node)
        for neighbour, weight in graph[node].items():
            if weight < 0:
                raise ValueError(f"edge {node} -> {neighbour} has the negative weight {weight}")
            candidate = distance + weight
            if candidate < distances.get(neighbour, inf):
                distances[neighbour] = candidate
                parents[neighbour] = node
                heapq.heappush(heap, (candidate, neighbour))
    raise NoPath(f"no path from {source!r} to {target!r}")


def all_pairs(graph):
    """Compute the distances between all pairs of nodes (Floyd and Warshall).

    Pairs without a path have the distance infinity.
    """
    nodes = list(graph)
    table = {a: {b: 0 if a == b else graph[a].get(b, inf) for b in nodes} for a in nodes}
    for middle in nodes:
        for a in nodes:
            for b in nodes:
                through = table[a][middle] + table[middle][b]
                if through < table[a][b]:
                    table[a][b] = through
    return table


def simple_paths(graph, source, target, limit=None):
    """Yield all paths without repeated nodes, of at most `limit` edges."""
    stack = [(source, [source])]
    while stack:
        node, path = stack.pop()
        if node == target:
            yield path
            continue
        if limit is not None and len(path) > limit:
            continue
        # Sorted in reverse, so that paths come out in alphabetical order.
        for neighbour in sorted(graph[node], reverse=True):
            if neighbour not in path:
                stack.append((neighbour, path + [neighbour]))


def eccentricity(graph, node):
    """Distance in edges from a node to the node that is farthest from it."""
    reached = dict(breadth_first(graph, node))
    if len(reached) < len(graph):
        missing = next(other for other in graph if other not in reached)
        raise NoPath("%r cannot be reached from %r" % (missing, node))
    return max(reached.values())
