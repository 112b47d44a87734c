//! Foreign text, fit to be quoted in an error or a log line.

use std::fmt;

const LIMIT: usize = 64;

/// Shows a text quoted and escaped, its first 64 characters at most.
pub(crate) struct Excerpt<'a>(pub(crate) &'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(LIMIT) {
            None => write!(out, "{:?}", self.0),
            Some((end, _)) => {
                let start = self.0.get(..end).unwrap_or_default();
                write!(out, "{start:?}... ({} bytes)", self.0.len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_quoted_and_escaped() {
        assert_eq!(Excerpt("a\0\n").to_string(), r#""a\0\n""#);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let shown = Excerpt(&"ä".repeat(65)).to_string();
        assert_eq!(shown, format!("{:?}... (130 bytes)", "ä".repeat(64)));
        assert_eq!(
            Excerpt(&"x".repeat(64)).to_string().len(),
            66,
            "at the limit nothing is cut"
        );
    }
}
