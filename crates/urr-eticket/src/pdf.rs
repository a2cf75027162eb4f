//! The tickets of a reservation as a PDF: one page of A5 each.

use pdf_writer::{Content, Filter, Finish as _, Pdf, Rect, Ref, Str, TextStr};

use crate::font::DocumentFont;
use crate::qr::{QrError, QrPicture, deflate};

const WIDTH: f32 = 419.53;
const HEIGHT: f32 = 595.28;
const MARGIN: f32 = 32.0;
/// The side of the code: large enough for a worn print and a cheap scanner.
const CODE: f32 = 216.0;

/// The colours of the pages.
const HEAT: [f32; 3] = [1.0, 0.294, 0.149];
const INK: [f32; 3] = [0.075, 0.078, 0.094];
const SOFT: [f32; 3] = [0.28, 0.29, 0.33];

/// What is printed on a ticket. All texts are in the language of the buyer.
#[derive(Clone, Debug)]
pub struct ETicket {
    /// The text of the QR code.
    pub code: String,
    pub event: String,
    pub starts_at: String,
    pub venue: String,
    /// The seat, or the name of a ticket without one.
    pub place: String,
    pub number: String,
    pub reservation_number: String,
}

/// The words around them.
#[derive(Clone, Debug)]
pub struct ETicketLabels {
    /// As in `Content-Language`.
    pub language: &'static str,
    /// The title of the document.
    pub title: String,
    pub number: &'static str,
    pub reservation: &'static str,
    /// What the holder should know, a paragraph.
    pub notice: &'static str,
}

/// Why tickets were not made into a PDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PdfError {
    #[error("this program was built without the fonts of its pages")]
    NoFonts,
    #[error("a font cannot be divided into glyphs")]
    Font,
    #[error(transparent)]
    Code(#[from] QrError),
}

struct Document {
    pdf: Pdf,
    last_id: Ref,
    regular: DocumentFont,
    bold: DocumentFont,
}

impl Document {
    fn next(&mut self) -> Ref {
        self.last_id.bump()
    }
}

/// Draws each ticket on a page of its own.
pub fn tickets_to_pdf(tickets: &[ETicket], labels: &ETicketLabels) -> Result<Vec<u8>, PdfError> {
    let mut last_id = Ref::new(1);
    let regular = DocumentFont::regular(last_id.bump()).ok_or(PdfError::NoFonts)?;
    let bold = DocumentFont::bold(last_id.bump()).ok_or(PdfError::NoFonts)?;
    let mut document = Document { pdf: Pdf::new(), last_id, regular, bold };
    let (catalog, pages, info) = (document.next(), document.next(), document.next());
    let mut kids = Vec::new();
    for ticket in tickets {
        let content = draw(&mut document, ticket, labels)?;
        kids.push(add_page(&mut document, pages, &content));
    }
    let Document { mut pdf, mut last_id, regular, bold } = document;
    regular.write(&mut pdf, || last_id.bump()).map_err(|_| PdfError::Font)?;
    bold.write(&mut pdf, || last_id.bump()).map_err(|_| PdfError::Font)?;
    let count = i32::try_from(kids.len()).expect("a reservation has few tickets");
    pdf.pages(pages).kids(kids).count(count);
    let mut root = pdf.catalog(catalog);
    root.pages(pages).lang(TextStr(labels.language));
    root.viewer_preferences().display_doc_title(true);
    root.finish();
    pdf.document_info(info).title(TextStr(&labels.title)).producer(TextStr("URR"));
    Ok(pdf.finish())
}

fn add_page(document: &mut Document, pages: Ref, content: &[u8]) -> Ref {
    let (id, contents) = (document.next(), document.next());
    let Document { pdf, regular, bold, .. } = document;
    let mut page = pdf.page(id);
    page.media_box(Rect::new(0.0, 0.0, WIDTH, HEIGHT)).parent(pages).contents(contents);
    let mut resources = page.resources();
    resources.fonts().pair(regular.name, regular.id()).pair(bold.name, bold.id());
    resources.finish();
    page.finish();
    pdf.stream(contents, &deflate(content)).filter(Filter::FlateDecode);
    id
}

fn draw(
    document: &mut Document,
    ticket: &ETicket,
    labels: &ETicketLabels,
) -> Result<Vec<u8>, PdfError> {
    let Document { regular, bold, .. } = document;
    let mut page = TicketPage { content: Content::new(), y: HEIGHT - MARGIN };

    let title = wrap(bold, &ticket.event, 20.0, 3);
    #[expect(clippy::cast_precision_loss, reason = "at most three lines")]
    let band = MARGIN + 26.0 * title.len() as f32 + 44.0;
    page.fill(HEAT, (0.0, HEIGHT - band, WIDTH, band));
    for line in title {
        page.line(bold, &line, 20.0, INK, 26.0);
    }
    page.line(regular, &ticket.starts_at, 11.0, INK, 17.0);
    page.line(regular, &ticket.venue, 11.0, INK, 17.0);

    page.y = HEIGHT - band - 22.0;
    page.code(&QrPicture::encode(&ticket.code)?);
    page.y -= 12.0;
    for line in wrap(bold, &ticket.place, 18.0, 2) {
        page.line(bold, &line, 18.0, INK, 24.0);
    }
    for (label, value) in
        [(labels.number, &ticket.number), (labels.reservation, &ticket.reservation_number)]
    {
        page.line(regular, &format!("{label}  {value}"), 10.0, SOFT, 15.0);
    }
    page.y = page.y.min(MARGIN + 40.0);
    for line in wrap(regular, labels.notice, 8.5, 4) {
        page.line(regular, &line, 8.5, SOFT, 12.0);
    }
    Ok(page.content.finish().to_vec())
}

/// A page that is filled from the top. Text is centred.
struct TicketPage {
    content: Content,
    y: f32,
}

impl TicketPage {
    fn fill(&mut self, [red, green, blue]: [f32; 3], (x, y, width, height): (f32, f32, f32, f32)) {
        self.content.set_fill_rgb(red, green, blue);
        self.content.rect(x, y, width, height).fill_nonzero();
    }

    fn line(
        &mut self,
        font: &mut DocumentFont,
        text: &str,
        size: f32,
        [red, green, blue]: [f32; 3],
        height: f32,
    ) {
        self.y -= height;
        let x = (WIDTH - font.width(text, size)) / 2.0;
        // The base line is about a quarter above the bottom of the line.
        let y = self.y + (height - size) / 2.0 + size * 0.2;
        let codes = font.encode(text);
        self.content.set_fill_rgb(red, green, blue).begin_text().set_font(font.name, size);
        self.content.next_line(x, y).show(Str(&codes)).end_text();
    }

    fn code(&mut self, picture: &QrPicture) {
        #[expect(clippy::cast_precision_loss, reason = "a code is at most 185 modules wide")]
        let position = |modules: usize| modules as f32;
        let module = CODE / position(picture.size());
        let left = (WIDTH - CODE) / 2.0;
        self.content.set_fill_rgb(0.0, 0.0, 0.0);
        for (x, y, length) in picture.dark_runs() {
            let (x, top) = (left + position(x) * module, self.y - position(y) * module);
            self.content.rect(x, top - module, position(length) * module, module);
        }
        self.content.fill_nonzero();
        self.y -= CODE;
    }
}

/// Breaks a text into lines that fit, at spaces where there are some. What does not fit into
/// `lines_max` is cut, and the last line ends with an ellipsis.
fn wrap(font: &DocumentFont, text: &str, size: f32, lines_max: usize) -> Vec<String> {
    let fits = |line: &str| font.width(line, size) <= WIDTH - 2.0 * MARGIN;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always one");
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if fits(&longer) {
            *line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(String::new());
        }
        // A word that is longer than a line is broken anywhere.
        for character in word.chars() {
            let line = lines.last_mut().expect("there is always one");
            line.push(character);
            if !fits(line) && line.chars().count() > 1 {
                line.pop();
                lines.push(character.to_string());
            }
        }
    }
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        let last = lines.last_mut().expect("there is always one");
        while !fits(&format!("{last}…")) && last.pop().is_some() {}
        last.push('…');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> ETicket {
        ETicket {
            code: "URR1.01980000-0000-7000-8000-000000000001.c2lnbmF0dXJl".to_owned(),
            event: "극단 여름비: 장마 The Long Rain".to_owned(),
            starts_at: "2026년 12월 24일 (목) 19:30 (한국 시간)".to_owned(),
            venue: "달빛소극장 Moonlight Studio".to_owned(),
            place: "R석 · 가 구역 3열 12번".to_owned(),
            number: "T-0001".to_owned(),
            reservation_number: "U1234567".to_owned(),
        }
    }

    fn labels() -> ETicketLabels {
        ETicketLabels {
            language: "ko",
            title: "극단 여름비: 장마".to_owned(),
            number: "티켓 번호",
            reservation: "예매 번호",
            notice: "입장할 때 이 QR 코드를 보여 주세요. 다른 사람에게 보내지 마세요.",
        }
    }

    /// Cargo alone builds no pages, and then there are no fonts.
    fn has_fonts() -> bool {
        DocumentFont::regular(Ref::new(1)).is_some()
    }

    #[test]
    fn a_document_has_a_page_per_ticket_and_the_glyphs_it_uses() {
        if !has_fonts() {
            assert_eq!(tickets_to_pdf(&[ticket()], &labels()), Err(PdfError::NoFonts));
            return;
        }
        let one = tickets_to_pdf(&[ticket()], &labels()).unwrap();
        let three = tickets_to_pdf(&vec![ticket(); 3], &labels()).unwrap();
        assert!(one.starts_with(b"%PDF-"));
        let pages = |pdf: &[u8]| String::from_utf8_lossy(pdf).matches("/Type /Page\n").count();
        assert_eq!((pages(&one), pages(&three)), (1, 3));
        assert!(three.len() < 3 * one.len(), "the fonts are there once");
        assert!(one.len() < 60_000, "{} bytes", one.len());
    }

    #[test]
    fn a_text_that_no_code_can_hold_is_an_error() {
        if has_fonts() {
            let too_long = ETicket { code: "x".repeat(5_000), ..ticket() };
            assert_eq!(tickets_to_pdf(&[too_long], &labels()), Err(PdfError::Code(QrError)));
        }
    }

    #[test]
    fn long_texts_are_broken_and_cut() {
        let Some(font) = DocumentFont::regular(Ref::new(1)) else { return };
        assert_eq!(wrap(&font, "짧은 제목", 20.0, 3), ["짧은 제목"]);
        let long = "아주 긴 제목 ".repeat(40);
        let lines = wrap(&font, &long, 20.0, 3);
        assert_eq!(lines.len(), 3);
        assert!(lines[2].ends_with('…'));
        let unbroken = wrap(&font, &"가".repeat(200), 20.0, 2);
        assert_eq!(unbroken.len(), 2);
        for line in lines.iter().chain(&unbroken) {
            assert!(font.width(line, 20.0) <= WIDTH - 2.0 * MARGIN, "{line}");
        }
        assert_eq!(wrap(&font, "", 20.0, 3), [""]);
    }
}
