//! Pagination: how every list of the interface is divided into pages.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};

use crate::{ApiError, Query};

const LIMIT_DEFAULT: u32 = 20;
const LIMIT_MAX: u32 = 100;

/// Extractor: the requested page of a list. Numbers out of range are clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Page {
    /// The number of the page, from 1.
    #[param(required = false, minimum = 1, default = 1)]
    page: u32,
    /// How many items are on a page.
    #[param(required = false, minimum = 1, maximum = 100, default = 20)]
    limit: u32,
}

#[derive(Deserialize)]
struct PageQuery {
    page: Option<i64>,
    limit: Option<i64>,
}

impl Page {
    pub fn new(page: i64, limit: i64) -> Page {
        let within = |number: i64, max: u32| {
            let number = number.clamp(1, i64::from(max));
            u32::try_from(number).expect("the number was clamped")
        };
        Page { page: within(page, u32::MAX), limit: within(limit, LIMIT_MAX) }
    }

    /// The first page of the usual size unless something else is asked for.
    pub fn of(page: Option<i64>, limit: Option<i64>) -> Page {
        Page::new(page.unwrap_or(1), limit.unwrap_or(i64::from(LIMIT_DEFAULT)))
    }

    pub fn number(self) -> u32 {
        self.page
    }

    pub fn limit(self) -> u32 {
        self.limit
    }

    /// How many items come before this page.
    pub fn offset(self) -> i64 {
        i64::from(self.page - 1) * i64::from(self.limit)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Page {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Page, ApiError> {
        let Query(PageQuery { page, limit }) = Query::from_request_parts(parts, state).await?;
        Ok(Page::of(page, limit))
    }
}

/// View: one page of a list.
#[derive(Debug, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Paged<T> {
    pub items: Vec<T>,
    pub pagination: Pagination,
}

/// View: where in the list a page is.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    pub page: u32,
    pub limit: u32,
    pub total: u64,
    pub total_pages: u64,
}

impl<T> Paged<T> {
    pub fn new(items: Vec<T>, total: u64, page: Page) -> Paged<T> {
        let pagination = Pagination {
            page: page.page,
            limit: page.limit,
            total,
            total_pages: total.div_ceil(u64::from(page.limit)),
        };
        Paged { items, pagination }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn page_of(query: &str) -> Result<(u32, u32, i64), String> {
        let uri = format!("/?{query}");
        let (mut parts, ()) =
            axum::http::Request::builder().uri(uri).body(()).unwrap().into_parts();
        let page = Page::from_request_parts(&mut parts, &()).await;
        page.map(|page| (page.number(), page.limit(), page.offset()))
            .map_err(|error| error.code().to_owned())
    }

    #[tokio::test]
    async fn pages_out_of_range_are_moved_into_it() {
        assert_eq!(page_of("").await, Ok((1, 20, 0)));
        assert_eq!(page_of("page=3&limit=50&sort=name").await, Ok((3, 50, 100)));
        assert_eq!(page_of("page=0&limit=0").await, Ok((1, 1, 0)));
        assert_eq!(page_of("page=-5&limit=5000").await, Ok((1, 100, 0)));
        assert_eq!(page_of("page=9223372036854775807").await, Ok((u32::MAX, 20, 85_899_345_880)));
        assert_eq!(page_of("page=two").await, Err("INVALID_QUERY".to_owned()));
    }

    #[test]
    fn a_started_page_counts_as_a_page() {
        let pages =
            |total| Paged::<()>::new(vec![], total, Page::new(1, 20)).pagination.total_pages;
        assert_eq!([pages(0), pages(1), pages(20), pages(21)], [0, 1, 1, 2]);
    }
}
