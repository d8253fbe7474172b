package jsonlet;

import java.io.IOException;
import java.util.Collection;
import java.util.Iterator;
import java.util.Map;

/**
 * Writes JSON documents.
 */
public class JsonWriter {

    private final Appendable out;
    private int indent;
    private int level;

    public JsonWriter(Appendable out) {
        this.out = out;
    }

    /**
     * Begin each member and element on a line of its own.
     *
     * @param blanks number of blanks per level, 0 for everything on one line
     * @return this writer
     */
    public JsonWriter setIndent(int blanks) {
        if (blanks < 0) {
            throw new IllegalArgumentException("indent must not be negative");
        }
        this.indent = blanks;
        return this;
    }

    /**
     * Write a value of any supported type.
     *
     * @param value a map, collection, array of objects, string, number, boolean or null
     * @throws JsonException for another type, or a number that is not finite
     */
    public JsonWriter write(Object value) throws IOException, JsonException {
        if (value == null || value instanceof Boolean) {
            out.append(String.valueOf(value));
        } else if (value instanceof Number) {
            writeNumber((Number) value);
        } else if (value instanceof CharSequence) {
            writeString((CharSequence) value);
        } else if (value instanceof Map) {
            writeObject((Map<?, ?>) value);
        } else if (value instanceof Collection) {
            writeArray(((Collection<?>) value).iterator());
        } else if (value instanceof Object[]) {
            writeArray(java.util.Arrays.asList((Object[]) value).iterator());
        } else {
            throw new JsonException("cannot write a " + value.getClass().getName());
        }
        return this;
    }

    /**
     * Write a number, without a fraction if it is whole.
     */
    private void writeNumber(Number number) throws IOException, JsonException {
        double value = number.doubleValue();
        if (Double.isNaN(value) || Double.isInfinite(value)) {
            throw new JsonException("JSON has no " + value);
        }
        boolean isWhole = value == Math.rint(value) && Math.abs(value) < 1e15;
        boolean isFloating = number instanceof Double || number instanceof Float;
        out.append(isFloating && isWhole ? Long.toString((long) value) : number.toString());
    }

    /**
     * Write a string in quotes, with escapes where they are needed.
     */
    private void writeString(CharSequence string) throws IOException {
        out.append('"');
        for (int i = 0; i < string.length(); i++) {
            char c = string.charAt(i);
            switch (c) {
                case '"':
                case '\\':
                    out.append('\\').append(c);
                    break;
                case '\n':
                    out.append("\\n");
                    break;
                case '\t':
                    out.append("\\t");
                    break;
                default:
                    if (c < ' ') {
                        out.append(String.format("\\u%04x", (int) c));
                    } else {
                        out.append(c);
                    }
            }
        }
        out.append('"');
    }

    /**
     * Write the entries of a map as the members of an object.
     */
    private void writeObject(Map<?, ?> map) throws IOException, JsonException {
        out.append('{');
        level++;
        String separator = "";
        for (Map.Entry<?, ?> member : map.entrySet()) {
            out.append(separator);
            newLine();
            writeString(String.valueOf(member.getKey()));
            out.append(indent > 0 ? ": " : ":");
            write(member.getValue());
            separator = ",";
        }
        level--;
        if (!map.isEmpty()) {
            newLine();
        }
        out.append('}');
    }

    /**
     * Write the elements that an iterator returns as an array.
     */
    private void writeArray(Iterator<?> elements) throws IOException, JsonException {
        out.append('[');
        if (elements.hasNext()) {
            level++;
            do {
                newLine();
                write(elements.next());
                if (elements.hasNext()) {
                    out.append(',');
                }
            } while (elements.hasNext());
            level--;
            newLine();
        }
        out.append(']');
    }

    /**
     * Begin a line with the indentation of the current level.
     */
    private void newLine() throws IOException {
        if (indent == 0) {
            return;
        }
        out.append('\n');
        for (int i = 0; i < indent * level; i++) {
            out.append(' ');
        }
    }

    /**
     * Convert a value to JSON text on one line.
     */
    public static String toJson(Object value) throws JsonException {
        StringBuilder text = new StringBuilder();
        try {
            new JsonWriter(text).write(value);
        } catch (IOException e) {
            throw new AssertionError("a StringBuilder does not fail", e);
        }
        return text.toString();
    }
}
