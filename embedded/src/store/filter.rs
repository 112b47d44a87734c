//! Which messages a receive wants.

use rocketmq_proto::v2 as pb;

use super::log::Stored;
use crate::rpc::{Checked, refuse};
use crate::sql;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Filter {
    All,
    Tags(Vec<String>),
    Sql(Box<sql::Expression>),
}

impl Filter {
    /// Reads a tag expression: `*` or nothing for all, tags separated by `||`; or a SQL expression.
    pub(crate) fn parse(expression: Option<&pb::FilterExpression>) -> Checked<Self> {
        let Some(expression) = expression else {
            return Ok(Self::All);
        };
        if expression.r#type() == pb::FilterType::Sql {
            return Self::parse_sql(&expression.expression);
        }
        if matches!(expression.expression.as_str(), "" | "*") {
            return Ok(Self::All);
        }
        let tags: Vec<String> = expression
            .expression
            .split("||")
            .map(str::trim)
            .filter(|tag| !tag.is_empty())
            .map(str::to_owned)
            .collect();
        if tags.is_empty() {
            return refuse(pb::Code::IllegalFilterExpression, "subString split error");
        }
        Ok(Self::Tags(tags))
    }

    fn parse_sql(expression: &str) -> Checked<Self> {
        if expression.trim().is_empty() {
            return refuse(
                pb::Code::IllegalFilterExpression,
                "Expression can't be null! SQL92",
            );
        }
        match sql::parse(expression) {
            Some(expression) => Ok(Self::Sql(Box::new(expression))),
            None => refuse(
                pb::Code::InternalServerError,
                "parse the consumer's subscription failed",
            ),
        }
    }

    pub(crate) fn matches(&self, stored: &Stored) -> bool {
        match self {
            Self::All => true,
            Self::Sql(expression) => expression.matches(&stored.message),
            Self::Tags(tags) => stored
                .tag()
                .is_some_and(|tag| tags.iter().any(|wanted| wanted == tag)),
        }
    }
}
