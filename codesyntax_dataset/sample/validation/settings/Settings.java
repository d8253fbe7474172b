package settings;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

/**
 * Settings of a program, looked up in several layers.
 */
public class Settings
{
    private final Map<String, Object> values = new TreeMap<String, Object>();
    private final Settings fallback;

    public Settings(Settings fallback)
    {
        this.fallback = fallback;
    }

    /**
     * Reads a properties file.
     *
     * @param path name of the file
     * @param required whether it is an error if the file does not exist
     * @return this object
     * @throws SettingsException if the file cannot be read
     */
    public Settings load(String path, boolean required)
    {
        Properties properties = new Properties();
        if (!required && !new java.io.File(path).exists())
            return this;
        try (InputStream in = new FileInputStream(path))
        {
            properties.load(in);
        }
        catch (IOException e)
        {
            throw new SettingsException("cannot read " + path + ": " + e.getMessage());
        }
        for (String name : properties.stringPropertyNames())
        {
            set(name, properties.getProperty(name));
        }
        return this;
    }

    /**
     * Reads options of the form --name=value; --name alone means true.
     *
     * @return the arguments that are no options; everything after -- is among them
     */
    public List<String> parseArguments(String... arguments)
    {
        List<String> rest = new ArrayList<String>();
        int i = 0;
        options:
        while (i < arguments.length)
        {
            String argument = arguments[i++];
            if (argument.equals("--"))
                break options;
            if (!argument.startsWith("--"))
            {
                rest.add(argument);
                continue options;
            }
            int equals = argument.indexOf('=');
            if (equals < 0)
                set(argument.substring(2), true);
            else
                set(argument.substring(2, equals), argument.substring(equals + 1));
        }
        rest.addAll(Arrays.asList(arguments).subList(i, arguments.length));
        return rest;
    }

    /**
     * Changes a setting in this layer.
     */
    public void set(String name, Object value)
    {
        values.put(name.toLowerCase(), value);
    }

    /**
     * Looks up a setting here, then in the layers below.
     *
     * @return null if nobody has set it
     */
    public Object get(String name)
    {
        Object value = values.get(name.toLowerCase());
        if (value == null && fallback != null)
            value = fallback.get(name);
        return value;
    }

    /**
     * Looks up a setting that is a whole number.
     *
     * @throws SettingsException if it is missing or something else
     */
    public int getInt(String name)
    {
        Object value = get(name);
        if (value instanceof Number)
        {
            return ((Number) value).intValue();
        }
        if (value instanceof String)
        {
            try
            {
                return Integer.parseInt(((String) value).trim());
            }
            catch (NumberFormatException e)
            {
                throw new SettingsException(name + " must be a whole number, is '" + value + "'");
            }
        }
        throw new SettingsException(name + (value == null ? " is not set" : " is no number"));
    }

    /**
     * Looks up a switch; what is not set is off.
     */
    public boolean isOn(String name)
    {
        Object value = get(name);
        if (value instanceof Boolean)
            return (Boolean) value;
        return value != null && Arrays.asList("true", "yes", "on", "1").contains(value.toString().toLowerCase());
    }

    /**
     * Looks up a list; text is split at commas.
     */
    public List<String> getList(String name)
    {
        List<String> items = new ArrayList<String>();
        Object value = get(name);
        if (value instanceof Collection)
        {
            for (Object item : (Collection<?>) value)
                items.add(String.valueOf(item));
        }
        else if (value != null)
        {
            for (String item : value.toString().split(","))
            {
                String trimmed = item.trim();
                if (!trimmed.isEmpty())
                    items.add(trimmed);
            }
        }
        return items;
    }

    /**
     * Replaces references of the form ${name} by the settings they name.
     *
     * @throws SettingsException if a setting is missing or a brace is not closed
     */
    public String expand(String text)
    {
        StringBuilder out = new StringBuilder();
        int position = 0;
        for (int open = text.indexOf("${"); open >= 0; open = text.indexOf("${", position))
        {
            int close = text.indexOf('}', open);
            if (close < 0)
                throw new SettingsException("no closing brace in " + text);
            Object value = get(text.substring(open + 2, close));
            if (value == null)
                throw new SettingsException("not set: " + text.substring(open, close + 1));
            out.append(text, position, open).append(value);
            position = close + 1;
        }
        return out.append(text.substring(position)).toString();
    }

    /**
     * Names that were set but that the program does not know, with the known name that is most like each.
     */
    public List<String> unknown(Collection<String> known)
    {
        List<String> found = new ArrayList<String>();
        for (String name : values.keySet())
        {
            if (known.contains(name))
                continue;
            String best = null;
            int longest = 0;
            for (String candidate : known)
            {
                int shared = 0;
                while (shared < Math.min(name.length(), candidate.length())
                    && name.charAt(shared) == candidate.charAt(shared))
                {
                    shared++;
                }
                if (shared > longest)
                {
                    longest = shared;
                    best = candidate;
                }
            }
            found.add(best == null ? name : name + " (" + best + "?)");
        }
        return found;
    }
}
