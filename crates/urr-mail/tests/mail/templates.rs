//! Mails as they are read, one file per kind and language.

use urr_kernel::{Language, Uuid, Won};
use urr_mail::{LinkToken, MailKind, RenderedMail, TemplateData, render};
use urr_test::snapshot::assert_fresh;

use crate::fixture::PUBLIC_URL;

fn data(kind: MailKind) -> TemplateData {
    let known = TemplateData {
        event_id: Some(Uuid::from_u128(1)),
        event_title: Some("한강의 밤 <Encore> & \"친구들\"".to_owned()),
        ..TemplateData::default()
    };
    let planned = TemplateData {
        venue_name: Some("강변 홀".to_owned()),
        starts_at: Some("2026-12-24T10:30:00Z".parse().unwrap()),
        ..known.clone()
    };
    let booked = TemplateData {
        reservation_id: Some(Uuid::from_u128(2)),
        reservation_number: Some("R-7ZQ0-M4KD-91XA".to_owned()),
        places: vec!["1층 A-12-7".to_owned(), "1층 A-12-8".to_owned()],
        quantity: Some(2),
        ..planned.clone()
    };
    match kind {
        MailKind::Purchase => TemplateData {
            amount: Some(Won::new(198_000)),
            method: Some("card".to_owned()),
            has_attached_tickets: Some(true),
            ..booked
        },
        MailKind::Complimentary => TemplateData { has_attached_tickets: Some(true), ..booked },
        MailKind::Cancellation => TemplateData {
            amount: Some(Won::new(198_000)),
            refund: Some(Won::new(178_200)),
            fee: Some(Won::new(19_800)),
            reason: Some("CANCELLED_BY_OWNER".to_owned()),
            ..booked
        },
        MailKind::PartCancellation => TemplateData {
            quantity: Some(1),
            amount: Some(Won::new(99_000)),
            refund: Some(Won::new(89_100)),
            fee: Some(Won::new(9_900)),
            reason: Some("CANCELLED_BY_OWNER".to_owned()),
            ..booked
        },
        MailKind::EventMoved => TemplateData {
            previous_starts_at: Some("2026-12-20T10:30:00Z".parse().unwrap()),
            is_free_to_cancel: Some(true),
            ..booked
        },
        MailKind::Refund => TemplateData {
            refund: Some(Won::new(178_200)),
            fee: Some(Won::new(19_800)),
            method: Some("card".to_owned()),
            reason: Some("cancelled".to_owned()),
            ..booked
        },
        MailKind::AdmissionNear => {
            TemplateData { position: Some(120), wait_seconds: Some(170), ..known }
        }
        MailKind::SaleAlert => TemplateData {
            opens_at: Some("2026-12-01T11:00:00Z".parse().unwrap()),
            is_presale: Some(true),
            ..planned
        },
        MailKind::SeatAlert => TemplateData {
            grade: Some("VIP".to_owned()),
            quantity: Some(2),
            head_start_until: Some("2026-12-05T04:03:00Z".parse().unwrap()),
            ..planned
        },
        MailKind::EmailVerification | MailKind::PasswordReset => {
            TemplateData { link_token: Some(LinkToken("5f2b".repeat(16))), ..Default::default() }
        }
    }
}

#[test]
fn every_mail_reads_as_it_is_written_down() {
    for kind in MailKind::ALL {
        for language in Language::ALL {
            let RenderedMail { subject, text, html, .. } =
                render(kind, language, &data(kind), PUBLIC_URL);
            let file = format!("{}.{}", kind, language);
            let whole = format!("Subject: {subject}\n\n{text}\n----\n{html}");
            let path = format!("crates/urr-mail/tests/mail/rendered/{file}.txt");
            assert_fresh(&path, &whole);
        }
    }
}

#[test]
fn a_mail_about_which_nothing_is_known_can_still_be_read() {
    for kind in MailKind::ALL.into_iter().filter(|kind| *kind != MailKind::Refund) {
        for language in Language::ALL {
            let rendered = render(kind, language, &TemplateData::default(), PUBLIC_URL);
            assert!(rendered.text.contains(PUBLIC_URL), "{rendered:?}");
            assert!(!rendered.text.contains("\n\n\n") && !rendered.text.contains('{'));
            assert!(!rendered.html.contains("<p></p>"));
        }
    }
}

/// A guest has no account, and cannot open the page of a reservation.
#[test]
fn a_mail_to_a_guest_has_no_link() {
    for kind in [MailKind::Complimentary, MailKind::Cancellation, MailKind::EventMoved] {
        for language in Language::ALL {
            let guest = TemplateData { is_guest: true, ..data(kind) };
            let rendered = render(kind, language, &guest, PUBLIC_URL);
            assert!(rendered.text.contains("R-7ZQ0-M4KD-91XA"), "{rendered:?}");
            assert!(!rendered.text.contains(PUBLIC_URL), "{rendered:?}");
            // The control: with an account there is one.
            assert!(render(kind, language, &data(kind), PUBLIC_URL).text.contains(PUBLIC_URL));
        }
    }
    let lost = TemplateData {
        is_guest: true,
        has_attached_tickets: Some(false),
        ..data(MailKind::Complimentary)
    };
    let rendered = render(MailKind::Complimentary, Language::English, &lost, PUBLIC_URL);
    assert!(rendered.text.contains("ask whoever invited you"), "{rendered:?}");
}

/// What people write may be anything.
fn hostile() -> Vec<&'static str> {
    vec![
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "\"><a href=\"https://evil.example\">여기</a>",
        "제목\r\nBcc: everybody@example.com\r\n\r\n본문",
        "제목\nX-Header: 1",
        "{link}{subject}{body}",
        "{unknown}",
        "\u{202e}거꾸로\u{2028}다음 줄",
        "&lt;b&gt;",
        "a\0b\u{7}c\u{9b}d",
    ]
}

#[test]
fn what_people_write_begins_neither_a_tag_nor_a_header_nor_a_line() {
    for text in hostile() {
        for kind in MailKind::ALL {
            let hostile = TemplateData {
                event_title: Some(text.to_owned()),
                venue_name: Some(text.to_owned()),
                places: vec![text.to_owned()],
                reservation_number: Some(text.to_owned()),
                reason: Some(text.to_owned()),
                grade: Some(text.to_owned()),
                method: Some(text.to_owned()),
                ..data(kind)
            };
            let harmless = render(kind, Language::English, &data(kind), PUBLIC_URL);
            let rendered = render(kind, Language::English, &hostile, PUBLIC_URL);
            let is_unfit = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{202e}');
            assert!(!rendered.subject.contains(is_unfit), "{rendered:?}");
            assert_eq!(rendered.text.lines().count(), harmless.text.lines().count(), "{text:?}");
            let tags = |html: &str| html.matches('<').count();
            assert_eq!(tags(&rendered.html), tags(&harmless.html), "{text:?}: {}", rendered.html);
            let ends = |html: &str| html.matches('"').count();
            assert_eq!(ends(&rendered.html), ends(&harmless.html), "{text:?}");
        }
    }
}

#[test]
fn a_text_without_end_is_cut() {
    let long = TemplateData { event_title: Some("가".repeat(5_000)), ..data(MailKind::Purchase) };
    let rendered = render(MailKind::Purchase, Language::Korean, &long, PUBLIC_URL);
    assert!(rendered.subject.chars().count() < 400 && rendered.subject.ends_with('…'));
}

#[test]
fn an_admitted_user_is_told_to_enter_now() {
    let now =
        TemplateData { position: Some(0), wait_seconds: None, ..data(MailKind::AdmissionNear) };
    let rendered = render(MailKind::AdmissionNear, Language::English, &now, PUBLIC_URL);
    assert!(rendered.text.contains("you can enter now"), "{}", rendered.text);
    assert!(!rendered.text.contains("Estimated wait"), "{}", rendered.text);
    assert!(rendered.link.ends_with("/queue/00000000-0000-0000-0000-000000000001"));
}
