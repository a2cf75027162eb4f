//! What the community announces: ids only, never what people wrote. The key is the post's id.

use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;

pub const TOPIC: &str = "community-events";

wire_enum! {
    /// Who speaks: a fan, or those who speak for the artist.
    pub enum PostKind {
        Post => "post",
        News => "news",
    }
}

wire_enum! {
    /// Whether others see a post or comment.
    pub open enum PostStatus {
        Visible => "visible",
        /// By a moderator, who may show it again.
        Hidden => "hidden",
        Deleted => "deleted",
    }
}

/// A post or news was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PostCreated {
    pub post_id: Uuid,
    pub kind: PostKind,
    /// Null: news about everything.
    #[serde(default)]
    pub artist_id: Option<Uuid>,
    pub author_id: Uuid,
}

/// A post or news was hidden, shown again or deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PostStatusChanged {
    pub post_id: Uuid,
    #[serde(default)]
    pub artist_id: Option<Uuid>,
    pub status: PostStatus,
}

/// A post or news shows other pictures than before; none when it was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PostPicturesChanged {
    pub post_id: Uuid,
    /// What the catalogue calls them.
    pub image_ids: Vec<String>,
}

/// A comment was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommentCreated {
    pub comment_id: Uuid,
    pub post_id: Uuid,
    #[serde(default)]
    pub artist_id: Option<Uuid>,
    pub author_id: Uuid,
}

/// A comment was hidden, shown again or deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommentStatusChanged {
    pub comment_id: Uuid,
    pub post_id: Uuid,
    pub status: PostStatus,
}
