package logview;

import java.io.BufferedReader;
import java.io.File;
import java.io.FileReader;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Counts what happened on a web server. */
public class LogStats {
  private final Map<String, Integer> pages = new HashMap<>();
  private final Map<String, Integer> outcomes = new TreeMap<>();
  private long bytes;
  private int malformed;

  /** Takes one line into account. */
  public void add(String text) {
    LogLine line = LogLine.parse(text);
    if (line == null) {
      malformed++;
      return;
    }
    bytes += line.getBytes();
    increment(outcomes, line.outcome());
    if (line.isSafe()) {
      increment(pages, line.page());
    }
  }

  /** Adds one to the count of a key. */
  private static void increment(Map<String, Integer> counts, String key) {
    Integer count = counts.get(key);
    counts.put(key, count == null ? 1 : count + 1);
  }

  /**
   * Takes all lines of a file into account.
   *
   * @return the number of lines; -1 if the file cannot be read to its end
   */
  public int addFile(File file) {
    BufferedReader reader = null;
    int count = 0;
    try {
      reader = new BufferedReader(new FileReader(file));
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        add(line);
        count++;
      }
    } catch (IOException e) {
      System.err.println("cannot read " + e.getMessage());
      count = -1;
    } finally {
      try {
        if (reader != null) {
          reader.close();
        }
      } catch (IOException e) {
        count = -1;
      }
    }
    return count;
  }

  /** The pages asked for most often, in falling order, ties in alphabetical order. */
  public List<String> topPages(int limit) {
    List<String> names = new ArrayList<>(pages.keySet());
    Collections.sort(names, new Comparator<String>() {
      @Override
      public int compare(String a, String b) {
        int byCount = pages.get(b) - pages.get(a);
        return byCount != 0 ? byCount : a.compareTo(b);
      }
    });
    return names.subList(0, Math.min(limit, names.size()));
  }

  /** A summary for people. */
  public String summary() {
    StringBuilder out = new StringBuilder();
    for (Map.Entry<String, Integer> entry : outcomes.entrySet()) {
      out.append(entry.getKey()).append(": ").append(entry.getValue()).append('\n');
    }
    if (malformed > 0) {
      out.append("not understood: " + malformed + "\n");
    }
    return out.append("sent: ").append(readableSize(bytes)).toString();
  }

  /** Formats a number of bytes with three digits at least. */
  static String readableSize(long bytes) {
    final String units = "kMGTPE";
    if (bytes < 1000) {
      return bytes + " B";
    }
    double value = bytes;
    int unit = -1;
    do {
      value /= 1000;
      unit++;
    } while (value >= 999.5 && unit < units.length() - 1);
    return String.format(java.util.Locale.ROOT, value < 10 ? "%.2f %cB" : "%.0f %cB", value, units.charAt(unit));
  }

  /**
   * Reads the last lines of a file backwards.
   *
   * @param count how many lines
   */
  public static List<String> tail(File file, int count) throws IOException {
    List<String> lines = new ArrayList<>();
    RandomAccessFile in = new RandomAccessFile(file, "r");
    try {
      StringBuilder line = new StringBuilder();
      for (long position = in.length() - 1; position >= 0 && lines.size() < count; position--) {
        in.seek(position);
        int c = in.read();
        if (c != '\n') {
          line.append((char) c);
        } else if (position < in.length() - 1) {
          lines.add(line.reverse().toString());
          line.setLength(0);
        }
      }
      if (lines.size() < count && in.length() > 0) {
        lines.add(line.reverse().toString());
      }
    } finally {
      in.close();
    }
    Collections.reverse(lines);
    return lines;
  }
}
