package settings;

/**
 * A setting that is missing or makes no sense.
 */
public class SettingsException extends RuntimeException
{
    private static final long serialVersionUID = 1L;

    public SettingsException(String message)
    {
        super(message);
    }
}
