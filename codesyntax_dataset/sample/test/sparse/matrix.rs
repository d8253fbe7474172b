//! Sparse matrices, row by row.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matrix {
    rows: Vec<BTreeMap<usize, f64>>,
    width: usize,
}

impl Matrix {
    pub fn new(height: usize, width: usize) -> Matrix {
        let rows = vec![BTreeMap::new(); height];
        let empty = Matrix { width, ..Matrix::default() };
        Matrix { rows, ..empty }
    }

    pub fn identity(size: usize) -> Matrix {
        let mut matrix = Matrix::new(size, size);
        for i in 0..size {
            matrix.set(i, i, 1.0);
        }
        matrix
    }

    pub fn set(&mut self, row: usize, column: usize, value: f64) {
        assert!(column < self.width, "no column {}", column);
        if value == 0.0 {
            self.rows[row].remove(&column);
        } else {
            self.rows[row].insert(column, value);
        }
    }

    pub fn get(&self, row: usize, column: usize) -> f64 {
        self.rows[row].get(&column).copied().unwrap_or(0.0)
    }

    pub fn transposed(&self) -> Matrix {
        let mut result = Matrix::new(self.width, self.rows.len());
        for (i, row) in self.rows.iter().enumerate() {
            for (&j, &value) in row {
                result.rows[j].insert(i, value);
            }
        }
        result
    }

    pub fn times(&self, vector: &[f64]) -> Vec<f64> {
        let product =
            |row: &BTreeMap<usize, f64>| row.iter().map(|(&j, value)| value * vector[j]).sum();
        self.rows.iter().map(product).collect()
    }

    pub fn scale(&mut self, factor: f64) {
        for row in &mut self.rows {
            for value in row.values_mut() {
                *value *= factor;
            }
        }
    }

    /// The place of the first entry that is not finite.
    pub fn first_broken(&self) -> Option<(usize, usize)> {
        let mut found = None;
        'rows: for (i, row) in self.rows.iter().enumerate() {
            for (&j, value) in row {
                if !value.is_finite() {
                    found = Some((i, j));
                    break 'rows;
                }
            }
        }
        found
    }

    pub fn density(&self) -> f64 {
        let entries: usize = self.rows.iter().map(BTreeMap::len).sum();
        let cells = self.rows.len() * self.width;
        if cells == 0 {
            0.0
        } else {
            entries as f64 / cells as f64
        }
    }
}

/// Solves by Jacobi's method, until a step is smaller than the tolerance.
pub fn solve(matrix: &Matrix, target: &[f64], tolerance: f64) -> Option<Vec<f64>> {
    const MOST: usize = 1000;
    let mut guess = vec![0.0; target.len()];
    let mut steps = 0;
    loop {
        let mut next = guess.clone();
        let mut change: f64 = 0.0;
        for i in 0..target.len() {
            let diagonal = matrix.get(i, i);
            let others: f64 = matrix.rows[i]
                .iter()
                .filter(|(&j, _)| j != i)
                .map(|(&j, a)| a * guess[j])
                .sum();
            next[i] = (target[i] - others) / diagonal;
            change = change.max((next[i] - guess[i]).abs());
        }
        guess = next;
        steps += 1;
        if change < tolerance {
            return Some(guess);
        } else if steps == MOST {
            return None;
        }
    }
}

pub fn power_iteration(matrix: &Matrix, turns: u32) -> f64 {
    let mut vector = vec![1.0; matrix.width];
    let mut value = 0.0;
    let mut left = turns;
    while left > 0 {
        let image = matrix.times(&vector);
        value = image.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        vector = image.iter().map(|x| x / value).collect();
        left -= 1;
    }
    value
}
