package textgrid;

import java.util.Collection;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;

/** Measures of how different two strings are. */
public final class Distance {
  private Distance() {}

  /**
   * Number of single character edits between two strings.
   *
   * @param limit give up above this number
   * @return the distance, or {@code limit + 1} if it is greater than the limit
   */
  public static int levenshtein(CharSequence a, CharSequence b, int limit) {
    if (Math.abs(a.length() - b.length()) > limit) {
      return limit + 1;
    }
    int[] previous = new int[b.length() + 1];
    int[] current = new int[b.length() + 1];
    for (int j = 0; j <= b.length(); j++) {
      previous[j] = j;
    }
    for (int i = 1; i <= a.length(); i++) {
      current[0] = i;
      int best = i;
      for (int j = 1; j <= b.length(); j++) {
        int replace = previous[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        current[j] = Math.min(replace, Math.min(previous[j], current[j - 1]) + 1);
        best = Math.min(best, current[j]);
      }
      if (best > limit) {
        return limit + 1;
      }
      int[] swap = previous;
      previous = current;
      current = swap;
    }
    return Math.min(previous[b.length()], limit + 1);
  }

  /** Number of places at which two strings of the same length differ. */
  public static int hamming(String a, String b) {
    if (a.length() != b.length()) {
      throw new IllegalArgumentException("lengths differ: " + a.length() + " and " + b.length());
    }
    int different = 0;
    for (int i = 0; i < a.length(); i++) {
      if (a.charAt(i) != b.charAt(i)) {
        different++;
      }
    }
    return different;
  }

  /** Share of the pairs of neighbouring letters that two strings have in common, from 0 to 1. */
  public static double dice(String a, String b) {
    Set<String> left = bigrams(a);
    Set<String> right = bigrams(b);
    int total = left.size() + right.size();
    if (total == 0) {
      return a.equals(b) ? 1 : 0;
    }
    left.retainAll(right);
    return 2.0 * left.size() / total;
  }

  /** Pairs of neighbouring letters, in lower case. */
  private static Set<String> bigrams(String text) {
    String lower = text.toLowerCase(Locale.ROOT);
    Set<String> pairs = new HashSet<>();
    for (int i = 0; i + 2 <= lower.length(); i++) {
      pairs.add(lower.substring(i, i + 2));
    }
    return pairs;
  }

  /**
   * Code of how a word sounds in English (Soundex).
   *
   * @return a letter and three digits; empty for a word without letters
   */
  public static String soundex(String word) {
    final String codes = "01230120022455012623010202";
    StringBuilder out = new StringBuilder();
    char last = '0';
    for (char c : word.toUpperCase(Locale.ROOT).toCharArray()) {
      if (c < 'A' || c > 'Z') {
        continue;
      }
      char code = codes.charAt(c - 'A');
      if (out.length() == 0) {
        out.append(c);
      } else if (code != '0' && code != last) {
        out.append(code);
        if (out.length() == 4) {
          break;
        }
      }
      // H and W do not part two consonants of the same code.
      if (c != 'H' && c != 'W') {
        last = code;
      }
    }
    while (out.length() > 0 && out.length() < 4) {
      out.append('0');
    }
    return out.toString();
  }

  /** Candidate that is most like a word, or null if none is within the limit. */
  public static String nearest(String word, Collection<String> candidates, int limit) {
    String best = null;
    int bestDistance = limit + 1;
    for (String candidate : candidates) {
      int distance = levenshtein(word, candidate, bestDistance);
      if (distance < bestDistance) {
        best = candidate;
        bestDistance = distance;
      }
    }
    return best;
  }
}
