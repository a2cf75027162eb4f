//! Reports of users, and what moderators do: hiding, showing again, pinning.
//!
//! Moderators are administrators, support, and organisers with an event of the artist. Nothing is
//! hidden without a decision of one of them.

pub mod http;
pub mod store;

use serde::{Deserialize, Serialize};
use urr_contracts::events::community::{CommentStatusChanged, PostStatusChanged};
use urr_kernel::{Timestamp, Uuid};
use urr_service::admin_log::{self, AdminAction};
use urr_service::{CursorPage, UserRole};
use urr_storage::{DbResult, StorageError, Tx, outbox, storable_enum};
use utoipa::ToSchema;

use crate::artists::may_moderate;
use crate::comments::store::{comment_find, comment_set_status};
use crate::comments::{Comment, CommentId};
use crate::limits::{TooMuchWritten, WrittenKind, decide_writing, written_lock};
use crate::posts::store::{
    PINNED_MAX, post_add_comments, post_find, post_list_pinned, post_lock, post_set_pinned,
    post_set_status,
};
use crate::posts::{Post, PostId, PostStatus};
use crate::{CommunityActor, CommunityService};

/// Why somebody reports a post or comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportReason {
    Spam,
    Abuse,
    Sexual,
    PersonalData,
    /// Tickets above their price.
    Resale,
    Other,
}

storable_enum!(ReportReason {
    Spam => "spam",
    Abuse => "abuse",
    Sexual => "sexual",
    PersonalData => "personal_data",
    Resale => "resale",
    Other => "other",
});

/// A report that somebody makes.
#[derive(Clone, Debug)]
pub struct NewReport {
    pub post_id: PostId,
    /// None: the post itself.
    pub comment_id: Option<CommentId>,
    pub reason: ReportReason,
    /// Checked and trimmed; may be empty.
    pub note: String,
}

/// A report as a moderator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeratedReport {
    pub id: Uuid,
    pub post_id: PostId,
    pub comment_id: Option<CommentId>,
    pub artist_id: Option<Uuid>,
    pub reason: ReportReason,
    pub note: String,
    pub is_open: bool,
    pub created_at: Timestamp,
    pub title: String,
    /// Of the comment, or else of the post.
    pub content: String,
    pub status: PostStatus,
}

/// Which reports are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportFilter {
    pub is_open: bool,
    pub artist_id: Option<Uuid>,
    /// Only artists of this organiser.
    pub organiser_id: Option<Uuid>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("There is no post with this id.")]
    PostNotFound,
    #[error("There is no comment with this id.")]
    CommentNotFound,
    #[error("The writer is the one who reports.")]
    Own,
    #[error(transparent)]
    TooMuch(#[from] TooMuchWritten),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[derive(Debug, thiserror::Error)]
pub enum ModerationError {
    #[error("There is no post with this id.")]
    PostNotFound,
    #[error("There is no comment with this id.")]
    CommentNotFound,
    #[error("The board belongs to others.")]
    NotYourArtist,
    #[error("The board has as many pinned posts as it may have.")]
    TooManyPinned,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl CommunityService {
    /// Reports a post or comment. A second report of the same user changes nothing.
    pub async fn create_report(
        &self,
        report: NewReport,
        actor: CommunityActor,
    ) -> Result<(), ReportError> {
        let (id, now) = (self.0.ids.next_id(), self.0.clock.now());
        let limit = self.0.settings.reports;
        let reported = self.0.db.write(move |tx| {
            let post = find_shown(tx, report.post_id)?.ok_or(ReportError::PostNotFound)?;
            let author_id = match report.comment_id {
                None => post.summary.author_id,
                Some(comment_id) => {
                    let comment = find_shown_comment(tx, &post, comment_id)?;
                    comment.ok_or(ReportError::CommentNotFound)?.author_id
                }
            };
            if author_id == Some(actor.user_id) {
                return Err(ReportError::Own);
            }
            let times = written_lock(tx, WrittenKind::Report, actor.user_id, limit, now)?;
            if store::report_exists(tx, &report, actor.user_id)? {
                return Ok(());
            }
            decide_writing(&times, limit, now)?;
            let artist_id = post.summary.artist_id;
            Ok(store::report_insert(tx, id, &report, (artist_id, actor.user_id), now)?)
        });
        reported.await
    }

    /// Hides a post or news, or shows it again. Its open reports are closed.
    pub async fn moderate_post(
        &self,
        id: PostId,
        (status, note): (PostStatus, String),
        actor: CommunityActor,
    ) -> Result<(), ModerationError> {
        let metadata = self.event_metadata(actor.context);
        let logged = self.admin_action(actor, (action_of(status), "post", id.0));
        let logged = AdminAction { summary: note, ..logged };
        let moderated = self.0.db.write(move |tx| {
            let post = find_moderated(tx, id, actor)?.summary;
            store::reports_close(tx, id.0)?;
            if post.status == status {
                return Ok(());
            }
            post_set_status(tx, id, status)?;
            admin_log::insert(tx, &logged)?;
            let (post_id, artist_id) = (id.0, post.artist_id);
            outbox::append(tx, &metadata, &PostStatusChanged { post_id, artist_id, status })?;
            Ok(())
        });
        moderated.await
    }

    /// Hides a comment, or shows it again. Its open reports are closed.
    pub async fn moderate_comment(
        &self,
        id: CommentId,
        (status, note): (PostStatus, String),
        actor: CommunityActor,
    ) -> Result<(), ModerationError> {
        let metadata = self.event_metadata(actor.context);
        let logged = self.admin_action(actor, (action_of(status), "comment", id.0));
        let logged = AdminAction { summary: note, ..logged };
        let moderated = self.0.db.write(move |tx| {
            let not_found = ModerationError::CommentNotFound;
            let post_id = comment_find(tx, id)?.ok_or(not_found)?.post_id;
            find_moderated(tx, post_id, actor)?;
            // Again, now that the post is locked.
            let comment = comment_find(tx, id)?;
            let comment = comment.filter(|comment| comment.status != PostStatus::Deleted);
            let comment = comment.ok_or(ModerationError::CommentNotFound)?;
            store::reports_close(tx, id.0)?;
            if comment.status == status {
                return Ok(());
            }
            comment_set_status(tx, id, status)?;
            let change = if status == PostStatus::Visible { 1 } else { -1 };
            post_add_comments(tx, post_id, change)?;
            admin_log::insert(tx, &logged)?;
            let (comment_id, post_id) = (id.0, post_id.0);
            outbox::append(tx, &metadata, &CommentStatusChanged { comment_id, post_id, status })?;
            Ok(())
        });
        moderated.await
    }

    /// Puts a post or news above the others of its board, or back into their order.
    pub async fn pin_post(
        &self,
        id: PostId,
        is_pinned: bool,
        actor: CommunityActor,
    ) -> Result<(), ModerationError> {
        let action = if is_pinned { "POST_PINNED" } else { "POST_UNPINNED" };
        let logged = self.admin_action(actor, (action, "post", id.0));
        let pinned = self.0.db.write(move |tx| {
            let post = find_moderated(tx, id, actor)?.summary;
            // News about everything is on no board.
            let artist_id = post.artist_id.ok_or(ModerationError::PostNotFound)?;
            if post.is_pinned == is_pinned {
                return Ok(());
            }
            if is_pinned {
                // Two moderators at once would pin one too many.
                tx.lock_name(&format!("community board {artist_id}"))?;
                let pinned = post_list_pinned(tx, post.kind, artist_id)?;
                if u32::try_from(pinned.len()).is_ok_and(|number| number >= PINNED_MAX) {
                    return Err(ModerationError::TooManyPinned);
                }
            }
            post_set_pinned(tx, id, is_pinned)?;
            admin_log::insert(tx, &AdminAction { summary: post.title, ..logged.clone() })?;
            Ok(())
        });
        pinned.await
    }

    /// A page of reports, newest first: all, or those of an organiser's artists.
    pub async fn list_reports(
        &self,
        (is_open, artist_id): (bool, Option<Uuid>),
        page: CursorPage,
        actor: CommunityActor,
    ) -> DbResult<(Vec<ModeratedReport>, Option<Uuid>)> {
        let is_organiser = actor.role == UserRole::Organiser;
        let organiser_id = is_organiser.then_some(actor.user_id);
        let filter = ReportFilter { is_open, artist_id, organiser_id };
        let reports = self.0.db.read(move |tx| store::report_list(tx, filter, page)).await?;
        Ok(page.split(reports, |report| report.id))
    }
}

fn action_of(status: PostStatus) -> &'static str {
    match status {
        PostStatus::Visible => "SHOWN",
        PostStatus::Hidden => "HIDDEN",
        PostStatus::Deleted | PostStatus::Other => "DELETED",
    }
}

fn find_shown(tx: &mut Tx<'_>, id: PostId) -> DbResult<Option<Post>> {
    Ok(post_find(tx, id)?.filter(|post| post.summary.status == PostStatus::Visible))
}

fn find_shown_comment(tx: &mut Tx<'_>, post: &Post, id: CommentId) -> DbResult<Option<Comment>> {
    let found = comment_find(tx, id)?;
    Ok(found.filter(|comment| {
        comment.status == PostStatus::Visible && comment.post_id == post.summary.id
    }))
}

/// The post, locked, if it is there and this moderator's.
fn find_moderated(
    tx: &mut Tx<'_>,
    id: PostId,
    actor: CommunityActor,
) -> Result<Post, ModerationError> {
    post_lock(tx, id)?;
    let post = post_find(tx, id)?.filter(|post| post.summary.status != PostStatus::Deleted);
    let post = post.ok_or(ModerationError::PostNotFound)?;
    match may_moderate(tx, actor, post.summary.artist_id)? {
        true => Ok(post),
        false => Err(ModerationError::NotYourArtist),
    }
}
