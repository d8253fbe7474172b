package gridpath;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A rectangular map of free and blocked cells. Cells are numbered row by row from 0.
 */
public class Grid {
    public static final char FREE = '.';
    public static final char WALL = '#';

    private static final int[] DX = {1, 0, -1, 0};
    private static final int[] DY = {0, 1, 0, -1};

    final int width;
    final int height;
    private final boolean[] blocked;

    public Grid(int width, int height) {
        this.width = width;
        this.height = height;
        this.blocked = new boolean[width * height];
    }

    /**
     * Reads a map of dots and hashes.
     *
     * @param rows all of the same length
     */
    public static Grid parse(String... rows) {
        Grid grid = new Grid(rows[0].length(), rows.length);
        for (int y = 0; y < rows.length; y++) {
            if (rows[y].length() != grid.width)
                throw new IllegalArgumentException("row " + y + " has " + rows[y].length() + " cells");
            for (int x = 0; x < grid.width; x++) {
                switch (rows[y].charAt(x)) {
                    case WALL:
                        grid.blocked[grid.cell(x, y)] = true;
                        break;
                    case FREE:
                        break;
                    default:
                        throw new IllegalArgumentException("unknown cell " + rows[y].charAt(x));
                }
            }
        }
        return grid;
    }

    /** Number of the cell at a place. */
    int cell(int x, int y) {
        return y * width + x;
    }

    /**
     * Whether a place is on the map and not blocked.
     */
    public boolean isFree(int x, int y) {
        return x >= 0 && x < width && y >= 0 && y < height && !blocked[cell(x, y)];
    }

    /**
     * Blocks or frees all cells of a rectangle, as far as it is on the map.
     */
    public void fill(int left, int top, int right, int bottom, boolean wall) {
        int firstX = Math.max(left, 0), lastX = Math.min(right, width - 1);
        int firstY = Math.max(top, 0), lastY = Math.min(bottom, height - 1);
        for (int y = firstY; y <= lastY; y++) {
            Arrays.fill(blocked, cell(firstX, y), cell(lastX, y) + 1, wall);
        }
    }

    /**
     * Lists the free cells next to a cell, east first, then clockwise.
     */
    List<Integer> neighbours(int cell) {
        List<Integer> result = new ArrayList<Integer>(4);
        int x = cell % width;
        int y = cell / width;
        for (int d = 0; d < 4; d++) {
            if (isFree(x + DX[d], y + DY[d]))
                result.add(cell(x + DX[d], y + DY[d]));
        }
        return result;
    }

    /**
     * Whether nothing blocks the straight line between two cells (Bresenham's algorithm).
     */
    public boolean canSee(int x0, int y0, int x1, int y1) {
        int dx = Math.abs(x1 - x0);
        int dy = Math.abs(y1 - y0);
        int stepX = x0 < x1 ? 1 : -1;
        int stepY = y0 < y1 ? 1 : -1;
        int error = dx - dy;
        while (isFree(x0, y0)) {
            if (x0 == x1 && y0 == y1)
                return true;
            int doubled = 2 * error;
            if (doubled > -dy) {
                error -= dy;
                x0 += stepX;
            }
            if (doubled < dx) {
                error += dx;
                y0 += stepY;
            }
        }
        return false;
    }

    /**
     * Finds the upper left corner of the first free rectangle of a given size.
     *
     * @return the cell, or -1 if there is no room
     */
    public int findRoom(int roomWidth, int roomHeight) {
        for (int top = 0; top + roomHeight <= height; top++) {
            search:
            for (int left = 0; left + roomWidth <= width; left++) {
                for (int y = top; y < top + roomHeight; y++) {
                    for (int x = left; x < left + roomWidth; x++) {
                        if (blocked[cell(x, y)])
                            continue search;
                    }
                }
                return cell(left, top);
            }
        }
        return -1;
    }

    /**
     * Draws the map with a path on it.
     *
     * @param path cells to mark, may be null
     */
    public String draw(List<Integer> path) {
        StringBuilder out = new StringBuilder();
        for (int y = 0; y < height; y++) {
            for (int x = 0; x < width; x++) {
                if (path != null && path.contains(cell(x, y)))
                    out.append('*');
                else
                    out.append(isFree(x, y) ? FREE : WALL);
            }
            out.append('\n');
        }
        return out.toString();
    }
}
