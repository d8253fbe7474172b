//! What depends on what, and in which order to build it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::source::AsyncSource;

#[derive(Default)]
pub struct Graph {
    edges: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug, PartialEq)]
pub enum Order {
    Sorted(Vec<String>),
    Circle(Vec<String>),
}

impl Graph {
    pub fn new() -> Graph {
        Graph {
            edges: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, name: &str, needs: &[&str]) -> &mut Self {
        let entry = self.edges.entry(name.to_string()).or_default();
        entry.extend(needs.iter().map(|need| need.to_string()));
        for need in needs {
            self.edges.entry(need.to_string()).or_default();
        }
        self
    }

    /// All that a name needs, directly or not.
    pub fn closure(&self, name: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut queue = VecDeque::from([name]);
        while let Some(next) = queue.pop_front() {
            let Some(needs) = self.edges.get(next) else {
                continue;
            };
            for need in needs {
                if found.insert(need.as_str()) {
                    queue.push_back(need);
                }
            }
        }
        found
    }

    pub fn order(&self) -> Order {
        let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, needs) in &self.edges {
            missing.insert(name, needs.len());
        }
        let mut sorted = Vec::new();
        'rounds: loop {
            let ready: Vec<&str> = missing
                .iter()
                .filter(|(_, count)| **count == 0)
                .map(|(name, _)| *name)
                .collect();
            if ready.is_empty() {
                break 'rounds;
            }
            for name in ready {
                missing.remove(name);
                for (other, count) in missing.iter_mut() {
                    if self.edges[*other].contains(name) {
                        *count -= 1;
                    }
                }
                sorted.push(name.to_string());
            }
        }
        if missing.is_empty() {
            Order::Sorted(sorted)
        } else {
            Order::Circle(missing.keys().map(|name| name.to_string()).collect())
        }
    }

    pub fn roots(&self) -> Vec<&str> {
        let needed: BTreeSet<&String> = self.edges.values().flatten().collect();
        self.edges
            .keys()
            .filter(|name| !needed.contains(name))
            .map(String::as_str)
            .collect()
    }
}

/// Reads lines such as `app: core, net`.
pub async fn parse(source: impl AsyncSource) -> Result<Graph, String> {
    let text = source.read().await?;
    let mut graph = Graph::new();
    for (number, line) in text.lines().enumerate() {
        match line.split_once(':') {
            Some((name, needs)) => {
                let needs: Vec<&str> = needs
                    .split(',')
                    .map(str::trim)
                    .filter(|need| !need.is_empty())
                    .collect();
                graph.add(name.trim(), &needs);
            }
            None if line.trim().is_empty() => {}
            None => return Err(format!("line {}: no colon", number + 1)),
        }
    }
    Ok(graph)
}
