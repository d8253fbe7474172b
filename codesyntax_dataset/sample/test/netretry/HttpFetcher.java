package netretry;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** Fetches documents by HTTP. */
public class HttpFetcher {
    private static final int BUFFER_SIZE = 8192;

    private final RetryPolicy policy;
    private final Map<String, String> headers = new LinkedHashMap<>();
    private int timeoutMillis = 10_000;

    public HttpFetcher(RetryPolicy policy) {
        this.policy = policy;
    }

    /** Adds a header to all requests; null removes it. */
    public HttpFetcher header(String name, String value) {
        if (value == null) {
            headers.remove(name);
        } else {
            headers.put(name, value);
        }
        return this;
    }

    /** Sets the time limits for connecting and for reading. */
    public HttpFetcher timeout(int millis) {
        this.timeoutMillis = millis;
        return this;
    }

    /**
     * Fetches a document as text.
     *
     * @param url where it is
     * @return the text, decoded as the answer says
     */
    public String getText(final URL url) throws Exception {
        return policy.call("GET " + url, () -> {
            HttpURLConnection connection = connect(url);
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (InputStream in = connection.getInputStream()) {
                copy(in, bytes);
            }
            return new String(bytes.toByteArray(), charsetOf(connection.getContentType()));
        });
    }

    /**
     * Saves a document to a file. If the transfer breaks off, no file is left behind.
     *
     * @return the number of bytes
     */
    public long save(URL url, File target) throws IOException {
        HttpURLConnection connection = connect(url);
        File partial = new File(target.getPath() + ".part");
        boolean complete = false;
        InputStream in = connection.getInputStream();
        try {
            OutputStream out = new FileOutputStream(partial);
            long size;
            try {
                size = copy(in, out);
            } finally {
                out.close();
            }
            complete = partial.renameTo(target);
            if (!complete) {
                throw new IOException("cannot rename " + partial + " to " + target);
            }
            return size;
        } finally {
            in.close();
            if (!complete) {
                partial.delete();
            }
        }
    }

    /** Opens a connection and checks the status of the answer. */
    private HttpURLConnection connect(URL url) throws IOException {
        HttpURLConnection connection = (HttpURLConnection) url.openConnection();
        connection.setConnectTimeout(timeoutMillis);
        connection.setReadTimeout(timeoutMillis);
        for (Map.Entry<String, String> header : headers.entrySet()) {
            connection.setRequestProperty(header.getKey(), header.getValue());
        }
        int status = connection.getResponseCode();
        if (status / 100 != 2) {
            String message = connection.getResponseMessage();
            connection.disconnect();
            throw new HttpStatusException(status, message);
        }
        return connection;
    }

    /**
     * Copies a stream to its end.
     *
     * @return the number of bytes
     */
    static long copy(InputStream in, OutputStream out) throws IOException {
        byte[] buffer = new byte[BUFFER_SIZE];
        long total = 0;
        int count;
        while ((count = in.read(buffer)) != -1) {
            out.write(buffer, 0, count);
            total += count;
        }
        return total;
    }

    /** Finds the character set in a content type; UTF-8 if there is none or nobody knows it. */
    static Charset charsetOf(String contentType) {
        if (contentType == null) {
            return StandardCharsets.UTF_8;
        }
        for (String parameter : contentType.split(";")) {
            String trimmed = parameter.trim();
            if (trimmed.regionMatches(true, 0, "charset=", 0, 8)) {
                try {
                    return Charset.forName(trimmed.substring(8).replace("\"", ""));
                } catch (IllegalArgumentException e) {
                    return StandardCharsets.UTF_8;
                }
            }
        }
        return StandardCharsets.UTF_8;
    }
}
