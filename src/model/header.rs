//! What may go into a header of a request.

use super::excerpt::Excerpt;
use crate::{Error, Result};

pub(crate) const MAX_HEADER: usize = 1024;

/// Checks that `value` can be a header as it stands: visible ASCII without blanks, at most 1 KiB.
pub(crate) fn check(field: &str, value: &str) -> Result<()> {
    check_secret(field, value).map_err(|error| match value.len() {
        0 => error,
        _ => error.context(Excerpt(value)),
    })
}

/// The same for what no error may show.
pub(crate) fn check_secret(field: &str, value: &str) -> Result<()> {
    if value.is_empty() {
        return Err(Error::invalid(format!("the {field} is empty")));
    }
    if value.len() > MAX_HEADER {
        let what = format!(
            "the {field} has {} bytes, {MAX_HEADER} at most",
            value.len()
        );
        return Err(Error::invalid(what));
    }
    match value.chars().position(|c| !c.is_ascii_graphic()) {
        None => Ok(()),
        Some(at) => Err(Error::invalid(format!(
            "the {field} is to be of visible ASCII characters, character {} is not",
            at + 1
        ))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_would_break_a_header_is_refused() {
        for bad in ["", " ", "a b", "a\r\nx: y", "a\n", "\0", "ä", "\u{7f}"] {
            assert!(check("namespace", bad).is_err(), "{bad:?}");
        }
        assert!(check("namespace", &"x".repeat(MAX_HEADER)).is_ok());
        assert!(check("namespace", &"x".repeat(MAX_HEADER + 1)).is_err());
    }

    proptest! {
        #[test]
        fn what_passes_is_a_header_value(text in "\\PC{0,9}|[ -~]{1,9}|(?s:.){0,9}") {
            if check("namespace", &text).is_ok() {
                let value = tonic::metadata::AsciiMetadataValue::try_from(text.as_str());
                prop_assert!(value.is_ok_and(|value| value.to_str().is_ok_and(|back| back == text)));
            }
        }

        #[test]
        fn an_error_about_a_secret_does_not_show_it(secret in "[a-zA-Z]{6,20}\n") {
            let error = check_secret("token", &secret).map_err(|error| format!("{error:?}"));
            prop_assert!(error.is_err_and(|shown| !shown.contains(secret.trim())));
        }
    }
}
