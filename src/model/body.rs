//! Bodies as they were before a producer compressed them.

#[cfg(test)]
mod tests;

use std::io::{self, Read};

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status, read::MultiGzDecoder};
use rocketmq_proto::v2::Encoding;

/// No body of a server at its defaults (4 MiB) inflates to more in good faith.
pub(crate) const DEFAULT_LIMIT: usize = 32 << 20;
/// What encoders need for windows even of small bodies, and the most any window may have.
const WINDOWS: (usize, usize) = (8 << 20, 128 << 20);
const CHUNK: usize = 32 << 10;

const GZIP: [u8; 2] = [0x1F, 0x8B];
const ZLIB: [u8; 1] = [0x78];
const LZ4: [u8; 4] = [0x04, 0x22, 0x4D, 0x18];
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

const TOO_EARLY: &str = "it ends too early";

/// Why a body cannot be handed out. It concerns one message, never the batch it came in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the body is corrupted: {0}")]
    Corrupted(String),
    #[error("the body has more than {0} bytes when inflated")]
    TooLarge(usize),
}

impl BodyError {
    pub(crate) fn corrupted(why: impl ToString) -> Self {
        Self::Corrupted(why.to_string())
    }
}

/// Inflates a body, up to `limit` bytes.
///
/// Only `GZIP` is ever compressed, and means no more than that: producers used zlib, gzip, LZ4 or
/// Zstandard for it, which the first bytes tell. Anything else, an encoding of the future
/// included, is handed on as it came, without a copy. What was compressed twice stays so once.
pub(crate) fn decode(encoding: i32, body: Bytes, limit: usize) -> Result<Bytes, BodyError> {
    if encoding != Encoding::Gzip as i32 {
        return Ok(body);
    }
    let inflated = if body.starts_with(&GZIP) {
        read_up_to(limit, MultiGzDecoder::new(&*body))
    } else if body.starts_with(&ZLIB) {
        inflate_zlib(&body, limit)
    } else if body.starts_with(&LZ4) {
        inflate_lz4(&body, limit)
    } else if body.starts_with(&ZSTD) {
        inflate_zstd(&body, limit)
    } else if body.is_empty() {
        Err(BodyError::corrupted("compressed, yet empty"))
    } else {
        Err(BodyError::corrupted("compressed in an unknown way"))
    };
    inflated.map(Bytes::from)
}

/// Memory grows with what was read, not with what a header promises.
fn read_up_to(limit: usize, reader: impl Read) -> Result<Vec<u8>, BodyError> {
    let mut inflated = Vec::new();
    let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let read = reader.take(one_more).read_to_end(&mut inflated);
    if inflated.len() > limit {
        return Err(BodyError::TooLarge(limit));
    }
    read.map_err(reason)?;
    Ok(inflated)
}

fn reason(error: io::Error) -> BodyError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => BodyError::corrupted(TOO_EARLY),
        _ => BodyError::corrupted(error),
    }
}

/// flate2's reader takes an early end for the end, hence the loop.
fn inflate_zlib(body: &[u8], limit: usize) -> Result<Vec<u8>, BodyError> {
    let mut stream = Decompress::new(true);
    let mut inflated = Vec::new();
    let mut chunk = vec![0; CHUNK];
    let mut rest = body;
    loop {
        let (read, written) = (stream.total_in(), stream.total_out());
        let status = stream
            .decompress(rest, &mut chunk, FlushDecompress::None)
            .map_err(BodyError::corrupted)?;
        rest = rest
            .get(distance(read, stream.total_in())..)
            .unwrap_or_default();
        let fresh = chunk
            .get(..distance(written, stream.total_out()))
            .unwrap_or_default();
        if inflated.len() + fresh.len() > limit {
            return Err(BodyError::TooLarge(limit));
        }
        inflated.extend_from_slice(fresh);
        let stuck = (read, written) == (stream.total_in(), stream.total_out());
        match status {
            Status::StreamEnd => return at_end(rest, inflated),
            Status::Ok | Status::BufError if stuck => {
                return Err(BodyError::corrupted(TOO_EARLY));
            }
            Status::Ok | Status::BufError => {}
        }
    }
}

fn distance(from: u64, to: u64) -> usize {
    usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX)
}

fn inflate_lz4(body: &[u8], limit: usize) -> Result<Vec<u8>, BodyError> {
    let mut rest = Unended(body);
    let inflated = read_up_to(limit, lz4_flex::frame::FrameDecoder::new(&mut rest))?;
    at_end(rest.0, inflated)
}

/// A reader for which the end of its bytes is an error, but no `UnexpectedEof`: between two blocks
/// lz4_flex takes that for the end of the frame, and would hand out half a body.
struct Unended<'a>(&'a [u8]);

impl Read for Unended<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into)? {
            0 if !into.is_empty() => Err(io::Error::new(io::ErrorKind::InvalidData, TOO_EARLY)),
            read => Ok(read),
        }
    }
}

/// The decoder allocates the window a frame asks for, so that is limited, too.
fn inflate_zstd(mut body: &[u8], limit: usize) -> Result<Vec<u8>, BodyError> {
    let (least, most) = WINDOWS;
    let window = u64::try_from(limit.clamp(least, most)).unwrap_or(u64::MAX);
    let reader = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(&mut body, window)
        .map_err(BodyError::corrupted)?;
    let inflated = read_up_to(limit, reader)?;
    at_end(body, inflated)
}

fn at_end(rest: &[u8], inflated: Vec<u8>) -> Result<Vec<u8>, BodyError> {
    if rest.is_empty() {
        return Ok(inflated);
    }
    Err(BodyError::corrupted(format_args!(
        "{} bytes too many",
        rest.len()
    )))
}
