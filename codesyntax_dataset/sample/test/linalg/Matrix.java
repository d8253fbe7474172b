package linalg;

import java.util.Arrays;
import java.util.function.DoubleUnaryOperator;

/**
 * A dense matrix of doubles, stored row by row.
 */
public class Matrix
{
    private final int rows;
    private final int columns;
    private final double[] values;

    public Matrix(int rows, int columns)
    {
        this.rows = rows;
        this.columns = columns;
        this.values = new double[rows * columns];
    }

    /**
     * Creates a matrix from its rows.
     */
    public static Matrix of(double[]... rows)
    {
        Matrix matrix = new Matrix(rows.length, rows[0].length);
        for (int i = 0; i < rows.length; i++)
        {
            if (rows[i].length != matrix.columns)
            {
                throw new IllegalArgumentException("row " + i + " has " + rows[i].length + " entries");
            }
            System.arraycopy(rows[i], 0, matrix.values, i * matrix.columns, matrix.columns);
        }
        return matrix;
    }

    /**
     * Creates a square matrix with ones on the diagonal.
     */
    public static Matrix identity(int size)
    {
        Matrix matrix = new Matrix(size, size);
        for (int i = 0; i < size; i++)
        {
            matrix.values[i * (size + 1)] = 1;
        }
        return matrix;
    }

    /**
     * Number of rows of the matrix.
     */
    public int getRows()
    {
        return rows;
    }

    /**
     * Number of columns of the matrix.
     */
    public int getColumns()
    {
        return columns;
    }

    /**
     * Entry at a row and a column, both from 0.
     */
    public double get(int row, int column)
    {
        return values[row * columns + column];
    }

    /**
     * Changes one entry of the matrix.
     */
    public void set(int row, int column, double value)
    {
        values[row * columns + column] = value;
    }

    /**
     * Product of this matrix and another one.
     *
     * @throws IllegalArgumentException if the sizes do not fit
     */
    public Matrix times(Matrix other)
    {
        if (columns != other.rows)
        {
            throw new IllegalArgumentException(
                String.format("cannot multiply %dx%d by %dx%d", rows, columns, other.rows, other.columns));
        }
        Matrix product = new Matrix(rows, other.columns);
        for (int i = 0; i < rows; i++)
        {
            for (int k = 0; k < columns; k++)
            {
                double factor = get(i, k);
                if (factor == 0)
                {
                    continue;
                }
                for (int j = 0; j < other.columns; j++)
                {
                    product.values[i * other.columns + j] += factor * other.values[k * other.columns + j];
                }
            }
        }
        return product;
    }

    /**
     * Swaps rows and columns.
     */
    public Matrix transpose()
    {
        Matrix turned = new Matrix(columns, rows);
        for (int i = 0; i < rows; i++)
        {
            for (int j = 0; j < columns; j++)
            {
                turned.set(j, i, get(i, j));
            }
        }
        return turned;
    }

    /**
     * Applies a function to each entry.
     */
    public Matrix map(DoubleUnaryOperator function)
    {
        Matrix result = new Matrix(rows, columns);
        Arrays.setAll(result.values, i -> function.applyAsDouble(values[i]));
        return result;
    }

    /**
     * Exchanges two rows in place.
     */
    void swapRows(int a, int b)
    {
        for (int j = 0; j < columns; j++)
        {
            double value = get(a, j);
            set(a, j, get(b, j));
            set(b, j, value);
        }
    }

    /**
     * Greatest sum of the absolute values of a row.
     */
    public double maxNorm()
    {
        double greatest = 0;
        for (int i = 0; i < rows; i++)
        {
            double sum = 0;
            for (int j = 0; j < columns; j++)
            {
                sum += Math.abs(get(i, j));
            }
            greatest = Math.max(greatest, sum);
        }
        return greatest;
    }

    /**
     * Whether the matrix is equal to its transpose, up to a tolerance.
     */
    public boolean isSymmetric(double tolerance)
    {
        if (rows != columns)
        {
            return false;
        }
        for (int i = 1; i < rows; i++)
        {
            for (int j = 0; j < i; j++)
            {
                if (Math.abs(get(i, j) - get(j, i)) > tolerance)
                {
                    return false;
                }
            }
        }
        return true;
    }

    /**
     * Deep copy that shares nothing with this matrix.
     */
    public Matrix copy()
    {
        Matrix copy = new Matrix(rows, columns);
        System.arraycopy(values, 0, copy.values, 0, values.length);
        return copy;
    }
}
