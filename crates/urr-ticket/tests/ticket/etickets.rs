//! Tickets as files: whose they are, and what they hold.

use axum::http::Method;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use urr_service::{Caller, UserRole};

use crate::contract;
use crate::fixture::hall;
use crate::operations::CallerIdentity;
use crate::reader::HttpReader;

contract! {
    async fn the_valid_tickets_of_ones_own_reservation_are_a_pdf(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mina = world.ids.next_id();
        let held = world.hold(event_id, mina, &[0, 1]).await;
        let path = format!("/api/reservations/{}/tickets.pdf", held.reservation.id);
        let reader = HttpReader::new(&world);
        let owner = reader.logged_in(mina, UserRole::User);
        owner.get(&path).await.refused(409, "NO_VALID_TICKET");
        let paid = world.pay(&held).await;

        let document = owner.get_with(&path, &[("accept-language", "ko")]).await;
        if document.status == 503 {
            // Cargo alone builds no pages, and then there are no fonts.
            document.refused(503, "DOCUMENTS_UNAVAILABLE");
            return;
        }
        assert_eq!(document.status, 200);
        assert_eq!(document.headers["content-type"], "application/pdf");
        assert_eq!(document.headers["content-language"], "ko");
        let file = format!("attachment; filename=\"tickets-{}.pdf\"", held.reservation.number);
        assert_eq!(document.headers["content-disposition"], file.as_str());
        assert!(document.bytes.starts_with(b"%PDF-"));
        let path_english = format!("{path}?language=en");
        let english = owner.get_with(&path_english, &[("accept-language", "ko")]).await;
        assert_eq!(english.headers["content-language"], "en", "the query decides");
        owner.get(&format!("{path}?language=fr")).await.refused(400, "INVALID_LANGUAGE");

        let other = reader.logged_in(world.ids.next_id(), UserRole::User);
        other.get(&path).await.refused(404, "RESERVATION_NOT_FOUND");
        reader.get(&path).await.refused(401, "AUTHENTICATION_REQUIRED");
        world.ticket.cancel_reservation(paid.id(), mina, world.context()).await.unwrap();
        owner.get(&path).await.refused(409, "NO_VALID_TICKET");
    }

    /// Whoever has the file can enter, so a mail gets it for the present owner only.
    async fn mails_get_the_tickets_of_their_present_owner(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let [mina, jun] = [(); 2].map(|()| world.ids.next_id());
        let held = world.hold(event_id, mina, &[0]).await;
        let document = async |who, user_id| {
            let id = held.reservation.id;
            let path = format!(
                "/internal/ticket/reservations/{id}/document?userId={user_id}&language=ko"
            );
            world.call(who, Method::GET, &path, Value::Null).await
        };
        let mail = CallerIdentity::Service(Caller::Mail);
        assert_eq!(document(mail, mina).await.1["code"], "NO_VALID_TICKET");
        world.pay(&held).await;
        let (status, body) = document(mail, mina).await;
        if status == 200 {
            let pdf = STANDARD.decode(body["pdf"].as_str().unwrap()).unwrap();
            assert!(pdf.starts_with(b"%PDF-"));
            let file = format!("tickets-{}.pdf", held.reservation.number);
            assert_eq!(body["fileName"], file.as_str());
        } else {
            // Cargo alone builds no pages, and then there are no fonts.
            assert_eq!((status, &body["code"]), (409, &json!("DOCUMENTS_UNAVAILABLE")));
        }
        let (status, body) = document(mail, jun).await;
        assert_eq!((status, &body["code"]), (404, &json!("RESERVATION_NOT_FOUND")));
        let (status, body) = document(CallerIdentity::Service(Caller::Queue), mina).await;
        assert_eq!(status, 403, "{body}");
    }

    async fn the_qr_code_of_ones_own_ticket_is_a_picture(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mina = world.ids.next_id();
        let held = world.hold(event_id, mina, &[0]).await;
        let paid = world.pay(&held).await;
        let reader = HttpReader::new(&world);
        let owner = reader.logged_in(mina, UserRole::User);
        let path = format!("/api/reservations/{}", held.reservation.id);
        let body = owner.get(&path).await.json();
        let number = body["reservation"]["tickets"][0]["number"].as_str().unwrap();
        let path = format!("{path}/tickets/{number}");

        let svg = owner.get(&format!("{path}/qr.svg")).await;
        assert_eq!((svg.status.as_u16(), &svg.headers["content-type"]), (200, &"image/svg+xml".parse().unwrap()));
        assert!(svg.bytes.starts_with(b"<svg "));
        let png = owner.get(&format!("{path}/qr.png")).await;
        assert_eq!((png.status.as_u16(), &png.headers["content-type"]), (200, &"image/png".parse().unwrap()));
        assert!(png.bytes.starts_with(b"\x89PNG"));

        let other = reader.logged_in(world.ids.next_id(), UserRole::User);
        other.get(&format!("{path}/qr.svg")).await.refused(404, "RESERVATION_NOT_FOUND");
        let unknown = format!("/api/reservations/{}/tickets/T-0/qr.png", held.reservation.id);
        owner.get(&unknown).await.refused(404, "TICKET_NOT_FOUND");
        world.ticket.cancel_reservation(paid.id(), mina, world.context()).await.unwrap();
        owner.get(&format!("{path}/qr.png")).await.refused(409, "TICKET_NOT_VALID");
    }
}
