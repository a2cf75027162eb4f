//! The error answers of the community.

use urr_service::ApiError;
use urr_service::idempotency::key_reused;

use crate::{
    CommentError, InvalidWriting, ModerationError, PostError, ReportError, TooMuchWritten,
};

impl From<InvalidWriting> for ApiError {
    fn from(invalid: InvalidWriting) -> ApiError {
        let code = match invalid {
            InvalidWriting::Title(_) => "INVALID_TITLE",
            InvalidWriting::Content(_) => "INVALID_CONTENT",
            InvalidWriting::Note(_) => "INVALID_NOTE",
            InvalidWriting::Images => "INVALID_IMAGE_URL",
            InvalidWriting::Alt(_) => "INVALID_ALT_TEXT",
        };
        ApiError::bad_request(code, invalid.to_string())
    }
}

impl From<TooMuchWritten> for ApiError {
    fn from(error: TooMuchWritten) -> ApiError {
        ApiError::too_many("TOO_MUCH_WRITTEN", error.to_string(), error.retry_after)
    }
}

fn not_your_artist() -> ApiError {
    let sentence = "Only organisers of this artist can do this.";
    ApiError::forbidden("NOT_YOUR_ARTIST", sentence)
}

fn not_the_author() -> ApiError {
    ApiError::forbidden("NOT_THE_AUTHOR", "Only the author can do this.")
}

fn post_not_found() -> ApiError {
    ApiError::not_found("POST_NOT_FOUND", "There is no post with this id.")
}

fn comment_not_found() -> ApiError {
    ApiError::not_found("COMMENT_NOT_FOUND", "There is no comment with this id.")
}

impl From<PostError> for ApiError {
    fn from(error: PostError) -> ApiError {
        match error {
            PostError::NotFound => post_not_found(),
            PostError::ArtistNotFound => {
                ApiError::not_found("ARTIST_NOT_FOUND", "There is no artist with this id.")
            }
            PostError::NotTheAuthor => not_the_author(),
            PostError::NotYourArtist => not_your_artist(),
            PostError::TooMuch(error) => error.into(),
            PostError::KeyReused => key_reused(),
            PostError::Invalid(invalid) => invalid.into(),
            PostError::Storage(error) => error.into(),
        }
    }
}

impl From<CommentError> for ApiError {
    fn from(error: CommentError) -> ApiError {
        match error {
            CommentError::PostNotFound => post_not_found(),
            CommentError::NotFound => comment_not_found(),
            CommentError::NotTheAuthor => not_the_author(),
            CommentError::TooMuch(error) => error.into(),
            CommentError::KeyReused => key_reused(),
            CommentError::Invalid(invalid) => invalid.into(),
            CommentError::Storage(error) => error.into(),
        }
    }
}

impl From<ReportError> for ApiError {
    fn from(error: ReportError) -> ApiError {
        match error {
            ReportError::PostNotFound => post_not_found(),
            ReportError::CommentNotFound => comment_not_found(),
            ReportError::Own => {
                let sentence = "You wrote this yourself. You can delete it.";
                ApiError::conflict("OWN_WRITING", sentence)
            }
            ReportError::TooMuch(error) => error.into(),
            ReportError::Storage(error) => error.into(),
        }
    }
}

impl From<ModerationError> for ApiError {
    fn from(error: ModerationError) -> ApiError {
        match error {
            ModerationError::PostNotFound => post_not_found(),
            ModerationError::CommentNotFound => comment_not_found(),
            ModerationError::NotYourArtist => not_your_artist(),
            ModerationError::TooManyPinned => {
                let sentence = "A board has at most five pinned posts.";
                ApiError::conflict("TOO_MANY_PINNED", sentence)
            }
            ModerationError::Storage(error) => error.into(),
        }
    }
}
