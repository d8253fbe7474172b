package csvio;

import java.io.Closeable;
import java.io.IOException;
import java.io.PushbackReader;
import java.io.Reader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads records of comma separated values.
 *
 * <p>Quoted fields may contain line breaks.</p>
 */
public class CsvReader implements Closeable
{
    private static final int END = -1;

    private final PushbackReader in;
    private final char separator;
    private List<String> header;
    private long recordNumber;

    public CsvReader( Reader in, char separator )
    {
        this.in = new PushbackReader( in, 1 );
        this.separator = separator;
    }

    /**
     * Takes the next record as the header, so that fields can be found by name.
     *
     * @return this reader
     * @throws IOException if a name occurs twice
     */
    public CsvReader withHeader() throws IOException
    {
        header = readRecord();
        if ( header == null )
        {
            throw new IOException( "no header: the input is empty" );
        }
        for ( int i = 0; i < header.size(); i++ )
        {
            int first = header.indexOf( header.get( i ) );
            if ( first != i )
            {
                throw new IOException( "columns " + first + " and " + i + " have the same name" );
            }
        }
        return this;
    }

    /**
     * Reads a record.
     *
     * @return the fields, or null at the end of the input
     */
    public List<String> readRecord() throws IOException
    {
        int c = in.read();
        if ( c == END )
        {
            return null;
        }
        in.unread( c );
        recordNumber++;
        List<String> fields = new ArrayList<String>();
        StringBuilder field = new StringBuilder();
        chars:
        while ( true )
        {
            c = in.read();
            switch ( c )
            {
                case '"':
                    if ( field.length() == 0 )
                    {
                        readQuoted( field );
                    }
                    else
                    {
                        field.append( '"' );
                    }
                    break;
                case '\r':
                    skipIf( '\n' );
                    break chars;
                case '\n':
                case END:
                    break chars;
                default:
                    if ( c == separator )
                    {
                        fields.add( field.toString() );
                        field.setLength( 0 );
                    }
                    else
                    {
                        field.append( (char) c );
                    }
            }
        }
        fields.add( field.toString() );
        return fields;
    }

    /**
     * Reads up to the closing quote. Two quotes in a row stand for one.
     */
    private void readQuoted( StringBuilder field ) throws IOException
    {
        while ( true )
        {
            int c = in.read();
            if ( c == END )
            {
                throw new IOException( "record " + recordNumber + ": quote is not closed" );
            }
            if ( c == '"' && !skipIf( '"' ) )
            {
                return;
            }
            field.append( (char) c );
        }
    }

    /**
     * Steps over the next character if it is the given one.
     */
    private boolean skipIf( char wanted ) throws IOException
    {
        int c = in.read();
        if ( c == wanted )
        {
            return true;
        }
        if ( c != END )
        {
            in.unread( c );
        }
        return false;
    }

    /**
     * Reads a record as a map from column name to field. Needs a header.
     *
     * @return null at the end of the input
     * @throws IOException if the record has more or fewer fields than the header
     */
    public Map<String, String> readMap() throws IOException
    {
        if ( header == null )
        {
            throw new IllegalStateException( "call withHeader() first" );
        }
        List<String> fields = readRecord();
        if ( fields == null )
        {
            return null;
        }
        if ( fields.size() != header.size() )
        {
            throw new IOException( "record " + recordNumber + ": " + fields.size() + " fields, the header has "
                + header.size() );
        }
        Map<String, String> map = new HashMap<String, String>();
        for ( int i = 0; i < fields.size(); i++ )
        {
            map.put( header.get( i ), fields.get( i ) );
        }
        return map;
    }

    /**
     * Reads all remaining records and closes the reader, come what may.
     */
    public List<List<String>> readAll() throws IOException
    {
        try
        {
            List<List<String>> records = new ArrayList<List<String>>();
            for ( List<String> record = readRecord(); record != null; record = readRecord() )
            {
                records.add( record );
            }
            return records;
        }
        finally
        {
            close();
        }
    }

    /** Closes the underlying reader. */
    @Override
    public void close() throws IOException
    {
        in.close();
    }
}
