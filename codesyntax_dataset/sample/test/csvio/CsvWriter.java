package csvio;

import java.io.BufferedWriter;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * Writes records of comma separated values.
 */
public class CsvWriter
{
    private final char separator;
    private final boolean alwaysQuote;

    public CsvWriter( char separator, boolean alwaysQuote )
    {
        this.separator = separator;
        this.alwaysQuote = alwaysQuote;
    }

    /**
     * Writes a record with a line end.
     *
     * @param fields null counts as empty
     */
    public void writeRecord( Appendable out, Iterable<?> fields ) throws IOException
    {
        boolean first = true;
        for ( Object field : fields )
        {
            if ( !first )
            {
                out.append( separator );
            }
            out.append( quote( field == null ? "" : field.toString() ) );
            first = false;
        }
        out.append( "\r\n" );
    }

    /**
     * Puts a field in quotes if it could not be read otherwise.
     */
    String quote( String field )
    {
        boolean needed = alwaysQuote;
        for ( int i = 0; i < field.length() && !needed; i++ )
        {
            char c = field.charAt( i );
            needed = c == separator || c == '"' || c == '\n' || c == '\r';
        }
        if ( !needed )
        {
            return field;
        }
        return '"' + field.replace( "\"", "\"\"" ) + '"';
    }

    /**
     * Writes a table to a file in UTF-8.
     *
     * @param columns names of the columns, the first line of the file
     * @param rows maps from column name to value
     * @return whether it worked; the reason is printed if it did not
     */
    public boolean writeFile( File file, List<String> columns, Iterable<? extends Map<String, ?>> rows )
    {
        Writer out = null;
        try
        {
            out = new BufferedWriter( new OutputStreamWriter( new FileOutputStream( file ), "UTF-8" ) );
            writeRecord( out, columns );
            for ( Iterator<? extends Map<String, ?>> it = rows.iterator(); it.hasNext(); )
            {
                Map<String, ?> row = it.next();
                Object[] fields = new Object[columns.size()];
                for ( int i = 0; i < fields.length; i++ )
                {
                    fields[i] = row.get( columns.get( i ) );
                }
                writeRecord( out, java.util.Arrays.asList( fields ) );
            }
            return true;
        }
        catch ( IOException e )
        {
            System.err.println( "cannot write " + file + ": " + e.getMessage() );
            return false;
        }
        finally
        {
            closeQuietly( out );
        }
    }

    /**
     * Closes a writer that may be null and does not complain.
     */
    private static void closeQuietly( Writer writer )
    {
        if ( writer != null )
        {
            try
            {
                writer.close();
            }
            catch ( IOException ignored )
            {
                // nothing left to do
            }
        }
    }
}
