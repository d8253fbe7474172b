package jsonlet;

/**
 * Thrown for text that is no JSON, and for values that JSON cannot express.
 */
public class JsonException extends Exception {

    private static final long serialVersionUID = 1L;

    public JsonException(String message) {
        super(message);
    }
}
