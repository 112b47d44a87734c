//! Why a child ended.

use std::{any::Any, fmt};

/// Why a supervised actor ended, or one generation of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Exit {
    /// It stopped of its own will: its work is done.
    Normal,
    /// It was told to stop.
    Shutdown,
    /// It reported that it cannot go on, with its reason.
    Failed(String),
    /// It panicked, with the panic's text.
    Panicked(String),
    /// It did not answer within the time it was given.
    Unresponsive,
}

impl Exit {
    /// Whether something went wrong: neither done nor told to stop.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(
            self,
            Self::Failed(_) | Self::Panicked(_) | Self::Unresponsive
        )
    }

    /// The exit that a caught panic stands for.
    pub(crate) fn from_panic(payload: &(dyn Any + Send)) -> Self {
        Self::Panicked(panic_text(payload).to_owned())
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("done"),
            Self::Shutdown => f.write_str("shut down"),
            Self::Failed(reason) => write!(f, "failed: {reason}"),
            Self::Panicked(text) => write!(f, "panicked: {text}"),
            Self::Unresponsive => f.write_str("did not answer in time"),
        }
    }
}

/// What a caught panic said, where it said it in words.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without text")
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn a_panic_keeps_its_text_whatever_type_carries_it() {
        let of = |payload: &(dyn std::any::Any + Send)| Exit::from_panic(payload);
        assert_eq!(of(&"static"), Exit::Panicked("static".into()));
        assert_eq!(of(&"owned".to_owned()), Exit::Panicked("owned".into()));
        assert_eq!(of(&7_u8), Exit::Panicked("a panic without text".into()));
    }

    #[test]
    fn only_what_went_wrong_is_a_failure() {
        assert!(!Exit::Normal.is_failure());
        assert!(!Exit::Shutdown.is_failure());
        assert!(Exit::Failed(String::new()).is_failure());
        assert!(Exit::Panicked(String::new()).is_failure());
        assert!(Exit::Unresponsive.is_failure());
    }
}
