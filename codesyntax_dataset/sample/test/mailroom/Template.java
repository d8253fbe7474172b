package mailroom;

import java.text.SimpleDateFormat;
import java.util.Date;
import java.util.Locale;
import java.util.Map;

/** A text with placeholders such as {@code {name}} or {@code {name|upper}}. */
public class Template {
    private final String text;
    private final Locale locale;

    public Template(String text, Locale locale) {
        this.text = text;
        this.locale = locale;
    }

    /**
     * Fills in the placeholders. Two opening braces stand for one.
     *
     * @param values by name; a missing one is an error
     * @throws IllegalArgumentException naming the placeholder that cannot be filled
     */
    public String render(Map<String, ?> values) {
        StringBuilder out = new StringBuilder();
        int position = 0;
        int open;
        while ((open = text.indexOf('{', position)) >= 0) {
            out.append(text, position, open);
            if (text.startsWith("{{", open)) {
                out.append('{');
                position = open + 2;
                continue;
            }
            int close = text.indexOf('}', open);
            if (close < 0) {
                throw new IllegalArgumentException("brace at " + open + " is not closed");
            }
            String[] parts = text.substring(open + 1, close).split("\\|");
            String name = parts[0].trim();
            if (!values.containsKey(name)) {
                throw new IllegalArgumentException("no value for {" + name + "}");
            }
            String value = format(values.get(name));
            for (int i = 1; i < parts.length; i++) {
                value = applyFilter(parts[i].trim(), value);
            }
            out.append(value);
            position = close + 1;
        }
        return out.append(text.substring(position)).toString();
    }

    /** Formats a value the way people in the template's country write it. */
    private String format(Object value) {
        if (value == null) {
            return "";
        } else if (value instanceof Date) {
            return new SimpleDateFormat("d MMMM yyyy", locale).format((Date) value);
        } else if (value instanceof Double || value instanceof Float) {
            return String.format(locale, "%,.2f", value);
        } else if (value instanceof Iterable) {
            StringBuilder list = new StringBuilder();
            for (Object item : (Iterable<?>) value) {
                list.append(list.length() > 0 ? ", " : "").append(format(item));
            }
            return list.toString();
        } else {
            return String.valueOf(value);
        }
    }

    /** Applies one of the functions that may follow a name. */
    private String applyFilter(String filter, String value) {
        switch (filter) {
            case "upper":
                return value.toUpperCase(locale);
            case "lower":
                return value.toLowerCase(locale);
            case "capital":
                if (value.isEmpty()) {
                    return value;
                }
                return value.substring(0, 1).toUpperCase(locale) + value.substring(1);
            case "quote":
                return '"' + value.replace("\"", "'") + '"';
            default:
                throw new IllegalArgumentException("unknown filter " + filter);
        }
    }

    /** Tells whether the template has a placeholder of a name. */
    public boolean uses(String name) {
        int position = text.indexOf("{" + name);
        while (position >= 0) {
            int end = position + 1 + name.length();
            boolean escaped = position > 0 && text.charAt(position - 1) == '{';
            if (!escaped && end < text.length() && (text.charAt(end) == '}' || text.charAt(end) == '|')) {
                return true;
            }
            position = text.indexOf("{" + name, end);
        }
        return false;
    }
}
