package planar;

/** A vector in the plane. */
public final class Vector {
  public static final Vector ZERO = new Vector(0, 0);

  public final double x;
  public final double y;

  public Vector(double x, double y) {
    this.x = x;
    this.y = y;
  }

  /** Creates a vector from its length and its angle with the x axis, in radians. */
  public static Vector polar(double length, double angle) {
    return new Vector(length * Math.cos(angle), length * Math.sin(angle));
  }

  /** Sum of two vectors. */
  public Vector plus(Vector other) {
    return new Vector(x + other.x, y + other.y);
  }

  /** Difference of two vectors. */
  public Vector minus(Vector other) {
    return new Vector(x - other.x, y - other.y);
  }

  /** Stretches the vector. */
  public Vector times(double factor) {
    return new Vector(x * factor, y * factor);
  }

  /** Scalar product. */
  public double dot(Vector other) {
    return x * other.x + y * other.y;
  }

  /**
   * Cross product: positive if the other vector points to the left of this one, zero if the two are parallel.
   */
  public double cross(Vector other) {
    return x * other.y - y * other.x;
  }

  /** Euclidean length. */
  public double length() {
    return Math.hypot(x, y);
  }

  /**
   * Shortens or stretches the vector to length one.
   *
   * @throws ArithmeticException for the zero vector
   */
  public Vector normalize() {
    double length = length();
    if (length == 0) {
      throw new ArithmeticException("the zero vector has no direction");
    }
    return times(1 / length);
  }

  /** Turns the vector counter-clockwise. */
  public Vector rotate(double angle) {
    double cos = Math.cos(angle);
    double sin = Math.sin(angle);
    return new Vector(cos * x - sin * y, sin * x + cos * y);
  }

  /** Point between two points: this one for 0, the other one for 1. */
  public Vector towards(Vector other, double share) {
    return plus(other.minus(this).times(share));
  }

  /** Whether two points are closer than a tolerance in both directions. */
  public boolean isNear(Object object, double tolerance) {
    if (!(object instanceof Vector)) {
      return false;
    }
    Vector other = (Vector) object;
    return Math.abs(x - other.x) <= tolerance && Math.abs(y - other.y) <= tolerance;
  }
}
