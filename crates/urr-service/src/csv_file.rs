//! CSV files, for spreadsheets: UTF-8 with a byte order mark, quoted as RFC 4180 says, the header in
//! the reader's language. Money is whole won, times are Korea's.
//!
//! A text that a spreadsheet would take for a formula gets an apostrophe in front. Numbers do not: a
//! negative amount stays a number. A long file is read and sent a page at a time.

use std::future::Future;

use axum::body::{Body, Bytes};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use csv::{Terminator, WriterBuilder};
use futures_util::stream::{self, Stream, StreamExt};
use jiff::tz::TimeZone;
use serde::Deserialize;
use urr_kernel::{KOREA, Language, Timestamp, Uuid, Won};
use utoipa::IntoParams;

use crate::{ApiError, Query, preferred_language};

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// What a spreadsheet takes for the beginning of a formula, or strips before it looks.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// The header of a column in Korean and in English.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvColumn(pub &'static str, pub &'static str);

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CsvCell {
    Text(String),
    Number(String),
}

pub type CsvRow = Vec<CsvCell>;

/// A row of cells: `csv_row![number, amount]`.
#[macro_export]
macro_rules! csv_row {
    ($($cell:expr),+ $(,)?) => {
        vec![$($crate::CsvCell::from($cell)),+]
    };
}

/// The name, language and columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvFile {
    name: String,
    language: Language,
    columns: &'static [CsvColumn],
}

/// Some rows, and where the next ones begin.
#[derive(Clone, Debug)]
pub struct CsvPage<C> {
    pub rows: Vec<CsvRow>,
    /// `None` at the end.
    pub next: Option<C>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CsvQuery {
    /// The language of the header: `ko` or `en`; without it that of `Accept-Language`.
    #[param(example = "ko")]
    language: Option<String>,
}

/// Extractor: the language of a CSV file, by [`CsvQuery`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvLanguage(pub Language);

impl<S: Send + Sync> FromRequestParts<S> for CsvLanguage {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<CsvLanguage, ApiError> {
        let Query(query) = Query::<CsvQuery>::from_request_parts(parts, state).await?;
        document_language(query.language.as_deref(), &parts.headers).map(CsvLanguage)
    }
}

/// The language of a document: the one that is asked for, or else the one that the client prefers.
pub fn document_language(asked: Option<&str>, headers: &HeaderMap) -> Result<Language, ApiError> {
    match asked {
        None => Ok(preferred_language(headers)),
        Some(name) => name
            .parse()
            .map_err(|_| ApiError::bad_request("INVALID_LANGUAGE", "The language is ko or en.")),
    }
}

impl CsvFile {
    /// `name` is without its ending. What does not belong into a file name is left out.
    pub fn new(name: &str, language: Language, columns: &'static [CsvColumn]) -> CsvFile {
        let fits = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        CsvFile { name: name.chars().filter(fits).collect(), language, columns }
    }

    /// A short file.
    pub fn whole(self, rows: &[CsvRow]) -> Response {
        let mut bytes = self.header();
        bytes.extend(written(rows));
        self.answer(Body::from(bytes))
    }

    /// A long file, of which one page is in memory at a time. The first page is read before the
    /// answer begins, so that its failure is an error. A later one breaks the transfer off: nobody
    /// takes the part for the whole.
    pub async fn paged<C, F, P>(self, start: C, page: F) -> Result<Response, ApiError>
    where
        C: Send + 'static,
        F: Fn(C) -> P + Send + Sync + 'static,
        P: Future<Output = Result<CsvPage<C>, ApiError>> + Send + 'static,
    {
        let first = page(start).await?;
        let mut bytes = self.header();
        bytes.extend(written(&first.rows));
        let begin = stream::once(async move { Ok(Bytes::from(bytes)) });
        let body = Body::from_stream(begin.chain(later_pages(first.next, page)));
        Ok(self.answer(body))
    }

    fn header(&self) -> Vec<u8> {
        let titles = self.columns.iter().map(|column| self.language.pick(column.0, column.1));
        let titles: CsvRow = titles.map(CsvCell::from).collect();
        let mut bytes = BYTE_ORDER_MARK.as_bytes().to_vec();
        bytes.extend(written(&[titles]));
        bytes
    }

    fn answer(&self, body: Body) -> Response {
        let file = format!("attachment; filename=\"{}.csv\"", self.name);
        let headers = [
            (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
            (header::CONTENT_DISPOSITION, file),
            (header::CONTENT_LANGUAGE, self.language.as_str().to_owned()),
        ];
        (headers, body).into_response()
    }
}

/// The transfer is broken off.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the rest of the file could not be read")]
struct CsvBroken;

fn later_pages<C, F, P>(next: Option<C>, page: F) -> impl Stream<Item = Result<Bytes, CsvBroken>>
where
    F: Fn(C) -> P,
    P: Future<Output = Result<CsvPage<C>, ApiError>>,
{
    stream::try_unfold((next, page), |(next, page)| async move {
        let Some(start) = next else { return Ok(None) };
        match page(start).await {
            Ok(read) => Ok(Some((Bytes::from(written(&read.rows)), (read.next, page)))),
            Err(error) => {
                tracing::warn!(code = error.code(), "a file is broken off");
                Err(CsvBroken)
            }
        }
    })
}

fn written(rows: &[CsvRow]) -> Vec<u8> {
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        let cells = row.iter().map(|cell| match cell {
            CsvCell::Text(text) | CsvCell::Number(text) => text.as_bytes(),
        });
        writer.write_record(cells).expect("rows of a file have equal lengths, in memory");
    }
    writer.into_inner().expect("a vector takes every byte")
}

impl From<&str> for CsvCell {
    fn from(text: &str) -> CsvCell {
        // A NUL would end the cell in some programs, and the rest could be anything.
        let text = text.replace('\0', "");
        match text.starts_with(FORMULA_STARTS) {
            true => CsvCell::Text(format!("'{text}")),
            false => CsvCell::Text(text),
        }
    }
}

impl From<String> for CsvCell {
    fn from(text: String) -> CsvCell {
        CsvCell::from(text.as_str())
    }
}

impl From<&String> for CsvCell {
    fn from(text: &String) -> CsvCell {
        CsvCell::from(text.as_str())
    }
}

impl From<Uuid> for CsvCell {
    fn from(id: Uuid) -> CsvCell {
        CsvCell::Text(id.to_string())
    }
}

impl From<Won> for CsvCell {
    fn from(amount: Won) -> CsvCell {
        CsvCell::from(amount.amount())
    }
}

/// The date and time in Korea, as spreadsheets read them.
impl From<Timestamp> for CsvCell {
    fn from(time: Timestamp) -> CsvCell {
        let time = time.to_zoned(TimeZone::fixed(KOREA));
        CsvCell::Text(time.strftime("%Y-%m-%d %H:%M:%S").to_string())
    }
}

impl<T: Into<CsvCell>> From<Option<T>> for CsvCell {
    fn from(value: Option<T>) -> CsvCell {
        value.map_or_else(|| CsvCell::Text(String::new()), T::into)
    }
}

macro_rules! number_cells {
    ($($number:ty),+) => {$(
        impl From<$number> for CsvCell {
            fn from(number: $number) -> CsvCell {
                CsvCell::Number(number.to_string())
            }
        }
    )+};
}

number_cells!(i64, u64, u32, u8, f64);

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    const COLUMNS: &[CsvColumn] = &[CsvColumn("이름", "Name"), CsvColumn("금액", "Amount")];

    async fn text(response: Response) -> String {
        let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    fn file(language: Language) -> CsvFile {
        CsvFile::new("reservations-1", language, COLUMNS)
    }

    #[tokio::test]
    async fn the_header_is_in_the_readers_language_behind_a_byte_order_mark() {
        let korean = text(file(Language::Korean).whole(&[])).await;
        assert_eq!(korean, "\u{feff}이름,금액\r\n");
        let english = text(file(Language::English).whole(&[csv_row!["Mina", 7_i64]])).await;
        assert_eq!(english, "\u{feff}Name,Amount\r\nMina,7\r\n");
    }

    #[tokio::test]
    async fn quotes_commas_and_lines_stay_in_their_cell() {
        let rows = [csv_row!["a \"b\", c\nd", Won::new(-5_000)]];
        let written = text(file(Language::English).whole(&rows)).await;
        assert!(written.ends_with("\"a \"\"b\"\", c\nd\",-5000\r\n"), "{written}");
    }

    /// The control is the number: only texts get the apostrophe.
    #[test]
    fn a_text_is_never_a_formula_and_a_negative_number_stays_one() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=HYPERLINK(\"x\")"] {
            let CsvCell::Text(cell) = CsvCell::from(text) else { panic!("{text}") };
            assert_eq!(cell, format!("'{text}"));
        }
        assert_eq!(CsvCell::from("\0=1"), CsvCell::Text("'=1".to_owned()));
        assert_eq!(CsvCell::from("김민아"), CsvCell::Text("김민아".to_owned()));
        assert_eq!(CsvCell::from(-5_000_i64), CsvCell::Number("-5000".to_owned()));
        assert_eq!(CsvCell::from(None::<&str>), CsvCell::Text(String::new()));
    }

    #[test]
    fn times_are_those_of_korea() {
        let time: Timestamp = "2026-12-31T15:30:00Z".parse().unwrap();
        assert_eq!(CsvCell::from(time), CsvCell::Text("2027-01-01 00:30:00".to_owned()));
    }

    #[test]
    fn a_file_name_has_nothing_that_a_header_could_misread() {
        let response = CsvFile::new("a\"b; ../x\r\n-7", Language::Korean, COLUMNS).whole(&[]);
        let disposition = response.headers()[header::CONTENT_DISPOSITION].to_str().unwrap();
        assert_eq!(disposition, "attachment; filename=\"abx-7.csv\"");
    }

    async fn numbers(from: u32) -> Result<CsvPage<u32>, ApiError> {
        let rows = vec![csv_row![from.to_string(), from]];
        Ok(CsvPage { rows, next: (from < 3).then_some(from + 1) })
    }

    #[tokio::test]
    async fn a_long_file_has_the_rows_of_all_its_pages() {
        let response = file(Language::English).paged(1, numbers).await.unwrap();
        assert_eq!(text(response).await, "\u{feff}Name,Amount\r\n1,1\r\n2,2\r\n3,3\r\n");
    }

    #[tokio::test]
    async fn a_failure_is_an_error_at_first_and_breaks_the_transfer_off_later() {
        let failing = |at: u32| {
            move |from: u32| async move {
                match from == at {
                    true => Err(ApiError::conflict("X", "x")),
                    false => numbers(from).await,
                }
            }
        };
        assert!(file(Language::English).paged(1, failing(1)).await.is_err());
        let response = file(Language::English).paged(1, failing(3)).await.unwrap();
        assert!(to_bytes(response.into_body(), 1 << 20).await.is_err());
    }
}
