//! A scanner for arithmetic, and a stack machine that evaluates it.

use std::collections::HashMap;
use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Number(f64),
    Name(String),
    Operator(char),
    Open,
    Close,
}

#[derive(Debug, PartialEq)]
pub enum Problem {
    Unexpected { found: char, place: usize },
    Unknown(String),
    Unbalanced,
    Empty,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Problem::Unexpected { found, place } => write!(f, "unexpected {found:?} at {place}"),
            Problem::Unknown(name) => write!(f, "nothing is named {name}"),
            Problem::Unbalanced => f.write_str("brackets do not match"),
            Problem::Empty => f.write_str("nothing to evaluate"),
        }
    }
}

pub struct Scanner<'a> {
    text: &'a [u8],
    place: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        Scanner {
            text: text.as_bytes(),
            place: 0,
        }
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let start = self.place;
        while self.place < self.text.len() && wanted(self.text[self.place]) {
            self.place += 1;
        }
        std::str::from_utf8(&self.text[start..self.place]).unwrap_or("")
    }

    pub fn next_token(&mut self) -> Result<Option<Token>, Problem> {
        self.take_while(|byte| byte.is_ascii_whitespace());
        let Some(&byte) = self.text.get(self.place) else {
            return Ok(None);
        };
        if byte.is_ascii_digit() {
            let digits = self.take_while(|byte| byte.is_ascii_digit() || byte == b'.');
            return Ok(digits.parse().ok().map(Token::Number));
        }
        if byte.is_ascii_alphabetic() {
            let name = self.take_while(|byte| byte.is_ascii_alphanumeric());
            return Ok(Some(Token::Name(name.to_string())));
        }
        let place = self.place;
        *self = Scanner { place: place + 1, ..*self };
        match byte {
            b'+' | b'-' | b'*' | b'/' => Ok(Some(Token::Operator(byte as char))),
            b'(' => Ok(Some(Token::Open)),
            b')' => Ok(Some(Token::Close)),
            _ => Err(Problem::Unexpected {
                found: byte as char,
                place,
            }),
        }
    }
}

pub fn scan(text: &str) -> Result<Vec<Token>, Problem> {
    let mut scanner = Scanner::new(text);
    let mut tokens = Vec::new();
    while let Some(token) = scanner.next_token()? {
        tokens.push(token);
    }
    if tokens.is_empty() {
        Err(Problem::Empty)
    } else {
        Ok(tokens)
    }
}

fn binding(operator: char) -> u8 {
    if operator == '+' || operator == '-' {
        1
    } else {
        2
    }
}

/// From infix to postfix, by the shunting yard.
pub fn postfix(tokens: &[Token]) -> Result<Vec<Token>, Problem> {
    let mut output = Vec::with_capacity(tokens.len());
    let mut waiting: Vec<Token> = Vec::new();
    for token in tokens {
        match token {
            Token::Number(_) | Token::Name(_) => output.push(token.clone()),
            Token::Operator(new) => {
                while let Some(Token::Operator(old)) = waiting.last() {
                    if binding(*old) < binding(*new) {
                        break;
                    }
                    output.extend(waiting.pop());
                }
                waiting.push(token.clone());
            }
            Token::Open => waiting.push(Token::Open),
            Token::Close => loop {
                match waiting.pop() {
                    Some(Token::Open) => break,
                    Some(operator) => output.push(operator),
                    None => return Err(Problem::Unbalanced),
                }
            },
        }
    }
    while let Some(operator) = waiting.pop() {
        if operator == Token::Open {
            return Err(Problem::Unbalanced);
        }
        output.push(operator);
    }
    Ok(output)
}

pub fn evaluate(text: &str, names: &HashMap<String, f64>) -> Result<f64, Problem> {
    let mut stack: Vec<f64> = Vec::new();
    for token in postfix(&scan(text)?)? {
        let value = match token {
            Token::Number(value) => value,
            Token::Name(name) => *names.get(&name).ok_or(Problem::Unknown(name))?,
            Token::Operator(operator) => {
                let right = stack.pop().ok_or(Problem::Empty)?;
                let left = stack.pop().ok_or(Problem::Empty)?;
                apply(operator, left, right)
            }
            Token::Open | Token::Close => return Err(Problem::Unbalanced),
        };
        stack.push(value);
    }
    stack.pop().ok_or(Problem::Empty)
}

fn apply(operator: char, left: f64, right: f64) -> f64 {
    match operator {
        '+' => left + right,
        '-' => left - right,
        '*' => left * right,
        _ => left / right,
    }
}
