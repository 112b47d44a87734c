//! Which messages a receive wants.

use rocketmq_proto::v2 as pb;

use super::log::Stored;
use crate::rpc::{Checked, refuse};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    All,
    Tags(Vec<String>),
}

impl Filter {
    /// Reads a tag expression: `*` or nothing for all, tags separated by `||`. SQL is refused.
    pub(crate) fn parse(expression: Option<&pb::FilterExpression>) -> Checked<Self> {
        let Some(expression) = expression else {
            return Ok(Self::All);
        };
        if expression.r#type() == pb::FilterType::Sql {
            return if expression.expression.trim().is_empty() {
                refuse(
                    pb::Code::IllegalFilterExpression,
                    "Expression can't be null! SQL92",
                )
            } else {
                refuse(
                    pb::Code::IllegalFilterExpression,
                    "the embedded broker filters by tag only",
                )
            };
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

    pub(crate) fn matches(&self, stored: &Stored) -> bool {
        match self {
            Self::All => true,
            Self::Tags(tags) => stored
                .tag()
                .is_some_and(|tag| tags.iter().any(|wanted| wanted == tag)),
        }
    }
}
