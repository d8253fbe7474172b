package linalg;

/**
 * Linear equations, decompositions and eigenvalues.
 */
public final class Solver
{
    private static final double TINY = 1e-12;
    private static final int MAX_STEPS = 10_000;

    private Solver()
    {
    }

    /**
     * Replaces a square matrix by its LU decomposition.
     *
     * @param a the lower factor takes the place below the diagonal, the upper one the rest
     * @return the row of the original matrix for each row of the result
     * @throws ArithmeticException if the matrix is singular
     */
    static int[] decompose(Matrix a)
    {
        int n = a.getRows();
        int[] order = new int[n];
        for (int i = 0; i < n; i++)
        {
            order[i] = i;
        }
        for (int k = 0; k < n; k++)
        {
            int pivot = k;
            for (int i = k + 1; i < n; i++)
            {
                if (Math.abs(a.get(i, k)) > Math.abs(a.get(pivot, k)))
                {
                    pivot = i;
                }
            }
            if (Math.abs(a.get(pivot, k)) < TINY)
            {
                throw new ArithmeticException("matrix is singular in column " + k);
            }
            if (pivot != k)
            {
                a.swapRows(pivot, k);
                int row = order[pivot];
                order[pivot] = order[k];
                order[k] = row;
            }
            for (int i = k + 1; i < n; i++)
            {
                double factor = a.get(i, k) / a.get(k, k);
                a.set(i, k, factor);
                for (int j = k + 1; j < n; j++)
                {
                    a.set(i, j, a.get(i, j) - factor * a.get(k, j));
                }
            }
        }
        return order;
    }

    /**
     * Solves a system of linear equations.
     *
     * @param a coefficients, not changed
     * @param b right hand sides
     * @return the unknowns
     */
    public static double[] solve(Matrix a, double[] b)
    {
        Matrix lu = a.copy();
        int[] order = decompose(lu);
        int n = b.length;
        double[] x = new double[n];
        for (int i = 0; i < n; i++)
        {
            x[i] = b[order[i]];
            for (int j = 0; j < i; j++)
            {
                x[i] -= lu.get(i, j) * x[j];
            }
        }
        for (int i = n - 1; i >= 0; i--)
        {
            for (int j = i + 1; j < n; j++)
            {
                x[i] -= lu.get(i, j) * x[j];
            }
            x[i] /= lu.get(i, i);
        }
        return x;
    }

    /**
     * Greatest eigenvalue of a matrix by power iteration.
     *
     * @param tolerance stop when the estimate changes by less
     * @throws ArithmeticException if it still changes after many steps
     */
    public static double dominantEigenvalue(Matrix a, double tolerance)
    {
        Matrix vector = new Matrix(a.getColumns(), 1);
        for (int i = 0; i < a.getColumns(); i++)
        {
            vector.set(i, 0, 1.0 / (i + 1));
        }
        double estimate = 0;
        double previous;
        int steps = 0;
        do
        {
            if (++steps > MAX_STEPS)
            {
                throw new ArithmeticException("no convergence, last estimate " + estimate);
            }
            Matrix image = a.times(vector);
            previous = estimate;
            estimate = image.maxNorm();
            final double scale = estimate;
            vector = image.map(value -> value / scale);
        }
        while (Math.abs(estimate - previous) > tolerance);
        return estimate;
    }

    /**
     * Square root of a number by Newton's method; more digits than needed do no harm.
     */
    static double squareRoot(double number)
    {
        if (number < 0 || Double.isNaN(number))
        {
            return Double.NaN;
        }
        if (number == 0 || Double.isInfinite(number))
        {
            return number;
        }
        double root = Math.max(number, 1);
        double last;
        do
        {
            last = root;
            root = (root + number / root) / 2;
        }
        while (root < last);
        return last;
    }

    /**
     * Factor L of a symmetric matrix with A = L L^T.
     *
     * @return null if the matrix is not positive definite
     */
    public static Matrix cholesky(Matrix a)
    {
        int n = a.getRows();
        Matrix lower = new Matrix(n, n);
        for (int i = 0; i < n; i++)
        {
            for (int j = 0; j <= i; j++)
            {
                double sum = a.get(i, j);
                for (int k = 0; k < j; k++)
                {
                    sum -= lower.get(i, k) * lower.get(j, k);
                }
                if (i == j)
                {
                    if (sum <= 0)
                    {
                        return null;
                    }
                    lower.set(i, i, squareRoot(sum));
                }
                else
                {
                    lower.set(i, j, sum / lower.get(j, j));
                }
            }
        }
        return lower;
    }
}
