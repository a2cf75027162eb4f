//! How mails are set up.

/// What every mail needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The address of the pages that mails lead to, without a slash at its end.
    pub public_url: String,
}
