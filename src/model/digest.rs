//! Whether a body is what its producer said it was.

use data_encoding::HEXUPPER;
use md5::Md5;
use rocketmq_proto::v2::{self as pb, DigestType};
use sha1::{Digest as _, Sha1};

use super::body::BodyError;

/// What a digest told about a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Integrity {
    Verified,
    /// There is no digest, or none this client knows. That says nothing against the body.
    Unverified,
}

/// Compares a body, as it came over the wire, with its digest.
///
/// Digests are hexadecimal, of either case. Of a CRC-32 leading zeros may be missing: the
/// reference client writes none.
pub(crate) fn verify(digest: Option<&pb::Digest>, body: &[u8]) -> Result<Integrity, BodyError> {
    let Some(digest) = digest else {
        return Ok(Integrity::Unverified);
    };
    let (name, matches) = match DigestType::try_from(digest.r#type) {
        Ok(DigestType::Crc32) => (
            "CRC32",
            crc32(&digest.checksum) == Some(crc32fast::hash(body)),
        ),
        Ok(DigestType::Md5) => ("MD5", is_hex_of(&digest.checksum, &Md5::digest(body))),
        Ok(DigestType::Sha1) => ("SHA1", is_hex_of(&digest.checksum, &Sha1::digest(body))),
        Ok(DigestType::Unspecified) | Err(_) => return Ok(Integrity::Unverified),
    };
    if matches {
        Ok(Integrity::Verified)
    } else {
        Err(BodyError::corrupted(format_args!(
            "its {name} is another one"
        )))
    }
}

fn crc32(checksum: &str) -> Option<u32> {
    let plain =
        (1..=8).contains(&checksum.len()) && checksum.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u32::from_str_radix(checksum, 16).ok())?
}

fn is_hex_of(checksum: &str, digest: &[u8]) -> bool {
    HEXUPPER.encode(digest).eq_ignore_ascii_case(checksum)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(kind: i32, checksum: &str, body: &str) -> Result<Integrity, BodyError> {
        let digest = pb::Digest {
            r#type: kind,
            checksum: checksum.into(),
        };
        verify(Some(&digest), body.as_bytes())
    }

    #[test]
    fn known_digests_verify() {
        for (kind, checksum, body) in [
            (1, "9EF61F95", "foobar"),
            (1, "9ef61f95", "foobar"),
            (1, "C68ADCF", "msg-3"),
            (1, "0C68ADCF", "msg-3"),
            (1, "0", ""),
            (2, "3858F62230AC3C915F300C664312C63F", "foobar"),
            (2, "3858f62230ac3c915f300c664312c63f", "foobar"),
            (3, "8843D7F92416211DE9EBB963FF4CE28125932878", "foobar"),
            (3, "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709", ""),
        ] {
            assert_eq!(
                check(kind, checksum, body),
                Ok(Integrity::Verified),
                "{checksum}"
            );
        }
    }

    #[test]
    fn another_digest_is_corruption() {
        for (kind, checksum) in [
            (1, "9EF61F94"),
            (1, "+9EF61F95"),
            (1, "09EF61F95"),
            (1, ""),
            (1, "x"),
            (2, "3858F62230AC3C915F300C664312C63"),
            (2, "8843D7F92416211DE9EBB963FF4CE28125932878"),
            (3, ""),
        ] {
            let result = check(kind, checksum, "foobar");
            assert!(
                matches!(result, Err(BodyError::Corrupted(_))),
                "{kind} {checksum}"
            );
        }
    }

    #[test]
    fn without_a_known_digest_nothing_is_verified() {
        for kind in [0, 4, 99, -1] {
            assert_eq!(check(kind, "whatever", "foobar"), Ok(Integrity::Unverified));
        }
        assert_eq!(verify(None, b"foobar"), Ok(Integrity::Unverified));
    }

    proptest! {
        #[test]
        fn a_flipped_bit_is_noticed(
            body in prop::collection::vec(any::<u8>(), 1..99), at: prop::sample::Index, bit in 0..8,
        ) {
            let digest = pb::Digest { r#type: 1, checksum: format!("{:X}", crc32fast::hash(&body)) };
            prop_assert_eq!(verify(Some(&digest), &body), Ok(Integrity::Verified));
            let mut damaged = body;
            let at = at.index(damaged.len());
            damaged[at] ^= 1_u8 << bit;
            prop_assert!(verify(Some(&digest), &damaged).is_err());
        }
    }
}
