package textgrid;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A table of text with aligned columns. */
public class TextTable {
  /** Where the text of a column stands. */
  public enum Align { LEFT, CENTER, RIGHT }

  private final Align[] aligns;
  private final List<String[]> rows = new ArrayList<>();
  private String separator = "  ";

  public TextTable(Align... aligns) {
    this.aligns = aligns.clone();
  }

  /** Sets what stands between two columns. */
  public TextTable separator(String separator) {
    this.separator = separator;
    return this;
  }

  /** Adds a row; cells that are missing at its end are empty. */
  public TextTable row(Object... cells) {
    if (cells.length > aligns.length) {
      throw new IllegalArgumentException(cells.length + " cells for " + aligns.length + " columns");
    }
    String[] row = new String[aligns.length];
    Arrays.fill(row, "");
    for (int i = 0; i < cells.length; i++) {
      Object cell = cells[i];
      if (cell instanceof Double) {
        row[i] = String.format("%.2f", cell);
      } else if (cell != null) {
        row[i] = cell.toString();
      }
    }
    rows.add(row);
    return this;
  }

  /** Width of each column: that of its longest cell. */
  int[] widths() {
    int[] widths = new int[aligns.length];
    for (String[] row : rows) {
      for (int i = 0; i < row.length; i++) {
        widths[i] = Math.max(widths[i], row[i].length());
      }
    }
    return widths;
  }

  /** Fills a cell with blanks up to a width. */
  static String align(String text, int width, Align align) {
    int blanks = width - text.length();
    int left;
    switch (align) {
      case RIGHT:
        left = blanks;
        break;
      case CENTER:
        left = blanks / 2;
        break;
      default:
        left = 0;
    }
    char[] cell = new char[width];
    Arrays.fill(cell, ' ');
    text.getChars(0, text.length(), cell, left);
    return new String(cell);
  }

  /** Lays out the table. Lines do not end in blanks. */
  @Override
  public String toString() {
    int[] widths = widths();
    StringBuilder out = new StringBuilder();
    for (String[] row : rows) {
      int start = out.length();
      for (int i = 0; i < row.length; i++) {
        if (i > 0) {
          out.append(separator);
        }
        out.append(align(row[i], widths[i], aligns[i]));
      }
      int end = out.length();
      while (end > start && out.charAt(end - 1) == ' ') {
        end--;
      }
      out.setLength(end);
      out.append('\n');
    }
    return out.toString();
  }
}
