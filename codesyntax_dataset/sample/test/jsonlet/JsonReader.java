package jsonlet;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads JSON documents into maps, lists, strings, doubles, booleans and null.
 */
public class JsonReader {

    private static final int MAX_DEPTH = 1_000;

    private final String text;
    private int pos;
    private int depth;

    private JsonReader(String text) {
        this.text = text;
    }

    /**
     * Parse a complete document.
     *
     * @param text the document
     * @return the value, null for the document <code>null</code>
     * @throws JsonException if the text is no JSON document or something follows it
     */
    public static Object parse(String text) throws JsonException {
        JsonReader reader = new JsonReader(text);
        Object value = reader.readValue();
        reader.skipBlanks();
        if (reader.pos < text.length()) {
            throw reader.error("unexpected text after the document");
        }
        return value;
    }

    /**
     * Read the value at the current position, whatever its kind.
     */
    private Object readValue() throws JsonException {
        skipBlanks();
        if (pos >= text.length()) {
            throw error("unexpected end");
        }
        char c = text.charAt(pos);
        switch (c) {
            case '{':
                return readObject();
            case '[':
                return readArray();
            case '"':
                return readString();
            case 't':
                return expectWord("true", Boolean.TRUE);
            case 'f':
                return expectWord("false", Boolean.FALSE);
            case 'n':
                return expectWord("null", null);
            default:
                if (c == '-' || Character.isDigit(c)) {
                    return readNumber();
                }
                throw error("unexpected character '" + c + "'");
        }
    }

    /**
     * Read an object; of several members with the same name the last one counts.
     */
    private Map<String, Object> readObject() throws JsonException {
        Map<String, Object> members = new LinkedHashMap<String, Object>();
        enter();
        pos++;
        if (nextIs('}')) {
            depth--;
            return members;
        }
        do {
            skipBlanks();
            if (pos >= text.length() || text.charAt(pos) != '"') {
                throw error("expected a member name");
            }
            String name = readString();
            if (!nextIs(':')) {
                throw error("expected ':' after \"" + name + "\"");
            }
            members.put(name, readValue());
        } while (nextIs(','));
        if (!nextIs('}')) {
            throw error("expected ',' or '}'");
        }
        depth--;
        return members;
    }

    /**
     * Read an array with all its elements.
     */
    private List<Object> readArray() throws JsonException {
        List<Object> elements = new ArrayList<Object>();
        enter();
        pos++;
        if (!nextIs(']')) {
            do {
                elements.add(readValue());
            } while (nextIs(','));
            if (!nextIs(']')) {
                throw error("expected ',' or ']'");
            }
        }
        depth--;
        return elements;
    }

    /**
     * Read a string and replace its escapes.
     */
    private String readString() throws JsonException {
        StringBuilder out = new StringBuilder();
        int start = pos++;
        while (pos < text.length()) {
            char c = text.charAt(pos++);
            if (c == '"') {
                return out.toString();
            } else if (c == '\\') {
                out.append(readEscape());
            } else if (c < ' ') {
                throw error("control character in a string");
            } else {
                out.append(c);
            }
        }
        pos = start;
        throw error("string without an end");
    }

    /**
     * Read what follows a backslash.
     */
    private char readEscape() throws JsonException {
        if (pos >= text.length()) {
            throw error("unexpected end");
        }
        char c = text.charAt(pos++);
        switch (c) {
            case 'n': return '\n';
            case 't': return '\t';
            case 'r': return '\r';
            case 'b': return '\b';
            case 'f': return '\f';
            case '"':
            case '\\':
            case '/':
                return c;
            case 'u':
                try {
                    int code = Integer.parseInt(text.substring(pos, pos + 4), 16);
                    pos += 4;
                    return (char) code;
                } catch (NumberFormatException e) {
                    throw error("expected four hexadecimal digits");
                } catch (StringIndexOutOfBoundsException e) {
                    throw error("unexpected end");
                }
            default:
                throw error("unknown escape \\" + c);
        }
    }

    /**
     * Read a number as a double.
     */
    private Double readNumber() throws JsonException {
        int start = pos;
        while (pos < text.length() && "+-.eE0123456789".indexOf(text.charAt(pos)) >= 0) {
            pos++;
        }
        String number = text.substring(start, pos);
        if (!number.matches("-?(0|[1-9]\\d*)(\\.\\d+)?([eE][+-]?\\d+)?")) {
            pos = start;
            throw error("malformed number " + number);
        }
        return Double.valueOf(number);
    }

    /**
     * Step over a word and return the value it stands for.
     */
    private Object expectWord(String word, Object value) throws JsonException {
        if (!text.startsWith(word, pos)) {
            throw error("expected " + word);
        }
        pos += word.length();
        return value;
    }

    /**
     * Skip blanks, then step over a character if it is the given one.
     *
     * @return whether it was
     */
    private boolean nextIs(char wanted) {
        skipBlanks();
        boolean found = pos < text.length() && text.charAt(pos) == wanted;
        if (found) {
            pos++;
        }
        return found;
    }

    /**
     * Step over white space.
     */
    private void skipBlanks() {
        while (pos < text.length() && " \t\r\n".indexOf(text.charAt(pos)) >= 0) {
            pos++;
        }
    }

    /**
     * Count a level of nesting, so that no document overflows the stack.
     */
    private void enter() throws JsonException {
        if (++depth > MAX_DEPTH) {
            throw error("nested more than " + MAX_DEPTH + " deep");
        }
    }

    /**
     * Create an exception that names the line and column of the current position.
     */
    private JsonException error(String message) {
        int line = 1;
        int column = 1;
        for (int i = 0; i < pos && i < text.length(); i++) {
            if (text.charAt(i) == '\n') {
                line++;
                column = 1;
            } else {
                column++;
            }
        }
        return new JsonException(message + " (line " + line + ", column " + column + ")");
    }
}
