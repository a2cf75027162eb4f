//! Posts of fans and news: writing, editing, deleting and reading them.

pub mod http;
pub mod news_http;
pub mod search_store;
pub mod store;

use urr_contracts::events::community::{PostCreated, PostPicturesChanged, PostStatusChanged};
use urr_kernel::search::{SearchQuery, SearchText};
use urr_kernel::{Timestamp, Uuid, define_id};
use urr_service::admin_log::{self, AdminAction};
use urr_service::idempotency::{KeyClaim, KeyedRequest, key_claim, key_complete};
use urr_service::{CursorPage, UserRole};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, StorageError, Tx, storable_id};

pub use urr_contracts::events::community::{PostKind, PostStatus};

use crate::artists::{artist_exists, may_moderate};
use crate::limits::{TooMuchWritten, WrittenKind, decide_writing, written_lock};
use crate::points::store::{award_insert, award_withdraw};
use crate::points::{CommunityAction, CommunityAward};
use crate::text::{InvalidWriting, PostImage, PostText};
use crate::{CommunityActor, CommunityService};

define_id!(
    /// Which post or news.
    PostId
);
storable_id!(PostId);

/// A post as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostSummary {
    pub id: PostId,
    pub kind: PostKind,
    pub artist_id: Option<Uuid>,
    pub artist_name: Option<String>,
    pub author_id: Option<Uuid>,
    pub title: String,
    pub status: PostStatus,
    pub is_pinned: bool,
    pub views: i64,
    pub comment_count: i64,
    pub created_at: Timestamp,
    pub edited_at: Option<Timestamp>,
}

impl PostSummary {
    /// Whose name is shown. News speaks for the artist and names nobody.
    pub fn named_author(&self) -> Option<Uuid> {
        self.author_id.filter(|_| self.kind == PostKind::Post)
    }
}

/// A whole post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    pub summary: PostSummary,
    pub content: String,
    pub images: Vec<PostImage>,
}

/// A post or news that somebody writes.
#[derive(Clone, Debug)]
pub struct NewPost {
    pub kind: PostKind,
    pub artist_id: Option<Uuid>,
    pub text: PostText,
    /// Its idempotency key, if the client gave one.
    pub request: Option<KeyedRequest>,
}

/// Which posts are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostFilter {
    pub kind: PostKind,
    /// None: of all artists.
    pub artist_id: Option<Uuid>,
    pub search: Option<SearchQuery>,
}

/// A page of posts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostPage {
    /// The pinned posts of the board, on its first page.
    pub pinned: Vec<PostSummary>,
    pub posts: Vec<PostSummary>,
    pub next_cursor: Option<Uuid>,
}

#[derive(Debug, thiserror::Error)]
pub enum PostError {
    #[error("There is no post with this id.")]
    NotFound,
    #[error("There is no artist with this id.")]
    ArtistNotFound,
    #[error("Only the author can do this.")]
    NotTheAuthor,
    #[error("Only organisers of the artist can do this.")]
    NotYourArtist,
    #[error(transparent)]
    TooMuch(#[from] TooMuchWritten),
    #[error("The idempotency key was used for another request.")]
    KeyReused,
    #[error(transparent)]
    Invalid(#[from] InvalidWriting),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

fn action_of(kind: PostKind) -> CommunityAction {
    match kind {
        PostKind::Post => CommunityAction::Post,
        PostKind::News => CommunityAction::NewsArticle,
    }
}

/// Whether somebody may change a post: its author, and for news whoever speaks for the artist.
fn check_editor(tx: &mut Tx<'_>, post: &Post, actor: CommunityActor) -> Result<(), PostError> {
    let PostSummary { kind, artist_id, author_id, .. } = post.summary;
    match kind {
        PostKind::Post if author_id == Some(actor.user_id) => Ok(()),
        PostKind::Post => Err(PostError::NotTheAuthor),
        PostKind::News if may_moderate(tx, actor, artist_id)? => Ok(()),
        PostKind::News => Err(PostError::NotYourArtist),
    }
}

impl CommunityService {
    /// Publishes a post or news with its points and its announcement, in one transaction.
    pub async fn create_post(
        &self,
        new: NewPost,
        actor: CommunityActor,
    ) -> Result<Post, PostError> {
        let (id, now) = (PostId(self.0.ids.next_id()), self.0.clock.now());
        let (limit, metadata) = (self.0.settings.posts, self.event_metadata(actor.context));
        let announced = self.event_metadata(actor.context);
        let created = self.0.db.write(move |tx| {
            if let Some(request) = &new.request {
                match key_claim(tx, request, now)? {
                    KeyClaim::New => key_complete(tx, request, &id.to_string())?,
                    KeyClaim::Repeated { resource_id } => {
                        return find_created(tx, resource_id, new.kind);
                    }
                    KeyClaim::Reused => return Err(PostError::KeyReused),
                }
            }
            check_board(tx, &new, actor)?;
            // Those who may speak for an artist are few and known by name.
            if new.kind == PostKind::Post {
                let kind = WrittenKind::Post;
                let times = written_lock(tx, kind, actor.user_id, limit, now)?;
                decide_writing(&times, limit, now)?;
            }
            insert_post(tx, id, &new, actor.user_id, &metadata)?;
            announce_pictures(tx, id, (&[], new.text.images()), &announced)?;
            find_visible(tx, id, new.kind)
        });
        created.await
    }

    /// Changes the texts of a post or news.
    pub async fn edit_post(
        &self,
        (kind, id): (PostKind, PostId),
        text: PostText,
        actor: CommunityActor,
    ) -> Result<Post, PostError> {
        let (now, announced) = (self.0.clock.now(), self.event_metadata(actor.context));
        let edited = self.0.db.write(move |tx| {
            store::post_lock(tx, id)?;
            let post = find_visible(tx, id, kind)?;
            check_editor(tx, &post, actor)?;
            let search_text = SearchText::new([text.title()]);
            store::post_update(tx, id, &text, &search_text.text, now)?;
            search_store::grams_replace(tx, id, &search_text)?;
            announce_pictures(tx, id, (&post.images, text.images()), &announced)?;
            find_visible(tx, id, kind)
        });
        edited.await
    }

    /// Deletes a post or news with its text, and takes its points back.
    pub async fn delete_post(
        &self,
        (kind, id): (PostKind, PostId),
        actor: CommunityActor,
    ) -> Result<(), PostError> {
        let (now, metadata) = (self.0.clock.now(), self.event_metadata(actor.context));
        let announced = self.event_metadata(actor.context);
        let logged = self.admin_action(actor, ("POST_DELETED", kind.as_str(), id.0));
        let deleted = self.0.db.write(move |tx| {
            store::post_lock(tx, id)?;
            let post = store::post_find(tx, id)?.filter(|post| post.summary.kind == kind);
            let post = post.filter(|post| post.summary.status != PostStatus::Deleted);
            let Post { summary, images, .. } = post.ok_or(PostError::NotFound)?;
            let PostSummary { artist_id, author_id, title, .. } = summary;
            let is_author = author_id == Some(actor.user_id) && kind == PostKind::Post;
            if !is_author {
                if !may_moderate(tx, actor, artist_id)? {
                    return Err(refusal(kind, actor.role));
                }
                admin_log::insert(tx, &AdminAction { summary: title, ..logged.clone() })?;
            }
            store::post_delete(tx, id, now)?;
            search_store::grams_delete(tx, id)?;
            award_withdraw(tx, id.0, now)?;
            announce_pictures(tx, id, (&images, &[]), &announced)?;
            let status = PostStatus::Deleted;
            outbox::append(tx, &metadata, &PostStatusChanged { post_id: id.0, artist_id, status })?;
            Ok(())
        });
        deleted.await
    }

    /// A page of visible posts, newest first.
    pub async fn list_posts(&self, filter: PostFilter, page: CursorPage) -> DbResult<PostPage> {
        let listed = self.0.db.read(move |tx| {
            let posts = store::post_list(tx, &filter, page)?;
            let is_first_page = page.cursor().is_none() && filter.search.is_none();
            let pinned = match filter.artist_id.filter(|_| is_first_page) {
                Some(artist_id) => store::post_list_pinned(tx, filter.kind, artist_id)?,
                None => Vec::new(),
            };
            Ok::<_, StorageError>((pinned, posts))
        });
        let (pinned, posts) = listed.await?;
        let (posts, next_cursor) = page.split(posts, |post| post.id.0);
        Ok(PostPage { pinned, posts, next_cursor })
    }

    /// A visible post. The view is counted later.
    pub async fn get_post(&self, kind: PostKind, id: PostId) -> Result<Post, PostError> {
        let post = self.0.db.read(move |tx| find_visible(tx, id, kind)).await?;
        self.0.views.count(id);
        Ok(post)
    }
}

fn refusal(kind: PostKind, role: UserRole) -> PostError {
    match (kind, role) {
        (PostKind::Post, UserRole::User | UserRole::Staff) => PostError::NotTheAuthor,
        (PostKind::Post | PostKind::News, _) => PostError::NotYourArtist,
    }
}

/// The artist exists, and whoever writes news may speak for them.
fn check_board(tx: &mut Tx<'_>, new: &NewPost, actor: CommunityActor) -> Result<(), PostError> {
    if let Some(artist_id) = new.artist_id
        && !artist_exists(tx, artist_id)?
    {
        return Err(PostError::ArtistNotFound);
    }
    match new.kind {
        PostKind::Post => Ok(()),
        PostKind::News if may_moderate(tx, actor, new.artist_id)? => Ok(()),
        PostKind::News => Err(PostError::NotYourArtist),
    }
}

/// The post with its index, its award of points and its announcement.
pub(crate) fn insert_post(
    tx: &mut Tx<'_>,
    id: PostId,
    new: &NewPost,
    author_id: Uuid,
    metadata: &EventMetadata,
) -> DbResult<()> {
    let NewPost { kind, artist_id, text, .. } = new;
    let (kind, artist_id, now) = (*kind, *artist_id, metadata.time);
    let search_text = SearchText::new([text.title()]);
    store::post_insert(tx, id, new, author_id, &search_text.text, now)?;
    search_store::grams_replace(tx, id, &search_text)?;
    let award = CommunityAward {
        reference_id: id.0,
        user_id: author_id,
        artist_id,
        action: action_of(kind),
    };
    award_insert(tx, &award, now)?;
    outbox::append(tx, metadata, &PostCreated { post_id: id.0, kind, artist_id, author_id })
}

/// Tells the catalogue, which stores pictures, that a post shows others than `before`.
fn announce_pictures(
    tx: &mut Tx<'_>,
    id: PostId,
    (before, after): (&[PostImage], &[PostImage]),
    metadata: &EventMetadata,
) -> DbResult<()> {
    let ids = |images: &[PostImage]| images.iter().map(PostImage::id).collect::<Vec<String>>();
    let image_ids = ids(after);
    if image_ids == ids(before) {
        return Ok(());
    }
    outbox::append(tx, metadata, &PostPicturesChanged { post_id: id.0, image_ids })
}

/// What the first request with the same key made.
fn find_created(
    tx: &mut Tx<'_>,
    resource_id: Option<String>,
    kind: PostKind,
) -> Result<Post, PostError> {
    let id = resource_id.and_then(|id| id.parse().ok()).ok_or(PostError::NotFound)?;
    find_visible(tx, PostId(id), kind)
}

pub(crate) fn find_visible(tx: &mut Tx<'_>, id: PostId, kind: PostKind) -> Result<Post, PostError> {
    let found = store::post_find(tx, id)?;
    let found = found
        .filter(|post| post.summary.status == PostStatus::Visible && post.summary.kind == kind);
    found.ok_or(PostError::NotFound)
}
