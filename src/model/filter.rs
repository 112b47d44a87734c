//! Which messages of a topic a consumer wants.

use std::fmt;

use rocketmq_proto::v2 as pb;

use super::{excerpt::Excerpt, name};
use crate::{Error, Result};

const ANY: &str = "*";

/// Selects messages on the server, by tag or by an expression over properties.
///
/// All consumers of one group have to subscribe to a topic with the same filter. It is checked
/// when the subscription is built.
///
/// ```
/// use rocketmq_actors::Filter;
///
/// let paid_or_shipped = Filter::tag("paid || shipped");
/// assert_eq!(paid_or_shipped.to_string(), "TAG paid || shipped");
/// paid_or_shipped.validate()?;
///
/// Filter::sql("region = 'EU' AND amount > 100").validate()?;
/// assert!(Filter::tag("paid | shipped").validate().is_err());
/// assert_eq!(Filter::default(), Filter::any());
/// # Ok::<(), rocketmq_actors::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Filter {
    kind: Kind,
    expression: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Tag,
    Sql,
}

impl Filter {
    /// All messages.
    #[must_use]
    pub fn any() -> Self {
        Self::tag(ANY)
    }

    /// Messages with one of the tags that `||` separates; `*` stands for all messages, those
    /// without a tag included.
    #[must_use]
    pub fn tag(expression: impl Into<String>) -> Self {
        Self {
            kind: Kind::Tag,
            expression: expression.into(),
        }
    }

    /// Messages for whose properties an SQL-92 condition holds. The tag is the property `TAGS`.
    ///
    /// The expression goes to the server as it is and has to be enabled there
    /// (`enablePropertyFilter`). Never put text of a message into it.
    #[must_use]
    pub fn sql(expression: impl Into<String>) -> Self {
        Self {
            kind: Kind::Sql,
            expression: expression.into(),
        }
    }

    /// The expression as it was given.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Checks what can be checked without the server.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a blank expression, for a blank
    /// tag between `||`, for a `|` or a control character in a tag.
    pub fn validate(&self) -> Result<()> {
        if self.expression.trim().is_empty() {
            return Err(Error::invalid(
                "the filter is blank; Filter::any() takes all messages",
            ));
        }
        match self.kind {
            Kind::Sql => Ok(()),
            Kind::Tag => self.expression.split("||").try_for_each(|tag| {
                name::validate_tag(tag.trim()).map_err(|error| {
                    error.context(format_args!("filter {}", Excerpt(&self.expression)))
                })
            }),
        }
    }

    pub(crate) fn to_proto(&self) -> pb::FilterExpression {
        let kind = match self.kind {
            Kind::Tag => pb::FilterType::Tag,
            Kind::Sql => pb::FilterType::Sql,
        };
        pb::FilterExpression {
            r#type: kind.into(),
            expression: self.expression.clone(),
        }
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self::any()
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Tag => "TAG",
            Kind::Sql => "SQL",
        };
        write!(out, "{kind} {}", self.expression)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_that_name_tags_or_a_condition_pass() {
        for filter in [
            Filter::any(),
            Filter::tag("a"),
            Filter::tag("a||b|| c d "),
            Filter::sql("a = 'x'\n AND b IS NOT NULL"),
        ] {
            assert!(filter.validate().is_ok(), "{filter}");
        }
    }

    #[test]
    fn blank_and_half_written_filters_are_refused() {
        for bad in ["", " ", "a|b", "a ||", "|| a", "a || || b", "a|||b", "a\0"] {
            assert!(Filter::tag(bad).validate().is_err(), "{bad:?}");
        }
        assert!(Filter::sql(" ").validate().is_err());
    }

    #[test]
    fn the_server_gets_the_expression_as_it_is() {
        let tag = Filter::tag("a || b").to_proto();
        assert_eq!(
            (tag.r#type(), &*tag.expression),
            (pb::FilterType::Tag, "a || b")
        );
        let sql = Filter::sql("a > 1").to_proto();
        assert_eq!(
            (sql.r#type(), &*sql.expression),
            (pb::FilterType::Sql, "a > 1")
        );
    }
}
