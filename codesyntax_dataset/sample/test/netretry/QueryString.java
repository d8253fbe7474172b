package netretry;

import java.io.UnsupportedEncodingException;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The part of an address behind the question mark. */
public final class QueryString {
    private final Map<String, List<String>> parameters = new LinkedHashMap<>();

    /** Parses a query; a name without an equals sign has the empty value. */
    public static QueryString parse(String query) {
        QueryString result = new QueryString();
        for (String pair : query.split("&")) {
            if (pair.isEmpty()) {
                continue;
            }
            int equals = pair.indexOf('=');
            if (equals < 0) {
                result.add(decode(pair), "");
            } else {
                result.add(decode(pair.substring(0, equals)), decode(pair.substring(equals + 1)));
            }
        }
        return result;
    }

    /** Appends a value; earlier values of the same name stay. */
    public QueryString add(String name, Object value) {
        List<String> values = parameters.get(name);
        if (values == null) {
            values = new ArrayList<>();
            parameters.put(name, values);
        }
        values.add(String.valueOf(value));
        return this;
    }

    /** Returns the first value of a name, or null. */
    public String first(String name) {
        List<String> values = parameters.get(name);
        return values == null ? null : values.get(0);
    }

    /**
     * Returns the first value of a name as a number.
     *
     * @param fallback the result if there is no value
     * @throws IllegalArgumentException if the value is not a number, naming the parameter
     */
    public int firstInt(String name, int fallback) {
        String value = first(name);
        if (value == null || value.isEmpty()) {
            return fallback;
        }
        try {
            return Integer.parseInt(value);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("parameter " + name + " is not a number: " + value);
        }
    }

    /** Undoes the encoding of a name or a value. */
    private static String decode(String text) {
        try {
            return URLDecoder.decode(text, "UTF-8");
        } catch (UnsupportedEncodingException e) {
            throw new AssertionError(e);
        }
    }

    /** Encodes the parameters in the order in which their names were added. */
    @Override
    public String toString() {
        StringBuilder out = new StringBuilder();
        try {
            for (Map.Entry<String, List<String>> entry : parameters.entrySet()) {
                for (String value : entry.getValue()) {
                    out.append(out.length() == 0 ? "" : "&");
                    out.append(URLEncoder.encode(entry.getKey(), "UTF-8")).append('=');
                    out.append(URLEncoder.encode(value, "UTF-8"));
                }
            }
        } catch (UnsupportedEncodingException e) {
            throw new AssertionError(e);
        }
        return out.toString();
    }
}
