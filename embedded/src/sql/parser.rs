//! Reading an expression: `OR` over `AND` over `NOT` over comparisons.

use super::lexer::{Token, tokens};
use super::{Compare, Expression, TextTest, Value};

/// Deeper nesting is refused.
const MAX_DEPTH: usize = 64;

/// So are longer expressions: each operator makes the tree one level deeper.
const MAX_TOKENS: usize = 2048;

const KEYWORDS: [&str; 12] = [
    "NOT",
    "AND",
    "OR",
    "BETWEEN",
    "IN",
    "IS",
    "NULL",
    "TRUE",
    "FALSE",
    "CONTAINS",
    "STARTSWITH",
    "ENDSWITH",
];

/// Nothing when it is no expression.
pub(crate) fn parse(expression: &str) -> Option<Expression> {
    let tokens = tokens(expression).filter(|tokens| tokens.len() <= MAX_TOKENS)?;
    let mut parser = Parser {
        tokens: &tokens,
        depth: 0,
    };
    let parsed = parser.any()?;
    parser.tokens.is_empty().then_some(parsed)
}

struct Parser<'a> {
    tokens: &'a [Token],
    depth: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.clone())
    }

    fn sign(&mut self, wanted: &str) -> Option<()> {
        match self.tokens.split_first()? {
            (Token::Sign(sign), rest) if *sign == wanted => {
                self.tokens = rest;
                Some(())
            }
            _ => None,
        }
    }

    fn keyword(&mut self, wanted: &str) -> Option<()> {
        match self.tokens.split_first()? {
            (Token::Word(word), rest) if word.eq_ignore_ascii_case(wanted) => {
                self.tokens = rest;
                Some(())
            }
            _ => None,
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn any(&mut self) -> Option<Expression> {
        self.deeper(|parser| {
            let mut left = parser.all()?;
            while parser.keyword("OR").is_some() {
                left = Expression::Or(Box::new(left), Box::new(parser.all()?));
            }
            Some(left)
        })
    }

    fn all(&mut self) -> Option<Expression> {
        let mut left = self.negated()?;
        while self.keyword("AND").is_some() {
            left = Expression::And(Box::new(left), Box::new(self.negated()?));
        }
        Some(left)
    }

    fn negated(&mut self) -> Option<Expression> {
        if self.keyword("NOT").is_some() {
            let inner = self.deeper(Self::negated)?;
            return Some(Expression::Not(Box::new(inner)));
        }
        self.compared()
    }

    fn compared(&mut self) -> Option<Expression> {
        let left = self.operand()?;
        if self.keyword("IS").is_some() {
            let not = self.keyword("NOT").is_some();
            self.keyword("NULL")?;
            return Some(maybe_not(not, Expression::IsNull(Box::new(left))));
        }
        if let Some(compare) = self.operator() {
            let right = self.operand()?;
            return Some(Expression::Compare(
                compare,
                Box::new(left),
                Box::new(right),
            ));
        }
        let not = self.keyword("NOT").is_some();
        match self.test(&left)? {
            Some(test) => Some(maybe_not(not, test)),
            None if not => None,
            None => Some(left),
        }
    }

    fn operator(&mut self) -> Option<Compare> {
        [
            ("=", Compare::Equal),
            ("<>", Compare::Differ),
            ("<=", Compare::AtMost),
            (">=", Compare::AtLeast),
            ("<", Compare::Less),
            (">", Compare::More),
        ]
        .into_iter()
        .find(|(sign, _)| self.sign(sign).is_some())
        .map(|(_, compare)| compare)
    }

    /// `BETWEEN`, `IN` and the tests of texts: none where no such keyword comes next, nothing
    /// at all where one is followed by what it cannot have.
    fn test(&mut self, left: &Expression) -> Option<Option<Expression>> {
        let left = Box::new(left.clone());
        if self.keyword("BETWEEN").is_some() {
            let low = self.constant()?;
            self.keyword("AND")?;
            let high = self.constant()?;
            return (low <= high).then_some(Some(Expression::Between(left, low, high)));
        }
        if self.keyword("IN").is_some() {
            return Some(Some(Expression::In(left, self.list()?)));
        }
        let tests = [
            ("CONTAINS", TextTest::Contains),
            ("STARTSWITH", TextTest::StartsWith),
            ("ENDSWITH", TextTest::EndsWith),
        ];
        for (word, test) in tests {
            if self.keyword(word).is_some() {
                return Some(Some(Expression::Text(test, left, self.text()?)));
            }
        }
        Some(None)
    }

    fn constant(&mut self) -> Option<f64> {
        let negative = self.sign("-").is_some();
        match self.next()? {
            Token::Number(number) if negative => Some(-number),
            Token::Number(number) => Some(number),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<String> {
        match self.next()? {
            Token::Text(text) => Some(text),
            _ => None,
        }
    }

    fn list(&mut self) -> Option<Vec<String>> {
        self.sign("(")?;
        let mut list = vec![self.text()?];
        while self.sign(",").is_some() {
            list.push(self.text()?);
        }
        self.sign(")")?;
        Some(list)
    }

    fn operand(&mut self) -> Option<Expression> {
        if self.sign("-").is_some() {
            let inner = self.deeper(Self::operand)?;
            return Some(Expression::Negative(Box::new(inner)));
        }
        if self.sign("(").is_some() {
            let inner = self.any()?;
            self.sign(")")?;
            return Some(inner);
        }
        let literal = |value| Some(Expression::Literal(value));
        match self.next()? {
            Token::Number(number) => literal(Value::Number(number)),
            Token::Text(text) => literal(Value::Text(text)),
            Token::Word(word) if word.eq_ignore_ascii_case("TRUE") => literal(Value::Bool(true)),
            Token::Word(word) if word.eq_ignore_ascii_case("FALSE") => literal(Value::Bool(false)),
            Token::Word(word) => {
                let keyword = KEYWORDS.iter().any(|k| k.eq_ignore_ascii_case(&word));
                (!keyword).then_some(Expression::Property(word))
            }
            Token::Sign(_) => None,
        }
    }
}

fn maybe_not(not: bool, expression: Expression) -> Expression {
    if not {
        Expression::Not(Box::new(expression))
    } else {
        expression
    }
}
