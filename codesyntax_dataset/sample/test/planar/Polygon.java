package planar;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;

/** A polygon without holes; its border runs counter-clockwise. */
public class Polygon {
  private final List<Vector> corners;

  /** Creates a polygon from its corners, in either direction. */
  public Polygon(List<Vector> corners) {
    if (corners.size() < 3) {
      throw new IllegalArgumentException("a polygon has three corners at least, got " + corners.size());
    }
    List<Vector> copy = new ArrayList<>(corners);
    if (signedArea(copy) < 0) {
      Collections.reverse(copy);
    }
    this.corners = Collections.unmodifiableList(copy);
  }

  /** Area by the shoelace formula, negative if the corners go clockwise. */
  static double signedArea(List<Vector> corners) {
    double sum = 0;
    for (int i = 0, n = corners.size(); i < n; i++) {
      sum += corners.get(i).cross(corners.get((i + 1) % n));
    }
    return sum / 2;
  }

  /** The corners, counter-clockwise. */
  public List<Vector> getCorners() {
    return corners;
  }

  /** Area of the polygon. */
  public double area() {
    return signedArea(corners);
  }

  /** Length of the border. */
  public double perimeter() {
    double sum = 0;
    Vector last = corners.get(corners.size() - 1);
    for (Vector corner : corners) {
      sum += corner.minus(last).length();
      last = corner;
    }
    return sum;
  }

  /** Centre of gravity. */
  public Vector centroid() {
    double x = 0;
    double y = 0;
    int n = corners.size();
    for (int i = 0; i < n; i++) {
      Vector a = corners.get(i);
      Vector b = corners.get((i + 1) % n);
      double weight = a.cross(b);
      x += (a.x + b.x) * weight;
      y += (a.y + b.y) * weight;
    }
    double scale = 1 / (6 * area());
    return new Vector(x * scale, y * scale);
  }

  /**
   * Tells whether a point is inside, by counting the edges to its right.
   *
   * <p>Points on the border may go either way.
   */
  public boolean contains(Vector point) {
    boolean inside = false;
    for (int i = 0, j = corners.size() - 1; i < corners.size(); j = i++) {
      Vector a = corners.get(i);
      Vector b = corners.get(j);
      if ((a.y > point.y) != (b.y > point.y)
          && point.x < (b.x - a.x) * (point.y - a.y) / (b.y - a.y) + a.x) {
        inside = !inside;
      }
    }
    return inside;
  }

  /** Whether no corner points inwards. */
  public boolean isConvex() {
    int n = corners.size();
    for (int i = 0; i < n; i++) {
      Vector a = corners.get(i);
      Vector b = corners.get((i + 1) % n);
      Vector c = corners.get((i + 2) % n);
      if (b.minus(a).cross(c.minus(b)) < 0) {
        return false;
      }
    }
    return true;
  }

  /**
   * Smallest convex polygon around a set of points.
   *
   * <p>Goes around the points by their angle with the lowest one (Graham's scan).
   *
   * @param points three at least that are not all on a line
   */
  public static Polygon convexHull(Vector... points) {
    Vector[] sorted = points.clone();
    for (int i = 1; i < sorted.length; i++) {
      Vector p = sorted[i];
      if (p.y < sorted[0].y || p.y == sorted[0].y && p.x < sorted[0].x) {
        sorted[i] = sorted[0];
        sorted[0] = p;
      }
    }
    final Vector lowest = sorted[0];
    Arrays.sort(sorted, 1, sorted.length, new Comparator<Vector>() {
      @Override
      public int compare(Vector a, Vector b) {
        double turn = a.minus(lowest).cross(b.minus(lowest));
        if (turn != 0) {
          return turn > 0 ? -1 : 1;
        }
        return Double.compare(a.minus(lowest).length(), b.minus(lowest).length());
      }
    });
    Deque<Vector> hull = new ArrayDeque<>();
    for (Vector point : sorted) {
      while (hull.size() > 1) {
        Vector top = hull.pop();
        if (top.minus(hull.peek()).cross(point.minus(top)) > 0) {
          hull.push(top);
          break;
        }
      }
      hull.push(point);
    }
    return new Polygon(new ArrayList<>(hull));
  }

  /**
   * Part of the polygon to the left of a line (Sutherland and Hodgman).
   *
   * @param from a point on the line
   * @param to another point on the line
   * @return null if less than a triangle is left
   */
  public Polygon clip(Vector from, Vector to) {
    Vector direction = to.minus(from);
    List<Vector> kept = new ArrayList<>();
    Vector last = corners.get(corners.size() - 1);
    double lastSide = direction.cross(last.minus(from));
    for (Vector corner : corners) {
      double side = direction.cross(corner.minus(from));
      if (side * lastSide < 0) {
        kept.add(last.towards(corner, lastSide / (lastSide - side)));
      }
      if (side >= 0) {
        kept.add(corner);
      }
      last = corner;
      lastSide = side;
    }
    return kept.size() < 3 ? null : new Polygon(kept);
  }
}
