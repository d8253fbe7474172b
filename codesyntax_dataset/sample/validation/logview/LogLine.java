package logview;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A line of a web server's log. */
public class LogLine {
  private static final Pattern FORMAT =
      Pattern.compile("(\\S+) \\S+ (\\S+) \\[([^\\]]+)\\] \"(\\S+) (\\S+)[^\"]*\" (\\d{3}) (\\d+|-).*");

  private final String host;
  private final String method;
  private final String path;
  private final int status;
  private final long bytes;

  private LogLine(String host, String method, String path, int status, long bytes) {
    this.host = host;
    this.method = method;
    this.path = path;
    this.status = status;
    this.bytes = bytes;
  }

  /**
   * Parses a line in the common log format.
   *
   * @return null if the line has another form
   */
  public static LogLine parse(String line) {
    Matcher matcher = FORMAT.matcher(line);
    if (!matcher.matches()) {
      return null;
    }
    String size = matcher.group(7);
    return new LogLine(
        matcher.group(1),
        matcher.group(4),
        matcher.group(5),
        Integer.parseInt(matcher.group(6)),
        size.equals("-") ? 0 : Long.parseLong(size));
  }

  /** Address that the request came from. */
  public String getHost() {
    return host;
  }

  /** Size of the answer's body. */
  public long getBytes() {
    return bytes;
  }

  /** Kind of the answer in one word. */
  public String outcome() {
    switch (status / 100) {
      case 2:
        return "ok";
      case 3:
        return "redirect";
      case 4:
        return status == 404 ? "missing" : "refused";
      case 5:
        return "failed";
      default:
        return "unknown";
    }
  }

  /** Path without the query, and without a slash at its end. */
  public String page() {
    int question = path.indexOf('?');
    String page = question < 0 ? path : path.substring(0, question);
    while (page.length() > 1 && page.endsWith("/")) {
      page = page.substring(0, page.length() - 1);
    }
    return page;
  }

  /** Arguments of the query; of several with the same name the last one. */
  public Map<String, String> query() {
    Map<String, String> arguments = new LinkedHashMap<>();
    int question = path.indexOf('?');
    if (question >= 0) {
      for (String pair : path.substring(question + 1).split("&")) {
        int equals = pair.indexOf('=');
        if (equals > 0) {
          arguments.put(pair.substring(0, equals), pair.substring(equals + 1));
        }
      }
    }
    return arguments;
  }

  /** Whether a request should not have changed anything on the server. */
  public boolean isSafe() {
    return method.equals("GET") || method.equals("HEAD") || method.equals("OPTIONS");
  }
}
