package gridpath;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedList;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Queue;

/**
 * Finds ways through a {@link Grid}.
 */
public class PathFinder {
    private final Grid grid;

    public PathFinder(Grid grid) {
        this.grid = grid;
    }

    /**
     * Computes the number of steps from a cell to all others.
     *
     * @return one number per cell, -1 where there is no way
     */
    public int[] distances(int start) {
        int[] distance = new int[grid.width * grid.height];
        Arrays.fill(distance, -1);
        Queue<Integer> queue = new ArrayDeque<Integer>();
        distance[start] = 0;
        queue.add(start);
        while (!queue.isEmpty()) {
            int cell = queue.remove();
            for (int next : grid.neighbours(cell)) {
                if (distance[next] < 0) {
                    distance[next] = distance[cell] + 1;
                    queue.add(next);
                }
            }
        }
        return distance;
    }

    /**
     * Finds a shortest way with the A* algorithm.
     *
     * @return the cells from start to goal, both included; empty if there is no way
     */
    public List<Integer> findPath(int start, final int goal) {
        final int[] cost = new int[grid.width * grid.height];
        int[] parent = new int[cost.length];
        boolean[] closed = new boolean[cost.length];
        Arrays.fill(cost, Integer.MAX_VALUE);
        PriorityQueue<int[]> open = new PriorityQueue<int[]>(64, new Comparator<int[]>() {
            public int compare(int[] a, int[] b) {
                return a[1] != b[1] ? Integer.compare(a[1], b[1]) : Integer.compare(b[2], a[2]);
            }
        });
        cost[start] = 0;
        parent[start] = -1;
        open.add(new int[] {start, estimate(start, goal), 0});
        while (!open.isEmpty()) {
            int cell = open.poll()[0];
            if (cell == goal)
                return trace(parent, goal);
            if (closed[cell])
                continue;
            closed[cell] = true;
            for (int next : grid.neighbours(cell)) {
                int candidate = cost[cell] + 1;
                if (candidate < cost[next]) {
                    cost[next] = candidate;
                    parent[next] = cell;
                    open.add(new int[] {next, candidate + estimate(next, goal), candidate});
                }
            }
        }
        return Collections.emptyList();
    }

    /**
     * Lower bound of the number of steps between two cells.
     */
    private int estimate(int from, int to) {
        int dx = from % grid.width - to % grid.width;
        int dy = from / grid.width - to / grid.width;
        return Math.abs(dx) + Math.abs(dy);
    }

    /**
     * Follows the parents of a cell up to the one that has none.
     */
    private static List<Integer> trace(int[] parent, int cell) {
        LinkedList<Integer> path = new LinkedList<Integer>();
        do {
            path.addFirst(cell);
            cell = parent[cell];
        } while (cell >= 0);
        return path;
    }

    /**
     * Numbers the connected areas of free cells from 1; blocked cells get 0.
     */
    public int[] areas() {
        int[] area = new int[grid.width * grid.height];
        int count = 0;
        for (int start = 0; start < area.length; start++) {
            if (area[start] != 0 || !grid.isFree(start % grid.width, start / grid.width))
                continue;
            count++;
            ArrayDeque<Integer> stack = new ArrayDeque<Integer>();
            stack.push(start);
            area[start] = count;
            while (!stack.isEmpty()) {
                for (int next : grid.neighbours(stack.pop())) {
                    if (area[next] == 0) {
                        area[next] = count;
                        stack.push(next);
                    }
                }
            }
        }
        return area;
    }

    /**
     * Leaves out the cells of a path at which it could go straight ahead.
     *
     * @return the corners, with the first and the last cell
     */
    public List<Integer> simplify(List<Integer> path) {
        LinkedList<Integer> corners = new LinkedList<Integer>();
        int last = path.size() - 1;
        for (int i = 0; i <= last; i++) {
            boolean isCorner = i == 0 || i == last
                    || path.get(i) - path.get(i - 1) != path.get(i + 1) - path.get(i);
            if (isCorner)
                corners.add(path.get(i));
        }
        return corners;
    }
}
