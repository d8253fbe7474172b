package jsonlet;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Looks into documents read by {@link JsonReader}.
 */
public final class JsonPath {

    private JsonPath() {
    }

    /**
     * Follow a path such as <code>items.0.name</code> into a document.
     *
     * @param document a map or a list
     * @param path member names and element numbers, separated by dots
     * @param fallback returned if there is nothing at the path
     */
    public static Object get(Object document, String path, Object fallback) {
        Object current = document;
        for (String step : path.split("\\.")) {
            if (current instanceof Map && ((Map<?, ?>) current).containsKey(step)) {
                current = ((Map<?, ?>) current).get(step);
            } else if (current instanceof List && step.matches("\\d+")) {
                List<?> list = (List<?>) current;
                int index = Integer.parseInt(step);
                if (index >= list.size()) {
                    return fallback;
                }
                current = list.get(index);
            } else {
                return fallback;
            }
        }
        return current;
    }

    /**
     * List the paths of all values in a document that are neither map nor list.
     */
    public static List<String> leaves(Object document) {
        List<String> found = new ArrayList<String>();
        collect(document, "", found);
        Collections.sort(found);
        return found;
    }

    /**
     * Add the paths below a value to a list.
     */
    private static void collect(Object value, String prefix, List<String> found) {
        String dot = prefix.isEmpty() ? "" : ".";
        if (value instanceof Map) {
            for (Map.Entry<?, ?> member : ((Map<?, ?>) value).entrySet()) {
                collect(member.getValue(), prefix + dot + member.getKey(), found);
            }
        } else if (value instanceof List) {
            int index = 0;
            for (Object element : (List<?>) value) {
                collect(element, prefix + dot + index++, found);
            }
        } else {
            found.add(prefix);
        }
    }

    /**
     * Merge a patch into a document: members of the patch replace those of the document, null
     * removes them, maps are merged member by member.
     *
     * @return a new document; the arguments are not changed
     */
    public static Object merge(Object target, Object patch) {
        if (!(patch instanceof Map)) {
            return patch;
        }
        Map<Object, Object> merged = new LinkedHashMap<Object, Object>();
        if (target instanceof Map) {
            merged.putAll((Map<?, ?>) target);
        }
        for (Map.Entry<?, ?> change : ((Map<?, ?>) patch).entrySet()) {
            if (change.getValue() == null) {
                merged.remove(change.getKey());
            } else {
                merged.put(change.getKey(), merge(merged.get(change.getKey()), change.getValue()));
            }
        }
        return merged;
    }
}
