#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::io::Write;

use data_encoding::HEXLOWER;
use flate2::{
    Compression,
    write::{GzEncoder, ZlibEncoder},
};
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

const TEXT: &[u8] = b"one two three four five six seven eight nine ten one two three four five six";
/// TEXT by the zstd and lz4 command line tools.
const ZSTD_OF_TEXT: &str = "28b52ffd244cbd0100d4026f6e652074776f20746872656520666f757220666976652073697820736576656e206569676874206e69656e20020054c5105b55195c0fcb96";
const LZ4_OF_TEXT: &str = "04224d186440a73b000000f01b6f6e652074776f20746872656520666f757220666976652073697820736576656e206569676874206e6929003f656e203100035065207369780000000076045ea7";

type Encode = fn(&[u8]) -> Vec<u8>;

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn lz4(plain: &[u8]) -> Vec<u8> {
    let mut encoder = FrameEncoder::new(Vec::new());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn zstd(plain: &[u8]) -> Vec<u8> {
    compress_to_vec(plain, CompressionLevel::Fastest)
}

const CODECS: [(&str, Encode); 4] = [("gzip", gzip), ("zlib", zlib), ("lz4", lz4), ("zstd", zstd)];

fn inflate(body: impl Into<Bytes>, limit: usize) -> Result<Bytes, BodyError> {
    decode(Encoding::Gzip.into(), body.into(), limit)
}

fn is_corrupted(result: &Result<Bytes, BodyError>) -> bool {
    matches!(result, Err(BodyError::Corrupted(_)))
}

#[test]
fn what_other_tools_compressed_is_read() {
    for hex in [ZSTD_OF_TEXT, LZ4_OF_TEXT] {
        let body = HEXLOWER.decode(hex.as_bytes()).unwrap();
        assert_eq!(inflate(body, DEFAULT_LIMIT).unwrap(), TEXT);
    }
}

#[test]
fn a_body_cut_at_any_length_is_corrupted() {
    let tools = [ZSTD_OF_TEXT, LZ4_OF_TEXT].map(|hex| HEXLOWER.decode(hex.as_bytes()).unwrap());
    let own = CODECS.map(|(_, encode)| encode(TEXT));
    for whole in own.into_iter().chain(tools) {
        for length in 0..whole.len() {
            let result = inflate(whole[..length].to_vec(), DEFAULT_LIMIT);
            assert!(
                is_corrupted(&result),
                "{length} of {whole:02x?}: {result:?}"
            );
        }
    }
}

#[test]
fn an_lz4_body_cut_between_two_blocks_is_corrupted() {
    let mut random = fastrand::Rng::with_seed(3);
    let plain: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
        .take(200_000)
        .collect();
    let small_blocks = FrameInfo::new().block_size(BlockSize::Max64KB);
    let mut encoder = FrameEncoder::with_frame_info(small_blocks, Vec::new());
    encoder.write_all(&plain).unwrap();
    let whole = encoder.finish().unwrap();
    // After seven bytes of header each block begins with its length; the end is one of length 0.
    let (mut at, mut blocks) = (7, 0);
    while at < whole.len() {
        assert!(
            is_corrupted(&inflate(whole[..at].to_vec(), DEFAULT_LIMIT)),
            "cut at {at}"
        );
        let length = u32::from_le_bytes(whole[at..at + 4].try_into().unwrap());
        at += 4 + usize::try_from(length & 0x7FFF_FFFF).unwrap();
        blocks += 1;
    }
    assert!(blocks > 2, "{blocks} blocks");
    assert_eq!(inflate(whole, DEFAULT_LIMIT).unwrap(), plain);
}

#[test]
fn bytes_after_the_end_are_corruption() {
    for (name, encode) in CODECS {
        let mut body = encode(TEXT);
        body.extend(b"xyz");
        let result = inflate(body, DEFAULT_LIMIT);
        assert!(is_corrupted(&result), "{name}: {result:?}");
    }
}

#[test]
fn a_checksum_that_fails_is_corruption() {
    for encode in [gzip, zlib] {
        let mut body = encode(TEXT);
        let at = body.len() - if body.starts_with(&GZIP) { 5 } else { 1 };
        body[at] ^= 1;
        assert!(is_corrupted(&inflate(body, DEFAULT_LIMIT)));
    }
}

#[test]
fn several_gzip_members_are_one_body() {
    let body = [gzip(b"one "), gzip(b"two")].concat();
    assert_eq!(inflate(body, DEFAULT_LIMIT).unwrap(), "one two");
}

#[test]
fn what_is_no_known_format_is_corrupted() {
    for body in [
        &b""[..],
        b"\x1F",
        b"\x28",
        b"\x04\x22",
        b"plain text",
        b"\0\0\0\0",
    ] {
        assert!(is_corrupted(&inflate(body, DEFAULT_LIMIT)), "{body:02x?}");
    }
}

#[test]
fn a_bomb_ends_at_the_limit() {
    const ZEROS: usize = 10 << 20;
    for (name, encode) in CODECS {
        let bomb = encode(&vec![0; ZEROS]);
        assert!(
            bomb.len() < ZEROS / 100,
            "{name} makes a bomb of {} bytes",
            bomb.len()
        );
        assert_eq!(
            inflate(bomb.clone(), ZEROS - 1),
            Err(BodyError::TooLarge(ZEROS - 1)),
            "{name}"
        );
        assert_eq!(
            inflate(bomb.clone(), 0),
            Err(BodyError::TooLarge(0)),
            "{name}"
        );
        assert_eq!(
            inflate(bomb, ZEROS).map(|body| body.len()),
            Ok(ZEROS),
            "{name}"
        );
    }
}

#[test]
fn a_zstd_frame_cannot_ask_for_a_huge_window() {
    // A frame header with window log 31, then nothing.
    let body = [&ZSTD[..], &[0x00, (31 - 10) << 3, 0x01, 0x00, 0x00]].concat();
    let Err(BodyError::Corrupted(why)) = inflate(body, DEFAULT_LIMIT) else {
        panic!("taken")
    };
    assert!(why.contains("window"), "{why}");
}

#[test]
fn what_is_not_compressed_is_handed_on_without_a_copy() {
    let body = Bytes::from(gzip(TEXT));
    for encoding in [0, Encoding::Identity as i32, 99, -1] {
        let same = decode(encoding, body.clone(), 1).unwrap();
        assert_eq!(same.as_ptr(), body.as_ptr(), "{encoding}");
    }
}

proptest! {
    #[test]
    fn what_was_compressed_comes_back(plain in prop::collection::vec(any::<u8>(), 0..5000)) {
        for (name, encode) in CODECS {
            let back = inflate(encode(&plain), plain.len());
            prop_assert_eq!(back.unwrap_or_else(|error| panic!("{name}: {error}")), &plain);
        }
    }

    #[test]
    fn damage_anywhere_never_panics_nor_passes_the_limit(
        codec in 0..4_usize, at: prop::sample::Index, value: u8,
        plain in prop::collection::vec(0..4_u8, 1..300),
    ) {
        let mut body = CODECS[codec].1(&plain);
        let at = at.index(body.len());
        body[at] = value;
        if let Ok(back) = inflate(body, 1000) {
            prop_assert!(back.len() <= 1000);
        }
    }

    #[test]
    fn garbage_behind_a_known_start_never_panics(
        start in 0..4_usize, rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let starts: [&[u8]; 4] = [&[0x1F, 0x8B, 8], &ZLIB, &LZ4, &ZSTD];
        if let Ok(back) = inflate([starts[start], &rest].concat(), 1000) {
            prop_assert!(back.len() <= 1000);
        }
    }
}
