//! The fonts of documents: measuring text, and embedding the glyphs that a document uses.

use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::DeflateDecoder;
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Filter, Finish as _, Name, Pdf, Rect, Ref, Str};
use subsetter::GlyphRemapper;
use ttf_parser::Face;

static REGULAR: LazyLock<Vec<u8>> =
    LazyLock::new(|| unpack(include_bytes!(concat!(env!("OUT_DIR"), "/Regular.deflate"))));
static BOLD: LazyLock<Vec<u8>> =
    LazyLock::new(|| unpack(include_bytes!(concat!(env!("OUT_DIR"), "/Bold.deflate"))));

const CMAP: Name<'static> = Name(b"Custom");
const SYSTEM: SystemInfo<'static> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// Nothing if there was nothing to pack.
fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut font = Vec::new();
    if packed.is_empty() {
        return font;
    }
    DeflateDecoder::new(packed).read_to_end(&mut font).expect("the build script packed it");
    font
}

/// A font and the glyphs that a document has used of it.
pub struct DocumentFont {
    /// The name by which pages of the document call it.
    pub name: Name<'static>,
    id: Ref,
    data: &'static [u8],
    face: Face<'static>,
    glyphs: GlyphRemapper,
    /// The character of each glyph, so that text can be copied and read aloud.
    characters: Vec<(u16, char)>,
}

impl DocumentFont {
    /// None if the program was built without fonts.
    pub fn regular(id: Ref) -> Option<DocumentFont> {
        DocumentFont::open(Name(b"Regular"), id, &REGULAR)
    }

    pub fn bold(id: Ref) -> Option<DocumentFont> {
        DocumentFont::open(Name(b"Bold"), id, &BOLD)
    }

    fn open(name: Name<'static>, id: Ref, data: &'static [u8]) -> Option<DocumentFont> {
        let face = Face::parse(data, 0).ok()?;
        let glyphs = GlyphRemapper::new();
        Some(DocumentFont { name, id, data, face, glyphs, characters: Vec::new() })
    }

    pub fn id(&self) -> Ref {
        self.id
    }

    /// The width of a text at a size.
    pub fn width(&self, text: &str, size: f32) -> f32 {
        let units: u32 = text.chars().map(|one| u32::from(self.advance(self.glyph(one)))).sum();
        #[expect(clippy::cast_precision_loss, reason = "a line is short")]
        let units = units as f32;
        units * size / f32::from(self.face.units_per_em())
    }

    /// A text as the codes of its glyphs.
    pub fn encode(&mut self, text: &str) -> Vec<u8> {
        let mut codes = Vec::with_capacity(2 * text.len());
        for character in text.chars() {
            let glyph = self.glyphs.remap(self.glyph(character));
            if self.characters.iter().all(|(known, _)| *known != glyph) {
                self.characters.push((glyph, character));
            }
            codes.extend_from_slice(&glyph.to_be_bytes());
        }
        codes
    }

    /// A character that the font lacks is drawn as an empty box.
    fn glyph(&self, character: char) -> u16 {
        self.face.glyph_index(character).map_or(0, |glyph| glyph.0)
    }

    fn advance(&self, glyph: u16) -> u16 {
        self.face.glyph_hor_advance(ttf_parser::GlyphId(glyph)).unwrap_or(0)
    }

    /// Writes the font with the glyphs that were used. `next` gives ids of the document.
    pub fn write(
        self,
        pdf: &mut Pdf,
        mut next: impl FnMut() -> Ref,
    ) -> Result<(), subsetter::Error> {
        let (cid, descriptor, file, cmap) = (next(), next(), next(), next());
        let subset = subsetter::subset(self.data, 0, &self.glyphs)?;
        let base = format!("URRTKT+Pretendard-{}", String::from_utf8_lossy(self.name.0));
        let base = Name(base.as_bytes());

        let mut type0 = pdf.type0_font(self.id);
        type0.base_font(base).encoding_predefined(Name(b"Identity-H"));
        type0.descendant_font(cid).to_unicode(cmap);
        type0.finish();

        let mut font = pdf.cid_font(cid);
        font.subtype(CidFontType::Type2).base_font(base).system_info(SYSTEM);
        font.font_descriptor(descriptor).default_width(0.0);
        font.cid_to_gid_map_predefined(Name(b"Identity"));
        let widths =
            self.glyphs.remapped_gids().map(|glyph| self.per_thousand(self.advance(glyph)));
        font.widths().consecutive(0, widths);
        font.finish();

        self.write_descriptor(pdf, descriptor, base, file);
        let packed = crate::qr::deflate(&subset);
        let mut stream = pdf.stream(file, &packed);
        stream.filter(Filter::FlateDecode);
        let length = i32::try_from(subset.len()).expect("a part of a font is small");
        stream.pair(Name(b"Length1"), length);
        stream.finish();

        let mut unicode = UnicodeCmap::new(CMAP, SYSTEM);
        for (glyph, character) in &self.characters {
            unicode.pair(*glyph, *character);
        }
        pdf.cmap(cmap, &unicode.finish());
        Ok(())
    }

    fn write_descriptor(&self, pdf: &mut Pdf, id: Ref, base: Name<'_>, file: Ref) {
        let face = &self.face;
        let bounds = face.global_bounding_box();
        let scaled = |units: i16| f32::from(units) * 1000.0 / f32::from(face.units_per_em());
        let mut descriptor = pdf.font_descriptor(id);
        descriptor.name(base).flags(FontFlags::SYMBOLIC);
        descriptor.bbox(Rect::new(
            scaled(bounds.x_min),
            scaled(bounds.y_min),
            scaled(bounds.x_max),
            scaled(bounds.y_max),
        ));
        descriptor
            .italic_angle(0.0)
            .ascent(scaled(face.ascender()))
            .descent(scaled(face.descender()));
        descriptor.cap_height(scaled(face.capital_height().unwrap_or(face.ascender())));
        descriptor.stem_v(80.0).font_file2(file);
    }

    fn per_thousand(&self, units: u16) -> f32 {
        f32::from(units) * 1000.0 / f32::from(self.face.units_per_em())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_fonts_has_none() {
        let nothing: &'static [u8] = unpack(&[]).leak();
        assert!(DocumentFont::open(Name(b"Regular"), Ref::new(1), nothing).is_none());
    }
}
