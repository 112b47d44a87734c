//! Cutting an expression into tokens.

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A keyword or the name of a property.
    Word(String),
    Number(f64),
    Text(String),
    /// An operator, a bracket or a comma.
    Sign(&'static str),
}

/// Longer ones first where one starts with another.
const SIGNS: [&str; 10] = ["<>", "<=", ">=", "=", "<", ">", "(", ")", ",", "-"];

/// Nothing when a character fits nowhere or a text or comment does not end.
pub(crate) fn tokens(expression: &str) -> Option<Vec<Token>> {
    let mut rest = expression.trim_start();
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/")?.1;
        } else if let Some(text) = rest.strip_prefix('\'') {
            let (text, after) = quoted(text)?;
            tokens.push(Token::Text(text));
            rest = after;
        } else if first.is_ascii_digit() || first == '.' {
            let (number, after) = number(rest)?;
            tokens.push(Token::Number(number));
            rest = after;
        } else if first.is_ascii_alphabetic() || matches!(first, '_' | '$') {
            let (word, after) = split(rest, |c| {
                c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
            });
            tokens.push(Token::Word(word.to_owned()));
            rest = after;
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign))?;
            tokens.push(Token::Sign(sign));
            rest = rest.strip_prefix(sign)?;
        }
        rest = rest.trim_start();
    }
    Some(tokens)
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// Two quotes in a text are one.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut read = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('\'')?;
        read.push_str(part);
        match after.strip_prefix('\'') {
            Some(more) => {
                read.push('\'');
                rest = more;
            }
            None => return Some((read, after)),
        }
    }
}

/// An integer, with or without an `L`, or a decimal number with or without an exponent.
fn number(text: &str) -> Option<(f64, &str)> {
    let (mantissa, mut after) = split(text, |c| c.is_ascii_digit() || c == '.');
    let mut end = mantissa.len();
    if let Some(exponent) = after.strip_prefix(['e', 'E']) {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let (_, rest) = split(unsigned, |c| c.is_ascii_digit());
        end = text.len() - rest.len();
        after = rest;
    } else if let Some(rest) = after.strip_prefix(['l', 'L']) {
        after = rest;
    }
    let number = text.get(..end)?.parse().ok()?;
    let ends = !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    ends.then_some((number, after))
}
