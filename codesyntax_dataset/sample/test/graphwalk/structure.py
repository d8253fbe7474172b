"""Order, components and spanning trees of graphs."""


class CycleError(ValueError):
    """The graph has a cycle; its nodes are in `args[1]`."""


def reverse(graph):
    """Turn all edges around, keeping their weights."""
    turned = {node: {} for node in graph}
    for node, neighbours in graph.items():
        for neighbour, weight in neighbours.items():
            turned.setdefault(neighbour, {})[node] = weight
    return turned


def topological_order(dependencies):
    """Sort tasks so that each one comes after all that it depends on.

    `dependencies` maps a task to the tasks it needs first. The order is the same on every
    run: among tasks that are ready, the smallest goes first. Raises CycleError if tasks
    wait for each other.
    """
    waiting = {task: set(needed) for task, needed in dependencies.items()}
    for needed in dependencies.values():
        for task in needed:
            waiting.setdefault(task, set())
    order = []
    while waiting:
        ready = sorted(task for task, needed in waiting.items() if not needed)
        if not ready:
            raise CycleError("tasks wait for each other", sorted(waiting))
        task = ready[0]
        order.append(task)
        del waiting[task]
        for needed in waiting.values():
            needed.discard(task)
    return order


def connected_components(graph):
    """Group the nodes of an undirected graph into its connected parts.

    Returns a list of sets, the largest one first.
    """
    left = set(graph)
    components = []
    while left:
        component = set()
        stack = [left.pop()]
        while stack:
            node = stack.pop()
            component.add(node)
            new = {other for other in graph[node] if other in left}
            left -= new
            stack.extend(new)
        components.append(component)
    return sorted(components, key=len, reverse=True)


def is_bipartite(graph):
    """Check whether two colours suffice to give no node the colour of a neighbour."""
    colours = {}
    for root in graph:
        if root in colours:
            continue
        colours[root] = 0
        stack = [root]
        while stack:
            node = stack.pop()
            for neighbour in graph[node]:
                if neighbour not in colours:
                    colours[neighbour] = 1 - colours[node]
                    stack.append(neighbour)
                elif colours[neighbour] == colours[node]:
                    return False
    return True


class DisjointSets:
    """Sets that can be joined; knows which elements are together."""

    def __init__(self, elements=()):
        """Start with each element in a set of its own."""
        self.parent = {element: element for element in elements}
        self.size = dict.fromkeys(self.parent, 1)

    def find(self, element):
        """Return the element that stands for the whole set."""
        root = element
        while self.parent[root] != root:
            root = self.parent[root]
        while self.parent[element] != root:  # shorten the way for the next time
            self.parent[element], element = root, self.parent[element]
        return root

    def join(self, a, b):
        """Unite the sets of two elements; return False if they were one already."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return False
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size.pop(b)
        return True


def minimum_spanning_tree(graph):
    """Choose the lightest edges that keep an undirected graph together (Kruskal).

    Returns a list of `(weight, node, node)`; on a graph of several parts, a tree for each.
    """
    edges = sorted((weight, a, b) for a in graph for b, weight in graph[a].items() if a < b)
    sets = DisjointSets(graph)
    return [(weight, a, b) for weight, a, b in edges if sets.join(a, b)]
