package netretry;

import java.io.IOException;

/** An answer with a status other than success. */
public class HttpStatusException extends IOException {
    private static final long serialVersionUID = 1L;

    private final int status;

    public HttpStatusException(int status, String message) {
        super(status + " " + message);
        this.status = status;
    }

    /** Returns the status code, such as 404. */
    public int getStatus() {
        return status;
    }
}
