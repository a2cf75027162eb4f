//! Comments on posts: writing, editing, deleting and listing them.

pub mod http;
pub mod store;

use urr_contracts::events::community::{CommentCreated, CommentStatusChanged};
use urr_kernel::{Timestamp, Uuid, define_id};
use urr_service::CursorPage;
use urr_service::admin_log;
use urr_service::idempotency::{KeyClaim, KeyedRequest, key_claim, key_complete};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, StorageError, Tx, storable_id};

use crate::artists::may_moderate;
use crate::limits::{TooMuchWritten, WrittenKind, decide_writing, written_lock};
use crate::points::store::{award_insert, award_withdraw};
use crate::points::{CommunityAction, CommunityAward};
use crate::posts::store::{post_add_comments, post_lock};
use crate::posts::{Post, PostError, PostId, PostKind, PostStatus, find_visible};
use crate::text::InvalidWriting;
use crate::{CommunityActor, CommunityService};

define_id!(
    /// Which comment.
    CommentId
);
storable_id!(CommentId);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    pub id: CommentId,
    pub post_id: PostId,
    pub author_id: Option<Uuid>,
    pub content: String,
    pub status: PostStatus,
    pub created_at: Timestamp,
    pub edited_at: Option<Timestamp>,
}

/// A comment that somebody writes.
#[derive(Clone, Debug)]
pub struct NewComment {
    pub post_id: PostId,
    /// Checked and trimmed.
    pub content: String,
    /// Its idempotency key, if the client gave one.
    pub request: Option<KeyedRequest>,
}

#[derive(Debug, thiserror::Error)]
pub enum CommentError {
    #[error("There is no post with this id.")]
    PostNotFound,
    #[error("There is no comment with this id.")]
    NotFound,
    #[error("Only the author can do this.")]
    NotTheAuthor,
    #[error(transparent)]
    TooMuch(#[from] TooMuchWritten),
    #[error("The idempotency key was used for another request.")]
    KeyReused,
    #[error(transparent)]
    Invalid(#[from] InvalidWriting),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl CommunityService {
    /// Publishes a comment with its points and its announcement, in one transaction.
    pub async fn create_comment(
        &self,
        new: NewComment,
        actor: CommunityActor,
    ) -> Result<Comment, CommentError> {
        let (id, now) = (CommentId(self.0.ids.next_id()), self.0.clock.now());
        let (limit, metadata) = (self.0.settings.comments, self.event_metadata(actor.context));
        let created = self.0.db.write(move |tx| {
            if let Some(request) = &new.request {
                match key_claim(tx, request, now)? {
                    KeyClaim::New => key_complete(tx, request, &id.to_string())?,
                    KeyClaim::Repeated { resource_id } => return find_created(tx, resource_id),
                    KeyClaim::Reused => return Err(CommentError::KeyReused),
                }
            }
            let times = written_lock(tx, WrittenKind::Comment, actor.user_id, limit, now)?;
            post_lock(tx, new.post_id)?;
            let post = find_post(tx, new.post_id)?;
            decide_writing(&times, limit, now)?;
            let comment = Comment {
                id,
                post_id: new.post_id,
                author_id: Some(actor.user_id),
                content: new.content.clone(),
                status: PostStatus::Visible,
                created_at: now,
                edited_at: None,
            };
            insert_comment(tx, &comment, (&post, actor.user_id), &metadata)?;
            Ok(comment)
        });
        created.await
    }

    /// Changes the text of a visible comment.
    pub async fn edit_comment(
        &self,
        (post_id, id): (PostId, CommentId),
        content: String,
        actor: CommunityActor,
    ) -> Result<Comment, CommentError> {
        let now = self.0.clock.now();
        let edited = self.0.db.write(move |tx| {
            post_lock(tx, post_id)?;
            find_post(tx, post_id)?;
            let comment = store::comment_find(tx, id)?.filter(|comment| {
                comment.post_id == post_id && comment.status == PostStatus::Visible
            });
            let comment = comment.ok_or(CommentError::NotFound)?;
            if comment.author_id != Some(actor.user_id) {
                return Err(CommentError::NotTheAuthor);
            }
            store::comment_update(tx, id, &content, now)?;
            Ok(Comment { content: content.clone(), edited_at: Some(now), ..comment })
        });
        edited.await
    }

    /// Deletes a comment with its text, and takes its points back.
    pub async fn delete_comment(
        &self,
        (post_id, id): (PostId, CommentId),
        actor: CommunityActor,
    ) -> Result<(), CommentError> {
        let (now, metadata) = (self.0.clock.now(), self.event_metadata(actor.context));
        let logged = self.admin_action(actor, ("COMMENT_DELETED", "comment", id.0));
        let deleted = self.0.db.write(move |tx| {
            post_lock(tx, post_id)?;
            let post = find_post(tx, post_id)?;
            let comment = store::comment_find(tx, id)?.filter(|comment| {
                comment.post_id == post_id && comment.status != PostStatus::Deleted
            });
            let comment = comment.ok_or(CommentError::NotFound)?;
            if comment.author_id != Some(actor.user_id) {
                if !may_moderate(tx, actor, post.summary.artist_id)? {
                    return Err(CommentError::NotTheAuthor);
                }
                admin_log::insert(tx, &logged)?;
            }
            store::comment_delete(tx, id, now)?;
            if comment.status == PostStatus::Visible {
                post_add_comments(tx, post_id, -1)?;
            }
            award_withdraw(tx, id.0, now)?;
            let (comment_id, post_id, status) = (id.0, post_id.0, PostStatus::Deleted);
            let changed = CommentStatusChanged { comment_id, post_id, status };
            outbox::append(tx, &metadata, &changed)?;
            Ok(())
        });
        deleted.await
    }

    /// A page of the visible comments of a post, oldest first.
    pub async fn list_comments(
        &self,
        post_id: PostId,
        page: CursorPage,
    ) -> Result<(Vec<Comment>, Option<Uuid>), CommentError> {
        let listed = self.0.db.read(move |tx| {
            find_post(tx, post_id)?;
            Ok::<_, CommentError>(store::comment_list(tx, post_id, page)?)
        });
        Ok(page.split(listed.await?, |comment| comment.id.0))
    }
}

pub(crate) fn insert_comment(
    tx: &mut Tx<'_>,
    comment: &Comment,
    (post, author_id): (&Post, Uuid),
    metadata: &EventMetadata,
) -> DbResult<()> {
    let (comment_id, post_id) = (comment.id.0, comment.post_id.0);
    let artist_id = post.summary.artist_id;
    store::comment_insert(tx, comment)?;
    post_add_comments(tx, comment.post_id, 1)?;
    let award = CommunityAward {
        reference_id: comment_id,
        user_id: author_id,
        artist_id,
        action: CommunityAction::Comment,
    };
    award_insert(tx, &award, metadata.time)?;
    outbox::append(tx, metadata, &CommentCreated { comment_id, post_id, artist_id, author_id })
}

/// The visible post that comments are about. News has none.
fn find_post(tx: &mut Tx<'_>, id: PostId) -> Result<Post, CommentError> {
    find_visible(tx, id, PostKind::Post).map_err(|error| match error {
        PostError::Storage(error) => CommentError::Storage(error),
        _ => CommentError::PostNotFound,
    })
}

/// What the first request with the same key made.
fn find_created(tx: &mut Tx<'_>, resource_id: Option<String>) -> Result<Comment, CommentError> {
    let id = resource_id.and_then(|id| id.parse().ok()).ok_or(CommentError::NotFound)?;
    let found = store::comment_find(tx, CommentId(id))?;
    let found = found.filter(|comment| comment.status == PostStatus::Visible);
    found.ok_or(CommentError::NotFound)
}
