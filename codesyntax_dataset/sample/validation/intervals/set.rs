//! Sets of whole numbers as half-open intervals.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    pub start: i64,
    pub end: i64,
}

#[derive(Debug, Default, Clone, PartialEq)]
pub struct IntervalSet {
    parts: Vec<Interval>,
}

impl Interval {
    pub fn new(start: i64, end: i64) -> Option<Interval> {
        if start < end {
            Some(Interval { start, end })
        } else {
            None
        }
    }

    pub fn length(self) -> i64 {
        self.end - self.start
    }

    pub fn meets(self, other: Interval) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

impl IntervalSet {
    pub fn insert(&mut self, new: Interval) {
        let mut merged = new;
        let mut kept = Vec::new();
        for &part in &self.parts {
            if part.meets(merged) {
                merged.start = merged.start.min(part.start);
                let end = merged.end.max(part.end);
                merged = Interval { end, ..merged };
            } else {
                kept.push(part);
            }
        }
        kept.push(merged);
        kept.sort_by_key(|part| part.start);
        self.parts = kept;
    }

    pub fn contains(&self, number: i64) -> bool {
        let (mut low, mut high) = (0, self.parts.len());
        while low < high {
            let middle = (low + high) / 2;
            let part = self.parts[middle];
            if number < part.start {
                high = middle;
            } else if number >= part.end {
                low = middle + 1;
            } else {
                return true;
            }
        }
        false
    }

    pub fn size(&self) -> i64 {
        self.parts.iter().map(|part| part.length()).sum()
    }

    pub fn gaps(&self) -> Vec<Interval> {
        let mut gaps = Vec::new();
        for i in 1..self.parts.len() {
            let (before, after) = (self.parts[i - 1], self.parts[i]);
            gaps.push(Interval {
                start: before.end,
                end: after.start,
            });
        }
        gaps
    }

    pub fn describe(&self) -> String {
        match &self.parts[..] {
            [] => "nothing".to_string(),
            [one] => format!("{} to {}", one.start, one.end),
            [first, .., last] => format!("{} to {}, with gaps", first.start, last.end),
        }
    }
}
