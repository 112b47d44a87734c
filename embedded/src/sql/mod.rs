//! SQL92 filters: reading and evaluating them.

mod eval;
mod lexer;
mod parser;

use rocketmq_proto::v2 as pb;

pub(crate) use parser::parse;

/// A literal, or what an expression comes to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Unknown: a property that is missing, and what depends on it.
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    Differ,
    Less,
    AtMost,
    More,
    AtLeast,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextTest {
    Contains,
    StartsWith,
    EndsWith,
}

/// A filter as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Literal(Value),
    Property(String),
    Negative(Box<Expression>),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Compare(Compare, Box<Expression>, Box<Expression>),
    Between(Box<Expression>, f64, f64),
    In(Box<Expression>, Vec<String>),
    IsNull(Box<Expression>),
    Text(TextTest, Box<Expression>, String),
}

impl Expression {
    /// Whether the message matches; what is unknown or no truth value does not.
    pub(crate) fn matches(&self, message: &pb::Message) -> bool {
        self.truth(message) == Some(true)
    }
}

#[cfg(test)]
mod tests;
