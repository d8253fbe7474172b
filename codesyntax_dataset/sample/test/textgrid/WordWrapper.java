package textgrid;

import java.util.ArrayList;
import java.util.List;

/** Breaks paragraphs into lines. */
public class WordWrapper {
  private final int width;
  private boolean justify;

  public WordWrapper(int width) {
    this.width = width;
  }

  /** Stretches all lines but the last one of a paragraph to the full width. */
  public WordWrapper justified() {
    justify = true;
    return this;
  }

  /** Wraps a text; line breaks in it stay. */
  public String wrap(String text) {
    StringBuilder result = new StringBuilder();
    for (String paragraph : text.split("\n", -1)) {
      if (result.length() > 0) {
        result.append('\n');
      }
      result.append(String.join("\n", wrapParagraph(paragraph)));
    }
    return result.toString();
  }

  /** Breaks one paragraph into lines that are no longer than the width. */
  List<String> wrapParagraph(String paragraph) {
    List<String> lines = new ArrayList<>();
    List<String> line = new ArrayList<>();
    int length = 0;
    for (String word : paragraph.trim().split("\\s+")) {
      while (word.length() > width) {
        // Too long for any line: fill up what is left of this one.
        int room = length == 0 ? width : width - length - 1;
        if (room > 0) {
          line.add(word.substring(0, room));
          word = word.substring(room);
        }
        lines.add(String.join(" ", line));
        line.clear();
        length = 0;
      }
      if (length > 0 && length + 1 + word.length() > width) {
        lines.add(justify ? stretch(line, length) : String.join(" ", line));
        line.clear();
        length = 0;
      }
      length += word.length() + (length > 0 ? 1 : 0);
      line.add(word);
    }
    lines.add(String.join(" ", line));
    return lines;
  }

  /** Joins words with as many blanks as it takes to fill the width, more of them at the right. */
  private String stretch(List<String> words, int length) {
    int gaps = words.size() - 1;
    if (gaps == 0) {
      return words.get(0);
    }
    int missing = width - length;
    StringBuilder out = new StringBuilder();
    for (int i = 0; i <= gaps; i++) {
      out.append(words.get(i));
      if (i < gaps) {
        int extra = missing / gaps + (i >= gaps - missing % gaps ? 1 : 0);
        for (int blank = 0; blank <= extra; blank++) {
          out.append(' ');
        }
      }
    }
    return out.toString();
  }

  /** Puts a text in the middle of the width. */
  public String center(String text) {
    if (text.length() >= width) {
      return text;
    }
    int left = (width - text.length()) / 2;
    StringBuilder out = new StringBuilder(width);
    while (out.length() < left) {
      out.append(' ');
    }
    return out.append(text).toString();
  }

  /**
   * Shortens a text to the width, keeping its beginning and its end.
   *
   * @param text for example a path
   * @return the text itself if it is short enough, else with “…” in its middle
   */
  public String abbreviate(String text) {
    if (text.length() <= width) {
      return text;
    }
    int tail = (width - 1) / 2;
    int head = width - 1 - tail;
    return text.substring(0, head) + "…" + text.substring(text.length() - tail);
  }
}
