//! Text frames for a wire: a length, a kind and a body, with run lengths and checksums.

use std::io::{self, Read};

use tokio::io::AsyncWriteExt;

static MAGIC: [u8; 2] = *b"wt";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Hello,
    Data,
    Bye,
}

impl Kind {
    pub fn from_byte(byte: u8) -> Option<Kind> {
        match byte {
            0 => Some(Kind::Hello),
            1 => Some(Kind::Data),
            2 => Some(Kind::Bye),
            _ => None,
        }
    }
}

#[derive(Debug, PartialEq)]
pub struct Frame {
    pub kind: Kind,
    pub body: Vec<u8>,
}

pub trait Sink {
    fn accept(&mut self, frame: Frame) -> bool;

    fn accept_all(&mut self, frames: Vec<Frame>) -> usize {
        let mut taken = 0;
        for frame in frames {
            if !self.accept(frame) {
                break;
            }
            taken += 1;
        }
        taken
    }
}

/// Fletcher's checksum of 16 bits.
pub fn checksum(bytes: &[u8]) -> u16 {
    let (mut low, mut high) = (0u16, 0u16);
    for byte in bytes {
        low = (low + *byte as u16) % 255;
        high = (high + low) % 255;
    }
    high << 8 | low
}

pub async fn write_frame(out: &mut (impl AsyncWriteExt + Unpin), frame: &Frame) -> io::Result<usize> {
    let body = compress(&frame.body);
    out.write_all(&MAGIC).await?;
    out.write_all(&[frame.kind as u8]).await?;
    out.write_all(&(body.len() as u32).to_be_bytes()).await?;
    out.write_all(&body).await?;
    out.write_all(&checksum(&body).to_be_bytes()).await?;
    Ok(body.len() + 9)
}

pub fn read_frame(input: &mut impl Read) -> io::Result<Option<Frame>> {
    let broken = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_string());
    let mut head = [0; 7];
    if let Err(error) = input.read_exact(&mut head) {
        return if error.kind() == io::ErrorKind::UnexpectedEof {
            Ok(None)
        } else {
            Err(error)
        };
    }
    if head[..2] != MAGIC {
        return Err(broken("no frame begins here"));
    }
    let kind = Kind::from_byte(head[2]).ok_or_else(|| broken("a frame of no kind"))?;
    let length = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
    let mut body = vec![0; length as usize];
    input.read_exact(&mut body)?;
    let mut sum = [0; 2];
    input.read_exact(&mut sum)?;
    if u16::from_be_bytes(sum) == checksum(&body) {
        Ok(Some(Frame {
            kind,
            body: expand(&body),
        }))
    } else {
        Err(broken("a frame was damaged"))
    }
}

/// Pairs of a byte and how often it occurs in a row.
pub fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut start = 0;
    'runs: loop {
        let Some(&first) = bytes.get(start) else {
            break 'runs;
        };
        let mut end = start + 1;
        while end < bytes.len() && bytes[end] == first && end - start < 255 {
            end += 1;
        }
        packed.push(first);
        packed.push((end - start) as u8);
        start = end;
    }
    packed
}

pub fn expand(packed: &[u8]) -> Vec<u8> {
    packed
        .chunks_exact(2)
        .flat_map(|pair| std::iter::repeat(pair[0]).take(pair[1] as usize))
        .collect()
}

pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\\' => escaped.push_str("\\\\"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The parts of a line of fields; a field in quotes may have commas in it.
pub fn fields(line: &str) -> Vec<&str> {
    let bytes = line.as_bytes();
    let (mut parts, mut start, mut place) = (Vec::new(), 0, 0);
    'fields: while place <= bytes.len() {
        if place == bytes.len() || bytes[place] == b',' {
            parts.push(line[start..place].trim());
            start = place + 1;
        } else if bytes[place] == b'"' {
            match line[place + 1..].find('"') {
                Some(length) => place += length + 1,
                None => {
                    parts.push(&line[start..]);
                    break 'fields;
                }
            }
        }
        place += 1;
    }
    parts
}
