//! Paging by cursor: a page begins after the last item of the one before, so that it costs the same
//! however long the list is. For lists that grow at one end; [`crate::Page`] is for those with
//! numbered pages.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::Deserialize;
use urr_kernel::search::{QUERY_CHARS_MAX, SearchQuery};
use uuid::Uuid;

use crate::{ApiError, Query};

const LIMIT_DEFAULT: i64 = 20;
const LIMIT_MAX: i64 = 100;

/// Extractor: which part of a list is asked for. A limit out of range is clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CursorPage {
    /// `nextCursor` of the page before. Without it the list begins.
    #[param(required = false)]
    cursor: Option<Uuid>,
    /// How many items are on a page.
    #[param(required = false, minimum = 1, maximum = 100, default = 20)]
    limit: u32,
}

#[derive(Deserialize)]
struct CursorQuery {
    cursor: Option<Uuid>,
    limit: Option<i64>,
}

impl CursorPage {
    pub fn new(cursor: Option<Uuid>, limit: i64) -> CursorPage {
        let limit = u32::try_from(limit.clamp(1, LIMIT_MAX)).expect("the number was clamped");
        CursorPage { cursor, limit }
    }

    /// The id of the last item of the page before.
    pub fn cursor(self) -> Option<Uuid> {
        self.cursor
    }

    /// How many rows are read: one more than the page has, to know whether there is another page.
    pub fn rows_max(self) -> u32 {
        self.limit + 1
    }

    /// The page out of the rows that were read, and the cursor of the next one, if there is one.
    pub fn split<T>(self, mut rows: Vec<T>, id: impl Fn(&T) -> Uuid) -> (Vec<T>, Option<Uuid>) {
        let limit = usize::try_from(self.limit).expect("it is at most 100");
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(id);
        (rows, next)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for CursorPage {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<CursorPage, ApiError> {
        let Query(query) = Query::<CursorQuery>::from_request_parts(parts, state).await?;
        Ok(CursorPage::new(query.cursor, query.limit.unwrap_or(LIMIT_DEFAULT)))
    }
}

/// The text of a search, if it is not too long. It may be empty.
pub fn search_text(text: Option<&str>) -> Result<&str, ApiError> {
    let text = text.unwrap_or_default();
    if text.chars().count() > QUERY_CHARS_MAX {
        let sentence = format!("A search has at most {QUERY_CHARS_MAX} characters.");
        return Err(ApiError::bad_request("INVALID_QUERY", sentence));
    }
    Ok(text)
}

/// The words of a search; none if there are no words.
pub fn parse_search(text: Option<&str>) -> Result<Option<SearchQuery>, ApiError> {
    search_text(text).map(SearchQuery::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: u128, limit: i64) -> (usize, Option<u128>) {
        let rows = (1..=rows).map(Uuid::from_u128).collect();
        let (rows, next) = CursorPage::new(None, limit).split(rows, |id| *id);
        (rows.len(), next.map(|id| id.as_u128()))
    }

    #[test]
    fn the_next_page_begins_after_the_last_item_of_this_one() {
        assert_eq!(page(0, 2), (0, None));
        assert_eq!(page(2, 2), (2, None));
        assert_eq!(page(3, 2), (2, Some(2)));
        assert_eq!(CursorPage::new(None, 0).rows_max(), 2);
        assert_eq!(CursorPage::new(None, 5_000).rows_max(), 101);
    }
}
