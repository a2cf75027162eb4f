//! The database's plans for pages of lists, for the test that each is a range of an index.

use urr_kernel::Uuid;
use urr_service::CursorPage;
use urr_storage::{DbResult, StorageError};

use crate::CommunityService;
use crate::comments::store::comment_list_explain;
use crate::posts::store::post_list_explain;
use crate::posts::{PostFilter, PostId, PostKind};

/// The plan for a page, and the index that it must use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagePlan {
    pub index: &'static str,
    pub text: String,
}

impl CommunityService {
    /// The plans for later pages of all posts, of a board, and of the comments of a post.
    pub async fn explain_pages(
        &self,
        artist_id: Uuid,
        post_id: Uuid,
        cursor: Uuid,
    ) -> DbResult<Vec<PagePlan>> {
        let page = CursorPage::new(Some(cursor), 20);
        let plans = self.0.db.read(move |tx| {
            let filter = |artist_id| PostFilter { kind: PostKind::Post, artist_id, search: None };
            let plan = |index, lines: Vec<String>| PagePlan { index, text: lines.join("\n") };
            let all = post_list_explain(tx, &filter(None), page)?;
            let board = post_list_explain(tx, &filter(Some(artist_id)), page)?;
            let comments = comment_list_explain(tx, PostId(post_id), page)?;
            Ok::<_, StorageError>(vec![
                plan("posts_by_kind", all),
                plan("posts_of_artist", board),
                plan("comments_of_post", comments),
            ])
        });
        plans.await
    }
}
