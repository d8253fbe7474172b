package csvio;

import java.text.ParsePosition;
import java.text.SimpleDateFormat;
import java.util.Date;
import java.util.Locale;

/**
 * The types that a column can have.
 */
public enum ColumnType
{
    EMPTY, BOOLEAN, INTEGER, DECIMAL, DATE, TEXT;

    /**
     * Finds the most specific type of a single field.
     */
    public static ColumnType of( String field )
    {
        String text = field.trim();
        if ( text.length() == 0 )
        {
            return EMPTY;
        }
        else if ( text.equalsIgnoreCase( "true" ) || text.equalsIgnoreCase( "false" ) )
        {
            return BOOLEAN;
        }
        else if ( text.matches( "[+-]?\\d{1,18}" ) )
        {
            return INTEGER;
        }
        else if ( text.matches( "[+-]?(\\d+\\.?\\d*|\\.\\d+)([eE][+-]?\\d+)?" ) )
        {
            return DECIMAL;
        }
        return parseDate( text ) == null ? TEXT : DATE;
    }

    /**
     * Finds the type that covers two others.
     */
    public ColumnType widen( ColumnType other )
    {
        if ( this == other || other == EMPTY )
        {
            return this;
        }
        if ( this == EMPTY )
        {
            return other;
        }
        boolean numbers = isNumber() && other.isNumber();
        return numbers ? DECIMAL : TEXT;
    }

    /** Whether values of the type can be added up. */
    public boolean isNumber()
    {
        return this == INTEGER || this == DECIMAL;
    }

    /**
     * Finds the type of a whole column.
     */
    public static ColumnType ofColumn( Iterable<String> fields )
    {
        ColumnType type = EMPTY;
        for ( String field : fields )
        {
            type = type.widen( of( field ) );
            if ( type == TEXT )
            {
                break;
            }
        }
        return type;
    }

    /**
     * Converts a field to an object of the type.
     *
     * @return null for an empty field
     * @throws IllegalArgumentException if the field is not of the type
     */
    public Object convert( String field )
    {
        String text = field.trim();
        if ( text.length() == 0 )
        {
            return null;
        }
        Object value;
        switch ( this )
        {
            case BOOLEAN:
                value = Boolean.valueOf( text );
                break;
            case INTEGER:
                value = Long.valueOf( text );
                break;
            case DECIMAL:
                value = Double.valueOf( text );
                break;
            case DATE:
                value = parseDate( text );
                break;
            case TEXT:
                value = field;
                break;
            default:
                value = null;
        }
        if ( value == null )
        {
            throw new IllegalArgumentException( "'" + field + "' is not of type " + this );
        }
        return value;
    }

    /**
     * Parses a date such as 2019-07-31 with nothing around it.
     *
     * @return null for anything else
     */
    private static Date parseDate( String text )
    {
        SimpleDateFormat format = new SimpleDateFormat( "yyyy-MM-dd", Locale.ROOT );
        format.setLenient( false );
        ParsePosition position = new ParsePosition( 0 );
        Date date = format.parse( text, position );
        return position.getIndex() == text.length() ? date : null;
    }
}
