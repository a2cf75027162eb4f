//! E-tickets as files: the QR code of a ticket as a picture, and the tickets of a reservation as a
//! PDF for printing and for keeping offline.
//!
//! This crate draws. What is on a ticket, and who may see it, is decided by the ticket service.

#![expect(clippy::float_arithmetic, reason = "positions on paper, not money")]

mod font;
mod pdf;
mod qr;

pub use pdf::{ETicket, ETicketLabels, PdfError, tickets_to_pdf};
pub use qr::{QrError, QrPicture};
