//! Demo posts, comments and news, for a fresh installation.

use urr_kernel::{CallContext, Clock, IdSource, Uuid};
use urr_storage::outbox::EventMetadata;
use urr_storage::{Db, DbResult, StorageError, Tx, params};

use crate::SOURCE;
use crate::comments::{Comment, CommentId, insert_comment};
use crate::posts::store::post_find;
use crate::posts::{NewPost, PostId, PostKind, PostStatus, insert_post};
use crate::text::PostText;

/// The program itself writes the demo data.
pub const DEMO_AUTHOR: Uuid = Uuid::nil();
pub const DEMO_NAME: &str = "우르르 운영팀";

const POSTS: [(&str, &str); 3] = [
    (
        "첫 곡이 뭐였으면 좋겠어요?",
        "저는 조용히 시작해서 점점 커지는 순서가 좋아요.\n여러분은 어떤 곡으로 시작하면 좋겠나요?",
    ),
    (
        "좌석 시야 공유해요",
        "지난 공연은 2층 가운데에서 봤는데 무대 전체가 잘 보였어요. 다른 구역은 어떤가요?",
    ),
    ("처음 가는 공연이에요", "입장은 얼마나 일찍 가면 되나요? 준비물도 알려 주세요."),
];
const COMMENT: &str = "저도 궁금해요. 다녀오면 후기 남길게요!";
const NEWS: (&str, &str) = (
    "공연 안내",
    "입장은 공연 한 시간 전부터입니다.\n티켓의 QR 코드를 미리 열어 두시면 빨리 들어갈 수 있습니다.",
);

/// Adds demo posts and news of these artists. Running it again adds nothing. Returns how many.
pub async fn seed_demo(
    db: &Db,
    clock: &Clock,
    ids: &IdSource,
    artists: &[Uuid],
) -> Result<usize, StorageError> {
    let mut added = 0;
    for artist_id in artists.iter().copied() {
        let prepared: Vec<EventMetadata> = (0..=POSTS.len() + 1)
            .map(|_| EventMetadata {
                event_id: ids.next_id(),
                source: SOURCE,
                time: clock.now(),
                context: CallContext::root(ids.next_id()),
            })
            .collect();
        added += db.write(move |tx| seed_artist(tx, artist_id, &prepared)).await?;
    }
    Ok(added)
}

/// The id of what is announced is that of its event: a closure may run twice.
fn seed_artist(tx: &mut Tx<'_>, artist_id: Uuid, prepared: &[EventMetadata]) -> DbResult<usize> {
    let sql = "select id from posts where author_id = $1 and artist_id = $2 limit 1";
    let known = tx.query_opt(sql, params![DEMO_AUTHOR, artist_id], |row| row.get::<Uuid>("id"))?;
    let [news, comment, posts @ ..] = prepared else { return Ok(0) };
    if known.is_some() {
        return Ok(0);
    }
    insert_demo(tx, PostKind::News, artist_id, NEWS, news)?;
    for (post, text) in posts.iter().zip(POSTS) {
        insert_demo(tx, PostKind::Post, artist_id, text, post)?;
    }
    if let Some(last) = posts.last()
        && let Some(post) = post_find(tx, PostId(last.event_id))?
    {
        let written = Comment {
            id: CommentId(comment.event_id),
            post_id: post.summary.id,
            author_id: Some(DEMO_AUTHOR),
            content: COMMENT.to_owned(),
            status: PostStatus::Visible,
            created_at: comment.time,
            edited_at: None,
        };
        insert_comment(tx, &written, (&post, DEMO_AUTHOR), comment)?;
    }
    Ok(prepared.len())
}

fn insert_demo(
    tx: &mut Tx<'_>,
    kind: PostKind,
    artist_id: Uuid,
    (title, content): (&str, &str),
    metadata: &EventMetadata,
) -> DbResult<()> {
    let text = PostText::parse(title, content, Vec::new()).expect("the demo texts are valid");
    let new = NewPost { kind, artist_id: Some(artist_id), text, request: None };
    insert_post(tx, PostId(metadata.event_id), &new, DEMO_AUTHOR, metadata)
}
